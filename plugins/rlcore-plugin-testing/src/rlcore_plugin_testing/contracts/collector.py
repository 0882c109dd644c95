"""What a collector must keep: batches in which every entry stands where it belongs, and a record of every episode."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
import torch

from rlcore.errors import EnvError
from rlcore.types import MASK, Collector, Episode
from rlcore.types.context import Context
from rlcore.types.part import defines
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import StateContract, saved
from rlcore_plugin_testing.small_run import TOY_CONFIG
from rlcore_plugin_testing.toy import ToyEnv

if TYPE_CHECKING:
    from tensordict import TensorDict

NEXT_STEP: Mapping[str, Any] = {"env": {"use": "testing:toy", "reset_mode": "next_step"}}


class CollectorContract(StateContract):
    """Base of the tests of a collector. They use the toy env, whose steps, ends and returns are known.

    Attributes:
        batches: how many batches are enough for every env to end several episodes.
    """

    kind = "collector"
    batches: ClassVar[int] = 4

    def exercise(self, component: Any, context: Context) -> None:
        """Collect."""
        for _ in range(2):
            component.collect()

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return the next batch and its episodes; where a resume starts episodes over, they start over here too."""
        state = saved(component)
        if state is not None and not (defines(component, Collector.inexact) and component.inexact() is None):
            component.load_state_dict(state)
        batch = component.collect().clone().flatten_keys(".").to_dict()
        return {"batch": batch, "episodes": [episode._asdict() for episode in component.episodes()]}

    def collect(self, context: Context) -> list[TensorDict]:
        """Return copies of some batches."""
        collector = self.make(context)
        return [collector.collect().clone() for _ in range(self.batches)]

    def test_batch_has_every_entry(self) -> None:
        """The shapes are `[env, time, ...]`; rewards, flags and log-probabilities end in a dimension of size 1."""
        context = self.bench()
        batch, spec = self.make(context).collect(), context.env_spec
        assert len(batch.batch_size) == 2, f"the batch has size {list(batch.batch_size)}, not [env, time]"
        assert batch.batch_size[0] == spec.num_envs, f"the batch has size {list(batch.batch_size)}, not [env, time]"
        size = tuple(batch.batch_size)
        shape = spec.observation_space.shape or ()
        expected: dict[Any, tuple[tuple[int, ...], torch.dtype]] = {
            "observation": ((*size, *shape), torch.float32),
            "action": ((*size, *(spec.action_space.shape or ())), torch.float32),
            "sample_log_prob": ((*size, 1), torch.float32),
            ("next", "observation"): ((*size, *shape), torch.float32),
            ("next", "reward"): ((*size, 1), torch.float32),
            **{("next", flag): ((*size, 1), torch.bool) for flag in ("done", "terminated", "truncated")},
        }
        keys = set(batch.keys(include_nested=True, leaves_only=True))
        for key, (form, dtype) in expected.items():
            assert key in keys, f"the batch has no entry {key!r}"
            found = batch[key]
            assert found.shape == form, f"{key!r} is {list(found.shape)}, not {list(form)}"
            assert found.dtype == dtype, f"{key!r} is {found.dtype}, not {dtype}"

    def test_both_forms_of_a_batch_have_the_same_entries(self) -> None:
        """Where a collector gives its batches as tensors too, the loop takes the form that the others in it need."""
        collector = self.make(self.bench())
        batch = collector.collect()
        if not defines(collector, Collector.collect_columns):
            pytest.skip("it gives TensorDicts alone")
        columns = collector.collect_columns()
        keys = list(batch.keys(include_nested=True, leaves_only=True))
        assert columns.keys() == keys, f"the tensors are {columns.keys()}, and the entries of the TensorDict {keys}"
        for key in keys:
            assert columns[key].shape == batch[key].shape, f"{key!r} has another shape as a tensor"

    def test_entries_can_be_trained_on(self) -> None:
        """No graph, and no inference tensors, which autograd refuses."""
        batch = self.make(self.bench()).collect()
        for key in batch.keys(include_nested=True, leaves_only=True):
            assert not batch[key].requires_grad, f"{key!r} carries a graph; collect without gradients"
            assert not batch[key].is_inference(), f"{key!r} is an inference tensor; copy it into storage made outside"

    @pytest.mark.parametrize("around", [{}, NEXT_STEP], ids=["same_step", "next_step"])
    def test_rewards_belong_to_their_observations(self, around: Mapping[str, Any]) -> None:
        """The toy env's reward is the number of the step that its observation counts."""
        for batch in self.collect(self.bench(around=around)):
            mask = _mask(batch)
            expected = (batch["observation"][..., 0] * 10).round() + 1
            found = batch["next", "reward"].squeeze(-1)
            assert torch.equal(found[mask], expected[mask]), "rewards and observations are shifted against each other"
            after = (batch["next", "observation"][..., 0] * 10).round()
            assert torch.equal(after[mask], expected[mask]), (
                "next.observation is not the observation after the step; at an end it is the last one of the episode"
            )

    @pytest.mark.parametrize("around", [{}, NEXT_STEP], ids=["same_step", "next_step"])
    def test_every_episode_is_recorded(self, around: Mapping[str, Any]) -> None:
        """Also those that span several batches; lengths count steps, not resets."""
        context = self.bench(around=around)
        collector, env = self.make(context), _toy(context)
        found: dict[int, list[Episode]] = {index: [] for index in range(env.spec.num_envs)}
        for _ in range(self.batches):
            collector.collect()
            for episode in collector.episodes():
                found[episode.env_index].append(episode)
        for index, episodes in found.items():
            assert len(episodes) > 1, f"env {index} ended {len(episodes)} episodes in {self.batches} batches"
            lengths = [env.length(index, number) for number in range(len(episodes))]
            assert [e.length for e in episodes] == lengths, (
                f"env {index}: {[e.length for e in episodes]}, not {lengths}"
            )
            returns = [length * (length + 1) / 2 for length in lengths]
            assert [e.return_ for e in episodes] == returns, (
                f"env {index}: {[e.return_ for e in episodes]}, not {returns}"
            )
            infos = [dict(e.infos) for e in episodes]
            expected = [{"episode": number} for number in range(len(episodes))]
            assert infos == expected, f"env {index}: the infos of its ends are {infos}, not {expected}"

    @pytest.mark.parametrize("around", [{}, NEXT_STEP], ids=["same_step", "next_step"])
    def test_terminated_and_truncated_are_kept_apart(self, around: Mapping[str, Any]) -> None:
        """The flags are the env's own, and `done` is either of them."""
        context = self.bench(around=around)
        env = _toy(context)
        batch: Any = torch.cat(self.collect(context), dim=1)
        flags = {name: batch["next", name].squeeze(-1) for name in ("terminated", "truncated", "done")}
        assert torch.equal(flags["done"], flags["terminated"] | flags["truncated"]), (
            "done is not terminated | truncated"
        )
        assert not (flags["terminated"] & flags["truncated"]).any(), "a step is both terminated and truncated"
        for index in range(env.spec.num_envs):
            places = flags["done"][index].nonzero().flatten().tolist()
            kinds = ["terminated" if flags["terminated"][index, place] else "truncated" for place in places]
            expected = [env.end(index, number) for number in range(len(places))]
            assert kinds == expected, f"env {index} ended as {kinds}, not {expected}"

    @pytest.mark.parametrize("around", [{}, NEXT_STEP], ids=["same_step", "next_step"])
    def test_actions_are_those_taken(self, around: Mapping[str, Any]) -> None:
        """The position that the toy env observes moves by the actions that it was given."""
        for batch in self.collect(self.bench(around=around)):
            mask = _mask(batch)
            expected = 0.9 * batch["observation"][..., 2] + 0.1 * batch["action"].flatten(2)[..., 0]
            error = float((batch["next", "observation"][..., 2] - expected)[mask].abs().max())
            assert error < 1e-5, "the actions of the batch are not those that the envs were stepped with"

    def test_leaves_and_masks_belong_to_their_steps(self) -> None:
        """The toy env that observes dicts shows the number of the step, and which action it forbids there."""
        context = self.seeing_dicts()
        space: Any = context.env_spec.observation_space
        for batch in self.collect(context):
            assert batch["observation"].dtype == torch.int64, "rows of leaves are not to be cast"
            seen, following = (space.tensors(batch[key]) for key in ("observation", ("next", "observation")))
            steps = (10 * seen["state"][..., 0]).round().long()
            assert torch.equal(seen["frame"][..., 0, 0].long(), steps), "a leaf belongs to another step"
            assert torch.equal(following["frame"][..., 1, 1].long(), steps + 1), "a leaf belongs to another next step"
            forbidden = torch.nn.functional.one_hot(steps % 3, 3)
            assert torch.equal(seen["action_mask"].long(), 1 - forbidden), "a mask belongs to another step"
            ended = batch["next", "terminated"].squeeze(-1)
            assert torch.equal(following["action_mask"].sum(-1) == 0, ended), "a mask belongs to another next step"
            assert (batch["action"].reshape(steps.shape) != steps % 3).all(), "a forbidden action was taken"

    def test_the_seed_of_the_run_decides(self) -> None:
        """Runs of several seeds must differ in where episodes begin and in how they are explored."""
        starts, noises = [], []
        for seed in (1, 2):
            context = self.bench(around={"run": {**TOY_CONFIG["run"], "seed": seed}})
            batch, model = self.make(context).collect().clone(), context.model
            starts.append(batch["observation"][..., 1])
            with torch.no_grad():
                noises.append(batch["action"] - model.actor(batch["observation"]))  # type: ignore[attr-defined]
        assert not torch.equal(*starts), "episodes begin alike whatever the run's seed"
        alike = torch.allclose(noises[0], noises[1], atol=1e-5)
        assert not alike, "the noise of the actions is the same whatever the run's seed"

    def test_resetting_steps_are_masked(self) -> None:
        """With `reset_mode = next_step`, the step after an end is no experience, also across batches."""
        batch: Any = torch.cat(self.collect(self.bench(around=NEXT_STEP)), dim=1)
        done = batch["next", "done"].squeeze(-1)
        expected = torch.ones_like(done)
        expected[:, 1:] = ~done[:, :-1]
        assert torch.equal(_mask(batch), expected), 'entry ("collector", "mask") must be False exactly after an end'

    def test_nothing_is_masked_without_resetting_steps(self) -> None:
        """With `reset_mode = same_step` every step counts."""
        assert all(bool(_mask(batch).all()) for batch in self.collect(self.bench())), "valid steps are masked"

    def test_batches_follow_one_another(self) -> None:
        """No step is lost between two batches."""
        batches = self.collect(self.bench())
        for before, after in pairwise(batches):
            going_on = ~before["next", "done"][:, -1, 0]
            where = difference(before["next", "observation"][going_on, -1], after["observation"][going_on, 0])
            assert where is None, "a batch does not begin with the observation after the last step of the one before"

    def test_log_probabilities_are_those_of_the_actions(self) -> None:
        """Shifted or stale log-probabilities bias every update."""
        context = self.bench()
        model: Any = context.model
        for batch in self.collect(context):
            expected = model.actor.distribution.log_prob(model.actor(batch["observation"]), batch["action"])
            error = float((expected.detach() - batch["sample_log_prob"]).abs().max())
            assert error < 1e-5, f"sample_log_prob differs from that of observation and action by {error:.2e}"

    def test_observations_pass_the_transforms(self) -> None:
        """Last observations of episodes too, each exactly once."""
        context = self.bench()
        context.built["transforms"].append(_Double())
        for batch in self.collect(context):
            expected = batch["next", "reward"].squeeze(-1)
            found = (batch["next", "observation"][..., 0] * 5).round()
            assert torch.equal(found, expected), "next.observation did not pass every transform once"
            assert torch.equal((batch["observation"][..., 0] * 5).round() + 1, expected), "observation did not"

    def test_a_value_that_is_not_finite_ends_the_batch(self) -> None:
        """Nothing of it may reach the buffer."""
        context = self.bench(around={"env": {"use": "testing:faulty", "fault": "nan reward", "at": 1}})
        with pytest.raises(EnvError, match="reward"):
            self.make(context).collect()

    def test_closes_twice(self) -> None:
        """The end of a failing run may close what is closed already."""
        context = self.bench()
        collector = self.make(context)
        collector.collect()
        collector.update_model()
        collector.close()
        collector.close()
        assert _toy(context).closed, "close() leaves the envs open"


class _Double:
    """A transform that doubles observations."""

    def step(self, observation: Any, first: Any) -> Any:
        return observation * 2

    def final(self, observation: Any, env_index: int) -> Any:
        return observation * 2

    def batch(self, batch: Any) -> Any:
        return batch

    def frozen(self) -> _Double:
        return self


def _toy(context: Context) -> ToyEnv:
    env = context.env
    assert isinstance(env, ToyEnv), "the tests of a collector need the toy env"
    return env


def _mask(batch: TensorDict) -> torch.Tensor:
    mask = batch.get(MASK, None)
    return torch.ones(batch.batch_size, dtype=torch.bool) if mask is None else mask.squeeze(-1)
