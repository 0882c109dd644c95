"""What the parts of a model and its policy must keep, however the policy asks the parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
import torch
from torch import Tensor

from rlcore.envs.action_masks import MaskCheck, first_numbers, masks_actions
from rlcore.envs.packed import ACTION_MASK, Packed
from rlcore.errors import ConfigError, PluginError
from rlcore.types import Policy
from rlcore.types.context import Context
from rlcore.types.models import Foretelling, part_of, policy_of
from rlcore.types.optional import missing, offers
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.contracts.memory import MemoryTests, beginning, outputs_of

if TYPE_CHECKING:
    from rlcore.types.records import EnvSpec

# so many rows that some action differs where the policy sees something else
_SEEN: Final = 64


class PolicyTests(MemoryTests, StateContract):
    """Tests of the parts of a model, and of its policy as a whole; a contract adds what the parts see and return."""

    kind = "model"

    def exercise(self, component: Any, context: Context) -> None:
        """Change every weight."""
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in component.parameters():
                parameter += 0.1 * torch.randn(parameter.shape, generator=generator)

    def seen(self, model: Any, policy: Any, observation: Tensor) -> list[Any]:
        """Return what follows from observations `[sample, *observation]`, whatever that is."""
        noise = policy.draw(1, len(observation), _generator(1))[0]
        return [*policy.act(observation, noise), policy.mode(observation)]

    def actor(self) -> tuple[Any, Any, Context]:
        """Return a model, its policy as it acts at the beginning of episodes, and the bench."""
        context = self.bench()
        model = self.make(context)
        model.policy.refresh()
        return model, beginning(model.policy), context

    def test_parts_are_modules_with_weights(self) -> None:
        """Optimizers and losses find the parts by name."""
        context = self.bench()
        model = self.make(context)
        assert model.parts(), "parts() names nothing"
        for part in model.parts():
            module = getattr(model, part, None)  # a name may be wrong
            assert isinstance(module, torch.nn.Module), (
                f"parts() names {part!r}, which is no torch.nn.Module of the model"
            )
            assert list(module.parameters()), f"part {part!r} has no parameters"

    def test_weights_follow_from_the_seed_of_the_run(self) -> None:
        """Two runs with different seeds must not start from the same weights."""
        first = self.make(self.bench(around={"run": _run(1)}))
        other = self.make(self.bench(around={"run": _run(2)}))
        pairs = zip(first.named_parameters(), other.parameters(), strict=True)
        equal = {name: weight for (name, weight), same in pairs if torch.equal(weight, same)}
        # norms begin with ones, and some last layers with zeros
        random = [name for name, weight in equal.items() if name.endswith("weight") and len(weight.unique()) > 1]
        assert not random, f"the same weights for two seeds: {', '.join(random)}; seed them with context.seed()"
        assert len(equal) < len(list(first.parameters())), "all weights are the same for two seeds"

    def test_every_part_takes_no_rows(self) -> None:
        """A batch may have nothing of what a part is asked for, such as an episode that goes on after its end."""
        context = self.bench()
        model = self.make(context)
        called: list[torch.nn.Module] = []

        def again(part: torch.nn.Module, given: tuple[Tensor, ...], returned: Any) -> None:
            if given:
                try:
                    found = part.forward(*(entry[:0] for entry in given))
                except RuntimeError as error:
                    pytest.fail(f"{type(part).__name__} fails on no rows: {error}; flatten(1) takes them")
                for value in [found] if isinstance(found, Tensor) else found:
                    assert value.numel() == 0, f"no rows become {list(value.shape)}"
                called.append(part)

        for name in model.parts():
            part_of(model, name).register_forward_hook(again)
        self.behaviour(model, context)
        assert called, "behaviour() calls no part"

    def test_a_dict_of_arrays_is_read_leaf_by_leaf_or_refused(self) -> None:
        """It comes as a row of words; a model that took these for numbers would learn from noise, and say nothing."""
        env = self.around.get("env", {"use": "testing:toy"})
        if env["use"] != "testing:toy" or self.use.startswith("testing:"):
            pytest.skip("the env is another one, or the model is for tests")
        try:
            context = self.bench(around={"env": {**env, "use": "testing:toy-dict"}})
        except ConfigError:
            return
        model = self.make(context)
        self.exercise(model, context)
        model.policy.refresh()
        space, policy = context.env_spec.observation_space, beginning(model.policy)
        assert isinstance(space, Packed)
        leaves = {name: torch.ones(_SEEN, *(leaf.shape or ())) for name, leaf in space.leaves.items()}
        leaves["state"] = torch.randn(_SEEN, 3, generator=_generator(2))
        with torch.inference_mode():
            before = self.seen(model, policy, space.joined(leaves))
            leaves["state"][:, 0] += 10  # the lower half of a word, which is lost where it becomes one number
            after = self.seen(model, policy, space.joined(leaves))
        assert difference(before, after) is not None, (
            "the model does not see the first number of a leaf; take observations apart with their space, a "
            "rlcore.envs.Packed, or refuse them with a ConfigError"
        )

    def test_policy_takes_no_rows(self) -> None:
        """Where no env is left, there are no actions."""
        _, policy, context = self.actor()
        seen = observations(context.env_spec, 0)
        with torch.inference_mode():
            sampled = policy.act(seen, policy.draw(1, 0, _generator(1))[0])[0]
            chosen = policy.mode(seen)
        assert (len(sampled), len(chosen)) == (0, 0)

    def test_policy_has_every_method(self) -> None:
        """The collector and the evaluator call them."""
        _, policy, _ = self.actor()
        absent = missing(policy, Policy)
        assert isinstance(policy, Policy), f"the policy lacks {', '.join(absent)}"

    def test_actions_fit_the_action_space(self) -> None:
        """The env must be able to take every action, sampled or not."""
        _, policy, context = self.actor()
        space = context.env_spec.action_space
        seen = observations(context.env_spec, 6)
        with torch.inference_mode():
            noise = policy.draw(4, 6, _generator(1))
            assert noise.shape[:2] == (4, 6), f"draw(4, 6) returns {list(noise.shape)}, not [time, env, ...]"
            sampled, parameters = policy.act(seen, noise[0])
            chosen = policy.mode(seen)
        assert parameters.shape[0] == 6, f"act returns parameters {list(parameters.shape)}, not [env, ...]"
        for name, action in (("act", sampled), ("mode", chosen)):
            assert action.shape == (6, *(space.shape or ())), f"{name} returns {list(action.shape)}"
            for row in action.numpy():
                value = row if space.shape else row[()]
                assert space.contains(value), f"{name} returns {value!r} ({row.dtype}), which is not in {space}"

    def test_actions_keep_to_the_mask(self) -> None:
        """A forbidden action is never taken, sampled or not, and has no probability and no gradient."""
        context = self.bench()
        model = self.make(context)
        spec = context.env_spec
        if not masks_actions(spec):
            pytest.skip("all actions are allowed")
        model.policy.refresh()
        policy = beginning(model.policy)
        seen = observations(spec, 40, 6)
        check = MaskCheck(spec)
        with torch.inference_mode():
            noise = policy.draw(40, 6, _generator(1))
            sampled = torch.stack([policy.act(row, own)[0] for row, own in zip(seen, noise, strict=True)])
            chosen = torch.stack([policy.mode(row) for row in seen])
        for name, action in (("act", sampled), ("mode", chosen)):
            try:
                check(seen.numpy(), action.numpy(), np.ones((40, 6), dtype=bool), 0, 0)
            except PluginError as error:
                raise AssertionError(f"{name}: {error}") from None
        is_stochastic = "actor" in model.parts() and hasattr(model.actor, "distribution")
        if not is_stochastic:
            return
        parameters = outputs_of(model, "actor", seen, leading=2)
        assert parameters.shape[-1] == model.actor.distribution.num_parameters
        parameters.retain_grad()
        log_prob, entropy = model.actor.distribution.log_prob_and_entropy(parameters, sampled.clone())
        (log_prob.sum() + entropy.sum()).backward()
        assert log_prob.isfinite().all(), "an action that is allowed has no finite log-probability"
        without = _without_gradient(spec, seen, parameters)
        assert (parameters.grad[without] == 0).all(), "a forbidden action has a gradient"
        for other, changed in _with_forbidden(spec, seen, sampled):
            probability = model.actor.distribution.log_prob(parameters.detach(), other).squeeze(-1)[changed].exp()
            assert (probability == 0).all(), "a forbidden action has a probability"

    def test_all_randomness_is_in_the_noise(self) -> None:
        """A resumed run repeats its actions from the state of one generator."""
        _, policy, context = self.actor()
        seen = observations(context.env_spec, 6)
        with torch.inference_mode():
            draws = [policy.draw(3, 6, _generator(1)) for _ in range(2)]
            assert difference(draws[0], draws[1]) is None, "draw uses more than its generator"
            acts = [policy.act(seen, draws[0][0]) for _ in range(2)]
            other = policy.draw(3, 6, _generator(2))
        assert difference(acts[0], acts[1]) is None, "act takes random numbers itself; take them from the noise"
        assert difference(draws[0], other) is not None, "draw gives the same noise for two generators"

    def test_actions_that_are_foretold_are_those_of_act(self) -> None:
        """Whether a collector asks before or after the observation must not change the run."""
        context = self.bench()
        model = self.make(context)
        if policy_of(model) is None:
            pytest.skip("the model has no policy")
        policy = beginning(model.policy)
        policy.refresh()
        foretells = offers(policy, Foretelling)
        if not foretells:
            pytest.skip("the policy foretells nothing")
        seen = observations(context.env_spec, 6)
        with torch.inference_mode():
            noise = policy.draw(40, 6, _generator(1))
            told = policy.foretold(noise)
            if told is None:
                pytest.skip("the policy foretells nothing in the beginning")
            action, known = told
            assert len(known) == 40, f"foretold speaks of {len(known)} steps, not of the 40 of the noise"
            for time in (time for time in range(40) if known[time]):
                acted = policy.act(seen, noise[time])[0]
                assert torch.equal(acted, action[time]), f"foretold and act differ at step {time}"

    def test_every_env_acts_for_itself(self) -> None:
        """An action must not depend on what the other envs of the vector see."""
        _, policy, context = self.actor()
        seen = observations(context.env_spec, 6)
        with torch.inference_mode():
            noise = policy.draw(1, 6, _generator(1))[0]
            together = policy.act(seen, noise)[0]
            alone = torch.cat([policy.act(seen[i : i + 1], noise[i : i + 1])[0] for i in range(6)])
        assert torch.allclose(together.double(), alone.double(), atol=1e-5), "rows of one call influence each other"


def _without_gradient(spec: EnvSpec, seen: Tensor, parameters: Tensor) -> Tensor:
    """Return which parameters `[..., parameter]` are those of forbidden actions, or of bits with one value left."""
    space: Any = spec.observation_space
    forbidden: Tensor = space.tensor(seen, ACTION_MASK) == 0
    if parameters.shape[-1] == forbidden.shape[-1]:
        return forbidden
    one_for_each_bit = {*space.choices} == {2} and parameters.shape[-1] == len(space.choices)
    assert one_for_each_bit, f"the actor has {parameters.shape[-1]} parameters, the mask {forbidden.shape[-1]} numbers"
    return forbidden[..., ::2] | forbidden[..., 1::2]


def _with_forbidden(spec: EnvSpec, seen: Tensor, action: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each choice, actions with one that is forbidden in it, and where `[...]` there is such a one."""
    space: Any = spec.observation_space
    starts = first_numbers(spec.action_space).tolist()
    masks = space.tensor(seen, ACTION_MASK).split(list(space.choices), -1)
    for index, (mask, start) in enumerate(zip(masks, starts, strict=True)):
        forbids = (mask == 0).any(-1)
        number = ((mask == 0).int().argmax(-1) + start).to(action.dtype)
        other = action.clone()
        rows = other.view(*seen.shape[:-1], -1)
        rows[..., index] = torch.where(forbids, number, rows[..., index])
        yield other, forbids


def _generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def _run(seed: int) -> dict[str, Any]:
    return {"name": "toy", "seed": seed, "total_frames": 64, "device": "cpu"}
