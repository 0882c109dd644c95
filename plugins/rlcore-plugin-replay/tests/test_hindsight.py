"""Hindsight relabels as a plain search through whole episodes says, and what it learns from is what the env gives."""

import sys
from importlib.util import find_spec
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_replay.goal_episodes import GoalEpisodes
from rlcore_plugin_replay.hindsight import joined_rewards
from rlcore_plugin_testing import check_resumed, make_run, make_trainer
from tensordict import TensorDict

from rlcore import build, load_config
from rlcore.errors import ConfigError, RlcoreError
from rlcore.state.tree import through_checkpoint

EXAMPLES = Path(__file__).parents[3] / "examples"
needs_libraries = pytest.mark.skipif(
    find_spec("rlcore_plugin_gymnasium") is None or find_spec("rlcore_plugin_dqn") is None,
    reason="rlcore-plugin-gymnasium or rlcore-plugin-dqn is not installed",
)
pytestmark = needs_libraries
BUFFER = {
    "use": "replay:hindsight",
    "capacity": 60,
    "minibatch_size": 10,
    "updates_per_batch": 2,
    "warmup_frames": 16,
}
SECTIONS = {
    "env": {"use": "gymnasium", "id": "bit_flip:BitFlip-v0", "num_envs": 3, "kwargs": {"bits": 3}},
    "model": {"use": "dqn:q-network", "hidden": [8], "epsilon_start": 1.0, "epsilon_end": 1.0},
    "loss": {"use": "dqn"},
    "estimator": [],
    "buffer": BUFFER,
}


@pytest.fixture(autouse=True)
def _bit_flip(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    yield
    sys.modules.pop("bit_flip", None)
    gymnasium.registry.pop("BitFlip-v0", None)


def sections(**buffer):
    return {**SECTIONS, "buffer": {**BUFFER, **buffer}}


def collected(buffer, trainer, batches):
    """Add batches of the run, and return all transitions in the order of the rows, with the number of their episode."""
    kept, episodes, number = [], {}, 0
    for _ in range(batches):
        batch = trainer.parts.collector.collect()
        assert isinstance(batch, TensorDict)
        buffer.add(batch)
        num_envs, steps = batch.batch_size
        for time in range(steps):
            for env in range(num_envs):
                row = batch[env, time]
                number += env not in episodes
                kept.append((episodes.setdefault(env, number), row.clone()))
                if row["next", "done"]:
                    del episodes[env]
    return kept


@pytest.mark.parametrize("strategy", ["future", "final"])
def test_samples_are_those_of_a_search_through_the_episodes(strategy):
    """Over a ring that is written twice: a goal of a sample is reached later in its episode, and every one is drawn."""
    run = make_run("collector.frames_per_batch=24", sections=sections(strategy=strategy))
    buffer, space = run.trainer.parts.buffer, run.trainer.parts.buffer._space
    kept = collected(buffer, run.trainer, 5)
    assert len(kept) == 120
    live = {number % 60: number for number in range(60, 120)}
    pairs, wanted = set(), set()
    for _ in range(300):
        samples = buffer.sample(10)
        for place, row in zip(samples["index"].tolist(), samples, strict=True):
            number = live[place]
            episode, before = kept[number]
            ones = [other for other in range(number, 120) if kept[other][0] == episode]
            reached = {other: space.tensor(kept[other][1]["next", "observation"], "achieved_goal") for other in ones}
            goal = space.tensor(row["observation"], "desired_goal")
            own = torch.equal(goal, space.tensor(before["observation"], "desired_goal"))
            found = {other for other, achieved in reached.items() if torch.equal(goal, achieved)}
            if strategy == "final":
                assert own or ones[-1] in found
            assert own or found
            pairs |= {(number, tuple(goal.tolist()))} if found else set()
            wanted |= {(number, tuple(reached[other].tolist())) for other in ones}
            assert torch.equal(goal, space.tensor(row["next", "observation"], "desired_goal"))
            for leaf in ("observation", "achieved_goal"):
                for key in ("observation", ("next", "observation")):
                    assert torch.equal(space.tensor(row[key], leaf), space.tensor(before[key], leaf))
            solved = torch.equal(goal, space.tensor(row["next", "observation"], "achieved_goal"))
            assert row["next", "reward"].item() == solved - 1.0
            assert row["next", "terminated"].item() == solved
            assert row["next", "done"].item() == (solved or row["next", "truncated"].item())
            assert torch.equal(row["action"], before["action"])
    assert pairs <= wanted
    assert strategy == "final" or pairs == wanted


def joined_by_search(kept, number, goal, space, own, live):
    """Return reward, steps, the last row, and whether it terminates, of three steps from a row on with a goal."""
    total, steps, terminated = 0.0, 0, False
    for other in range(number, len(kept)):
        if kept[other][0] != kept[number][0] or steps == 3 or other not in live:
            continue
        row, last = kept[other][1], other
        solved = torch.equal(goal, space.tensor(row["next", "observation"], "achieved_goal"))
        terminated = row["next", "terminated"].item() if own else solved
        total += 0.9**steps * (row["next", "reward"].item() if own else solved - 1.0)
        steps += 1
        if terminated or row["next", "truncated"].item():
            break
    return total, steps, last, terminated


@pytest.mark.parametrize("use", ["replay:hindsight", "replay:prioritized-hindsight"])
def test_three_steps_are_joined_as_the_goal_of_the_sample_says(use):
    """Over a ring that is written twice, with ends of episodes and of what is known of those that go on."""
    values = {**sections(use=use, n_steps=3), "loss": {"use": "dqn", "gamma": 0.9}}
    run = make_run("collector.frames_per_batch=24", sections=values)
    buffer, space = run.trainer.parts.buffer, run.trainer.parts.buffer._space
    kept = collected(buffer, run.trainer, 5)
    live = {number % 60: number for number in range(60, 120)}
    found, others = set(), 0
    for _ in range(100):
        samples = buffer.sample(10)
        for place, row in zip(samples["index"].tolist(), samples, strict=True):
            number = live[place]
            goal = space.tensor(row["observation"], "desired_goal")
            own = torch.equal(goal, space.tensor(kept[number][1]["observation"], "desired_goal"))
            reward, steps, last, terminated = joined_by_search(kept, number, goal, space, own, set(live.values()))
            after = kept[last][1]["next", "observation"]
            assert row["next", "reward"].item() == pytest.approx(reward)
            assert row["steps_to_next_obs"].tolist() == [steps]
            assert row["next", "terminated"].item() == terminated
            assert row["next", "done"].item() == (terminated or kept[last][1]["next", "truncated"].item())
            assert torch.equal(goal, space.tensor(row["next", "observation"], "desired_goal"))
            for leaf in ("observation", "achieved_goal"):
                assert torch.equal(space.tensor(row["next", "observation"], leaf), space.tensor(after, leaf))
            assert torch.equal(row["action"], kept[number][1]["action"])
            found.add((steps, terminated))
            others += not own
    assert found >= {(1, True), (2, True), (3, True), (3, False)}
    assert others > 500


def test_rewards_are_joined_up_to_the_end_and_no_further_than_there_are_steps():
    reward = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0], [4.0, 4.0, 4.0, 4.0]])
    done = np.array([[False, True, False, False], [False, False, True, False], [True, True, True, False]])
    total, steps = joined_rewards(reward, done, np.array([3, 3, 3, 2]), 0.5)
    assert total.tolist() == [3.0, 1.0, 2.0, 2.0]
    assert steps.tolist() == [3, 1, 2, 2]


def test_priorities_decide_which_transitions_are_sampled_and_not_which_have_another_goal():
    keys = {"use": "replay:prioritized-hindsight", "alpha": 1.0, "beta": 1.0, "eps": 1e-6}
    run = make_run("collector.frames_per_batch=24", sections=sections(**keys))
    buffer, space = run.trainer.parts.buffer, run.trainer.parts.buffer._space
    kept = collected(buffer, run.trainer, 2)
    errors = torch.linspace(0, 3, 48)
    buffer.update_priority(torch.arange(48), errors)
    drawn, changed = np.zeros(48), np.zeros(20)
    for _ in range(400):
        samples = buffer.sample(20)
        for slot, (place, row) in enumerate(zip(samples["index"].tolist(), samples, strict=True)):
            drawn[place] += 1
            own = space.tensor(kept[place][1]["observation"], "desired_goal")
            changed[slot] += not torch.equal(space.tensor(row["observation"], "desired_goal"), own)
        expected = (errors[samples["index"]] + 1e-6) ** -1
        torch.testing.assert_close(samples["priority_weight"].squeeze(-1), expected / expected.max())
    np.testing.assert_allclose(drawn / drawn.sum(), errors / errors.sum(), atol=0.004)
    assert (changed > 20).all(), "samples of all places in the minibatch have other goals"


def test_of_five_samples_four_have_another_goal():
    run = make_run("collector.frames_per_batch=24", sections=sections())
    buffer, asked = run.trainer.parts.buffer, []
    collected(buffer, run.trainer, 1)
    outcome = buffer._env.goal_outcome
    buffer._env = type(
        "Counts", (), {"goal_outcome": lambda self, *goals: asked.append(len(goals[0])) or outcome(*goals)}
    )()
    for size in (5, 10, 12):
        buffer.sample(size)
    assert asked == [4, 8, 9]
    none = make_run("collector.frames_per_batch=24", sections=sections(goals=0)).trainer.parts.buffer
    assert none._config.goals == 0


def test_episodes_are_told_apart_where_steps_are_left_out_and_a_ring_is_written_over():
    """Against lists: random ends, steps that are masked, batches of many sizes, and a state in between."""
    random = np.random.default_rng(4)
    episodes, rows = GoalEpisodes(50), []
    running, number = [[] for _ in range(4)], 0
    for turn in range(60):
        steps = int(random.integers(1, 9))
        done, valid = random.random((4, steps)) < 0.15, random.random((4, steps)) < 0.8
        episodes.add(done, valid, len(rows))
        for time in range(steps):
            for env in range(4):
                if not valid[env, time]:
                    continue
                running[env].append(len(rows))
                rows.append(running[env])
                number += 1
                if done[env, time]:
                    running[env] = []
        if turn % 7 == 3:
            saved = through_checkpoint(episodes.state_dict())
            episodes = GoalEpisodes(50)
            episodes.load_state_dict(saved)
        if turn % 20 == 9:
            episodes.end_all()
            running = [[] for _ in range(4)]
        live = np.arange(max(0, len(rows) - 50), len(rows))
        assert (episodes.later(live % 50, None) == [rows[row][-1] % 50 for row in live]).all()
        uniform = random.random(len(live))
        expected = [
            rows[row][(at := rows[row].index(row)) + int(u * (len(rows[row]) - at))]
            for row, u in zip(live, uniform, strict=True)
        ]
        assert (episodes.later(live % 50, uniform) == np.array(expected) % 50).all()
        found, counts = episodes.following(live % 50, 3)
        for row, places, count in zip(live, found.T, counts, strict=True):
            after = [other % 50 for other in rows[row] if other >= row][:3]
            assert (places[:count].tolist(), count) == (after, len(after))
            assert (places[count:] == after[-1]).all()


def test_a_run_over_several_steps_resumes_exactly(tmp_path):
    keys = ("run.total_frames=192", "collector.frames_per_batch=24", "checkpoint.every=24")
    check_resumed(tmp_path, *keys, sections=sections(n_steps=3), stop_at=72)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"env": {"use": "gymnasium", "id": "CartPole-v1"}}, "needs observations with the leaves achieved_goal"),
        ({"transform": [{"use": "transforms:flatten"}]}, "leave out wrappers and transforms"),
        ({"env": {**SECTIONS["env"], "frame_skip": 2}}, "frame_skip = 1"),
        ({"buffer": {**BUFFER, "stack": 4}}, "stack: unknown key for buffer 'hindsight'"),
        (
            {"buffer": {**BUFFER, "use": "replay:prioritized-hindsight", "stack": 4}},
            "stack: unknown key for buffer 'prioritized-hindsight'",
        ),
    ],
)
def test_what_has_no_goals_or_no_reward_of_one_step_is_refused(changes, told):
    with pytest.raises(ConfigError, match=told):
        make_run(sections={**SECTIONS, **changes})


def test_an_env_without_a_reward_for_goals_is_refused(monkeypatch):
    import bit_flip

    monkeypatch.delattr(bit_flip.BitFlip, "compute_reward")
    with pytest.raises(ConfigError, match=r"has no compute_reward\(achieved_goal, desired_goal, info\)"):
        make_run(sections=SECTIONS)


def test_rewards_that_something_changed_are_refused():
    trainer = make_trainer(
        "collector.frames_per_batch=24",
        sections={**SECTIONS, "transform": [{"use": "transforms:reward-scale", "scale": 0.5}]},
    )
    with pytest.raises(RlcoreError, match=r"a reward of -0.5 was collected where the env gives -1 for that goal"):
        trainer.train()


def test_a_buffer_without_episodes_does_not_come_back_as_one_with_them():
    run = make_run("collector.frames_per_batch=24", sections=sections())
    collected(run.trainer.parts.buffer, run.trainer, 1)
    state = run.trainer.parts.buffer.state_dict()
    del state["episodes"]
    with pytest.raises(RlcoreError, match="--fresh buffer"):
        run.trainer.parts.buffer.load_state_dict(state)


@pytest.mark.slow
@pytest.mark.parametrize(("use", "least", "most"), [("replay:hindsight", -3.5, 0.0), ("replay", -8.0, -6.5)])
def test_eight_bits_are_flipped_with_hindsight_and_not_without(tmp_path, use, least, most):
    """Of 8 bits 4 are wrong in the mean, so that -3 is the best return; -8 is that of a goal that is never reached."""
    text = (EXAMPLES / "dqn-bit-flip.toml").read_text().replace('use = "replay:hindsight"', f'use = "{use}"')
    if use == "replay":
        text = "\n".join(line for line in text.splitlines() if not line.startswith(("goals", "strategy")))
    (tmp_path / "config.toml").write_text(text)
    overrides = [f"run.folder='{tmp_path}'", "run.total_frames=6000", "evaluator.every=6000"]
    trainer = build(load_config(tmp_path / "config.toml", overrides)).trainer
    trainer.train()
    assert least <= trainer.last_evaluation.mean_return <= most
