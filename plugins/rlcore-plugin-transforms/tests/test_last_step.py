"""The last action and the last reward in observations: which, when, and of whom; and what carries them."""

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import tomli_w
import torch
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.recorder import compare

import rlcore
from rlcore.cli import command_line
from rlcore.envs import Packed
from rlcore.errors import ConfigError
from rlcore.types import MASK

EXAMPLES = Path(__file__).parents[3] / "examples"
LAST = {"use": "transforms:last-step"}
TOY_ACTIONS = 3
CARTPOLE = {"use": "gymnasium", "id": "CartPole-v1", "num_envs": 2}
LSTM = {
    "model": {"use": "recurrent:lstm", "size": 8, "encoder_hidden": [8]},
    "buffer": {"use": "rollout-sequences", "sequence_length": 8, "minibatch_size": 16, "epochs": 1},
}


def config(tmp_path, name="tiny", **sections):
    """Write a small config of PPO with the transform last."""
    values = {
        "run": {"name": name, "seed": 1, "total_frames": 192, "device": "cpu", "folder": str(tmp_path / "runs")},
        "env": CARTPOLE,
        "transform": [LAST],
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "optimizer": [{"use": "adam"}],
        "collector": {"frames_per_batch": 64},
        "buffer": {"epochs": 1, "minibatch_size": 16},
        "checkpoint": {"every": 64},
        **sections,
    }
    (tmp_path / f"{name}.toml").write_text(tomli_w.dumps(values))
    return rlcore.load_config(tmp_path / f"{name}.toml")


def batches(config, count=3):
    """Return the first batches of a run, as the buffer gets them."""
    found = []

    class Keeper:
        @rlcore.hookimpl
        def pre_steps_log(self, batch):
            found.append(batch.clone())

    rlcore.build(config, write=False, hooks=[Keeper()]).trainer.train()
    return found[:count]


def check(batch, before, parts):
    """See that a batch holds what its own actions and rewards say; `before` is the last row of the batch before.

    Args:
        batch: `[env, time]`.
        before: action, reward and end of the step before the first one, each `[env]`, or None at the start.
        parts: from observations to the one-hot actions and the rewards in them.
    """
    action, reward = batch["action"].squeeze(-1), batch["next", "reward"].squeeze(-1)
    done = batch["next", "done"].squeeze(-1)
    one_hot = torch.nn.functional.one_hot(action.long(), 2).float()
    if before is not None:
        of_action, of_reward = parts(batch["observation"][:, :1])
        begins = before[2][:, None]
        assert torch.equal(of_action[:, 0], torch.where(begins, 0.0, before[0]))
        assert torch.equal(of_reward[:, 0], torch.where(begins, 0.0, before[1]))
    of_action, of_reward = parts(batch["observation"][:, 1:])
    begins = done[:, :-1, None]
    assert torch.equal(of_action, torch.where(begins, 0.0, one_hot[:, :-1]))
    assert torch.equal(of_reward, torch.where(begins, 0.0, reward[:, :-1, None]))
    of_action, of_reward = parts(batch["next", "observation"])  # ends of episodes have what led to them
    assert torch.equal(of_action, one_hot)
    assert torch.equal(of_reward, reward[..., None])
    return one_hot[:, -1], reward[:, -1, None], done[:, -1]


def test_vectors_end_with_what_led_to_them(tmp_path):
    before = None
    for batch in batches(config(tmp_path)):
        assert batch["observation"].shape[-1] == 4 + 2 + 1
        before = check(batch, before, lambda seen: (seen[..., 4:6], seen[..., 6:]))
    assert batch["next", "done"].any(), "no episode ended"


def one_hot_of(action):
    return torch.nn.functional.one_hot(action.long(), TOY_ACTIONS).float()


@pytest.mark.parametrize("reset_mode", ["same_step", "next_step"])
def test_ends_and_beginnings_under_each_reset_mode(reset_mode):
    """The last observation of an episode has what led to it; the first one has zeros, whatever the step that reset."""
    env = {"use": "testing:toy", "actions": "discrete", "reset_mode": reset_mode, "episode_lengths": [7, 4]}
    trainer = make_run(sections={"env": env, "transform": [LAST]}).trainer
    batch = torch.cat([trainer.collector.collect().clone() for _ in range(3)], dim=1)
    counts = batch.get(MASK, torch.ones_like(batch["next", "done"])).squeeze(-1)
    assert counts.all() == (reset_mode == "same_step")
    one_hot, reward = one_hot_of(batch["action"]), batch["next", "reward"]
    following = batch["next", "observation"][..., -TOY_ACTIONS - 1 :]
    assert torch.equal(following[counts], torch.cat([one_hot, reward], -1)[counts])
    done = batch["next", "done"].squeeze(-1)
    ends = int((done & counts).sum())
    assert ends >= 4
    begins = torch.zeros_like(done)
    begins[:, 0] = True
    delay = 1 if reset_mode == "same_step" else 2
    begins[:, delay:] |= done[:, :-delay]
    seen = batch["observation"][..., -TOY_ACTIONS - 1 :]
    assert not seen[begins].any()
    inside = ~begins[:, 1:] & counts[:, 1:]
    assert torch.equal(seen[:, 1:][inside], following[:, :-1][inside])


@pytest.mark.parametrize("buffer", [{"use": "replay"}, {"use": "replay:prioritized"}])
def test_samples_of_the_past_have_what_led_to_both_ends(buffer):
    sections = {
        "env": {"use": "testing:toy", "actions": "discrete", "episode_lengths": [7, 4]},
        "transform": [LAST],
        "model": {"use": "dqn:q-network", "hidden": [8]},
        "loss": {"use": "dqn"},
        "estimator": None,
        "buffer": {"capacity": 200, "minibatch_size": 8, "warmup_frames": 16, **buffer},
    }
    trainer = make_run(sections=sections).trainer
    trainer.train()
    samples = trainer.buffer.sample(100)
    following = samples["next", "observation"][:, -TOY_ACTIONS - 1 :]
    assert torch.equal(following, torch.cat([one_hot_of(samples["action"]), samples["next", "reward"]], -1))
    assert samples["next", "terminated"].any()


@pytest.mark.parametrize("shown", [True, False])
def test_a_memory_finds_out_what_only_actions_and_rewards_tell(shown, tmp_path, monkeypatch):
    """Observations are the same in all states: a policy that is not shown what it did is right every second time."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    changes = [f"run.folder='{tmp_path}'", "run.total_frames=10_240", "evaluator.every=10_240"]
    path = EXAMPLES / "ppo-two-arms-lstm.toml"
    if not shown:
        text = path.read_text()
        assert text.count("[[transform]]") == 1
        path = tmp_path / path.name
        path.write_text(text.replace('[[transform]]\nuse = "transforms:last-step"\n', ""))
    trainer = rlcore.build(rlcore.load_config(path, changes)).trainer
    trainer.train()
    sys.modules.pop("two_arms", None)
    gymnasium.registry.pop("TwoArms-v0", None)
    found = trainer.last_evaluation.mean_return
    assert found > 6.5 if shown else 3.0 < found < 5.5


def test_images_become_a_dict_with_further_leaves(tmp_path):
    transform = rlcore.build(config(tmp_path), write=False).trainer.parts.transforms[0].frozen()
    space = transform.observation_space(gymnasium.spaces.Box(0, 255, (3, 5), np.uint8))
    assert isinstance(space, Packed)
    images = np.arange(30, dtype=np.uint8).reshape(2, 3, 5)
    leaves = space.arrays(transform.step(images, np.ones(2, dtype=bool)))
    assert np.array_equal(leaves["observation"], images)
    assert not leaves["last_action"].any()
    assert transform.action(np.array([1, 0])).tolist() == [1, 0]
    transform.read_reward(np.array([0.5, -1.0]))
    assert space.array(transform.final(images[1], 1), "last_reward").tolist() == [-1.0]
    leaves = space.arrays(transform.step(images, np.array([False, True])))
    assert leaves["last_action"].tolist() == [[0, 1], [0, 0]]
    assert leaves["last_reward"].tolist() == [[0.5], [0.0]]


def test_workers_collect_what_one_process_does(tmp_path):
    workers = {
        "use": "parallel:workers",
        "num_workers": 2,
        "frames_per_batch": 64,
        "processes": "always",
        "start_method": "fork",
    }
    alone, apart = batches(config(tmp_path, **LSTM), 2), batches(config(tmp_path, collector=workers, **LSTM), 2)
    for one, other in zip(alone, apart, strict=True):
        assert torch.equal(one["observation"], other["observation"])
        assert torch.equal(one["next", "observation"], other["next", "observation"])


def test_a_resume_goes_on_with_what_led_to_the_latest_observation(tmp_path):
    def train(name, until, resume=False):
        hook = {"use": "testing:recorder", "path": str(tmp_path / f"{name}.jsonl")}
        run = rlcore.build(config(tmp_path, name, hook=[hook], **LSTM), resume=resume)
        run.trainer.stop_at = until
        run.trainer.train()
        return tmp_path / f"{name}.jsonl"

    whole = train("whole", 192)
    for until in (64, 128, 192):
        parts = train("parts", until, resume=until > 64)
    assert compare(whole, parts).equal


def test_an_agent_is_told_the_rewards_and_acts_as_in_evaluations(tmp_path, capsys):
    run = rlcore.build(config(tmp_path, **LSTM))
    run.trainer.train()
    agent = rlcore.load_agent(run.folder)
    assert (agent.reads_rewards, agent.remembers) == (True, True)
    env = gymnasium.make("CartPole-v1")
    observation, _ = env.reset(seed=10_000)
    total, over, reward = 0.0, False, None
    while not over:
        observation, reward, terminated, truncated, _ = env.step(agent.act(observation, reward=reward))
        total, over = total + reward, terminated or truncated
    env.close()
    assert command_line.main(["evaluate", str(run.folder), "--episodes", "1"]) == 0
    assert f"mean return {total:.1f} over 1 episode" in capsys.readouterr().out
    with pytest.raises(
        ConfigError, match=r"pass the reward of each of the 1 envs, as act\(observation, reward=reward\)"
    ):
        agent.act(observation)
    with pytest.raises(ConfigError, match="pass the reward"):
        agent.act(observation, reward=float("nan"))
    agent.reset()
    agent.act(np.stack([observation] * 3))
    agent.act(np.stack([observation] * 3), reward=[1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"transform": [{**LAST, "action": False, "reward": False}]}, "appends neither the last action nor the last"),
        ({"transform": [LAST, LAST], "env": {"use": "testing:toy-dict"}}, "have a leaf 'last_action' already"),
        ({"transform": [LAST], "env": {"use": "gymnasium", "id": "FrozenLake-v1"}}, "the transform 'flatten' before"),
        (
            {"transform": [{**LAST, "leaf": "frame"}], "env": {"use": "testing:toy-dict"}},
            "makes several arrays of that leaf",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path, sections, told):
    with pytest.raises(ConfigError, match=told):
        rlcore.build(config(tmp_path, **sections), write=False)
