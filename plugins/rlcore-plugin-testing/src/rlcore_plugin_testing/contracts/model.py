"""What a model must keep whose parts see observations: values, honest log-probabilities, gradients, weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from torch import Tensor

from rlcore.types.context import Context
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.contracts.memory import outputs_of
from rlcore_plugin_testing.contracts.policy_tests import PolicyTests

if TYPE_CHECKING:
    pass


class ModelContract(PolicyTests):
    """Base of the tests of a model. The tests of the policy are skipped for a model without an actor."""

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what every part makes of some observations."""
        seen = observations(context.env_spec, 5)
        with torch.no_grad():
            return {part: outputs_of(component, part, seen) for part in component.parts()}

    def seen(self, model: Any, policy: Any, observation: Tensor) -> list[Any]:
        """Return what the policy does, and what the first part makes of the observations."""
        return [*super().seen(model, policy, observation), outputs_of(model, model.parts()[0], observation)]

    def actor(self) -> tuple[Any, Any, Context]:
        """Return a model, its policy and the bench."""
        if "actor" not in self.make(self.bench()).parts():
            pytest.skip("the model has no actor")
        return super().actor()

    def test_critic_gives_one_value_per_observation(self) -> None:
        """`[..., *observation]` to `[..., 1]`, whatever the leading shape."""
        context = self.bench()
        model = self.make(context)
        if "critic" not in model.parts():
            pytest.skip("the model has no critic")
        for shape in ((5,), (2, 3)):
            value = outputs_of(model, "critic", observations(context.env_spec, *shape), len(shape))
            assert value.shape == (*shape, 1), f"the critic gives {list(value.shape)} for leading shape {shape}"

    def test_act_and_mode_lead_to_the_same_state(self) -> None:
        """What is remembered is what was seen, and not what was done."""
        _, policy, context = self.remembering()
        seen, none = observations(context.env_spec, 6), torch.zeros(6, dtype=torch.bool)
        with torch.inference_mode():
            noise = policy.draw(1, 6, _generator(1))[0]
            acted = policy.act(seen, noise, policy.initial_state(6), none)[2]
            shown = policy.mode(seen, policy.initial_state(6), none)[1]
        assert torch.equal(acted, shown), "the state after act and after mode differ"

    def test_log_probabilities_are_those_of_the_actor(self) -> None:
        """The ratio of a policy-gradient loss is 1 before the first update."""
        model, policy, context = self.actor()
        is_stochastic = hasattr(model.actor, "distribution")
        if not is_stochastic:
            pytest.skip("the actor has no distribution: it returns actions")
        seen = observations(context.env_spec, 3, 4)
        with torch.no_grad():
            noise = policy.draw(3, 4, _generator(1))
            pairs = [policy.act(seen[time], noise[time]) for time in range(3)]
            action, parameters = (torch.stack(column) for column in zip(*pairs, strict=True))
            described = policy.describe(parameters, action)
            expected = model.actor.distribution.log_prob(outputs_of(model, "actor", seen, leading=2), action)
        for key, value in described.items():
            assert value.shape[:2] == (3, 4), f"describe: {key} is {list(value.shape)}, not [time, env, ...]"
        found = described.get("sample_log_prob")
        if found is None:
            pytest.skip("the policy describes no log-probabilities")
        assert found.shape == (3, 4, 1), f"sample_log_prob is {list(found.shape)}, not [time, env, 1]"
        assert torch.allclose(found, expected, atol=1e-5), (
            f"sample_log_prob differs from actor.distribution.log_prob by {float((found - expected).abs().max())}"
        )

    def test_refresh_follows_the_weights(self) -> None:
        """The policy acts with the weights that the learner has, also after loading and moving."""
        model, policy, context = self.actor()
        seen = observations(context.env_spec, 6)
        self.exercise(model, context)
        self._check_mode(model, policy, seen, "an update in place")
        model.load_state_dict({name: value.clone() * 0.5 for name, value in model.state_dict().items()}, assign=True)
        self._check_mode(model, policy, seen, "load_state_dict(assign=True)")

    def test_gradients_reach_every_weight_of_the_actor(self) -> None:
        """A weight without a gradient is never trained."""
        model, policy, context = self.actor()
        seen = observations(context.env_spec, 6)
        with torch.no_grad():
            action, _ = policy.act(seen, policy.draw(1, 6, _generator(1))[0])
        outputs = outputs_of(model, "actor", seen)
        is_stochastic = hasattr(model.actor, "distribution")
        if is_stochastic:
            outputs = model.actor.distribution.log_prob(outputs, action)
        outputs.sum().backward()
        bare = [name for name, parameter in model.actor.named_parameters() if parameter.grad is None]
        assert not bare, f"the actor gives no gradient to {', '.join(bare)}"

    def _check_mode(self, model: Any, policy: Any, seen: Tensor, after: str) -> None:
        policy.refresh()
        with torch.inference_mode():
            found, expected = policy.mode(seen), outputs_of(model, "actor", seen)
            is_stochastic = hasattr(model.actor, "distribution")
            if is_stochastic:
                expected = model.actor.distribution.mode(expected)
        assert np.allclose(found.numpy(), expected.numpy(), atol=1e-5), (
            f"after {after} and refresh() the policy is stale"
        )


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
