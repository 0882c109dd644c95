"""What an env must keep: spec, shapes, seeds, ends, and the two ways of resetting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from rlcore.envs.packing import packed_env
from rlcore.types import Env, InfoListener
from rlcore.types.part import defines
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import ComponentContract, saved
from rlcore_plugin_testing.contracts.data import actions, infos_of, lawful, steps_of
from rlcore_plugin_testing.env_specs import end_problem, observation_problem, step_problem

if TYPE_CHECKING:
    from rlcore.types import Array, BoolArray


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
        """Build the env; of random actions it takes those that its mask allows."""
        return lawful(packed_env(self.make(self.bench(), **changes)))

    def test_builds_as_many_envs_as_asked(self) -> None:
        """Evaluation asks for its own number of envs by the key `num_envs`."""
        assert "num_envs" in type(self.settings()).model_fields, "an env's config needs the key num_envs"
        context = self.bench()
        for count in (1, 3):
            env = packed_env(self.provided().build(self.settings().model_copy(update={"num_envs": count}), context))
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
        several, alone = self.env(num_envs=4), self.env(num_envs=1)
        plan = actions(several, 5)
        for seed in (0, 3, 40, 2**31 - 10):
            starts = np.array(several.reset(seed=seed))
            steps = list(several_rows(several, plan))
            for index in range(4):
                start = np.array(alone.reset(seed=seed + index))
                assert difference(starts[index], start[0]) is None, (
                    f"env {index} of reset(seed={seed}) begins otherwise than env 0 of reset(seed={seed + index}): "
                    "seed env i with seed + i"
                )
                found = several_rows(alone, [action[index : index + 1] for action in plan])
                for (rows, done), (row, over) in zip(steps, found, strict=False):
                    if done[index] or over[0]:
                        break
                    where = difference(rows[index], row[0])
                    assert where is None, f"env {index} goes on otherwise than env 0 with its seed: {where}"

    def test_envs_and_episodes_begin_differently(self) -> None:
        """Experience of equal episodes is worth that of one; unless every episode of the environment begins alike."""
        env = self.env(num_envs=3)
        starts = [np.array(env.reset(seed=seed)) for seed in (1, 2, 1)]
        if difference(starts[0], starts[1]) is None:
            pytest.skip("episodes begin alike, whatever the seed")
        alike = [difference(rows[0], row) is None for rows in starts for row in rows[1:]]
        assert not all(alike), "all envs begin alike; each needs a seed, or numbers, of its own"
        begins = list(episode_begins(env, starts[2], actions(env, self.steps)))
        assert len(begins) < 2 or any(difference(begins[0], other) for other in begins[1:]), (
            "every episode of an env begins alike; only reset(seed) may seed"
        )

    def test_ends_follow_the_reset_mode(self) -> None:
        """What `step` returns at an end, and after it, is what the spec's `reset_mode` says."""
        env = self.env()
        env.reset(seed=0)
        over = np.zeros(env.spec.num_envs, dtype=bool)
        ended = 0
        finals: list[bool] = []
        seen: set[bytes] = set()
        for action in actions(env, self.steps):
            step = env.step(action)
            done = step.terminated | step.truncated
            problem = end_problem(env.spec, step, over)
            assert problem is None, problem
            over = done.copy()
            ended += int(done.sum())
            seen.update(np.array(row).tobytes() for row in step.observation)
            finals += [
                np.array(step.observation[i]).tobytes() == np.array(f).tobytes()
                for i, f in step.final_observation.items()
            ]
        assert ended, f"no episode ended within {self.steps} random steps; set `steps` higher in this test"
        assert len(seen) < 2 or not finals or not all(finals), (  # an env may observe one thing only, as a bandit does
            "final_observation is the first observation of the next episode"
        )

    def test_terminated_is_not_truncated(self) -> None:
        """The value after an end of its own is zero, after a cut it is not; so the env must tell them apart."""
        ends = ((self.terminates, "terminated"), (self.truncates, "truncated"))
        for changes, expected in ends:
            if changes is None:
                continue
            env = self.env(**changes)
            env.reset(seed=0)
            other = "truncated" if expected == "terminated" else "terminated"
            kinds: list[str] = []
            limited: set[str] = set()
            for kind, elapsed in ends_of(env, actions(env, self.steps)):
                at_limit = elapsed == env.spec.max_episode_steps  # where it may end of its own as well
                assert kind != "both" or at_limit, f"an episode that {expected} is also reported as {other}"
                kinds.append(kind)
                limited.update([kind] if at_limit else [])
            assert limited != {"both"}, (
                f"every episode of {env.spec.max_episode_steps} steps is reported as terminated and truncated: report "
                "a cut as truncated alone; a task that ends there is terminated alone, and has no max_episode_steps"
            )
            assert kinds[:1] == [expected], f"with {dict(changes)} no episode {expected} within {self.steps} steps"

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
        used, repeated, other = self.env(), self.env(), self.env()
        plan = actions(used, 17 + self.steps)
        for env, seed in ((used, 5), (repeated, 5), (other, 6)):
            env.reset(seed=seed)
        list(steps_of(used, plan[:17]))
        list(steps_of(repeated, plan[:17]))
        list(steps_of(other, plan[:5]))
        state = saved(used)
        if state is None:
            pytest.skip("has no state_dict: a resumed run begins new episodes")
        restored: Any = other
        restored.load_state_dict(state)
        expected, found, untouched = (infos_of(env, plan[17:]) for env in (used, restored, repeated))
        where = difference(expected[0], found[0])
        assert where is None, f"the restored env goes on differently: {where}"
        where = difference(expected[0], untouched[0])
        assert where is None, f"an env whose state was taken goes on differently: {where}"
        differing = different_infos(expected[1], found[1]) - different_infos(expected[1], untouched[1])
        assert not differing, f"the restored env gives other infos: {', '.join(sorted(differing))}"

    def test_infos_are_told_of_every_reset_and_step(self) -> None:
        """Recorders of infos hear of what an episode begins with, and of each of its steps; nothing else changes."""
        env, plain, telling = (self.env() for _ in range(3))
        if not defines(env, Env.tell_infos):
            pytest.skip("has no tell_infos: infos are there only where an episode ends")
        told: list[tuple[int, bool, dict[str, Any]]] = []
        tell(env, lambda index, infos, first: told.append((index, first, dict(infos))))
        resets, mode = [(index, True) for index in range(env.spec.num_envs)], env.spec.reset_mode
        env.reset(seed=0)
        assert [entry[:2] for entry in told] == resets, "a reset tells of each env, in their order"
        plan, over = actions(env, self.steps), np.zeros(env.spec.num_envs, dtype=bool)
        for action in plan:
            told.clear()
            step = env.step(action)
            before, over = over, step.terminated | step.truncated
            for index in range(env.spec.num_envs):
                own = [(first, infos) for number, first, infos in told if number == index]
                only_reset = mode == "next_step" and bool(before[index])
                waiting = only_reset and bool(over[index])  # an agent that is out, until its game begins again
                expected = [] if waiting else [only_reset, *([True] if over[index] and mode == "same_step" else [])]
                assert [first for first, _ in own] == expected, f"env {index} tells {own} of a step, not {expected}"
                last, of_step = step.infos.get(index, {}), own[0][1] if own else {}
                differing = [name for name in last if difference(last[name], of_step.get(name))]
                assert not differing, f"Step.infos has another {', '.join(differing)} than is told"
        told.clear()
        if (state := saved(env)) is not None:
            env.load_state_dict(state)  # type: ignore[attr-defined]
            assert not told, "loading a state tells of steps that were told before"
        tell(telling, lambda index, infos, first: None)
        with_infos, without = ([np.array(one.reset(seed=3)), *steps_of(one, plan)] for one in (telling, plain))
        where = difference(with_infos, without)
        assert where is None, f"an env whose infos are told goes on differently: {where}"

    def test_rendering_shows_and_changes_nothing(self) -> None:
        """Videos are made of envs with `render_mode = "rgb_array"`; those must go on as they do without."""
        if "render_mode" not in type(self.settings()).model_fields:
            pytest.skip("has no key render_mode: no videos of this env")
        made = self.make(self.bench(), render_mode="rgb_array")
        shown: Any = lawful(packed_env(made))
        plain = self.env()
        assert defines(made, Env.render), "an env with the key render_mode needs render()"
        assert made.render_fps > 0, "an env with the key render_mode needs render_fps"
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


def tell(env: Any, listener: InfoListener) -> None:
    """Have an env tell of its infos, which it offers to."""
    env.tell_infos(listener)


def several_rows(env: Env, plan: list[Array]) -> Iterator[tuple[list[dict[str, Array]], BoolArray]]:
    """Take the planned actions; yield what each env observed and got, and whose episodes ended."""
    for action in plan:
        step = env.step(action)
        rows = zip(np.array(step.observation), np.array(step.reward), strict=True)
        yield [{"observation": seen, "reward": got} for seen, got in rows], step.terminated | step.truncated


def episode_begins(env: Env, first: Array, plan: list[Array]) -> Iterator[Array]:
    """Take the planned actions; yield the first observation of each episode of env 0."""
    yield first[0]
    over = False
    for action in plan:
        step = env.step(action)
        done = bool(step.terminated[0] | step.truncated[0])
        if over if env.spec.reset_mode == "next_step" else done:
            yield np.array(step.observation[0])
        over = done


def ends_of(env: Env, plan: list[Array]) -> Iterator[tuple[str, int]]:
    """Take the planned actions; yield the kind of each end (perhaps "both"), and the length of the episode."""
    elapsed = np.zeros(env.spec.num_envs, dtype=int)
    over = np.zeros(env.spec.num_envs, dtype=bool)
    for action in plan:
        step = env.step(action)
        elapsed = np.where(over & (env.spec.reset_mode == "next_step"), 0, elapsed + 1)
        over = step.terminated | step.truncated
        for index in np.flatnonzero(over):
            kind = "terminated" if step.terminated[index] else "truncated"
            yield "both" if step.terminated[index] and step.truncated[index] else kind, int(elapsed[index])
        elapsed[over] = 0


def different_infos(left: list[dict[str, object]], right: list[dict[str, object]]) -> set[str]:
    """Return the names of the infos that differ, without the number of the env."""
    found = set()
    for one, other in zip(left, right, strict=True):
        names = {**one, **other}
        found |= {name for name in names if name not in one or name not in other or difference(one[name], other[name])}
    return {name.partition(": ")[2] for name in found}
