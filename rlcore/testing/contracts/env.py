"""What an env must keep: spec, shapes, seeds, ends, and the two ways of resetting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest

from rlcore.env_checks import end_problem, observation_problem, step_problem
from rlcore.testing.compare import difference
from rlcore.testing.contracts.base import ComponentContract, saved
from rlcore.testing.contracts.data import actions, steps_of
from rlcore.types import Env, RenderableEnv


class EnvContract(ComponentContract):
    """Base of the tests of an env.

    Attributes:
        steps: how many random steps are taken; some episode must end within them.
        terminates: changes of the config with which an episode terminates within `steps`, if one can.
        truncates: changes of the config with which an episode is cut off within `steps`, if one can be.
        seeds_each_env: whether env `i` of `reset(seed)` starts as env 0 of `reset(seed + i)` does.
    """

    kind = "env"
    steps: ClassVar[int] = 300
    terminates: ClassVar[Mapping[str, Any] | None] = {}
    truncates: ClassVar[Mapping[str, Any] | None] = None
    seeds_each_env: ClassVar[bool] = True

    def env(self, **changes: Any) -> Env:
        """Build the env."""
        built: Env = self.make(self.bench(), **changes)
        return built

    def test_builds_as_many_envs_as_asked(self) -> None:
        """Evaluation asks for its own number of envs by the key `num_envs`."""
        assert "num_envs" in type(self.settings()).model_fields, "an env's config needs the key num_envs"
        context = self.bench()
        for count in (1, 3):
            env = self.provided().build(self.settings().model_copy(update={"num_envs": count}), context)
            assert env.spec.num_envs == count, f"num_envs = {count} gave spec.num_envs = {env.spec.num_envs}"
            assert env.reset(seed=0).shape[0] == count
            env.close()

    def test_spec_describes_the_observations(self) -> None:
        """Storage is allocated once, from the spec."""
        env = self.env()
        problem = observation_problem(env.spec, env.reset(seed=0))
        assert problem is None, f"reset: {problem}"
        assert env.spec.frame_skip >= 1
        assert env.spec.reset_mode in ("same_step", "next_step")

    def test_step_returns_arrays_of_the_right_form(self) -> None:
        """The collector writes them into storage without looking."""
        env = self.env()
        env.reset(seed=0)
        for action in actions(env, 20):
            given = action.copy()
            step = env.step(action)
            assert np.array_equal(action, given), "step changed the array of actions that it was given"
            problem = step_problem(env.spec, step)
            assert problem is None, problem

    def test_equal_seeds_give_equal_episodes(self) -> None:
        """A run can only be repeated if its envs can."""
        first, second = self.env(), self.env()
        plan = actions(first, self.steps)
        starts = [np.array(env.reset(seed=7)) for env in (first, second)]
        assert difference(starts[0], starts[1]) is None, (
            "reset(seed=7) twice gave different observations; seed everything random"
        )
        where = difference(list(steps_of(first, plan)), list(steps_of(second, plan)))
        assert where is None, f"the same seed and actions gave other steps: {where}"
        again = np.array(first.reset(seed=7))
        assert difference(starts[0], again) is None, "reset(seed=7) after an episode starts differently than before"

    def test_each_env_has_its_own_seed(self) -> None:
        """Env `i` of `reset(seed)` begins as env 0 of `reset(seed + i)`, so that single episodes can be repeated."""
        if not self.seeds_each_env:
            pytest.skip("the envs share one generator")
        env = self.env(num_envs=2)
        both, next_seed = np.array(env.reset(seed=3)), np.array(env.reset(seed=4))
        assert difference(both[1], next_seed[0]) is None, "seed env i with seed + i"

    def test_ends_follow_the_reset_mode(self) -> None:
        """What `step` returns at an end, and after it, is what the spec's `reset_mode` says."""
        env = self.env()
        env.reset(seed=0)
        over = np.zeros(env.spec.num_envs, dtype=bool)
        ended = 0
        for action in actions(env, self.steps):
            step = env.step(action)
            done = step.terminated | step.truncated
            problem = end_problem(env.spec, step, over)
            assert problem is None, problem
            over = done.copy()
            ended += int(done.sum())
        assert ended, f"no episode ended within {self.steps} random steps; set `steps` higher in this test"

    def test_terminated_is_not_truncated(self) -> None:
        """The value after an end of its own is zero, after a cut it is not; so the env must tell them apart."""
        ends = ((self.terminates, "terminated"), (self.truncates, "truncated"))
        for changes, expected in ends:
            if changes is None:
                continue
            env = self.env(**changes)
            env.reset(seed=0)
            for action in actions(env, self.steps):
                step = env.step(action)
                done = step.terminated | step.truncated
                if done.any():
                    break
            other = "truncated" if expected == "terminated" else "terminated"
            index = int(np.argmax(done))
            assert getattr(step, expected)[index], (
                f"with {dict(changes)} no episode {expected} within {self.steps} steps"
            )
            assert not getattr(step, other)[index], f"an episode that {expected} is also reported as {other}"

    def test_no_episode_is_longer_than_the_spec_says(self) -> None:
        """`max_episode_steps` is what schedules and evaluation may rely on."""
        env = self.env()
        if env.spec.max_episode_steps is None:
            pytest.skip("the spec gives no limit")
        env.reset(seed=0)
        elapsed = np.zeros(env.spec.num_envs, dtype=int)
        over = np.zeros(env.spec.num_envs, dtype=bool)
        for action in actions(env, self.steps):
            step = env.step(action)
            elapsed = np.where(over & (env.spec.reset_mode == "next_step"), 0, elapsed + 1)
            assert elapsed.max() <= env.spec.max_episode_steps, (
                f"an episode is longer than {env.spec.max_episode_steps}"
            )
            over = step.terminated | step.truncated
            elapsed[over] = 0

    def test_state_is_restored(self) -> None:
        """An env that saves its state goes on exactly as before."""
        used, other = self.env(), self.env()
        plan = actions(used, 30)
        used.reset(seed=5)
        other.reset(seed=6)
        list(steps_of(used, plan[:17]))
        state = saved(used)
        if state is None:
            pytest.skip("has no state_dict: a resumed run begins new episodes")
        restored: Any = other
        restored.load_state_dict(state)
        where = difference(list(steps_of(used, plan[17:])), list(steps_of(other, plan[17:])))
        assert where is None, f"the restored env goes on differently: {where}"

    def test_rendering_shows_and_changes_nothing(self) -> None:
        """Videos are made of envs with `render_mode = "rgb_array"`; those must go on as they do without."""
        if "render_mode" not in type(self.settings()).model_fields:
            pytest.skip("has no key render_mode: no videos of this env")
        shown, plain = self.env(render_mode="rgb_array"), self.env()
        assert isinstance(shown, RenderableEnv), "an env with the key render_mode needs render() and render_fps"
        plan = actions(plain, 10)
        starts = [np.array(env.reset(seed=7)) for env in (shown, plain)]
        pictures = [np.array(shown.render())]
        steps: list[object] = []
        for action in plan:
            steps += steps_of(shown, [action])
            pictures.append(np.array(shown.render()))
        where = difference([starts[0], *steps], [starts[1], *steps_of(plain, plan)])
        assert where is None, f"an env that is rendered goes on differently: {where}"
        for picture in pictures:
            right = picture.dtype == np.uint8 and picture.ndim == 4 and picture.shape[::3] == (shown.spec.num_envs, 3)
            assert right, f"render returned {picture.dtype} {picture.shape}, not uint8 [env, height, width, 3]"
        assert any(difference(pictures[0], later) for later in pictures[1:]), "ten steps on, the picture is the same"
        last = shown.spec.num_envs - 1
        where = difference(np.array(shown.render([last])), pictures[-1][last:])
        assert where is None, f"render([{last}]) is not the last picture of render(): {where}"
        assert shown.render_fps > 0
        shown.close()

    def test_closes_twice(self) -> None:
        """The end of a failing run may close what is closed already."""
        env = self.env()
        env.reset(seed=0)
        env.close()
        env.close()
