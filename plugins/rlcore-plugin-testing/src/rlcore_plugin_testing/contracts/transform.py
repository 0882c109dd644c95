"""What a transform must keep: shapes, untouched inputs, frozen copies that share nothing, state."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from rlcore.envs.action_masks import random_actions
from rlcore.envs.packed import Packed
from rlcore.types import MASK, Env, EnvSpec, Transform
from rlcore.types.context import Context
from rlcore.types.part import defines, with_defaults
from rlcore_plugin_testing.compare import difference, snapshot
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import actions, collected, lawful, steps_of

if TYPE_CHECKING:
    from rlcore.types import Array


class TransformContract(StateContract):
    """Base of the tests of a transform.

    Attributes:
        leaf: that it changes, where `around` has an env whose observations are dicts.
    """

    kind = "transform"

    def env(self, context: Context) -> Env:
        """Return an env of the bench, whose observations the transform has not seen."""
        return lawful(context.make_env(2))

    def make(self, context: Context, **changes: Any) -> Any:
        """Build the transform and fit it as a run does."""
        transform: Any = super().make(context, **changes)
        space = context.env.spec.observation_space
        if self.leaf is not None and isinstance(space, Packed):
            from rlcore.envs import OnLeaf  # of rlcore-plugin-transforms, which other transforms do without

            transform = OnLeaf(transform, space, self.leaf)
        env = context.make_env(1)
        transform.fit(env)
        env.close()
        return transform

    def exercise(self, component: Any, context: Context) -> None:
        """Pass the observations of some steps."""
        self._pass(component, self.env(context), steps=12, seed=1)

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what becomes of the observations of some steps."""
        return self._pass(component, self.env(context), steps=6, seed=2)

    def test_observation_space_describes_what_step_returns(self) -> None:
        """Model and storage are made for that space."""
        context = self.bench()
        transform, env = self.make(context), self.env(context)
        space = transform.observation_space(env.spec.observation_space)
        for seen in self._pass(transform, env, steps=12, seed=3):
            rows = seen["step"]
            assert rows.shape == (env.spec.num_envs, *space.shape), (
                f"step gives {rows.shape}, the space is {space.shape}"
            )
            assert rows.dtype == space.dtype, f"step returns {rows.dtype}, but observation_space() says {space.dtype}"
            for final in seen["final"].values():
                assert final.shape == space.shape, f"final gives {final.shape}, the space is {space.shape}"
                assert final.dtype == space.dtype, (
                    f"final returns {final.dtype}, but observation_space() says {space.dtype}"
                )

    def test_inputs_stay_as_they_are(self) -> None:
        """The env may still need the array that it handed out."""
        context = self.bench()
        transform, env = self.make(context), self.env(context)
        observation = np.array(env.reset(seed=0))
        given = observation.copy()
        transform.step(observation, np.ones(len(observation), dtype=bool))
        transform.final(observation[0], 0)
        assert np.array_equal(observation, given), "step or final changed its input; work on a copy"

    def test_frozen_copies_do_not_touch_the_original(self) -> None:
        """Evaluation must not change training."""
        context = self.bench()
        transform, env = self.make(context), self.env(context)
        self.exercise(transform, context)
        before = snapshot(transform)
        self._pass(transform.frozen(), env, steps=8, seed=4)
        where = difference(before, snapshot(transform))
        assert where is None, f"passing observations through frozen() changed the original: {where}"

    def test_frozen_copies_do_not_learn(self) -> None:
        """An evaluation is the same whatever was seen in it, and in training since."""
        context = self.bench()
        transform = self.make(context)
        self.exercise(transform, context)
        frozen = transform.frozen()
        assert frozen is not transform, "frozen() returns the original; return a copy, so that loading cannot change it"
        observation = np.array(self.env(context).reset(seed=5))
        first = np.ones(len(observation), dtype=bool)
        expected = np.array(frozen.step(observation, first))
        frozen.step(observation + 1, first)
        where = difference(expected, np.array(frozen.step(observation, first)))
        assert where is None, f"a frozen copy learns from what it sees: {where}"
        self._pass(transform, self.env(context), steps=8, seed=6)
        where = difference(expected, np.array(frozen.step(observation, first)))
        assert where is None, f"a frozen copy shares state with the original: {where}"

    def test_takes_no_rows(self) -> None:
        """Where no env is left there is nothing to change, and from a batch of masked steps nothing to learn."""
        context = self.bench()
        transform, env = self.make(context), self.env(context)
        space = transform.observation_space(env.spec.observation_space)
        rows, batch = np.array(env.reset(seed=0))[:0], collected(context)
        before = self.behaviour(transform.frozen(), context)
        transform.batch(batch.set(MASK, torch.zeros_like(batch["next", "done"])))
        where = difference(before, self.behaviour(transform.frozen(), context))
        assert where is None, f"the transform learns from steps that do not count: {where}"
        assert transform.frozen().step(rows, np.ones(0, dtype=bool)).shape == (0, *space.shape)
        if defines(transform, Transform.observation_module):
            assert transform.observation_module()(torch.from_numpy(rows)).shape == (0, *space.shape)

    def test_actions_fit_the_env(self) -> None:
        """A transform that changes actions makes those of the policy into those of the env."""
        context = self.bench()
        transform, env = self.make(context), self.env(context)
        changes_actions = defines(transform, Transform.action)
        if not changes_actions:
            pytest.skip("does not change actions")
        space = env.spec.action_space
        taken = self._spec_of_policy(transform, env.spec)
        for chosen in islice(random_actions(taken, seed=7), 20):
            given = chosen.copy()
            changed = transform.action(chosen)
            assert np.array_equal(chosen, given), "action changed its input; work on a copy"
            assert changed.dtype == space.dtype, f"action returns {changed.dtype}, the env takes {space.dtype}"
            outside = [row for row in changed if not space.contains(row)]
            assert not outside, f"action returns {outside[0]}, which is not in the env's {space}"

    def test_modules_for_exports_compute_the_same(self) -> None:
        """What an exported policy computes in the place of the transform is what the transform does."""
        context = self.bench()
        transform, spec = self.make(context).frozen(), self.env(context).spec
        observes, acts = defines(transform, Transform.observation_module), defines(transform, Transform.action_module)
        remembers = defines(transform, Transform.memory_module)
        transform.observation_space(spec.observation_space)
        if not (observes or acts or remembers):
            pytest.skip("is no part of exported policies")
        if remembers:
            self._same_through_episodes(transform, self.env(context))
        if observes:
            observation = self.env(context).reset(seed=5)
            expected = transform.step(observation, np.zeros(spec.num_envs, dtype=bool))
            self._same("observation_module()", transform.observation_module(), observation, expected)
        if acts:
            taken = self._spec_of_policy(transform, spec)
            for chosen in islice(random_actions(taken, seed=7), 5):
                self._same("action_module()", transform.action_module(), chosen, transform.action(chosen))

    def test_methods_for_tensors_compute_the_same(self) -> None:
        """What the collector `device` calls, `step_tensors` and `final_tensors`, is what `step` and `final` are.

        So is `take_tensors` what `action` and `read_reward` are.
        """
        context, other = self.bench(), self.bench()
        arrays, tensors = self.make(context), self.make(other)
        if not hasattr(type(arrays), "step_tensors"):
            pytest.skip("has no step_tensors")
        env = self.env(context)
        for transform in (arrays, tensors):
            transform.observation_space(env.spec.observation_space)
        observation, first = np.array(env.reset(seed=5)), np.ones(env.spec.num_envs, dtype=bool)
        for chosen in actions(env, steps=7, seed=5):
            given = torch.from_numpy(observation.copy())
            finals = np.stack([arrays.final(row, index) for index, row in enumerate(observation)])
            _close("final_tensors()", tensors.final_tensors(given), finals)
            _close(
                "step_tensors()", tensors.step_tensors(given, torch.from_numpy(first)), arrays.step(observation, first)
            )
            assert np.array_equal(given.numpy(), observation), "step_tensors changed its input; work on a copy"
            step = env.step(chosen)
            observation, first = np.array(step.observation), step.terminated | step.truncated
            if hasattr(tensors, "take_tensors"):
                arrays.action(chosen)
                arrays.read_reward(step.reward)
                tensors.take_tensors(torch.from_numpy(chosen.copy()), torch.from_numpy(step.reward.copy()))
        if not hasattr(arrays, "state_dict"):
            return
        assert list(tensors.state_dict()) == list(arrays.state_dict())
        tensors.load_state_dict(arrays.state_dict())
        where = difference(arrays.state_dict(), tensors.state_dict())
        assert where is None, f"a run cannot go on with tensors from what arrays left: {where}"

    def _same_through_episodes(self, transform: Any, env: Env) -> None:
        """Compare what a module with a memory makes of some steps with what the transform does."""
        module = transform.memory_module()
        count = env.spec.num_envs
        state, first = module.initial_state(count).fill_(torch.nan), np.ones(count, dtype=bool)
        assert state.is_floating_point(), f"the state of memory_module() is {state.dtype}, which is no float"
        observation = np.array(env.reset(seed=5))
        for chosen in actions(env, steps=7, seed=5):
            expected = transform.step(observation, first)
            found, following = module(torch.from_numpy(observation.copy()), state, torch.from_numpy(first))
            assert (following.shape, following.dtype) == (state.shape, state.dtype), (
                f"memory_module() returns a state {list(following.shape)}, {following.dtype}; it began with "
                f"{list(state.shape)}, {state.dtype}"
            )
            self._equal("memory_module()", found.numpy(), expected)
            state, step = following, env.step(chosen)
            observation, first = np.array(step.observation), step.terminated | step.truncated

    def _same(self, name: str, module: torch.nn.Module, given: Array, expected: Array) -> None:
        self._equal(name, module(torch.from_numpy(given.copy())).numpy(), expected)

    @staticmethod
    def _equal(name: str, found: Array, expected: Array) -> None:
        assert found.dtype == expected.dtype, f"{name} returns {found.dtype}, the transform {expected.dtype}"
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=f"{name} computes something else")

    def test_batch_keeps_size_and_ends(self) -> None:
        """A transform may change what was observed, not when episodes ended."""
        context = self.bench()
        transform = self.make(context)
        batch = collected(context)
        flags = {name: batch["next", name].clone() for name in ("done", "terminated", "truncated")}
        changed = transform.batch(batch)
        assert changed is not None, "batch() must return the batch"
        assert changed.batch_size == batch.batch_size, f"batch() changed the size to {changed.batch_size}"
        where = difference(flags, {name: changed["next", name] for name in flags})
        assert where is None, f"batch() changed the ends of episodes: {where}"

    @staticmethod
    def _spec_of_policy(transform: Transform, spec: EnvSpec) -> EnvSpec:
        """Return the spec of an env with the actions that a policy behind the transform takes."""
        return replace(spec, action_space=with_defaults(transform, Transform).action_space(spec.action_space))

    def _pass(self, transform: Transform, env: Env, steps: int, seed: int) -> list[dict[str, Any]]:
        """Reset, then return what becomes of the observations of each step, in the order of the collector's calls."""
        first = np.ones(env.spec.num_envs, dtype=bool)
        seen: list[dict[str, Any]] = [{"step": np.array(transform.step(env.reset(seed=seed), first)), "final": {}}]
        over = np.zeros_like(first)
        plan = actions(env, steps, seed)
        policy = islice(random_actions(self._spec_of_policy(transform, env.spec), seed), steps)
        for chosen, step in zip(policy, steps_of(env, plan), strict=True):
            given: Any = step
            if defines(transform, Transform.action):
                transform.action(chosen)
            if defines(transform, Transform.read_reward):
                transform.read_reward(given["reward"])
            finals: dict[int, Array] = {i: np.array(transform.final(v, i)) for i, v in given["final"].items()}
            done = given["terminated"] | given["truncated"]
            first = done if env.spec.reset_mode == "same_step" else over
            seen.append({"step": np.array(transform.step(given["observation"], first)), "final": finals})
            over = done
        return seen


def _close(method: str, found: torch.Tensor, expected: Any) -> None:
    expected = np.asarray(expected)
    assert found.numpy().dtype == expected.dtype, f"{method} returns {found.dtype}, the transform {expected.dtype}"
    np.testing.assert_allclose(
        found.numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=f"{method} computes another thing"
    )
