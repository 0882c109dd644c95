"""The in-process collector: model and vector env to a batch, with a record of each finished episode.

Collectors with worker processes come from plugins.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.collectors.batch_storage import BatchStorage
from rlcore.collectors.stepping import EnvStepper
from rlcore.envs.checks import inexact_env, unrestored_env
from rlcore.errors import ConfigError
from rlcore.types import Episode, Key, Policy
from rlcore.types.context import Context
from rlcore.types.records import COLLECTED, MASK

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import EnvSpec

log = logging.getLogger(__name__)


def steps_per_env(frames_per_batch: int, spec: EnvSpec) -> int:
    """Return the steps of each env in a batch of so many frames.

    Raises:
        ConfigError: it is not a whole number.
    """
    per_step = spec.num_envs * spec.frame_skip
    if frames_per_batch % per_step:
        raise ConfigError(
            f"[collector] frames_per_batch = {frames_per_batch} is not a multiple of {per_step} "
            f"([env] num_envs = {spec.num_envs} times frame_skip = {spec.frame_skip})"
        )
    return frames_per_batch // per_step


def written(masked: bool) -> tuple[Key, ...]:
    """Return the entries of a batch besides those that the policy describes; a mask where some steps only reset."""
    return (*COLLECTED, MASK) if masked else COLLECTED


class LocalCollector:
    """Steps the envs in this process.

    The batch `[env, time]` it returns is a view of storage that the next call overwrites.

    Attributes:
        dropped_episodes: running episodes that resumes could not go on with.
        writes: the entries of a batch besides those that the policy describes.
    """

    class Config(BaseModel, extra="forbid"):
        """Size of a batch."""

        frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs")

    def __init__(self, config: Config, context: Context) -> None:
        spec = context.env_spec
        self._steps = steps_per_env(config.frames_per_batch, spec)
        self.batch_steps = self._steps * spec.num_envs
        self._context = context
        self._spec = spec
        self._env = context.env
        self._policy: Policy = context.model.policy
        self._acting = self._policy if context.device.type == "cpu" else _Elsewhere(self._policy, context.device)
        self._generator = context.generator("noise")
        self._finished: list[Episode] = []
        masked = spec.reset_mode == "next_step"
        self.writes = written(masked)
        self._storage = BatchStorage.allocated(self._steps, spec.num_envs, spec.observation_space, masked)
        self._rollout = EnvStepper(self._env, context.transforms, spec, context.heart)
        self._started = False
        self.dropped_episodes = 0

    def collect(self) -> TensorDict:
        """Return the next batch.

        Raises:
            EnvError: an observation or reward is not finite; nothing of the batch reaches the buffer.
        """
        frame = self._context.progress.frames
        if not self._started:
            self._rollout.begin(self._context.seed(f"reset at frame {frame}") % 2**31, frame)
            self._started = True
        self._policy.refresh()
        with torch.inference_mode():
            noise = self._policy.draw(self._steps, self._spec.num_envs, self._generator).unbind(0)
        finished = self._rollout.collect(self._storage, self._acting, noise, frame)
        self._finished = [episode for _, episode in finished]
        batch = self._storage.batch()
        return batch if self._context.device.type == "cpu" else batch.to(self._context.device)

    def episodes(self) -> list[Episode]:
        """Return the episodes that ended in the last batch, in the order in which they ended."""
        return self._finished

    def update_model(self) -> None:
        """Do nothing: the policy reads the learner's weights, and is refreshed before each batch."""

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes here, or None when every env goes on in the middle of its episode."""
        return inexact_env(self._env)

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back of the envs, or None."""
        return unrestored_env(self._env) if self._started else None

    def state_dict(self) -> dict[str, Any]:
        """Return the exploration noise's position, and the running episodes with the state of the envs."""
        state = {"generator": self._generator.get_state(), "dropped_episodes": self.dropped_episodes}
        if self._started:
            state["running"] = self._rollout.running
            if self.inexact() is None:
                state["episodes"] = self._rollout.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes; where an env cannot, begin new ones and count those that are dropped."""
        self._generator.set_state(state["generator"])
        self.dropped_episodes = state["dropped_episodes"]
        self._started = False
        if "episodes" in state and self.inexact() is None:
            self._rollout.load_state_dict(state["episodes"])
            self._started = True
        elif state.get("running"):
            self.dropped_episodes += state["running"]
            reason = self.inexact() or "their state could not be saved"
            log.warning("%d running episodes are dropped: %s", state["running"], reason)


class _Elsewhere:
    """A policy on another device than the envs."""

    def __init__(self, policy: Policy, device: torch.device) -> None:
        self.describe = policy.describe
        self._policy = policy
        self._device = device

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return the actions, on the CPU, and what `describe` needs, on the device."""
        action, parameters = self._policy.act(observation.to(self._device, non_blocking=True), noise)
        return action.cpu(), parameters
