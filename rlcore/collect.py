"""The in-process collector: model and vector env to a batch, with a record of each finished episode.

The envs write into storage that is allocated once; nothing is created, stacked or sliced per key and step.
Collectors with worker processes come from plugins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.context import Context
from rlcore.episodes import EpisodeCounter
from rlcore.errors import ConfigError, EnvError, RlcoreError
from rlcore.transformed import env_step, observation_dtype
from rlcore.types import Episode, Policy, Step

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array

log = logging.getLogger(__name__)


class LocalCollector:
    """Steps the envs in this process.

    The batch `[env, time]` it returns is a view of storage that the next call overwrites.

    Attributes:
        dropped_episodes: running episodes that resumes could not go on with.
    """

    class Config(BaseModel, extra="forbid"):
        """Size of a batch."""

        frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs")

    def __init__(self, config: Config, context: Context) -> None:
        spec = context.env_spec
        per_step = spec.num_envs * spec.frame_skip
        if config.frames_per_batch % per_step:
            raise ConfigError(
                f"[collector] frames_per_batch = {config.frames_per_batch} is not a multiple of {per_step} "
                f"([env] num_envs = {spec.num_envs} times frame_skip = {spec.frame_skip})"
            )
        self._steps = config.frames_per_batch // per_step
        self.batch_steps = self._steps * spec.num_envs
        self._context = context
        self._spec = spec
        self._env = context.env
        self._transforms = context.transforms
        self._policy: Policy = context.model.policy
        self._generator = context.generator("noise")
        self._finished: list[Episode] = []
        self._storage = _Storage(self._steps, spec.num_envs, spec.observation_space)
        self._episodes = EpisodeCounter(spec.num_envs)
        self._ended = np.zeros(spec.num_envs, dtype=bool)
        self._started = False
        self.dropped_episodes = 0

    def collect(self) -> TensorDict:
        """Return the next batch.

        Raises:
            EnvError: an observation or reward is not finite; nothing of the batch reaches the buffer.
        """
        if not self._started:
            self._start()
        storage = self._storage
        storage.carry_over()
        self._policy.refresh()
        infos = self._run()
        storage.finish(self._spec.reset_mode == "next_step", self._ended)
        self._check_finite()
        self._finished = self._record_episodes(infos)
        return self._batch()

    def episodes(self) -> list[Episode]:
        """Return the episodes that ended in the last batch, in the order in which they ended."""
        return self._finished

    def update_model(self) -> None:
        """Do nothing: the policy reads the learner's weights, and is refreshed before each batch."""

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes here, or None when every env goes on in the midst of its episode."""
        if not (hasattr(self._env, "state_dict") and hasattr(self._env, "load_state_dict")):
            return f"env {self._spec.id!r} has no state that could be saved; a resume begins new episodes"
        probe = getattr(self._env, "inexact", None)
        return probe() if probe is not None else None

    def state_dict(self) -> dict[str, Any]:
        """Return the exploration noise's position, and the running episodes with the state of the envs."""
        state = {"generator": self._generator.get_state(), "dropped_episodes": self.dropped_episodes}
        if self._started:
            state["running"] = int((self._episodes.lengths > 0).sum())
            if self.inexact() is None:
                state["episodes"] = {
                    "env": self._env.state_dict(),  # type: ignore[attr-defined]
                    "observation": self._storage.observation[-1],
                    "returns": self._episodes.returns,
                    "lengths": self._episodes.lengths,
                    "ended": self._ended,
                }
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes; where an env cannot, begin new ones and count those that are dropped."""
        self._generator.set_state(state["generator"])
        self.dropped_episodes = state["dropped_episodes"]
        self._started = False
        if "episodes" in state and self.inexact() is None:
            episodes = state["episodes"]
            self._env.load_state_dict(episodes["env"])  # type: ignore[attr-defined]
            self._storage.observation[-1] = episodes["observation"]
            self._episodes.returns[:], self._episodes.lengths[:] = episodes["returns"], episodes["lengths"]
            self._ended = np.array(episodes["ended"])
            self._started = True
        elif state.get("running"):
            self.dropped_episodes += state["running"]
            log.warning("%d running episodes are dropped: %s", state["running"], self.inexact())

    def _start(self) -> None:
        seed = self._context.seed(f"reset at frame {self._context.progress.frames}") % 2**31
        try:
            observation = self._env.reset(seed=seed)
        except Exception as error:
            raise self._env_error(error, "in its reset") from error
        self._ended[:] = False
        for transform in self._transforms:
            observation = transform.step(observation, ~self._ended)
        self._storage.observation[-1] = observation
        self._episodes.reset()
        self._started = True

    def _run(self) -> dict[tuple[int, int], Mapping[str, Any]]:
        """Fill the storage and return the infos of ended episodes by (time, env)."""
        storage, write = self._storage, self._write
        step_envs = env_step(self._env, self._transforms)
        device = self._context.device
        act = self._policy.act if device.type == "cpu" else self._act_elsewhere
        heart = self._context.heart
        actions: list[Tensor] = []
        parameters: list[Tensor] = []
        infos: dict[tuple[int, int], Mapping[str, Any]] = {}
        with torch.inference_mode():
            noise = self._policy.draw(self._steps, self._spec.num_envs, self._generator).unbind(0)
            for time, observation in enumerate(storage.observation_rows):
                action, parameter = act(observation, noise[time])
                actions.append(action)
                parameters.append(parameter)
                try:
                    step = step_envs(action.numpy())
                    write(time, step)
                except Exception as error:
                    raise self._env_error(error, f"at step {time}") from error
                heart.beats += 1
                if step.infos:
                    infos.update({(time, index): info for index, info in step.infos.items()})
            storage.set_actions(actions, parameters, self._policy)
        return infos

    def _env_error(self, error: Exception, where: str) -> RlcoreError:
        """Return the error for what an env raised, or for a step that does not fit its spec."""
        if isinstance(error, RlcoreError):
            return error
        return EnvError(
            f"env {self._spec.id!r} {where} of the batch that began at frame {self._context.progress.frames}: "
            f"{type(error).__name__}: {error}; the batch is discarded"
        )

    def _act_elsewhere(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        action, parameter = self._policy.act(observation.to(self._context.device, non_blocking=True), noise)
        return action.cpu(), parameter

    def _write(self, time: int, step: Step) -> None:
        storage = self._storage
        observation, storage.reward[time], storage.terminated[time], storage.truncated[time] = step[:4]
        if self._transforms:
            for index, final in step.final_observation.items():
                for transform in self._transforms:
                    final = transform.final(final, index)
                storage.final[time, index] = final
            first = self._first(time, step)
            for transform in self._transforms:
                observation = transform.step(observation, first)
        elif step.final_observation:
            for index, final in step.final_observation.items():
                storage.final[time, index] = np.array(final)
        storage.observation[time + 1] = observation

    def _first(self, time: int, step: Step) -> Any:
        """Return which of the observations of `step` begin an episode."""
        if self._spec.reset_mode == "same_step":
            return step.terminated | step.truncated
        return self._ended if time == 0 else (self._storage.terminated[time - 1] | self._storage.truncated[time - 1])

    def _check_finite(self) -> None:
        storage = self._storage
        for name, values in (
            ("reward", storage.reward),
            ("observation", storage.observation),
            ("final observation", storage.next_observation),
        ):
            if values.dtype.kind == "f" and not np.isfinite(values.sum()):
                bad = np.argwhere(~np.isfinite(values))
                if len(bad):
                    time, index = int(bad[0][0]), int(bad[0][1])
                    raise EnvError(
                        f"env {self._spec.id!r}: {name} of env {index} at step {time} of the batch that began at frame "
                        f"{self._context.progress.frames} is {values[tuple(bad[0])]}; the batch is discarded. "
                        "Repair the environment, or clip with a transform."
                    )

    def _record_episodes(self, infos: Mapping[tuple[int, int], Mapping[str, Any]]) -> list[Episode]:
        """Return the episodes that ended, and carry the open ones over to the next batch."""
        storage = self._storage
        finished = self._episodes.take(storage.reward, storage.done, storage.mask)
        self._ended = storage.done[-1].copy()
        return [
            Episode(return_, length, index, infos.get((time, index), {})) for time, index, return_, length in finished
        ]

    def _batch(self) -> TensorDict:
        batch = self._storage.batch()
        return batch if self._context.device.type == "cpu" else batch.to(self._context.device)


class _Storage:
    """Arrays `[time, env, ...]` that are allocated once, and the batch `[env, time]` that views them."""

    def __init__(self, steps: int, num_envs: int, space: Any) -> None:
        if space.shape is None or space.dtype is None:
            raise ConfigError(
                f"the collector takes observations of one array, not {space}; flatten them with a wrapper or transform"
            )
        dtype = observation_dtype(space)
        self.observation = np.zeros((steps + 1, num_envs, *space.shape), dtype=dtype)
        self.next_observation = np.zeros((steps, num_envs, *space.shape), dtype=dtype)
        self.reward = np.zeros((steps, num_envs), dtype=np.float32)
        self.terminated = np.zeros((steps, num_envs), dtype=bool)
        self.truncated = np.zeros((steps, num_envs), dtype=bool)
        self.done = np.zeros((steps, num_envs), dtype=bool)
        self.mask = np.ones((steps, num_envs), dtype=bool)
        self.final: dict[tuple[int, int], Array] = {}
        self.observation_rows = torch.from_numpy(self.observation)[:-1].unbind(0)
        self._masked = False
        self._action: Tensor | None = None
        self._described: dict[str, Tensor] = {}
        self._template: TensorDict | None = None

    def carry_over(self) -> None:
        """Begin a batch with the observation after the last step of the one before."""
        self.observation[0] = self.observation[-1]

    def finish(self, next_step: bool, was_ended: Array) -> None:
        """Fill in what follows from the steps: `done`, next observations, mask."""
        np.logical_or(self.terminated, self.truncated, out=self.done)
        self.next_observation[:] = self.observation[1:]
        for place, observation in self.final.items():
            self.next_observation[place] = observation
        self.final.clear()
        if next_step:
            self._masked = True
            self.mask[0] = ~was_ended
            np.logical_not(self.done[:-1], out=self.mask[1:])

    def set_actions(self, actions: list[Tensor], parameters: list[Tensor], policy: Policy) -> None:
        """Store the actions of the batch and what the policy says of them."""
        stacked = torch.stack(actions)
        described = policy.describe(torch.stack(parameters), stacked.to(parameters[0].device))
        if self._action is None:
            with torch.inference_mode(False):
                self._action = torch.empty(stacked.shape, dtype=stacked.dtype)
                self._described = {
                    name: torch.empty(value.shape, dtype=value.dtype, device=value.device)
                    for name, value in described.items()
                }
        self._action.copy_(stacked)
        for name, value in described.items():
            self._described[name].copy_(value)

    def batch(self) -> TensorDict:
        """Return the batch; the TensorDict is new, its tensors are views."""
        if self._template is None:
            self._template = self._view()
        return self._template.copy()

    def _view(self) -> TensorDict:
        from tensordict import TensorDict

        def column(array: Array) -> Tensor:
            return torch.from_numpy(array).transpose(0, 1).unsqueeze(-1)

        steps, num_envs = self.reward.shape
        size = [num_envs, steps]
        assert self._action is not None
        following = {
            "observation": torch.from_numpy(self.next_observation).transpose(0, 1),
            "reward": column(self.reward),
            "done": column(self.done),
            "terminated": column(self.terminated),
            "truncated": column(self.truncated),
        }
        entries: dict[str, Any] = {
            "observation": torch.from_numpy(self.observation)[:-1].transpose(0, 1),
            "action": self._action.transpose(0, 1),
            **{name: value.transpose(0, 1) for name, value in self._described.items()},
            "next": TensorDict(following, batch_size=size),
        }
        if self._masked:
            entries["collector"] = TensorDict({"mask": column(self.mask)}, batch_size=size)
        return TensorDict(entries, batch_size=size)
