"""A few steps of an env, with random actions or with a policy, as one TensorDict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rlcore import ConfigError
from rlcore.envs import (
    ActionCheck,
    Carrying,
    EpisodeStarts,
    Playing,
    StepCheck,
    keeping_to_masks,
    observation_dtype,
    only_resets,
    random_actions,
    write_mask,
)
from rlcore.errors import ArgumentTypeError
from rlcore.types import (
    FIRST,
    MASK,
    NEXT_POLICY_STATE,
    POLICY_STATE,
    Env,
    EnvSpec,
    Key,
    Policy,
    StatefulPolicy,
    Step,
    offers,
    with_defaults,
)
from rlcore_plugin_agents.exploration import choose

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Array

PolicyLike = Policy | Callable[["TensorDict"], "TensorDict"]


def rollout(
    env: Env,
    steps: int,
    policy: PolicyLike | None = None,
    *,
    break_when_any_done: bool = True,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> TensorDict:
    """Reset an env, step it, and return what happened.

    Args:
        env: is left where the rollout ends.
        steps: at most.
        policy: of rlcore (sampled, or deterministic under `set_exploration_type`), or anything that takes a TensorDict
            `[env]` with `observation` and returns one with `action`; None for random actions of the action space.
        break_when_any_done: whether to stop at the first end of an episode; otherwise the env begins the next one.
        seed: of the reset, the random actions and the noise of the policy.
        device: of the policy and of the result.

    Returns:
        TensorDict `[env, time]` with the entries of a batch: `observation`, `action`, what the policy says besides
        (`sample_log_prob` where it sampled), and `next` with `observation`, `reward`, `done`, `terminated` and
        `truncated`. A policy with a state adds `policy_state` and `first`, and its next state under `next`. An env that
        resets in the next step adds `("collector", "mask")`, unless it stops before one. Where the env has a method
        `batch`, as one with transforms has, it changes the result at last.

    Raises:
        ArgumentTypeError: another library made the env.
        ConfigError: `steps` is less than one, the policy cannot be called, or returns no action.
        EnvError: the env returns something of another form than its spec says.
        PluginError: an action lies outside of the action space.
    """
    if steps < 1:
        raise ConfigError(f"rollout: steps = {steps}; at least one is needed")
    if not isinstance(getattr(env, "spec", None), EnvSpec):  # other libraries have a `spec` of another class
        raise ArgumentTypeError(
            f"rollout: a {type(env).__name__} is no env of rlcore; build one with Factory; an env of TorchRL has a "
            "method for it, env.rollout(steps, policy)"
        )
    actor = _actor(env.spec, policy, steps, seed, torch.device(device))
    record, check = _Record(env.spec), StepCheck(env.spec)
    with torch.no_grad():  # not inference mode: the batch may go into a loss
        observation = record.begin(check.observation(env.reset(seed=seed)))
        for time in range(steps):
            step = check(env.step(actor.act(time, observation.to(device)).cpu().numpy()))
            actor.follow(step)
            observation = record.add(step)
            if break_when_any_done and record.any_done:
                break
    entries = actor.entries()
    ActionCheck(env.spec)(entries["action"].cpu())
    batch = record.batch(entries).to(device)
    return with_defaults(env, Env).batch(batch)


class _Actor(ABC):
    """Chooses actions, and keeps what the batch says of them."""

    @abstractmethod
    def act(self, time: int, observation: Tensor) -> Tensor:
        """Return the actions `[env, *action]`."""

    def follow(self, step: Step) -> None:
        """Take note of what came of them."""
        return

    @abstractmethod
    def entries(self) -> dict[Key, Any]:
        """Return the entries `[env, time, ...]`."""


def _actor(spec: EnvSpec, policy: PolicyLike | None, steps: int, seed: int, device: torch.device) -> _Actor:
    if policy is None:
        return _RandomActor(spec, seed)
    if offers(policy, StatefulPolicy) or isinstance(policy, Policy):
        described: Any = policy
        noise = described.draw(steps, spec.num_envs, torch.Generator(device).manual_seed(seed))
        return _RememberingActor(policy, spec, noise) if offers(policy, StatefulPolicy) else _PolicyActor(policy, noise)
    if not callable(policy):
        raise ConfigError(
            f"rollout: a {type(policy).__name__} is no policy; pass model.policy, or a callable from TensorDict to "
            "TensorDict"
        )
    return _CallableActor(policy)


class _RandomActor(_Actor):
    """Samples the action space."""

    def __init__(self, spec: EnvSpec, seed: int) -> None:
        self._source = random_actions(spec, seed)
        self._allowed = keeping_to_masks(spec)
        self._actions: list[Tensor] = []

    def act(self, time: int, observation: Tensor) -> Tensor:
        """Return the next sample, or what a mask allows in its place."""
        self._actions.append(torch.from_numpy(self._allowed(next(self._source), observation.cpu().numpy())))
        return self._actions[-1]

    def entries(self) -> dict[Key, Any]:
        """Return the actions."""
        return {"action": torch.stack(self._actions, dim=1)}


class _PolicyActor(_Actor):
    """Asks a policy of rlcore."""

    def __init__(self, policy: Any, noise: Tensor) -> None:
        policy.refresh()
        self._policy = policy
        self._played: Playing = policy
        self._noise = noise
        self._actions: list[Tensor] = []
        self._parameters: list[Tensor] = []

    def act(self, time: int, observation: Tensor) -> Tensor:
        """Return the actions of the policy."""
        action, parameters = choose(self._played, observation, self._noise[time])
        self._actions.append(action)
        if parameters is not None:
            self._parameters.append(parameters)
        return action

    def entries(self) -> dict[Key, Any]:
        """Return the actions, and where they were sampled what the policy says of them."""
        action = torch.stack(self._actions, dim=1)
        if not self._parameters:
            return {"action": action}
        with torch.no_grad():
            described = self._policy.describe(torch.stack(self._parameters, dim=1), action)
        return {"action": action, **described}


class _RememberingActor(_PolicyActor):
    """Asks a policy with a state, and keeps its states."""

    def __init__(self, policy: StatefulPolicy, spec: EnvSpec, noise: Tensor) -> None:
        super().__init__(policy, noise)
        self._played = self._carrying = Carrying(policy, spec.num_envs)
        self._starts = EpisodeStarts(spec)
        self._states: list[Tensor] = []
        self._firsts: list[Tensor] = []

    def act(self, time: int, observation: Tensor) -> Tensor:
        """Return the actions of the policy."""
        self._states.append(self._carrying.state)
        self._firsts.append(self._carrying.first)
        return super().act(time, observation)

    def follow(self, step: Step) -> None:
        """Let episodes begin where others ended."""
        self._carrying.begin(self._starts.first(step))

    def entries(self) -> dict[Key, Any]:
        """Return the same, the states before and after each step, and where episodes began."""
        states = torch.stack([*self._states, self._carrying.state], dim=1)
        first = torch.stack(self._firsts, dim=1).unsqueeze(-1)
        remembered: dict[Key, Any] = {POLICY_STATE: states[:, :-1], FIRST: first, NEXT_POLICY_STATE: states[:, 1:]}
        return super().entries() | remembered


class _CallableActor(_Actor):
    """Asks anything that takes and returns a TensorDict."""

    def __init__(self, policy: Callable[[TensorDict], TensorDict]) -> None:
        self._policy = policy
        self._answers: list[TensorDict] = []

    def act(self, time: int, observation: Tensor) -> Tensor:
        """Return the entry `action` of the answer."""
        from tensordict import TensorDict

        answer = self._policy(TensorDict({"observation": observation}, batch_size=[len(observation)]))
        if answer is None or answer.get("action", None) is None:
            raise ConfigError(
                f"rollout: the policy returned {'nothing' if answer is None else f'the entries {list(answer.keys())}'};"
                " it must return a TensorDict with 'action'"
            )
        self._answers.append(answer.exclude("observation"))
        action: Tensor = answer["action"]
        return action.detach()

    def entries(self) -> dict[Key, Any]:
        """Return everything that the answers held besides the observation."""
        from tensordict import TensorDict

        answers = TensorDict.stack([answer.detach() for answer in self._answers], dim=1)
        return dict(answers.items())


class _Record:
    """Copies of what an env returned, time by time."""

    def __init__(self, spec: EnvSpec) -> None:
        self.any_done = False
        self._only_resets = only_resets(spec)
        self._dtype = observation_dtype(spec.observation_space)
        self._observations: list[Tensor] = []
        self._following: list[Tensor] = []
        self._columns: dict[str, list[Array]] = {name: [] for name in ("reward", "terminated", "truncated")}

    def begin(self, observation: Array) -> Tensor:
        """Take the first observation, and return it as the policy sees it."""
        self._observations.append(torch.from_numpy(np.array(observation, dtype=self._dtype)))
        return self._observations[0]

    def add(self, step: Step) -> Tensor:
        """Take a step, and return its observation as the policy sees it."""
        observation = np.array(step.observation, dtype=self._dtype)
        following = observation.copy()
        for index, final in step.final_observation.items():
            following[index] = final
        self._observations.append(torch.from_numpy(observation))
        self._following.append(torch.from_numpy(following))
        values = (np.array(step.reward, dtype=np.float32), step.terminated.copy(), step.truncated.copy())
        for name, value in zip(self._columns, values, strict=True):
            self._columns[name].append(value)
        self.any_done = self.any_done or bool((step.terminated | step.truncated).any())
        return self._observations[-1]

    def batch(self, entries: dict[Key, Any]) -> TensorDict:
        """Return the batch `[env, time]`, with the entries of the actor."""
        from tensordict import TensorDict

        column = {
            name: torch.from_numpy(np.stack(values, axis=1)).unsqueeze(-1) for name, values in self._columns.items()
        }
        column["done"] = column["terminated"] | column["truncated"]
        size = list(column["done"].shape[:2])
        following = TensorDict({"observation": torch.stack(self._following, dim=1), **column}, batch_size=size)
        observation = torch.stack(self._observations[:-1], dim=1)
        batch = TensorDict({"observation": observation, "next": following}, batch_size=size)
        for key, entry in entries.items():
            batch.set(key, entry)
        mask = torch.ones_like(column["done"])
        if self._only_resets:
            done = column["done"].squeeze(-1).numpy()
            write_mask(mask.squeeze(-1).numpy().T, done.T, np.zeros(len(done), dtype=bool))
        if not bool(mask.all()):
            batch.set(MASK, mask)
        return batch
