"""Envs in JAX for tests, in gymnax's form and in Brax's, without either library."""

import dataclasses
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Params:
    max_steps_in_episode: int = 9


class Place(NamedTuple):
    position: Any
    moved: Any
    key: Any
    time: Any


class Drift:
    """A point in the wind: it ends beyond 1. Its state has keys of both kinds, and whole numbers without a sign."""

    default_params = Params()

    def observation_space(self, params):
        return gymnasium.spaces.Box(-9, 9, (2,), np.float32)

    def action_space(self, params):
        return gymnasium.spaces.Box(-1, 1, (2,), np.float32)

    def reset_env(self, key, params):
        position = jax.random.uniform(key, (2,), minval=-0.5, maxval=0.5)
        place = Place(position, jnp.zeros((), jnp.uint32), {"typed": jax.random.key(0), "raw": key}, 0)
        return position, place

    def step_env(self, key, state, action, params):
        position = state.position + 0.2 * action + 0.1 * jax.random.normal(state.key["raw"], (2,))
        key_typed, raw = jax.random.fold_in(state.key["typed"], 1), jax.random.fold_in(key, 2)
        after = Place(position, state.moved + 1, {"typed": key_typed, "raw": raw}, state.time + 1)
        out = jnp.abs(position).max() > 1
        return position, after, -jnp.abs(position).sum(), out | (after.time >= params.max_steps_in_episode), {}


class Slow(Drift):
    """A step takes a while before it reads its action; it ends by its limit."""

    def step_env(self, key, state, action, params):
        busy = jax.lax.fori_loop(0, 200, lambda _, value: jnp.sin(value @ value), jnp.eye(160) * (1 + state.time))
        position = action + 0.0 * busy.sum()
        after = state._replace(position=position, time=state.time + 1)
        return position, after, 0.0, after.time >= params.max_steps_in_episode, {}


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    pipeline: Any
    obs: Any
    reward: Any
    done: Any
    info: Any


class Brax:
    """In the form of Brax: it falls beyond a bound, and its state is cut off after 5 steps where it says so."""

    action_size = 1

    def __init__(self, truncates=False, resets=False, bound=1.0):
        self._truncates, self._resets, self._bound = truncates, resets, bound

    def reset(self, key):
        place = jax.random.uniform(key, (3,), minval=-0.3, maxval=0.3)
        info = {"rng": key, "steps": jnp.zeros(()), **({"truncation": jnp.zeros(())} if self._truncates else {})}
        if self._resets:
            info["first_obs"] = place
        return State(place, place, jnp.zeros(()), jnp.zeros(()), info)

    def step(self, state, action):
        rng, now = jax.random.split(state.info["rng"])
        place = state.pipeline + 0.2 * action + 0.1 * jax.random.normal(now, (3,))
        fell, steps = (jnp.abs(place).max() > self._bound).astype(jnp.float32), state.info["steps"] + 1
        info = {**state.info, "rng": rng, "steps": steps}
        if self._truncates:
            info["truncation"] = jnp.where((steps >= 5) & (fell == 0), 1.0, 0.0)
            fell = jnp.maximum(fell, info["truncation"])
        return dataclasses.replace(state, pipeline=place, obs=place, reward=place.sum(), done=fell, info=info)


class Wrapper:
    """As gymnax's wrappers: it hands on what it lacks, and its step begins the next episode."""

    def __init__(self):
        self._env = Drift()

    def __getattr__(self, name):
        return getattr(self._env, name)

    def step(self, key, state, action, params):
        return self._env.step_env(key, state, action, params)


class OtherState(Drift):
    def step_env(self, key, state, action, params):
        position, after, *rest = super().step_env(key, state, action, params)
        return position, after._replace(moved=position.sum()), *rest


class OtherShape(Drift):
    def observation_space(self, params):
        return gymnasium.spaces.Box(-9, 9, (3,), np.float32)


class TwoRewards(Drift):
    def step_env(self, key, state, action, params):
        position, after, _, done, infos = super().step_env(key, state, action, params)
        return position, after, position, done, infos


class Untraceable(Drift):
    def step_env(self, key, state, action, params):
        if action[0] > 0:
            return super().step_env(key, state, action, params)
        return super().step_env(key, state, -action, params)


class Parts(Drift):
    def observation_space(self, params):
        return gymnasium.spaces.Dict({})


def fails():
    raise OSError("no simulator here")
