"""One env of TorchRL and its running episode: seeds, actions, and their repetition after a resume."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore_plugin_torchrl.parts.spaces import only_leaf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rlcore.types import Array

_SEEDS = 2**31


class World:
    """An env of TorchRL whose episodes each begin with a seed of their own.

    Args:
        env: of TorchRL, with its transforms.
        observation: name of the entry that is observed; None for the only one.

    Attributes:
        rows: agents, each a row; 1 for an env without agents.
        observation_spec: of one row.
        action_spec: of one row.
        actions: of the running episode, `[row, *action]` each.
        over: whether the last step ended the episode.

    Raises:
        ConfigError: the env has several entries that a policy would see or write.
    """

    def __init__(self, env: Any, observation: str | None = None) -> None:
        self.env = env
        keys = env.full_observation_spec.keys(True, True)
        self._observed = only_leaf(keys, observation, "observation", "observation")
        self._action = only_leaf(env.action_keys, None, "action", "action")
        self._reward = only_leaf(env.reward_keys, None, "reward", "reward")
        reward = env.full_reward_spec[self._reward].shape
        if reward[-1] != 1:
            raise ConfigError(
                f"[env]: the reward of this env of TorchRL has {reward[-1]} numbers, and rlcore trains on one; join "
                'them with transforms = [{ part = "LineariseRewards", in_keys = ["reward"] }]'
            )
        self._lead = reward[:-1]
        self.rows = self._lead.numel()
        index = (0,) * len(self._lead)
        self.observation_spec = (
            env.full_observation_spec[self._observed][index] if index else env.full_observation_spec[self._observed]
        )
        self.action_spec = env.full_action_spec[self._action][index] if index else env.full_action_spec[self._action]
        self._one_hot = "OneHot" in {kind.__name__ for kind in type(self.action_spec).__mro__}
        self.actions: list[Tensor] = []
        self.over = False
        self._seed = 0
        self._episode = 0
        self._data: Any = None
        self._torch_state: Tensor | None = None

    def begin(self, seed: int | None = None) -> None:
        """Begin an episode.

        Args:
            seed: of this one and all that follow; None to go on with the seed that there is.
        """
        self._episode = self._episode + 1 if seed is None else 0
        self._seed = self._seed if seed is None else seed
        self._reset()

    def step(self, action: Tensor) -> tuple[Array, Array, Array, Array]:
        """Take a step with actions `[row, *action]`; return observation, reward, and the two kinds of ends, by row."""
        self.actions.append(action.clone())
        return self._step(action)

    def observation(self) -> Array:
        """Return what is observed now, `[row, *shape]`."""
        return self._rows_of(self._data.get(self._observed))

    def state_dict(self) -> dict[str, Any]:
        """Return the seed, the number of the episode, its actions, and the observation to which they led."""
        begun = self._data is not None
        return {
            "seed": self._seed,
            "episode": self._episode,
            "actions": torch.stack(self.actions) if self.actions else None,
            "observation": torch.from_numpy(self.observation().copy()) if begun else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> bool:
        """Repeat the episode; return whether it led to the same observation."""
        self._seed, self._episode = state["seed"], state["episode"]
        if state["observation"] is None:
            return True
        self._reset()
        for action in () if state["actions"] is None else state["actions"].clone():
            self.step(action)
        return bool(np.array_equal(self.observation(), state["observation"].numpy(), equal_nan=True))

    def close(self) -> None:
        """Close the env."""
        if not self.env.is_closed:
            self.env.close(raise_if_closed=False)

    def _reset(self) -> None:
        seed = (self._seed + 1_000_003 * self._episode) % _SEEDS
        self.actions, self.over = [], False
        self._torch_state = torch.Generator().manual_seed(seed).get_state()
        with self._own_generator():
            self.env.set_seed(seed)
            self._data = self.env.reset()

    def _step(self, action: Tensor) -> tuple[Array, Array, Array, Array]:
        spec = self.env.full_action_spec[self._action]
        if self._one_hot:
            action = torch.nn.functional.one_hot(action.long(), self.action_spec.shape[-1])
        self._data.set(self._action, action.reshape(spec.shape).to(spec.dtype))
        with self._own_generator():
            stepped = self.env.step(self._data)
            after = stepped.get("next")
        reward = self._rows_of(after.get(self._reward)).reshape(self.rows)
        terminated, truncated = self._ends(after)
        self.over = bool((terminated | truncated).any())
        if self.over:  # of several agents, the end of one is a cut for the others
            truncated |= ~terminated
        self._data = self.env.step_mdp(stepped)
        return self.observation(), reward, terminated, truncated

    def _ends(self, after: Any) -> tuple[Array, Array]:
        """Return which rows came to an end of their own, and which were cut off."""
        done = self._flag(after, "done")
        truncated = self._flag(after, "truncated") & done
        terminated = self._flag(after, "terminated") & done
        return terminated | (done & ~truncated), truncated & ~terminated

    def _flag(self, after: Any, name: str) -> Array:
        """Return a kind of end by row; an end of the world is one of all of its rows."""
        ends = np.zeros(self.rows, np.bool_)
        for key in self.env.done_keys:
            if (key if isinstance(key, str) else key[-1]) == name:
                flag = after.get(key)
                ends |= np.broadcast_to(flag.reshape(-1).cpu().numpy(), (self.rows,))
        return ends

    def _rows_of(self, entry: Tensor) -> Array:
        shape = entry.shape[len(self._lead) :]
        return entry.detach().reshape(self.rows, *shape).cpu().numpy()

    @contextmanager
    def _own_generator(self) -> Iterator[None]:
        """Let what draws from torch's global generator draw from this world's, and leave that one as it was."""
        shared = torch.get_rng_state()
        assert self._torch_state is not None
        torch.set_rng_state(self._torch_state)
        try:
            with torch.inference_mode(False), torch.no_grad():
                yield
        finally:
            self._torch_state = torch.get_rng_state()
            torch.set_rng_state(shared)
