"""The toy env seen as a dict of arrays, with a mask that forbids some of its actions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import gymnasium
import numpy as np
from pydantic import Field

from rlcore.types import Step
from rlcore.types.context import Context
from rlcore_plugin_testing.toy import ToyEnv

if TYPE_CHECKING:
    from rlcore.types import Array


class ToyDict(ToyEnv):
    """A `ToyEnv` that observes a dict: `state`, float32 `[3]`, and `frame`, uint8 `[2, 2]`, the number of the step.

    With numbered actions there is an `action_mask` too, int8 `[action]`: at step `t` of an episode, each choice among
    `n` actions has its action `t % n` forbidden. Of bits, `[2 bit]`, bit `i` must not be `(t + i) % 3`, so that one
    in three may be both. The last observation of an episode that terminated allows none.
    """

    class Config(ToyEnv.Config):
        """The episodes, and what is seen of them."""

        actions: Literal["unbounded", "bounded", "discrete", "numbered", "choices", "bits"] = Field(
            "discrete", description="the action space"
        )

    def __init__(self, config: Config, context: Context | None = None) -> None:
        super().__init__(config, context)
        space: Any = self.spec.action_space
        leaves: dict[str, gymnasium.Space[Any]] = {
            "state": gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32),
            "frame": gymnasium.spaces.Box(0, 255, (2, 2), np.uint8),
        }
        self._choices: list[int] = []
        self._turns: list[tuple[int, int]] = []  # of each choice: after how many steps the same one is forbidden, begin
        if config.actions in ("discrete", "numbered", "choices"):
            self._choices = [int(space.n)] if config.actions != "choices" else space.nvec.tolist()
            self._turns = [(size, 0) for size in self._choices]
        if config.actions == "bits":
            self._choices = [2] * space.shape[0]
            self._turns = [(3, bit) for bit in range(space.shape[0])]
        if self._choices:
            leaves["action_mask"] = gymnasium.spaces.MultiBinary(sum(self._choices))
        self.spec = replace(self.spec, id="toy-dict", observation_space=gymnasium.spaces.Dict(leaves))

    def reset(self, seed: int | None = None) -> Any:
        """Reset every env, from its episode 0."""
        return self._seen(super().reset(seed))

    def step(self, action: Array) -> Step:
        """Step every env."""
        step = super().step(action)
        finals: dict[int, Any] = {
            index: {name: leaf[0] for name, leaf in self._seen(final[None], step.terminated[[index]]).items()}
            for index, final in step.final_observation.items()
        }
        ended = step.terminated if self.spec.reset_mode == "next_step" else None
        return step._replace(observation=self._seen(step.observation, ended), final_observation=finals)

    def _seen(self, state: Array, ended: Array | None = None) -> Any:
        """Return the leaves of observations `[row, 3]`, of which those that ended allow no action."""
        elapsed = np.rint(10 * state[:, 0]).astype(np.int64)
        seen = {"state": state, "frame": np.tile(elapsed[:, None, None], (1, 2, 2)).astype(np.uint8)}
        if self._choices:
            masks = [
                np.arange(size) != (elapsed[:, None] + begin) % turn
                for size, (turn, begin) in zip(self._choices, self._turns, strict=True)
            ]
            seen["action_mask"] = np.concatenate(masks, 1).astype(np.int8)
            if ended is not None:
                seen["action_mask"][ended] = 0
        return seen
