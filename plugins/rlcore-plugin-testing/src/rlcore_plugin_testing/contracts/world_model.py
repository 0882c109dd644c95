"""What a world model must keep, whose parts see latents, and a policy that asks several of them."""

from __future__ import annotations

from typing import Any

import torch

from rlcore.types.context import Context
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.contracts.policy_tests import PolicyTests


class WorldModelContract(PolicyTests):
    """Base of the tests of a model whose parts see what other parts return, as latents, with a policy over them.

    The policy may plan. Its state may hold what it did or means to do, so that `act` and `mode` lead to others. A
    subclass has `behaviour`, which calls every part, with what it takes. Gradients are tested with the loss.
    """

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what every part makes of what it sees, and what the policy does."""
        raise NotImplementedError("say what the parts see: call each of them")

    def called(self, model: Any, name: str) -> Any:
        """Return None: no part remembers anything."""
        return None

    def remembering(self) -> tuple[Any, Any, Context]:
        """Return a model that tells observations apart, its policy after frames that may be random, and the bench."""
        model, policy, context = super().remembering()
        self.exercise(model, context)  # predictions may begin as zeros
        context.progress.frames = context.progress.total_frames
        policy.refresh()
        return model, policy, context

    def test_what_was_seen_is_remembered(self) -> None:
        """What came before decides on the action, or on its distribution."""
        _, policy, context = self.remembering()
        seen, none = observations(context.env_spec, 3, 6), torch.zeros(6, dtype=torch.bool)
        results = []
        with torch.inference_mode():
            noise = policy.draw(2, 6, torch.Generator().manual_seed(1))
            for row in (0, 1):
                state = policy.act(seen[row], noise[0], policy.initial_state(6), ~none)[2]
                results.append(policy.act(seen[2], noise[1], state, none)[1:])
        assert not torch.equal(results[0][1], results[1][1]), "the state does not depend on earlier observations"
        assert not torch.equal(results[0][0], results[1][0]), "what the policy does depends on the latest one alone"

    def test_refresh_follows_the_weights(self) -> None:
        """The policy acts as that of a model which was made with its weights, also after loading."""
        model, policy, context = self.actor()
        seen = observations(context.env_spec, 6)
        with torch.inference_mode():
            begin = policy.mode(seen)
        self.exercise(model, context)
        state = {name: value.clone() for name, value in model.state_dict().items()}
        model.policy.refresh()
        other, of_other, _ = self.actor()
        other.load_state_dict(state, assign=True)
        other.policy.refresh()
        with torch.inference_mode():
            updated, loaded = policy.mode(seen), of_other.mode(seen)
        assert difference(updated, loaded) is None, "after an update or after load_state_dict the policy is stale"
        assert difference(begin, updated) is not None, "the policy does not depend on the weights"

    def test_it_describes_as_many_steps_as_there_are(self) -> None:
        """An entry of a batch has a row for each action."""
        _, policy, context = self.actor()
        seen = observations(context.env_spec, 3, 4)
        with torch.inference_mode():
            noise = policy.draw(3, 4, torch.Generator().manual_seed(1))
            pairs = [policy.act(seen[time], noise[time]) for time in range(3)]
            action, parameters = (torch.stack(column) for column in zip(*pairs, strict=True))
            described = policy.describe(parameters, action)
        for key, value in described.items():
            assert value.shape[:2] == (3, 4), f"describe: {key} is {list(value.shape)}, not [time, env, ...]"
