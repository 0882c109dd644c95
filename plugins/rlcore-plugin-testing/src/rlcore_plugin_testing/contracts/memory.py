"""What a policy with a state must keep, and the parts of its model; and how the other tests call both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from rlcore.types import StatefulPolicy, has_memory, offers
from rlcore.types.context import Context
from rlcore.types.models import part_of
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import observations


class Beginning:
    """A policy with a state as one without: every observation is the first of an episode."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy
        self.draw = policy.draw
        self.refresh = policy.refresh

    def act(self, observation: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Return actions and parameters."""
        action, parameters, _ = self._policy.act(observation, noise, *self._start(observation))
        return action, parameters

    def describe(self, parameters: Tensor, action: Tensor) -> Mapping[str, Tensor]:
        """Return what the policy says."""
        return self._policy.describe(parameters, action)  # type: ignore[no-any-return]

    def mode(self, observation: Tensor) -> Tensor:
        """Return the deterministic actions."""
        return self._policy.mode(observation, *self._start(observation))[0]  # type: ignore[no-any-return]

    def _start(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        rows = len(observation)
        return self._policy.initial_state(rows), torch.ones(rows, dtype=torch.bool)


def beginning(policy: Any) -> Any:
    """Return a policy as it acts at the beginning of episodes; one without a state as it is."""
    return Beginning(policy) if offers(policy, StatefulPolicy) else policy


def outputs_of(model: Any, name: str, seen: Tensor, leading: int = 1) -> Any:
    """Return what a part makes of observations, each the first of an episode.

    Args:
        model: whose part it is.
        name: of the part.
        seen: `[sample, *shape]`, or
        leading: 2 for `[time, sequence, *shape]`.
    """
    part = part_of(model, name)
    if not has_memory(model):
        return part(seen)
    first = torch.ones(*seen.shape[:leading], 1, dtype=torch.bool)
    return part(seen, model.policy.initial_state(seen.shape[leading - 1]), first)


class MemoryTests(StateContract):
    """Tests of a model whose policy has a state; skipped for others."""

    def called(self, model: Any, name: str) -> Any:
        """Return a part as `part(observation, state, first)`; override it for one that takes more, such as actions.

        None for a part that remembers nothing.
        """
        return part_of(model, name)

    def remembering_parts(self, model: Any) -> dict[str, Any]:
        """Return what is called for each part that remembers, by its name."""
        found = {name: self.called(model, name) for name in model.parts()}
        return {name: part for name, part in found.items() if part is not None}

    def remembering(self) -> tuple[Any, Any, Context]:
        """Return a model, its policy with a state and the bench."""
        context = self.bench()
        model = self.make(context)
        if not has_memory(model):
            pytest.skip("the policy has no state")
        model.policy.refresh()
        return model, model.policy, context

    def test_states_are_one_tensor_of_floats(self) -> None:
        """A collector keeps one row for each env, and knows its shape beforehand."""
        _, policy, context = self.remembering()
        state = policy.initial_state(6)
        assert state.shape[0] == 6, f"initial_state(6) is {list(state.shape)}, not [env, ...]"
        assert state.is_floating_point(), f"initial_state is {state.dtype}, not of floats"
        seen, states = observations(context.env_spec, 2, 6), _states(policy, 6)
        before = states.clone()
        with torch.inference_mode():
            noise = policy.draw(1, 6, _generator(1))[0]
            _, _, acted = policy.act(seen[0], noise, states, _flags(0, 0, 0, 0, 0, 1))
            _, shown = policy.mode(seen[0], states, _flags(0, 0, 0, 0, 0, 1))
        for name, following in (("act", acted), ("mode", shown)):
            assert following.shape == state.shape, f"{name} returns a state {list(following.shape)}"
            assert following.dtype == state.dtype, f"{name} returns a state of {following.dtype}"
        assert torch.equal(states, before), "act or mode changes the state that it is given"

    def test_an_episode_begins_with_the_initial_state(self) -> None:
        """Nothing of one episode may reach the next, whatever the collector hands over."""
        _, policy, context = self.remembering()
        seen = observations(context.env_spec, 6)
        first = _flags(1, 0, 1, 0, 0, 1)
        states = _states(policy, 6)
        placed = torch.where(_beside(first, states), policy.initial_state(6), states)
        with torch.inference_mode():
            noise = policy.draw(1, 6, _generator(1))[0]
            found = [*policy.act(seen, noise, states, first), *policy.mode(seen, states, first)]
            expected = [*policy.act(seen, noise, placed, ~first & first), *policy.mode(seen, placed, ~first & first)]
        for one, other in zip(found, expected, strict=True):
            assert torch.allclose(one.double(), other.double(), atol=1e-6), (
                "where `first` is True the policy goes on with the state of the episode before"
            )

    def test_what_was_seen_is_remembered(self) -> None:
        """A state that does not depend on what came before, or that no action depends on, is no memory."""
        model, policy, context = self.remembering()
        seen = observations(context.env_spec, 3, 6)
        none = _flags(0, 0, 0, 0, 0, 0)
        ends = []
        with torch.inference_mode():
            noise = policy.draw(2, 6, _generator(1))
            for row in (0, 1):
                _, _, before = policy.act(seen[row], noise[0], policy.initial_state(6), ~none)
                action, parameters, state = policy.act(seen[2], noise[1], before, none)
                if parameters is action:  # it has nothing to describe, and the best action may be the same
                    parameters = part_of(model, model.parts()[0])(seen[2], before, none.unsqueeze(-1))
                ends.append((parameters, state))
        assert not torch.equal(ends[0][1], ends[1][1]), "the state does not depend on earlier observations"
        assert not torch.equal(ends[0][0], ends[1][0]), "what the policy does depends on the latest observation alone"

    def test_the_policy_keeps_nothing_itself(self) -> None:
        """The collector has the states: a resume, several workers and an evaluation know of no other."""
        _, policy, context = self.remembering()
        seen, states, first = observations(context.env_spec, 6), _states(policy, 6), _flags(0, 1, 0, 0, 0, 0)
        with torch.inference_mode():
            noise = policy.draw(1, 6, _generator(1))[0]
            found = [policy.act(seen, noise, states, first) for _ in range(2)]
            alone = [
                policy.act(seen[i : i + 1], noise[i : i + 1], states[i : i + 1], first[i : i + 1])[2] for i in range(6)
            ]
        assert difference(found[0], found[1]) is None, "act gives something else for the same arguments"
        assert torch.allclose(found[0][2], torch.cat(alone), atol=1e-5), "the states of envs influence each other"

    def test_parts_run_over_time_as_they_do_step_by_step(self) -> None:
        """`[time, sequence, ...]` from one state per sequence is `[sample, ...]` from the state before each step."""
        model, policy, context = self.remembering()
        seen, first = observations(context.env_spec, 4, 3), _first_of_sequences()
        states = _run(policy, seen, first)
        for name, part in self.remembering_parts(model).items():
            with torch.no_grad():
                whole = part(seen, states[0], first)
                rows = part(seen.flatten(0, 1), torch.stack(states[:-1]).flatten(0, 1), first.flatten(0, 1))
            assert whole.shape[:2] == (4, 3), f"{name} returns {list(whole.shape)}, not [time, sequence, ...]"
            most = float((whole.flatten(0, 1) - rows).abs().max())
            assert most < 1e-5, f"{name} over sequences differs from that of single steps by {most}"

    def test_no_gradient_crosses_the_beginning_of_an_episode(self) -> None:
        """The gradient goes back in time to the first observation of an episode, and no further."""
        model, policy, context = self.remembering()
        seen = observations(context.env_spec, 4, 3)
        if not seen.is_floating_point():
            pytest.skip("observations are integers, which have no gradient")
        first = _first_of_sequences()
        for name, part in self.remembering_parts(model).items():
            leaf, state = seen.clone().requires_grad_(), _states(policy, 3).clone().requires_grad_()
            part(leaf, state, first)[-1].sum().backward()
            assert leaf.grad is not None, f"{name} gives no gradient to observations"
            assert state.grad is not None, f"{name} gives no gradient to the state"
            reached = leaf.grad.flatten(2).abs().sum(-1) > 0
            assert reached.tolist() == [[True, False, False], [True, False, False], [True, True, False], [True] * 3], (
                f"{name}: the last step reaches these observations [time, sequence]: {reached.tolist()}"
            )
            flowing = state.grad.flatten(1).abs().sum(-1) > 0
            assert flowing.tolist() == [True, False, False], f"{name}: a gradient crosses the beginning of an episode"


def _first_of_sequences() -> Tensor:
    """Return `[4, 3, 1]`: the second sequence begins again with its third step, the third with its last."""
    first = torch.zeros(4, 3, 1, dtype=torch.bool)
    first[2, 1] = first[3, 2] = True
    return first


def _run(policy: Any, seen: Tensor, first: Tensor) -> list[Tensor]:
    """Return the states of a policy before each step `[time, sequence, *shape]`, and after the last."""
    states = [_states(policy, seen.shape[1])]
    with torch.inference_mode():
        for row, begins in zip(seen, first, strict=True):
            states.append(policy.mode(row, states[-1], begins.squeeze(-1))[1])
    return [state.clone() for state in states]


def _states(policy: Any, count: int) -> Tensor:
    """Return states that are no initial ones."""
    initial = policy.initial_state(count)
    return initial + 0.3 * torch.rand(initial.shape, generator=_generator(3))  # type: ignore[no-any-return]


def _flags(*values: int) -> Tensor:
    return torch.tensor(values, dtype=torch.bool)


def _beside(first: Tensor, states: Tensor) -> Tensor:
    return first.reshape(-1, *[1] * (states.ndim - 1))


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
