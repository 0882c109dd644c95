"""The local collector against envs that are stepped by hand."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_rollout.batch_storage import BatchStorage
from rlcore_plugin_rollout.local import LocalCollector

from rlcore import ConfigError, Context, EnvSpec, Progress, Step, hookimpl
from rlcore.errors import EnvError
from rlcore.types import RunInfo

SPACE = gymnasium.spaces.Box(-np.inf, np.inf, (3,), np.float32)


class Scripted:
    """Env `i` observes (i, episode, step) and pays 100 i + 10 episode + step.

    Args:
        lengths: per env, the lengths of its episodes, again and again; a negative one is truncated.
        mode: `same_step` or `next_step`.
    """

    def __init__(self, lengths, mode="same_step", spoil=None, **spec):
        self.lengths, self.mode, self.spoil = lengths, mode, spoil
        self.spec = EnvSpec("Scripted", SPACE, gymnasium.spaces.Discrete(100), len(lengths), reset_mode=mode, **spec)
        self.actions, self.seeds, self.closed = [], [], 0
        count = len(lengths)
        # the same arrays are handed out again and again, as the contract allows
        self.observation, self.reward = np.zeros((count, 3), np.float32), np.zeros(count)
        self.terminated, self.truncated = np.zeros(count, bool), np.zeros(count, bool)

    def reset(self, seed=None):
        self.seeds.append(seed)
        self.place = [[0, 0] for _ in self.lengths]  # episode, step
        self.ended = [False] * len(self.lengths)
        for index in range(len(self.lengths)):
            self.observation[index] = (index, 0, 0)
        return self.observation

    def step(self, action):
        self.actions.append(action.copy())
        finals, infos = {}, {}
        for index, lengths in enumerate(self.lengths):
            episode, step = self.place[index]
            if self.ended[index]:  # only in next_step mode: a step that only resets, and must be ignored
                self.place[index], self.ended[index] = [episode + 1, 0], False
                self.observation[index], self.reward[index] = (index, episode + 1, 0), 0
                self.terminated[index] = self.truncated[index] = False
                continue
            step += 1
            length = lengths[episode % len(lengths)]
            over = step >= abs(length)
            self.observation[index] = (index, episode, step)
            self.reward[index] = 100 * index + 10 * episode + step
            self.terminated[index], self.truncated[index] = over and length > 0, over and length < 0
            self.place[index] = [episode, step]
            if over and self.mode == "same_step":
                finals[index], infos[index] = self.observation[index].copy(), {"episode": episode}
                self.place[index] = [episode + 1, 0]
                self.observation[index] = (index, episode + 1, 0)
            elif over:
                self.ended[index] = True
        if self.spoil:
            self.spoil(self, finals)
        return Step(self.observation, self.reward, self.terminated, self.truncated, finals, infos)

    def close(self):
        self.closed += 1


class CountingPolicy:
    """Its action is drawn; it notes what it was shown."""

    def __init__(self):
        self.shown, self.refreshed = [], 0

    def draw(self, steps, num_envs, generator):
        return torch.randint(100, (steps, num_envs), generator=generator)

    def act(self, observation, noise):
        self.shown.append(observation.clone())
        return noise, observation.sum(-1, keepdim=True)

    def describe(self, parameters, action):
        return {"described": parameters * 2, "twice": 2 * action.unsqueeze(-1)}

    def refresh(self):
        self.refreshed += 1


def make(env, frames, transforms=()):
    context = Context(RunInfo("run", 1, 1000), torch.device("cpu"), Progress(1000), "collector", "local")
    context.parts.update(env=env, env_spec=env.spec, transforms=list(transforms))
    context.parts["model"] = SimpleNamespace(policy=CountingPolicy())
    return LocalCollector(LocalCollector.Config(frames_per_batch=frames), context), context


def rows(batch, *key):
    """Return an entry as nested lists [env][time], without the last dimension of size 1."""
    value = batch[key if len(key) > 1 else key[0]]
    return value.squeeze(-1).tolist()


def collect(collector, count):
    return [collector.collect().clone() for _ in range(count)]


def test_a_batch_holds_what_the_env_gave():
    env = Scripted([[3, -2], [5]])
    collector, _ = make(env, 12)  # 6 steps of 2 envs
    (batch,) = collect(collector, 1)
    assert tuple(batch.batch_size) == (2, 6)
    assert batch["observation"].tolist() == [
        [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 1, 0], [0, 1, 1], [0, 2, 0]],
        [[1, 0, 0], [1, 0, 1], [1, 0, 2], [1, 0, 3], [1, 0, 4], [1, 1, 0]],
    ]
    assert batch["next", "observation"].tolist() == [
        [[0, 0, 1], [0, 0, 2], [0, 0, 3], [0, 1, 1], [0, 1, 2], [0, 2, 1]],
        [[1, 0, 1], [1, 0, 2], [1, 0, 3], [1, 0, 4], [1, 0, 5], [1, 1, 1]],
    ]
    assert rows(batch, "next", "reward") == [[1, 2, 3, 11, 12, 21], [101, 102, 103, 104, 105, 111]]
    assert rows(batch, "next", "terminated") == [[0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 1, 0]]
    assert rows(batch, "next", "truncated") == [[0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]]
    assert rows(batch, "next", "done") == [[0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 0]]
    assert ("collector", "mask") not in batch.keys(True)
    assert batch["next", "reward"].shape == (2, 6, 1)
    assert batch["next", "reward"].dtype == torch.float32
    assert batch["next", "done"].dtype == torch.bool


def test_actions_and_what_the_policy_says_of_them_are_those_of_each_step():
    env = Scripted([[3], [4]])
    collector, context = make(env, 12)
    (batch,) = collect(collector, 1)
    policy = context.model.policy
    assert torch.equal(batch["action"], torch.from_numpy(np.stack(env.actions, 1)))
    assert torch.equal(batch["observation"], torch.stack(policy.shown, 1))
    assert torch.equal(batch["described"], 2 * batch["observation"].sum(-1, keepdim=True))
    assert torch.equal(batch["twice"], 2 * batch["action"].unsqueeze(-1))
    assert policy.refreshed == 1


def test_batches_go_on_where_the_one_before_ended():
    (whole,) = collect(make(Scripted([[3, -2], [7]]), 48)[0], 1)
    parts = collect(make(Scripted([[3, -2], [7]]), 8)[0], 6)
    for key in ("observation", ("next", "observation"), ("next", "reward"), ("next", "done"), ("next", "truncated")):
        assert torch.equal(torch.cat([part[key] for part in parts], 1), whole[key]), key


def test_episodes_are_recorded_across_batches():
    collector, _ = make(Scripted([[3, -2], [7]]), 8)  # 4 steps of 2 envs
    found = []
    for _ in range(6):
        collector.collect()
        found.append([(e.env_index, e.length, e.return_, dict(e.infos)) for e in collector.episodes()])
    first = [(0, 3, 1 + 2 + 3, {"episode": 0}), (0, 2, 11 + 12, {"episode": 1}), (0, 3, 21 + 22 + 23, {"episode": 2})]
    of_second = (1, 7, sum(100 + step for step in range(1, 8)), {"episode": 0})
    assert found[0] == first[:1]
    assert found[1] == [first[1], of_second, first[2]], "in the order in which they ended"
    lengths = [episode[1] for episodes in found for episode in episodes if episode[0] == 0]
    assert lengths == [3, 2, 3, 2, 3, 2, 3, 2, 3][: len(lengths)]
    assert len(lengths) == 9  # 24 steps


def test_in_next_step_mode_the_step_that_only_resets_is_masked():
    collector, _ = make(Scripted([[2], [-4]], "next_step"), 12)
    (batch,) = collect(collector, 1)
    assert rows(batch, "collector", "mask") == [[1, 1, 0, 1, 1, 0], [1, 1, 1, 1, 0, 1]]
    assert rows(batch, "next", "terminated") == [[0, 1, 0, 0, 1, 0], [0, 0, 0, 0, 0, 0]]
    assert rows(batch, "next", "truncated") == [[0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0]]
    # at an end the next observation is the last one of the episode
    assert batch["next", "observation"][0, 1].tolist() == [0, 0, 2]
    assert batch["next", "observation"][1, 3].tolist() == [1, 0, 4]
    assert batch["observation"][0, 3].tolist() == [0, 1, 0]
    assert [(e.env_index, e.length, e.return_) for e in collector.episodes()] == [(0, 2, 3), (1, 4, 410), (0, 2, 23)]


def test_where_each_observation_is_kept_once_who_takes_a_tensordict_may_write_into_it():
    collectors = [make(Scripted([[2], [-4]], "next_step"), 12)[0] for _ in range(2)]
    for _ in range(3):
        light, heavy = collectors[0].collect_columns(), collectors[1].collect()
        following, observation = light["next", "observation"], light["observation"]
        assert following.data_ptr() == observation.data_ptr() + observation.stride(1) * observation.element_size()
        assert all(torch.equal(light[key], heavy[key]) for key in light.keys())  # noqa: SIM118  its keys are asked
        before = heavy["observation"].clone()
        heavy["next", "observation"].fill_(-1)
        assert torch.equal(heavy["observation"], before)


def test_last_observations_apart_are_refused_of_envs_that_reset_in_a_step_of_their_own():
    class GivesTwice(Scripted):
        def step(self, action):
            step = super().step(action)
            return step._replace(final_observation={0: self.observation[0]}) if self.terminated[0] else step

    collector, _ = make(GivesTwice([[3]], "next_step"), 4)
    with pytest.raises(EnvError, match=r"at step 2 .*final_observation is for envs that reset at once.*'next_step'"):
        collector.collect()


def test_in_next_step_mode_the_mask_follows_an_end_into_the_next_batch():
    collector, _ = make(Scripted([[2], [4]], "next_step"), 8)  # 4 steps
    batches = collect(collector, 3)
    masks = torch.cat([batch["collector", "mask"] for batch in batches], 1).squeeze(-1).tolist()
    assert masks == [[1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 0], [1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1]]


def test_the_reward_of_a_masked_step_counts_for_nothing():
    class PaysOnReset(Scripted):
        def step(self, action):
            ended = list(self.ended)
            step = super().step(action)
            self.reward[np.asarray(ended)] = 1000
            return step

    plain, paying = make(Scripted([[2], [4]], "next_step"), 24)[0], make(PaysOnReset([[2], [4]], "next_step"), 24)[0]
    plain.collect()
    paying.collect()
    assert paying.episodes() == plain.episodes()


def test_frames_of_a_run_leave_masked_steps_out(build):
    native = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 4, "vectorization": "native"}
    counted = []

    class Count:
        @hookimpl
        def batch_process(self, batch):
            counted.append(int(batch["collector", "mask"].sum()))

    run = build([Count()], env=native, collector={"frames_per_batch": 128}, run={"total_frames": 400})
    run.trainer.train()
    assert run.trainer.progress.frames == sum(counted)
    assert sum(counted) < 128 * len(counted)


def test_a_cartpole_batch_is_what_stepping_by_hand_gives(build):
    run = build(collector={"frames_per_batch": 200}, env={"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2})
    seeds = []
    env = run.trainer.collector._env
    reset = env.reset
    env.reset = lambda seed=None: (seeds.append(seed), reset(seed))[1]
    batch = run.trainer.collector.collect().clone()
    (seed,) = seeds
    for index in range(2):
        by_hand = gymnasium.make("CartPole-v1")
        observation, _ = by_hand.reset(seed=seed + index)
        for time in range(100):
            assert np.array_equal(batch["observation"][index, time].numpy(), observation)
            observation, reward, terminated, truncated, _ = by_hand.step(int(batch["action"][index, time]))
            following = batch["next"][index, time]
            assert np.array_equal(following["observation"].numpy(), observation)
            flags = (following["reward"].item(), following["terminated"].item(), following["truncated"].item())
            assert flags == (reward, terminated, truncated)
            if terminated or truncated:
                observation, _ = by_hand.reset()
    run.trainer.collector.close()


class OneArray(gymnasium.Env):
    """Hands out one array again and again; episodes of three steps are truncated."""

    observation_space = gymnasium.spaces.Box(-10, 10, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.array = np.zeros(1, np.float32)

    def reset(self, *, seed=None, options=None):
        self.array[:] = 0
        return self.array, {}

    def step(self, action):
        self.array += 1
        return self.array, 0.0, False, bool(self.array[0] == 3), {}


def test_an_env_may_hand_out_one_array_again_and_again(build):
    gymnasium.register("OneArray-v0", OneArray)
    try:
        run = build(env={"use": "gymnasium", "id": "OneArray-v0"}, collector={"frames_per_batch": 16})
    finally:
        del gymnasium.registry["OneArray-v0"]
    batch = run.trainer.collector.collect()
    assert rows(batch, "observation")[0] == [0, 1, 2] * 5 + [0]
    assert rows(batch, "next", "observation")[0] == [1, 2, 3] * 5 + [1]


# transforms


class Shift:
    """Adds 1000 and notes what it is told."""

    def __init__(self):
        self.calls = []

    def step(self, observation, first):
        self.calls.append(("step", first.tolist()))
        return observation + 1000

    def final(self, observation, env_index):
        self.calls.append(("final", env_index, observation.tolist()))
        return observation + 1000


def test_transforms_see_every_observation_once_and_in_order():
    shift = Shift()
    collector, _ = make(Scripted([[2], [3]]), 6, [shift])
    (batch,) = collect(collector, 1)
    assert (batch["observation"] >= 1000).all()
    assert batch["next", "observation"][0, 1].tolist() == [1000, 1000, 1002]
    assert batch["observation"][0, 2].tolist() == [1000, 1001, 1000]
    assert shift.calls == [
        ("step", [True, True]),
        ("step", [False, False]),
        ("final", 0, [0, 0, 2]),
        ("step", [True, False]),
        ("final", 1, [1, 0, 3]),
        ("step", [False, True]),
    ]


def test_transforms_are_told_of_first_observations_in_next_step_mode():
    shift = Shift()
    collector, _ = make(Scripted([[2]], "next_step"), 4, [shift])
    collect(collector, 2)
    first = [call[1][0] for call in shift.calls]
    assert first == [True, False, False, True, False, False, True, False, False]


# refusals


def spoiling(what, value, at):
    calls = []

    def spoil(env, finals):
        calls.append(1)
        if len(calls) == at:
            if what == "final":
                finals[next(iter(finals))][1] = value
            else:
                getattr(env, what)[1] = value

    return spoil


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "what",
    [
        "reward",
        "observation",
        "final",
    ],
)
def test_what_is_not_finite_is_refused_with_env_and_step(what, value):
    env = Scripted([[3], [3]], spoil=spoiling(what, value, at=3))
    collector, context = make(env, 12)
    context.progress.frames = 240
    with pytest.raises(EnvError, match=rf"env 'Scripted': .*{what}.* of env \d at step \d of the batch.*frame 240"):
        collector.collect()


def test_a_first_observation_that_is_not_finite_is_refused():
    class Bad(Scripted):
        def reset(self, seed=None):
            return super().reset(seed) * np.nan

    with pytest.raises(EnvError, match="observation of env 0 at step 0"):
        make(Bad([[3]]), 4)[0].collect()


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_large_finite_rewards_are_no_error():
    env = Scripted([[3]], spoil=lambda env, finals: env.reward.__setitem__(0, 3e38))
    assert make(env, 6)[0].collect()["next", "reward"].isfinite().all()


@pytest.mark.parametrize(("frames", "skip"), [(7, 1), (6, 4)])
def test_frames_per_batch_must_be_whole_steps(frames, skip):
    with pytest.raises(
        ConfigError, match=rf"\[collector\] frames_per_batch = {frames} is not a multiple of {2 * skip}"
    ):
        make(Scripted([[3], [3]], frame_skip=skip), frames)


def test_observations_that_are_not_one_array_are_refused():
    env = Scripted([[3]])
    env.spec = EnvSpec("Scripted", gymnasium.spaces.Dict(a=SPACE), gymnasium.spaces.Discrete(2), 1)
    with pytest.raises(ConfigError, match=r"takes observations of one array, not Dict.*flatten"):
        make(env, 4)


# state


def test_the_noise_goes_on_where_it_was_and_episodes_begin_anew():
    env = Scripted([[3]])
    first, _ = make(env, 4)
    first.collect()
    state = first.state_dict()
    expected = first.collect()["action"].clone()
    other = Scripted([[3]])
    second, context = make(other, 4)
    context.progress.frames = 4
    second.load_state_dict(state)
    batch = second.collect()
    assert torch.equal(batch["action"], expected)
    assert batch["observation"][0, 0].tolist() == [0, 0, 0]
    assert other.seeds != env.seeds, "not the episodes of the beginning again"


def test_closing_closes_the_envs():
    env = Scripted([[3]])
    make(env, 4)[0].close()
    assert env.closed == 1


def test_batches_begin_where_tensors_do_since_the_bits_of_products_depend_on_it():
    kept = [BatchStorage.allocated(steps, 1, SPACE, masked=False) for steps in range(1, 20)]
    for storage in kept:
        assert storage.observation.ctypes.data % 64 == storage.next_observation.ctypes.data % 64 == 0
        assert storage.observation.dtype == np.float32
        assert storage.done.dtype == bool
        assert not storage.observation.any()
