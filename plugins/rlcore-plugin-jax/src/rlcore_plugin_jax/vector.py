"""The vector env: one program of JAX that steps all envs, and begins the next episodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from rlcore_plugin_device import TensorEnv, TensorStep
from torch import Tensor

from rlcore.errors import FROM_OUTSIDE, ConfigError, RlcoreError, describe
from rlcore.types import EnvSpec
from rlcore_plugin_jax.arrays import device_of, is_key, keys_of, restored_tree, saved_tree, to_array, to_tensor
from rlcore_plugin_jax.named import single_env

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore_plugin_jax.env import Config


class Carry(NamedTuple):
    """What goes from a step to the next, of one env or of all.

    Attributes:
        key: what the random numbers to come follow from.
        state: of the env, a pytree.
        length: steps of the running episode.
    """

    key: Any
    state: Any
    length: Any


class JaxEnv(TensorEnv):
    """Steps envs that are written in JAX; actions go in and observations come out without a copy.

    Each step of an env takes one key, as in the usual loop: `key, now = split(key)`, `env.step(now, state, action)`.

    Args:
        config: which env, and how many.
        context: has the device.

    Raises:
        ConfigError: JAX cannot use the device, there is no such env, or it has another form.

    Attributes:
        unforkable: why collectors with workers may not fork this process.
    """

    unforkable: Final = "JAX steps them in threads, which a fork leaves behind"

    def __init__(self, config: Config, context: Context) -> None:
        self.device = context.device
        self._id = config.id
        self._jax_device = device_of(context.device)
        with jax.default_device(self._jax_device):
            self._single = single = single_env(config)
            self._check()
        self.spec = EnvSpec(
            id=config.id,
            observation_space=single.observation_space,
            action_space=single.action_space,
            num_envs=config.num_envs,
            max_episode_steps=single.max_episode_steps,
        )
        whole = np.issubdtype(single.action_space.dtype, np.integer)
        self._action_dtype = torch.int32 if whole else torch.float32
        self._begin_all, self._step_all = jax.jit(jax.vmap(self._begin)), jax.jit(jax.vmap(self._step))
        self._carry: Carry | None = None
        self._heart = context.heart

    def reset_tensors(self, seed: int | None = None) -> Tensor:
        """Begin an episode in every env, env `i` with the key of `seed + i`."""
        if self.device.type == "cuda":
            # JAX reuses memory of tensors that are gone, which torch may still be reading; a step waits for its actions
            torch.cuda.synchronize(self.device)
        if self._carry is None or seed is not None:
            keys = jax.device_put(keys_of(seed or 0, self.spec.num_envs), self._jax_device)
        else:
            keys = self._carry.key
        if self._carry is None:
            self._compile(keys)
        self._carry, observation = self._begin_all(keys)
        return to_tensor(observation)

    def step_tensors(self, action: Tensor) -> TensorStep:
        """Step every env, and begin the next episode where one ended.

        The step is over for torch when its results are tensors, so that the actions may be overwritten then.
        """
        assert self._carry is not None, "reset comes first"
        self._carry, step = self._step_all(self._carry, to_array(action.to(self._action_dtype)))
        return TensorStep(*map(to_tensor, step))

    def state_dict(self) -> dict[str, Any]:
        """Return the keys and the states of all envs, a tensor for each array, by its path."""
        return {} if self._carry is None else saved_tree(self._carry)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` returned.

        Raises:
            StorageError: it is of another env.
        """
        if not state:
            self._carry = None
            return
        if self._carry is None:
            self.reset_tensors(0)
        self._carry = restored_tree(self._carry, state, self.device)

    def _compile(self, keys: Any) -> None:
        """Compile both programs by a call of each; for physics that takes minutes, in which nothing else moves."""
        shape = self._single.action_space.shape or ()
        action = torch.zeros(self.spec.num_envs, *shape, dtype=self._action_dtype, device=self.device)
        with self._heart.pause():
            carry, _ = self._begin_all(keys)
            jax.block_until_ready(self._step_all(carry, to_array(action)))

    def _begin(self, key: Any) -> tuple[Carry, Any]:
        following, now = jax.random.split(key)
        observation, state = self._single.begin(now)
        return Carry(following, _typed(state), jnp.zeros((), jnp.int32)), self._seen(observation)

    def _step(self, carry: Carry, action: Any) -> tuple[Carry, tuple[Any, ...]]:
        following, now = jax.random.split(carry.key)
        key, key_begin = jax.random.split(now)
        moved = self._single.step(key, carry.state, action)
        begun, state = self._single.begin(key_begin)
        length, limit = carry.length + 1, self._single.max_episode_steps
        terminated = _number("terminated", moved.terminated, bool)
        truncated = _number("truncated", moved.truncated, bool) | (limit is not None and length >= limit)
        truncated &= ~terminated
        ended = terminated | truncated

        def chosen(new: Any, old: Any) -> Any:
            return jax.lax.select(ended, new, old)

        final = self._seen(moved.observation)
        state = jax.tree.map(chosen, _typed(state), _typed(moved.state))
        reward = _number("reward", moved.reward, jnp.float32)
        after = Carry(following, state, jnp.where(ended, 0, length))
        return after, (chosen(self._seen(begun), final), reward, terminated, truncated, final)

    def _seen(self, observation: Any) -> Any:
        space = self._single.observation_space
        shape = getattr(observation, "shape", None)
        if shape != space.shape:
            form = f"the shape {list(shape)}" if shape is not None else f"the form of a {type(observation).__name__}"
            raise ConfigError(
                f"[env] id = {self._id!r}: an observation has {form}, and its space {list(space.shape or ())}; repair "
                "the space, or observe one array"
            )
        return observation.astype(space.dtype)

    def _check(self) -> None:
        """Trace a step, and hold the state that it leads to against that of a beginning.

        Raises:
            ConfigError: they differ, or something is not traced.
        """
        space = self._single.action_space
        dtype = jnp.int32 if np.issubdtype(space.dtype, np.integer) else jnp.float32
        try:
            begun, _ = jax.eval_shape(self._begin, jax.random.PRNGKey(0))
            action = jax.ShapeDtypeStruct(space.shape, dtype)
            after = jax.eval_shape(
                lambda *given: _typed(self._single.step(*given).state), begun.key, begun.state, action
            )
            forms = [_forms(state) for state in (begun.state, after)]
            for path in {**forms[0], **forms[1]}:
                before, later = (form.get(path, "missing") for form in forms)
                if before != later:
                    raise ConfigError(
                        f"[env] id = {self._id!r}: {path or 'the state'} is {before} when an episode begins, and "
                        f"{later} after a step; make both alike"
                    )
            jax.eval_shape(self._step, begun, action)
        except (RlcoreError, *FROM_OUTSIDE):
            raise
        except BaseException as error:
            raise ConfigError(f"[env] id = {self._id!r} cannot be traced by JAX: {describe(error)}") from error


def _forms(tree: Any) -> dict[str, str]:
    return {
        jax.tree_util.keystr(path): f"{leaf.dtype} {list(leaf.shape)}"
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }


def _typed(tree: Any) -> Any:
    """Return a pytree in which Python's numbers are arrays, so that beginnings and steps are of one type."""

    def typed(leaf: Any) -> Any:
        array = jnp.asarray(leaf)
        return array if is_key(array) else jnp.asarray(array, array.dtype)

    return jax.tree.map(typed, tree)


def _number(name: str, value: Any, dtype: Any) -> Any:
    array = jnp.asarray(value)
    if array.size != 1:
        raise ConfigError(f"[env] {name} has the shape {list(array.shape)} for one env; it must be one number")
    return array.reshape(()).astype(dtype)
