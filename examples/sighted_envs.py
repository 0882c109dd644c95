"""An env that observes an image and a few numbers: what is looked for is seen in the one, where one is in the others.

A config names it as `id = "sighted_envs:Find-v0"`; a module beside the config is found.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np

_SIZE = 6
_MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


class Find(gymnasium.Env[dict[str, np.ndarray], int]):
    """Walk over a board of 6 x 6 to the place that the camera shows. Each step costs 0.05, the place is worth 1.

    Observes `camera`, uint8 `[6, 6, 1]`, 255 at the place and 0 elsewhere; and `position`, float32 `[2]`, from -1 to 1.
    The four actions are up, down, left and right; one off the board changes nothing.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}
    action_space = gymnasium.spaces.Discrete(4)
    observation_space = gymnasium.spaces.Dict(
        camera=gymnasium.spaces.Box(0, 255, (_SIZE, _SIZE, 1), np.uint8),
        position=gymnasium.spaces.Box(-1, 1, (2,), np.float32),
    )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Begin an episode at a random place."""
        super().reset(seed=seed)
        self._place, self._position = self.np_random.integers(_SIZE, size=(2, 2))
        return self._seen(), {}

    def step(self, action: int) -> Any:
        """Move."""
        self._position = np.clip(self._position + _MOVES[action], 0, _SIZE - 1)
        found = bool((self._position == self._place).all())
        return self._seen(), 1.0 if found else -0.05, found, False, {}

    def _seen(self) -> dict[str, np.ndarray]:
        camera = np.zeros((_SIZE, _SIZE, 1), dtype=np.uint8)
        camera[tuple(self._place)] = 255
        return {"camera": camera, "position": (2 * self._position / (_SIZE - 1) - 1).astype(np.float32)}


gymnasium.register("Find-v0", Find, max_episode_steps=30)
