"""The policy: uniform actions at first, then those of a planner, whose plan goes from step to step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import torch
from rlcore_plugin_sac.box import ActionBox
from rlcore_plugin_sac.first_frames import FirstFrames
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.types import Context, Key
from rlcore_plugin_tdmpc2.planning import Planner
from rlcore_plugin_tdmpc2.world import World

# of the noise of one batch
_MOST_BYTES: Final = 2 << 30


class PlanningPolicy:
    """Acts by a planner, with a state: see `rlcore.types.StatefulPolicy`.

    Args:
        world: the model that the planner asks.
        planner: chooses actions.
        owner: whose buffer `mode_noise` `[noise_size]` the planner takes in evaluations, the same in every step.
        box: of the actions.
        random_frames: frames in the beginning whose actions are uniform.
        context: of the model.
    """

    writes: tuple[Key, ...] = ()

    def __init__(
        self, world: World, planner: Planner, owner: Any, box: ActionBox, random_frames: int, context: Context
    ) -> None:
        self._world, self._planner, self._box = world, planner, box
        self._owner = owner
        self._first_frames = FirstFrames(random_frames, context) if random_frames else None
        self._begins = False
        self.refresh()

    def initial_state(self, num_envs: int) -> Tensor:
        """Return plans of nothing, `[env, state_size]`."""
        return torch.zeros(num_envs, self._planner.state_size, device=self._owner.mode_noise.device)

    def draw(self, steps: int, num_envs: int, generator: torch.Generator) -> Tensor:
        """Sample the noise of a batch.

        Returns:
            `[time, env, noise_size]`; while actions are uniform these `[time, env, action]`. In the batch in which the
            first frames end both side by side, and a last column of ones where the first ones are the action.

        Raises:
            ConfigError: a batch of so many steps takes too much memory.
        """
        device, size = generator.device, self._planner.noise_size
        random = self._random_rows(steps, num_envs, device)
        pieces: list[Tensor] = []
        if random is not None:
            unit = torch.rand(steps, num_envs, self._box.size, generator=generator, device=device).mul_(2).sub_(1)
            pieces.append(self._box.from_unit(unit))
            if bool(random.all()):
                return pieces[0]
        if 4 * steps * num_envs * size > _MOST_BYTES:
            raise ConfigError(
                f"[collector] frames_per_batch: the planner takes {size:,} random numbers for each of {steps} steps of "
                f"{num_envs} envs, which is more than {_MOST_BYTES >> 30} GiB for one batch; collect fewer frames per "
                "batch, or lower [model] samples"
            )
        pieces.append(torch.randn(steps, num_envs, size, generator=generator, device=device))
        if random is not None:
            pieces.append(random.to(pieces[0].dtype))
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, -1)

    def act(self, observation: Tensor, noise: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return actions `[env, action]`, the same again, since nothing more is to be described, and the next plans."""
        uniform, planned = noise[..., : self._box.size], noise
        state = _begun(state, first)
        if self._begins:
            if noise.shape[-1] == self._box.size:
                return noise, noise, state
            planned = noise[..., self._box.size : -1]
        action, _, following = self._planner.plan(self._world, self._world.encode(observation), state, planned)
        action = self._box.from_unit(action)
        if self._begins:
            is_random = noise[..., -1:] > 0
            action, following = torch.where(is_random, uniform, action), torch.where(is_random, state, following)
        return action, action, following

    def mode(self, observation: Tensor, state: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
        """Return the means of the last round `[env, action]`, and the next plans; no noise is added."""
        noise = self._owner.mode_noise.expand(observation.shape[0], -1)
        latent = self._world.encode(observation)
        _, best, following = self._planner.plan(self._world, latent, _begun(state, first), noise)
        return self._box.from_unit(best), following

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[Key, Tensor]:
        """Return nothing: the loss needs no more than the transition."""
        return {}

    def refresh(self) -> None:
        """See whether the random frames are over; the weights are read where they are."""
        self._begins = self._first_frames is not None and self._first_frames.are_now()

    def _random_rows(self, steps: int, num_envs: int, device: torch.device) -> Tensor | None:
        """Return which actions of the next batch are uniform, `[time, env, 1]`; None once the first frames are over."""
        if not self._begins or self._first_frames is None:
            return None
        return self._first_frames.of_batch(steps, num_envs, device)


def _begun(state: Tensor, first: Tensor) -> Tensor:
    """Return the states before a step: zeros where an episode begins."""
    return torch.where(first.unsqueeze(-1), 0.0, state)
