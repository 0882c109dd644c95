"""What an estimator must keep: shapes, ends of both kinds apart, nothing across an end, nothing from masked steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest
import torch
from torch import Tensor

from rlcore.types import FIRST, NEXT_POLICY_STATE, POLICY_STATE, Estimator, has_memory
from rlcore.types.context import Context
from rlcore.types.models import part_of
from rlcore.types.optional import offers
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import made_up

if TYPE_CHECKING:
    from tensordict import TensorDict

WRITTEN = ("state_value", "advantage", "value_target")
NUM_ENVS, STEPS = 3, 12


class EstimatorContract(StateContract):
    """Base of the tests of an estimator."""

    kind = "estimator"

    def exercise(self, component: Any, context: Context) -> None:
        """Estimate a batch."""
        component(self.batch(context))

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what is estimated for a batch."""
        batch = self.batch(context, ends={(0, 3): "terminated", (2, 7): "truncated"})
        component(batch)
        return {key: batch[key] for key in WRITTEN}

    def batch(self, context: Context, ends: dict[tuple[int, int], str] | None = None, mask: Any = None) -> TensorDict:
        """Return a made-up batch with ends at the given (env, time)."""
        flags = {kind: torch.zeros(NUM_ENVS, STEPS, dtype=torch.bool) for kind in ("terminated", "truncated")}
        for place, kind in (ends or {}).items():
            flags[kind][place] = True
        return made_up(context, flags["terminated"], flags["truncated"], mask)

    def standardises(self) -> bool:
        """Return whether advantages are shifted and scaled over the batch; by default as the config's `standardise`."""
        return _standardises(self.settings())

    def estimates(self, estimator: Estimator, batch: TensorDict) -> dict[str, Tensor]:
        """Return value targets and advantages `[env, time]` of a batch."""
        estimator(batch)
        return {key: batch[key].squeeze(-1).clone() for key in ("value_target", "advantage")}

    def moved(self, before: Tensor, after: Tensor, key: str) -> Tensor:
        """Return by how much each estimate `[env, time]` moved, apart from being standardised with others.

        Nothing was changed in the envs but the first, so their estimates tell how the others were shifted and scaled.
        """
        if key != "advantage" or not self.standardises():
            return (after - before).abs()
        known = before[1:].flatten().double()
        columns = torch.stack([known, torch.ones_like(known)], dim=1)
        scale, shift = torch.linalg.lstsq(columns, after[1:].flatten().double().unsqueeze(1)).solution.flatten()
        difference = (after.double() - (before.double() * scale + shift)).abs()
        return torch.where(difference < 1e-4, 0.0, difference)

    def targets(self, estimator: Estimator, batch: TensorDict) -> Tensor:
        """Return the value targets `[env, time]` of a batch."""
        estimator(batch)
        target: Tensor = batch["value_target"]
        return target.squeeze(-1).clone()

    def test_writes_value_advantage_and_target(self) -> None:
        """The three entries have the shape and type of a reward, and carry no graph."""
        context = self.bench()
        batch = self.batch(context, {(1, 4): "terminated", (2, 5): "truncated"})
        estimator = self.make(context)
        assert estimator(batch) is None, "an estimator writes into the batch and returns nothing"
        assert estimator.every in ("batch", "epoch"), f"every = {estimator.every!r}; it must be 'batch' or 'epoch'"
        for key in WRITTEN:
            assert key in batch.keys(), f"the estimator does not set {key!r}"  # noqa: SIM118, a TensorDict
            assert batch[key].shape == (NUM_ENVS, STEPS, 1), f"{key} is {list(batch[key].shape)}, not [env, time, 1]"
            assert batch[key].dtype == torch.float32, f"{key} is {batch[key].dtype}"
            assert not batch[key].requires_grad, f"{key} carries a graph; estimate under torch.no_grad()"
            assert batch[key].isfinite().all(), f"{key} is not finite"

    def test_leaves_what_was_collected(self) -> None:
        """Another epoch estimates from the same observations, rewards and ends."""
        context = self.bench()
        batch = self.batch(context, {(0, 3): "terminated", (1, 4): "truncated"})
        before = batch.clone()
        self.make(context)(batch)
        changed = [key for key in before.keys(True, True) if not torch.equal(before[key], batch[key])]
        assert not changed, f"the estimator changed {', '.join(map(str, changed))}"

    def test_a_terminated_step_is_worth_its_reward(self) -> None:
        """Nothing follows an end of its own, so nothing may be bootstrapped there."""
        context = self.bench()
        batch = self.batch(context, {(0, 3): "terminated", (1, STEPS - 1): "terminated"})
        target = self.targets(self.make(context), batch)
        for place in ((0, 3), (1, STEPS - 1)):
            reward = float(batch["next", "reward"][place])
            assert abs(float(target[place]) - reward) < 1e-5, (
                f"the value target of a terminated step is {float(target[place]):.4f}, its reward {reward:.4f}; "
                "multiply the next value by ~terminated"
            )

    def test_a_truncated_step_is_bootstrapped(self) -> None:
        """An episode that was cut off would have gone on; its target differs from that of a terminated one."""
        context = self.bench()
        estimator = self.make(context)
        cut = self.estimates(estimator, self.batch(context, {(0, 3): "truncated"}))
        ended = self.estimates(estimator, self.batch(context, {(0, 3): "terminated"}))
        for key, what in (("value_target", "value target"), ("advantage", "advantage")):
            assert float(self.moved(cut[key], ended[key], key)[0, 3]) > 1e-6, (
                f"a terminated and a truncated step get the same {what}; use `terminated`, not `done`, for the value"
            )

    def test_an_end_of_both_kinds_is_terminated(self) -> None:
        """An episode may end of its own at the very step of its limit; then nothing follows."""
        context = self.bench()
        estimator = self.make(context)
        batch = self.batch(context, {(0, 3): "terminated", (1, 5): "truncated"})
        both = batch.clone()
        both["next", "truncated"][0, 3] = True
        before, after = self.estimates(estimator, batch), self.estimates(estimator, both)
        changed = [key for key in before if not torch.equal(before[key], after[key])]
        assert not changed, (
            f"a step that is terminated and truncated gets another {', '.join(changed)} than if terminated"
        )

    def test_a_higher_reward_is_better(self) -> None:
        """The advantage and the value target of a step rise with its reward."""
        context = self.bench()
        estimator = self.make(context)
        batch = self.batch(context, {(0, 7): "terminated"})
        other = batch.clone()
        other["next", "reward"][0, 5] += 1
        before, after = self.estimates(estimator, batch), self.estimates(estimator, other)
        for key, found in before.items():
            rose = float(self.moved(found, after[key], key)[0, 5]) > 1e-6 and after[key][0, 5] > found[0, 5]
            assert rose, f"the {key} of a step does not rise with its reward"

    def test_bootstraps_from_the_last_observation(self) -> None:
        """After a cut, and at the end of a batch, the next value is that of `next.observation`."""
        context = self.bench()
        estimator = self.make(context)
        for ends, place in (({(0, 3): "truncated"}, (0, 3)), ({}, (0, STEPS - 1))):
            batch = self.batch(context, dict(ends))
            other = batch.clone()
            other["next", "observation"][place] += 1
            before, after = self.estimates(estimator, batch), self.estimates(estimator, other)
            for key, found in before.items():
                assert float(self.moved(found, after[key], key)[place]) > 1e-6, (
                    f"the {key} at {place} does not depend on next.observation there; the row that follows in the "
                    "batch belongs to the next episode"
                )

    def test_without_a_discount_nothing_that_follows_counts(self) -> None:
        """With `gamma = 0` an estimate knows its own step alone; an estimator that does not use its discount fails."""
        if "gamma" not in type(self.settings()).model_fields:
            pytest.skip("has no key gamma")
        context = self.bench()
        estimator = self.make(context, gamma=0.0)
        batch = self.batch(context, {(0, 3): "truncated"})
        other = batch.clone()
        other["next", "observation"][0] += 1
        other["next", "reward"][0, 9] += 1
        before, after = self.estimates(estimator, batch), self.estimates(estimator, other)
        for key, found in before.items():
            moved = self.moved(found, after[key], key)[0]
            moved[9] = 0.0  # that of its own reward
            assert float(moved.max()) < 1e-4, (
                f"with gamma = 0 the {key} depends on what follows; multiply that by gamma"
            )

    @pytest.mark.parametrize("end", ["terminated", "truncated"])
    def test_nothing_crosses_an_end(self, end: str) -> None:
        """What happens in the next episode changes nothing in this one."""
        context = self.bench()
        estimator = self.make(context)
        batch = self.batch(context, {(0, 3): end})
        other = batch.clone()
        other["next", "reward"][0, 4:] += 5
        other["observation"][0, 4:] += 1
        before, after = self.estimates(estimator, batch), self.estimates(estimator, other)
        for key, found in before.items():
            moved = self.moved(found, after[key], key)
            assert not moved[0, :4].any(), f"rewards after a {end} step leak into the {key} of the episode before it"
            assert not moved[1:].any(), f"one env's rewards change the {key} of another"

    def test_nothing_may_follow(self) -> None:
        """Where all episodes end with the batch, or no step counts, a critic is not asked about no observation."""
        context = self.bench()
        ends = {(env, STEPS - 1): "terminated" for env in range(NUM_ENVS)}
        asked: list[int] = []
        critic = part_of(context.model, "critic")
        critic.register_forward_pre_hook(lambda part, given: asked.append(given[0].numel()))
        for mask in (None, torch.zeros(NUM_ENVS, STEPS, dtype=torch.bool)):
            batch = self.batch(context, ends, mask)
            self.make(context)(batch)
            for key in WRITTEN:
                assert batch[key].isfinite().all(), f"{key} is not finite"
        assert asked, "the estimator does not call the critic of the model"
        assert 0 not in asked, "the estimator asks the critic about no observation, which a network may not take"

    def test_masked_steps_influence_nothing(self) -> None:
        """A step that only resets an env carries no experience."""
        context = self.bench()
        estimator = self.make(context)
        mask = torch.ones(NUM_ENVS, STEPS, dtype=torch.bool)
        mask[0, 4] = False
        results = []
        for reward in (0.0, 50.0):
            batch = self.batch(context, {(0, 3): "truncated"}, mask)
            batch["next", "reward"][0, 4] = reward
            estimator(batch)
            results.append({key: batch[key].squeeze(-1)[mask] for key in WRITTEN})
        for key in WRITTEN:
            assert torch.equal(results[0][key], results[1][key]), f"the reward of a masked step changes {key} elsewhere"


class GAEContract(EstimatorContract):
    """Generalised advantage estimation, compared with its definition. The config has `gamma` and `lmbda`."""

    @pytest.mark.parametrize("masked", [False, True])
    def test_equals_the_definition(self, masked: bool) -> None:
        """A(t) is the sum over l of (gamma lambda)^l delta(t + l) up to the end (arXiv 1506.02438, eq. 16)."""
        context = self.bench()
        estimator = self.make(context)
        mask = torch.ones(NUM_ENVS, STEPS, dtype=torch.bool)
        mask[1, 6] = not masked
        ends = {(0, 2): "terminated", (0, 7): "truncated", (1, 5): "terminated", (2, STEPS - 1): "truncated"}
        batch = self.batch(context, ends, mask)
        estimator(batch)
        settings: Any = self.settings()
        model: Any = context.model
        value, following = values_of(model, batch)
        expected = reference_gae(batch, value, following, settings.gamma, settings.lmbda)
        assert torch.allclose(batch["state_value"], value, atol=1e-5), "state_value is not the critic's"
        target = expected + value.squeeze(-1).double()
        if _standardises(settings):
            counted = expected[mask]
            expected = (expected - counted.mean()) / counted.std()
        for key, reference in (("advantage", expected), ("value_target", target)):
            found = batch[key].squeeze(-1).double()
            error = float((found - reference)[mask].abs().max())
            assert error < 1e-4, f"{key} differs from its definition by up to {error:.2e}"


class _Standardising(Protocol):
    standardise: bool


def _standardises(settings: object) -> bool:
    return offers(settings, _Standardising) and bool(settings.standardise)


def values_of(model: Any, batch: TensorDict) -> tuple[Tensor, Tensor]:
    """Return the critic's values of the observations of a batch and of those after them, `[env, time, 1]`."""
    inputs = [[batch["observation"]], [batch["next", "observation"]]]
    if has_memory(model):
        inputs[0] += [batch[POLICY_STATE], batch[FIRST]]
        inputs[1] += [batch[NEXT_POLICY_STATE], torch.zeros_like(batch[FIRST])]
    with torch.no_grad():
        now, then = (model.critic(*(entry.flatten(0, 1) for entry in entries)) for entries in inputs)
    return now.unflatten(0, batch.batch_size), then.unflatten(0, batch.batch_size)


def reference_gae(batch: TensorDict, value: Tensor, following: Tensor, gamma: float, lmbda: float) -> Tensor:
    """Return advantages `[env, time]` in double precision, each summed on its own as the definition says.

    Args:
        batch: has rewards and ends.
        value: of its observations, `[env, time, 1]`.
        following: of those after them.
        gamma: the discount.
        lmbda: the weight of longer returns.
    """
    value, next_value = value.squeeze(-1).double(), following.squeeze(-1).double()
    reward, terminated, done = (batch["next", key].squeeze(-1) for key in ("reward", "terminated", "done"))
    result = torch.zeros_like(value)
    for env, start in torch.cartesian_prod(torch.arange(value.shape[0]), torch.arange(value.shape[1])).tolist():
        for time in range(start, value.shape[1]):
            after = 0.0 if terminated[env, time] else float(next_value[env, time])
            delta = float(reward[env, time]) + gamma * after - float(value[env, time])
            result[env, start] += (gamma * lmbda) ** (time - start) * delta
            if done[env, time]:
                break
    return result
