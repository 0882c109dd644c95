"""Fitted Q evaluation finds the value of a policy in an MDP that can be solved, without stepping it."""

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_testing.small_run import make_run

from rlcore import ConfigError
from rlcore.envs import packed_space

STATES, ACTIONS, GAMMA = 4, 3, 0.8
DRAW = np.random.default_rng(3)
FOLLOWING = DRAW.integers(STATES, size=(STATES, ACTIONS))
REWARD = DRAW.normal(size=(STATES, ACTIONS))
ENDS = DRAW.random((STATES, ACTIONS)) < 0.2


def episodes(count, seen=None):
    """Yield episodes of uniform actions, each from a state that is drawn, of at most 20 steps."""
    eye = np.eye(STATES, dtype=np.float32) if seen is None else seen
    for _ in range(count):
        states, actions = [int(DRAW.integers(STATES))], []
        while len(actions) < 20 and not (actions and ENDS[states[-2], actions[-1]]):
            actions.append(int(DRAW.integers(ACTIONS)))
            states.append(int(FOLLOWING[states[-1], actions[-1]]))
        taken = (np.array(states[:-1]), np.array(actions))
        last = np.arange(len(actions)) == len(actions) - 1
        yield Episode(eye[states], taken[1], REWARD[taken], ENDS[taken] & last, ~ENDS[taken] & last)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data") / "mdp"
    spaces = (Box(0, 1, (STATES,), np.float32), Discrete(ACTIONS))
    return write_dataset(folder, spaces, episodes(150), {})


def sections(data, **fqe):
    return {
        "run": {"name": "fqe", "seed": 1, "total_updates": 600, "device": "cpu"},
        "env": [],
        "collector": [],
        "estimator": [],
        "evaluator": [],
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "offline:bc"},
        "optimizer": [{"use": "adam", "lr": 1e-12, "parameters": ["actor"]}],
        "buffer": {"use": "datasets:dataset", "path": str(data.folder), "minibatch_size": 256},
        "hook": [{"use": "offline:fqe", "hidden": [], "lr": 0.05, "gamma": GAMMA, "target_tau": 0.1, **fqe}],
        "metrics": {"every": 100},
    }


def solved(chosen):
    """Return the value of each state under a policy, by the equations of the MDP."""
    states = np.arange(STATES)
    moves = np.zeros((STATES, STATES))
    moves[states, FOLLOWING[states, chosen]] = ~ENDS[states, chosen]
    return np.linalg.solve(np.eye(STATES) - GAMMA * moves, REWARD[states, chosen])


def test_the_value_is_that_of_the_solved_mdp(data):
    trainer = make_run(sections=sections(data)).trainer
    trainer.train()
    hook = trainer.hooks.hooks[-1].instance
    eye = torch.eye(STATES)
    chosen = trainer.model.policy.mode(eye).numpy()
    values = solved(chosen)
    starts = np.mean([values[episode.observations[0].argmax()] for episode in data.episodes()])
    assert float(hook.value()) == pytest.approx(starts, abs=0.02)
    assert trainer.metrics.latest["fqe/value"] == pytest.approx(starts, abs=0.1)


def test_observations_that_are_dicts_are_taken_leaf_by_leaf(tmp_path):
    """The state is one choice among the leaves, whose packed rows are numbers that say nothing."""
    packed = packed_space(Dict({"state": Discrete(STATES), "other": Box(0, 1, (1,), np.float32)}), Discrete(ACTIONS))
    seen = packed.pack({"state": np.arange(STATES), "other": np.zeros((STATES, 1), np.float32)})
    data = write_dataset(tmp_path / "dicts", (packed, Discrete(ACTIONS)), episodes(150, seen), {})
    trainer = make_run(sections=sections(data)).trainer
    trainer.train()
    hook = trainer.hooks.hooks[-1].instance
    chosen = trainer.model.policy.mode(torch.from_numpy(seen)).numpy()
    values = solved(chosen)
    starts = np.mean([values[packed.array(episode.observations[0], "state")] for episode in data.episodes()])
    assert float(hook.value()) == pytest.approx(starts, abs=0.03)


def test_a_policy_with_a_state_is_refused(data):
    whole = sections(data)
    whole["model"] = {"use": "recurrent:gru", "size": 4, "parts": ["actor"]}
    whole["buffer"] = {"use": "datasets:dataset-sequences", "path": str(data.folder)}
    with pytest.raises(ConfigError, match="this policy has a state"):
        make_run(sections=whole)


def test_a_buffer_that_knows_no_starts_is_refused():
    with pytest.raises(ConfigError, match="how episodes begin"):
        make_run(sections={"hook": [{"use": "offline:fqe"}]})


@pytest.mark.parametrize("n_steps", [1, 3])
def test_it_begins_where_the_episodes_do(data, n_steps):
    whole = sections(data)
    whole["buffer"] = {**whole["buffer"], "n_steps": n_steps, "gamma": GAMMA}
    buffer = make_run(sections=whole).trainer.buffer
    first = np.stack([episode.observations[0] for episode in data.episodes()])
    assert np.array_equal(buffer.initial_observations().numpy(), first)


def test_what_follows_several_steps_is_discounted_by_each(data):
    whole = sections(data)
    whole["buffer"] = {**whole["buffer"], "n_steps": 3, "gamma": GAMMA}
    trainer = make_run(sections=whole).trainer
    hook = trainer.hooks.hooks[-1].instance
    minibatch = next(iter(trainer.buffer.minibatches(None)))
    steps, following = minibatch["steps_to_next_obs"], minibatch["next", "observation"]
    assert set(steps.flatten().tolist()) == {1, 2, 3}
    chosen = trainer.model.policy.mode(following)[:, None]
    with torch.no_grad():
        future = hook._target(following).gather(-1, chosen) * ~minibatch["next", "terminated"]
        value = hook._network(minibatch["observation"]).gather(-1, minibatch["action"][:, None])
    expected = (value - minibatch["next", "reward"] - GAMMA**steps * future).square().mean()
    hook.post_optim(minibatch)
    assert hook._loss.item() == pytest.approx(expected.item(), rel=1e-4)
