"""The hook that records evaluations: episodes of the deterministic policy in an env of its own, made to render."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore import hookimpl
from rlcore.envs import play
from rlcore.errors import ConfigError, RlcoreError
from rlcore.types import Context, Env, defines
from rlcore_plugin_video.frames import MAX_FRAMES, center_crop, stack, tile, to_frames
from rlcore_plugin_video.mp4 import VideoFolder

if TYPE_CHECKING:
    from rlcore.types import BoolArray, EvaluationResult, Trainer

log = logging.getLogger(__name__)

VIDEOS: Final = "videos"


class VideoHook:
    """Plays episodes of an evaluation again and records them. Training does not notice."""

    observer: Final = True
    ranks: Final = "first"

    class Config(BaseModel, extra="forbid"):
        """What is recorded, and how."""

        every: int = Field(1, ge=1, description="record one of so many evaluations, beginning with the first")
        episodes: int = Field(1, ge=1, description="episodes to record, on the first seeds of the evaluation")
        tag: str = Field("evaluation", pattern=r"^[\w.-]+$", description="name of the videos")
        fps: int | None = Field(None, ge=1, description="frames per second; default: real time, where the env knows")
        max_frames: int = Field(MAX_FRAMES, ge=1, description="most frames of an episode; the rest is not shown")
        skip: int = Field(2, ge=1, description="steps between two frames")
        center_crop: int | None = Field(None, ge=1, description="width of the middle square, in pixels; default: all")
        grid: bool = Field(True, description="several episodes side by side in one video, instead of one video each")
        required: bool = Field(False, description="end the run at its start when nothing can be rendered")

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        self._context = context
        self._make_env = context.make_env
        self._env: Env | None = None
        self._ready = False
        self._evaluations = 0

    @hookimpl
    def setup(self, trainer: Trainer) -> None:
        """Try to render, unless there is nowhere to put a video.

        Raises:
            RlcoreError: nothing can be rendered, though videos are required.
        """
        if self._context.run.folder is not None or trainer.metrics.writers:
            self._guarded(self._try_to_render, "no videos will be made")

    @hookimpl
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Record the evaluation, if it is its turn."""
        due = self._evaluations % self._config.every == 0
        self._evaluations += 1
        if due and self._ready:
            self._guarded(lambda: self._record(result, trainer), f"no video of frame {result.frames:,}")

    @hookimpl
    def shutdown(self) -> None:
        """Close the env."""
        if self._env is not None:
            self._env.close()
            self._env = None

    def state_dict(self) -> dict[str, Any]:
        """Return how many evaluations there were."""
        return {"evaluations": self._evaluations}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set how many evaluations there were."""
        self._evaluations = state["evaluations"]

    def _guarded(self, call: Callable[[], None], consequence: str) -> None:
        """Keep the run going without a video, unless it is required."""
        try:
            call()
        except (RlcoreError, OSError) as error:
            if self._config.required:
                raise
            log.warning("%s: %s: %s", self._context.name, consequence, error)

    def _try_to_render(self) -> None:
        env = self._rendered_env(1)
        env.reset(seed=0)
        self._pictures(env, [0])
        self._ready = True

    def _rendered_env(self, num_envs: int) -> Env:
        """Return an env that is made to render; the one of the last evaluation, if it has as many envs."""
        if self._env is not None and self._env.spec.num_envs == num_envs:
            return self._env
        self.shutdown()
        env = self._make_env(num_envs, render_mode="rgb_array")
        if not defines(env, Env.render):
            env.close()
            raise ConfigError(f"env {env.spec.id!r} has the key render_mode, but no render() and render_fps")
        self._env = env
        return env

    def _record(self, result: EvaluationResult, trainer: Trainer) -> None:
        env = self._rendered_env(len(result.seeds))
        videos = self._play(env, result)
        if self._config.grid:
            videos = [tile(stack(videos))]
        fps = self._config.fps or max(1, round(env.render_fps / self._config.skip))
        trainer.metrics.log_video(self._config.tag, stack(videos), result.frames, fps)
        if self._context.run.folder is not None:
            self._write(self._context.run.folder / VIDEOS, videos, result, fps)

    def _play(self, env: Env, result: EvaluationResult) -> list[Tensor]:
        """Play the evaluation again; return the frames of its first episodes, `[T, C, H, W]` each.

        There is a frame before the first step, then one after every `skip`-th, and that of the end.
        """
        config = self._config
        frames: list[list[Tensor]] = [[] for _ in result.seeds[: config.episodes]]
        steps = itertools.count()

        def look(playing: BoolArray, over: BoolArray) -> None:
            due = playing if next(steps) % config.skip == 0 else playing & over
            recorded = [i for i, kept in enumerate(frames) if due[i] and len(kept) < config.max_frames]
            for index, picture in zip(recorded, self._pictures(env, recorded), strict=True):
                frames[index].append(picture)

        returns, _ = play(env, self._context, result.seeds[0], look)
        if tuple(returns.tolist()) != result.returns:
            log.warning("%s: the episodes of frame %d went otherwise than evaluated", self._context.name, result.frames)
        return [torch.stack(kept) for kept in frames]

    def _write(self, folder: Path, videos: list[Tensor], result: EvaluationResult, fps: int) -> None:
        """Write the mp4 files; of several, each is called after the seed of its episode."""
        files = VideoFolder(folder)
        for seed, video in zip(result.seeds, videos, strict=False):
            name = self._config.tag if len(videos) == 1 else f"{self._config.tag}_seed{seed}"
            files.log_video(name, video.unsqueeze(0), result.frames, fps)

    def _pictures(self, env: Env, indices: list[int]) -> list[Tensor]:
        """Return a frame `[C, H, W]` of each of these envs."""
        if not indices:
            return []
        frames = to_frames(env.render(indices), f"pictures of env {env.spec.id!r}")
        return list(frames if self._config.center_crop is None else center_crop(frames, self._config.center_crop))
