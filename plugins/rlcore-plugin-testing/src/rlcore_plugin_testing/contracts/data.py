"""Batches for the suites: collected ones from a bench, and made-up ones with ends at known places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from rlcore.buffers.minibatch import Minibatch
from rlcore.envs.action_masks import keeping_to_masks, masks_actions, random_actions
from rlcore.learners.joint import rows_of
from rlcore.types import FIRST, MASK, NEXT_POLICY_STATE, POLICY_STATE, has_memory
from rlcore.types.context import Context

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array, Env, EnvSpec, Step


def observations(spec: EnvSpec, *shape: int, seed: int = 0) -> Tensor:
    """Return random observations `[*shape, *observation]` of the dtype that policies see."""
    space = spec.observation_space
    assert space.shape is not None
    if np.issubdtype(np.dtype(space.dtype), np.floating):
        return torch.randn(*shape, *space.shape, generator=torch.Generator().manual_seed(seed))
    space.seed(seed)
    samples = np.array([space.sample() for _ in range(int(np.prod(shape)))], dtype=space.dtype)
    return torch.from_numpy(samples.reshape(*shape, *space.shape))


def actions(env: Env, steps: int, seed: int = 0) -> list[Array]:
    """Return random actions `[env, *shape]` for as many steps."""
    return list(islice(random_actions(env.spec, seed), steps))


class Lawful:
    """An env whose random actions keep to its mask: a forbidden one is taken as the next that is allowed.

    Args:
        env: that masks actions; everything else is its own.
    """

    def __init__(self, env: Env) -> None:
        self._env = env
        self._allowed = keeping_to_masks(env.spec)
        self._rows: Array  # the latest observations, from the reset on

    def __getattr__(self, name: str) -> Any:
        found = attrgetter(name)(self._env)
        return {"state_dict": self._saved, "load_state_dict": self._restore}.get(name, found)

    def reset(self, seed: int | None = None) -> Array:
        """Reset the env."""
        self._rows = np.array(self._env.reset(seed=seed))
        return self._rows.copy()

    def step(self, action: Array) -> Step:
        """Step the env."""
        step = self._env.step(self._allowed(action, self._rows))
        self._rows = np.array(step.observation)
        return step

    def _saved(self) -> dict[str, Any]:
        return {"env": self._env.state_dict(), "rows": self._rows}  # type: ignore[attr-defined]

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._env.load_state_dict(state["env"])  # type: ignore[attr-defined]
        self._rows = state["rows"]


def lawful(env: Env) -> Env:
    """Return an env that a suite may step with any actions: itself, where all of them are allowed."""
    return cast("Env", Lawful(env)) if masks_actions(env.spec) else env


def collected(context: Context) -> TensorDict:
    """Return a batch from the bench's collector, with what the estimator writes, as new tensors."""
    batch = context.collector.collect().clone()
    if context.estimator is not None:
        context.estimator(batch)
    return batch


def minibatch(context: Context) -> Minibatch:
    """Return a minibatch as the learner gets it."""
    batch = collected(context)
    context.buffer.add(batch)
    first = next(iter(context.buffer.minibatches(batch)))
    copied = Minibatch.of({key: first[key].clone() for key in first})
    copied.size = rows_of(first)  # of sequences, the number of their steps
    return copied


def made_up(context: Context, terminated: Tensor, truncated: Tensor, mask: Tensor | None = None) -> TensorDict:
    """Return a batch `[env, time]` of random observations and rewards that ends where the flags `[env, time]` say."""
    from tensordict import TensorDict

    spec, (num_envs, steps) = context.env_spec, terminated.shape
    everything = observations(spec, num_envs, steps + 1, seed=1)
    following = everything[:, 1:].clone()
    done = terminated | truncated
    following[done] = observations(spec, int(done.sum()), seed=2)
    reward = torch.randn(num_envs, steps, 1, generator=torch.Generator().manual_seed(3))
    flags = {"done": done, "terminated": terminated, "truncated": truncated}
    size = [num_envs, steps]
    entries = {"observation": following, "reward": reward, **{name: flag.unsqueeze(-1) for name, flag in flags.items()}}
    batch = TensorDict({"observation": everything[:, :-1].clone()}, batch_size=size)
    batch["next"] = TensorDict(entries, batch_size=size)
    if mask is not None:
        batch.set(MASK, mask.unsqueeze(-1))
    add_actions(context, batch)
    return batch


def add_actions(context: Context, batch: TensorDict) -> None:
    """Let the policy of the bench act on every observation of a batch."""
    if has_memory(context.model):
        _add_remembered_actions(context.model.policy, batch)
        return
    policy, (num_envs, steps) = context.model.policy, batch.batch_size
    observation = batch["observation"]
    with torch.no_grad():
        noise = policy.draw(steps, num_envs, torch.Generator().manual_seed(4))
        pairs = [policy.act(observation[:, time], noise[time]) for time in range(steps)]
        action, parameters = (torch.stack(column, dim=1) for column in zip(*pairs, strict=True))
        batch["action"] = action
        for key, value in policy.describe(parameters, action).items():
            batch[key] = value


def _add_remembered_actions(policy: Any, batch: TensorDict) -> None:
    """Let a policy with a state act along a batch, in which an observation after an end is the first of an episode."""
    num_envs, steps = batch.batch_size
    first = torch.ones(num_envs, steps, dtype=torch.bool)
    first[:, 1:] = batch["next", "done"][:, :-1, 0]
    states, acted = [policy.initial_state(num_envs)], []
    with torch.no_grad():
        noise = policy.draw(steps, num_envs, torch.Generator().manual_seed(4))
        for time in range(steps):
            *pair, state = policy.act(batch["observation"][:, time], noise[time], states[-1], first[:, time])
            acted.append(pair)
            states.append(state)
        action, parameters = (torch.stack(column, dim=1) for column in zip(*acted, strict=True))
        described = policy.describe(parameters, action)
    remembered = torch.stack(states, dim=1)
    own = {POLICY_STATE: remembered[:, :-1], FIRST: first.unsqueeze(-1), NEXT_POLICY_STATE: remembered[:, 1:]}
    for key, value in {"action": action, **described, **own}.items():
        batch[key] = value


def steps_of(env: Env, plan: list[Array]) -> Iterator[dict[str, object]]:
    """Take the planned actions and yield copies of what each step returned."""
    for action in plan:
        yield _copied(env.step(action))


def _copied(step: Step) -> dict[str, object]:
    return {
        "observation": np.array(step.observation),
        "reward": np.array(step.reward),
        "terminated": np.array(step.terminated),
        "truncated": np.array(step.truncated),
        "final": {index: np.array(value) for index, value in step.final_observation.items()},
    }


def infos_of(env: Env, plan: list[Array]) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """Take the planned actions; return what `steps_of` does, and the infos of each step by env and name."""
    steps, infos = [], []
    for action in plan:
        step = env.step(action)
        infos.append({f"env {i}: {name}": value for i, info in step.infos.items() for name, value in _flat(info)})
        steps.append(_copied(step))
    return steps, infos


def _flat(info: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in info.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", np.array(value) if isinstance(value, np.ndarray) else value
