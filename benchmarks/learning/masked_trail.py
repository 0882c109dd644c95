"""An env in which 60 of 80 actions are illegal at every step: what learners with masks of actions are compared on.

An illegal action is an error, so that a run that ends has taken none.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np

_PLACES, _ACTIONS, _LEGAL = 24, 80, 20


class Trail(gymnasium.Env[np.ndarray, int]):
    """Walk along 24 places. At each, 20 of the 80 actions are legal, and one of those leads on, for a reward of 1.

    Observes the place, one-hot, float32 `[24]`; the mask is in the infos, and what `action_masks` returns. Which
    actions are legal and which lead on is the same in every episode, which ends after 48 steps or the last place.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    observation_space = gymnasium.spaces.Box(0, 1, (_PLACES,), np.float32)
    action_space = gymnasium.spaces.Discrete(_ACTIONS)

    def __init__(self) -> None:
        generator = np.random.default_rng(7)
        legal = [generator.permutation(_ACTIONS)[:_LEGAL] for _ in range(_PLACES)]
        self._masks = np.zeros((_PLACES, _ACTIONS), dtype=np.int8)
        for place, actions in enumerate(legal):
            self._masks[place, actions] = 1
        self._leading = [int(actions[0]) for actions in legal]
        self._place = 0

    def action_masks(self) -> np.ndarray:
        """Return which actions are legal, bool `[80]`."""
        return self._masks[self._place].astype(bool)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Go to the first place."""
        super().reset(seed=seed)
        self._place = 0
        return self._seen()

    def step(self, action: int) -> Any:
        """Act; an illegal action is an error."""
        if not self._masks[self._place, action]:
            raise ValueError(f"action {action} is illegal at place {self._place}")
        leads = int(action) == self._leading[self._place]
        ends = leads and self._place == _PLACES - 1
        self._place = min(self._place + leads, _PLACES - 1)
        observation, info = self._seen()
        return observation, float(leads), ends, False, info

    def _seen(self) -> tuple[np.ndarray, dict[str, Any]]:
        observation = np.zeros(_PLACES, dtype=np.float32)
        observation[self._place] = 1
        return observation, {"action_mask": self._masks[self._place].copy()}


gymnasium.register("Trail-v0", Trail, max_episode_steps=48)
