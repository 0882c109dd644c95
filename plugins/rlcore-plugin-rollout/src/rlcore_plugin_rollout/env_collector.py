"""What collectors that step envs with the model's policy have in common, wherever the envs are stepped."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlcore.envs import only_resets
from rlcore.errors import ConfigError
from rlcore.types import COLLECTED, MASK, REMEMBERED, Collector, Context, Episode, Key, Policy, has_memory

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import CollectedBatch, EnvSpec

log = logging.getLogger(__name__)


class EnvCollector(Collector):
    """Base of the collectors that step envs: sizes, noise, the record of episodes, and what a checkpoint carries.

    Args:
        frames_per_batch: over all envs.
        context: of the run; has the spec of the envs and the model.
        seeds: where the noise is derived from, so that collectors which do the same may have the same noise.
        batch_envs: how many envs a batch has; default: all.

    Attributes:
        batch_steps: steps in a batch, over all of its envs.
        batch_envs: how many envs a batch has.
        dropped_episodes: running episodes that resumes could not go on with.
        writes: the entries of a batch besides those that the policy describes.

    Raises:
        ConfigError: the frames of a batch cannot be divided among the envs.
    """

    batch_steps: int
    batch_envs: int

    def __init__(self, frames_per_batch: int, context: Context, seeds: Context, batch_envs: int | None = None) -> None:
        spec = context.env_spec
        self.batch_envs = spec.num_envs if batch_envs is None else batch_envs
        self._steps = steps_per_env(frames_per_batch, spec, self.batch_envs)
        self.batch_steps = self._steps * self.batch_envs
        self.dropped_episodes = 0
        self._masked = only_resets(spec)
        self.writes: tuple[Key, ...] = (*COLLECTED, MASK) if self._masked else COLLECTED
        if has_memory(context.model):
            self.writes = (*self.writes, *REMEMBERED)
        self._context = context
        self._on_run_device = context.device.type == "cpu"  # batches are collected on the CPU
        self._seeds = seeds
        self._spec = spec
        self._policy: Policy = context.model.policy
        self._generator = seeds.generator("noise")
        self._finished: list[Episode] = []
        self._started = False

    def collect(self) -> TensorDict:
        """Return the next batch `[env, time]`, a view of memory that the next call overwrites.

        Raises:
            EnvError: an env failed, or a value is not finite; nothing of the batch reaches the buffer.
        """
        return self.collect_columns().to_tensordict()

    @abstractmethod
    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors, views of memory that the next call overwrites; see `collect`."""

    def episodes(self) -> list[Episode]:
        """Return the episodes that ended in the last batch, in the order in which they ended."""
        return self._finished

    @abstractmethod
    def inexact(self) -> str | None:
        """Return why a resume begins new episodes here, or None when every env goes on in the middle of its episode."""

    def state_dict(self) -> dict[str, Any]:
        """Return the exploration noise's position, and the running episodes with the state of the envs."""
        state = {"generator": self._generator.get_state(), "dropped_episodes": self.dropped_episodes}
        if self._started:
            state["running"] = self._running_episodes()
            if self.inexact() is None:
                state["episodes"] = self._save_episodes()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes; where an env cannot, begin new ones and count those that are dropped."""
        self._generator.set_state(state["generator"])
        self.dropped_episodes = state["dropped_episodes"]
        self._started = False
        if "episodes" in state and self.inexact() is None:
            self._load_episodes(state["episodes"])
            self._started = True
        elif state.get("running"):
            self.dropped_episodes += state["running"]
            reason = self.inexact() or "their state could not be saved"
            log.warning("%d running episodes are dropped: %s", state["running"], reason)

    @abstractmethod
    def _running_episodes(self) -> int:
        """Return how many episodes are in their middle."""

    @abstractmethod
    def _save_episodes(self) -> Any:
        """Return the running episodes with the state of the envs, which have one."""

    @abstractmethod
    def _load_episodes(self, episodes: Any) -> None:
        """Go on with what `_save_episodes` returned."""

    def _reset_seed(self, frame: int) -> int:
        """Return the seed with which env 0 begins where nothing is resumed at this frame."""
        return self._seeds.seed(f"reset at frame {frame}") % 2**31  # what NumPy and Gymnasium take

    def _draw_noise(self) -> Tensor:
        """Return the noise of the next batch, `[time, env, ...]`; to be called in torch's inference mode.

        Ranks draw for the envs of all, and each takes that of its own: an env has the same noise wherever it runs.
        """
        ranks, envs = self._context.group.size, self.batch_envs
        if ranks == 1:
            return self._policy.draw(self._steps, envs, self._generator)
        noise = self._policy.draw(self._steps, ranks * envs, self._generator)
        return noise[:, self._context.group.rank * envs :][:, :envs].contiguous()

    def _on_device(self, batch: CollectedBatch) -> CollectedBatch:
        """Return a batch where the learner takes it."""
        return batch if self._on_run_device else batch.to(self._context.device)


def steps_per_env(frames_per_batch: int, spec: EnvSpec, batch_envs: int) -> int:
    """Return the steps of each env in a batch of so many frames and envs.

    Raises:
        ConfigError: it is not a whole number.
    """
    per_step = batch_envs * spec.frame_skip
    if frames_per_batch % per_step:
        envs = "" if batch_envs == spec.num_envs else f", of which a batch has {batch_envs},"
        raise ConfigError(
            f"[collector] frames_per_batch = {frames_per_batch} is not a multiple of {per_step} "
            f"([env] num_envs = {spec.num_envs}{envs} times frame_skip = {spec.frame_skip})",
            remedy={"collector": {"frames_per_batch": -(-frames_per_batch // per_step) * per_step}},
        )
    return frames_per_batch // per_step
