"""The in-process collector: model and vector env to a batch, with a record of each finished episode.

Collectors with worker processes come from plugins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from pydantic import BaseModel, Field
from torch import Tensor

from rlcore.envs import inexact_env, unrestored_env
from rlcore.types import Context, Policy
from rlcore_plugin_rollout.batch_storage import BatchStorage
from rlcore_plugin_rollout.env_collector import EnvCollector
from rlcore_plugin_rollout.policy_state import remembering
from rlcore_plugin_rollout.stepping import Acting, EnvStepper

if TYPE_CHECKING:
    from rlcore.types import CollectedBatch


class LocalCollector(EnvCollector):
    """Steps the envs in this process.

    The batch `[env, time]` it returns is a view of storage that the next call overwrites.
    """

    class Config(BaseModel, extra="forbid"):
        """Size of a batch."""

        frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config.frames_per_batch, context, context)
        spec = self._spec
        self._env = context.env
        memory = remembering(self._policy, spec, context.device)
        elsewhere = context.device.type != "cpu"
        self._acting: Acting = memory or (_Elsewhere(self._policy, context.device) if elsewhere else self._policy)
        self._storage = BatchStorage.allocated(self._steps, spec.num_envs, spec.observation_space, self._masked)
        self._without_gradients = torch.inference_mode()  # made once: to make it costs as much as to enter it
        self._stepper = EnvStepper(self._env, context.transforms, spec, context.heart, context.first_env, memory)

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EnvError: an observation or reward is not finite; nothing of the batch reaches the buffer.
        """
        frame = self._context.progress.frames
        if not self._started:
            self._stepper.begin(self._reset_seed(frame), frame)
            self._started = True
        self._policy.refresh()
        with self._without_gradients:
            noise = self._draw_noise()
            finished = self._stepper.collect(self._storage, self._acting, noise, frame)
        self._finished = [episode for _, episode in finished]
        return self._on_device(self._storage.batch())

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes here, or None when every env goes on in the middle of its episode."""
        return inexact_env(self._env)

    def unrestored(self) -> str | None:
        """Return what the last `load_state_dict` could not bring back of the envs, or None."""
        return unrestored_env(self._env) if self._started else None

    def _running_episodes(self) -> int:
        return self._stepper.running

    def _save_episodes(self) -> Any:
        return self._stepper.state_dict()

    def _load_episodes(self, episodes: Any) -> None:
        self._stepper.load_state_dict(episodes)


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
