"""One leaf of observations that are dicts: what a transform of one array changes of them, and is fitted on."""

from __future__ import annotations

import copy
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from torch import Tensor, nn

from rlcore.envs import ACTION_MASK, Packed, keeping_to_masks
from rlcore.errors import ConfigError, PluginError, did_you_mean
from rlcore.types import Env, EnvSpec, Transform, defines

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from tensordict import TensorDict

    from rlcore.types import Array, BoolArray, ModuleWithMemory, Step


class OnLeaf:
    """A transform of one array, put on a leaf of observations that are dicts; the other leaves stay as they are.

    Whatever else the transform defines, its state and what it does to actions, is that of this one, which therefore
    derives from no class of defaults. Its `batch` gets the batch with all leaves.

    Args:
        transform: gets the leaf alone, `[env, *shape]`.
        space: of the observations before it.
        leaf: the name of the leaf.

    Attributes:
        inner: the transform.
        leaf: the same.
        observation_module: what an exported policy computes; None where the transform has none.
        memory_module: the same of a transform that remembers; None where the transform has none.
    """

    def __init__(self, transform: Transform, space: Packed, leaf: str) -> None:
        self.inner = transform
        self.leaf = leaf
        self._space_in = space
        self._space_out = self._space_after(space)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "inner":  # while it is copied or unpickled
            raise AttributeError(name)
        return attrgetter(name)(self.inner)

    @property
    def observation_module(self) -> Callable[[], nn.Module] | None:
        """What returns a module of rows; see `Transform.observation_module`."""
        transform = self.inner
        if not defines(transform, Transform.observation_module):
            return None
        return lambda: LeafModule(transform.observation_module(), self.leaf, self._space_in, self._space_out)

    @property
    def memory_module(self) -> Callable[[], ModuleWithMemory] | None:
        """What returns a module of rows; see `Transform.memory_module`."""
        transform = self.inner
        if not defines(transform, Transform.memory_module):
            return None

        def module() -> ModuleWithMemory:
            inner: Any = transform.memory_module()
            return LeafMemoryModule(inner, self.leaf, self._space_in, self._space_out)

        return module

    def observation_space(self, space: gymnasium.Space[Any]) -> Packed:
        """Return the space with that of the leaf after the transform."""
        assert isinstance(space, Packed)
        self._space_in, self._space_out = space, self._space_after(space)
        return self._space_out

    @staticmethod
    def spec(spec: EnvSpec, name: str, leaf: str) -> EnvSpec:
        """Return the spec of envs as the transform of a leaf sees them.

        Args:
            spec: of the envs before it.
            name: of its section.
            leaf: that the section names.

        Raises:
            ConfigError: there is no such leaf, or it is the mask, or observations are one array.
        """
        space, key = spec.observation_space, f"[[transform]] {name!r} leaf = {leaf!r}:"
        if not isinstance(space, Packed):
            raise ConfigError(f"{key} observations are one array here, {space}; leave the key out")
        if leaf not in space.leaves:
            leaves, near = ", ".join(map(repr, space.leaves)), did_you_mean(leaf, space.leaves)
            raise ConfigError(f"{key} the observations have no such leaf; they have {leaves}{near}")
        if leaf == ACTION_MASK and space.choices:
            raise ConfigError(
                f"{key} it says which actions are allowed, and no transform changes it; take another leaf"
            )
        return replace(spec, observation_space=space.held(leaf))

    def fitting_env(self, env: Env) -> Env:
        """Return the env with the leaf alone."""
        return LeafEnv(env, self.leaf)

    def fit(self, env: Env) -> None:
        """Let the transform learn from the leaf."""
        self.inner.fit(self.fitting_env(env))

    def step(self, observation: Array, first: BoolArray) -> Array:
        """Return rows `[env, words]` with the leaf as the transform leaves it."""
        return self._with(observation, self.inner.step(self._space_in.array(observation, self.leaf), first))

    def final(self, observation: Array, env_index: int) -> Array:
        """Return the row `[words]` of the last observation of an episode."""
        return self._with(observation, self.inner.final(self._space_in.array(observation, self.leaf), env_index))

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch as the transform leaves it."""
        return self.inner.batch(batch)

    def frozen(self) -> Self:
        """Return a copy with a frozen copy of the transform."""
        copied = copy.copy(self)
        copied.inner = self.inner.frozen()
        return copied

    def _space_after(self, space: Packed) -> Packed:
        after = self.inner.observation_space(space.held(self.leaf))
        if isinstance(after, Packed):
            raise ConfigError(
                f"[[transform]] leaf = {self.leaf!r}: {type(self.inner).__name__} makes several arrays of that "
                "leaf, which can be one alone; leave the key out, or name another leaf"
            )
        return space.with_leaf(self.leaf, after)

    def _with(self, observation: Array, changed: Array) -> Array:
        rows: Array = np.zeros((*observation.shape[:-1], self._space_out.words), dtype=np.int64)
        for name, place in self._space_out.arrays(rows).items():
            if name != self.leaf:
                place[...] = self._space_in.array(observation, name)
            elif place.shape == changed.shape:
                place[...] = changed
            else:
                raise PluginError(
                    f"{type(self.inner).__name__} made {changed.shape} of the leaf {name!r}; its observation_space "
                    f"says {place.shape}"
                )
        return rows


class LeafModule(nn.Module):
    """Rows `[env, words]` to rows with one leaf as a module leaves it.

    Args:
        module: from the leaf `[env, *shape]` to what takes its place.
        leaf: the name of the leaf.
        space_in: the space of the rows that come in.
        space_out: the space of those that go out.
    """

    def __init__(self, module: nn.Module, leaf: str, space_in: Packed, space_out: Packed) -> None:
        super().__init__()
        self.module = module
        self._leaf = leaf
        self._space_in, self._space_out = space_in, space_out

    def forward(self, observation: Tensor) -> Tensor:
        """Return the changed rows."""
        leaves = self._space_in.tensors(observation)
        return self._space_out.joined({**leaves, self._leaf: self.module(leaves[self._leaf])})


class LeafMemoryModule(LeafModule):
    """The same of a module whose memory goes in and comes out; see `rlcore.types.ModuleWithMemory`."""

    def initial_state(self, num_envs: int) -> Tensor:
        """Return that of the module."""
        module: Any = self.module
        return module.initial_state(num_envs)  # type: ignore[no-any-return]

    def forward(  # type: ignore[override]
        self, observation: Tensor, state: Tensor, first: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return the changed rows, and the state for the next call."""
        leaves = self._space_in.tensors(observation)
        changed, following = self.module(leaves[self._leaf], state, first)
        return self._space_out.joined({**leaves, self._leaf: changed}), following


class LeafEnv(Env):
    """An env seen through one leaf of its observations, for fitting what changes that one.

    A forbidden action is taken as the next one that is allowed, since a mask is not seen here.

    Args:
        env: with observations that are dicts; stays the caller's.
        leaf: the name of the leaf.

    Attributes:
        spec: with the space of the leaf.
    """

    def __init__(self, env: Env, leaf: str) -> None:
        assert isinstance(env.spec.observation_space, Packed)
        self._space: Packed = env.spec.observation_space
        self.spec = replace(env.spec, observation_space=self._space.held(leaf))
        self._env = env
        self._leaf = leaf
        self._allowed = keeping_to_masks(env.spec)
        self._rows: Array  # the latest observations, from the reset on

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env; the leaf `[env, *shape]`."""
        self._rows = self._env.reset(seed=seed)
        return self._space.array(self._rows, self._leaf)

    def step(self, action: Array) -> Step:
        """Step the env."""
        step = self._env.step(self._allowed(action, self._rows))
        self._rows = step.observation
        finals = {index: self._space.array(row, self._leaf) for index, row in step.final_observation.items()}
        return step._replace(observation=self._space.array(self._rows, self._leaf), final_observation=finals)

    def close(self) -> None:
        """Close the env."""
        self._env.close()
