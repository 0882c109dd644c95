"""What a run sees of a `VecEnv`: who sees which groups, cuts, buffers that are written over, and what is refused."""

import importlib
from functools import partial
from pathlib import Path

import pytest
import torch
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_testing.small_run import make_run

from rlcore.errors import EnvError, RlcoreError

HOVER = {"use": "rsl-rl", "make": "vec_envs:Hover", "num_envs": 4}
SECTIONS = {
    "run": {"name": "toy", "seed": 1, "total_frames": 96, "device": "cpu"},
    "env": HOVER,
    "model": {"use": "rsl-rl", "actor_hidden": [8], "critic_hidden": [8]},
    "loss": {"use": "rsl-rl:adaptive-ppo"},
    "estimator": {"use": "ppo:gae"},
    "collector": {"use": "device", "frames_per_batch": 32},
}


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    """As beside a config."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def trainer_of(**sections):
    return make_run(sections={**SECTIONS, **sections}).trainer


def env_of(**keys):
    bench = EnvContract.of("rsl-rl:rsl-rl", {"make": "vec_envs:Hover", **keys}, around={"model": SECTIONS["model"]})
    return bench.make(bench.bench(), num_envs=4)


def test_only_the_critic_sees_its_group():
    trainer = trainer_of()
    space, model = trainer.collector._spec.observation_space, trainer.model
    rows = trainer.collector.collect().get("observation")[:, 0]
    groups = space.tensors(rows)
    other = space.joined({**groups, "critic": groups["critic"] + 1})
    assert torch.equal(model.actor(rows), model.actor(other))
    assert not torch.equal(model.critic(rows), model.critic(other))
    other = space.joined({**groups, "policy": groups["policy"] + 1})
    assert not torch.equal(model.actor(rows), model.actor(other))
    assert torch.equal(model.critic(rows), model.critic(other))


def test_several_groups_are_seen_side_by_side():
    trainer = trainer_of(model={**SECTIONS["model"], "critic_observations": ["policy", "critic"]})
    assert trainer.model.critic.seen.size == 10
    rows = trainer.collector.collect().get("observation")
    groups = trainer.collector._spec.observation_space.tensors(rows)
    assert torch.equal(trainer.model.critic.seen(rows), torch.cat([groups["policy"], groups["critic"]], -1))


def test_a_batch_has_what_the_env_showed():
    """Its buffers are written over in each step, and its actions too."""
    batch = trainer_of(env={**HOVER, "kwargs": {"limit": 5}}).collector.collect()
    kept = trainer_of(env={**HOVER, "kwargs": {"limit": 5, "shares": False}}).collector.collect()
    assert torch.equal(batch.get("observation"), kept.get("observation"))
    assert torch.equal(batch.get(("next", "observation")), kept.get(("next", "observation")))
    assert batch.get("action").abs().max() > 1, "the batch has the actions of the policy, which the env clips"
    assert len(batch.get("observation").flatten(0, 1).unique(dim=0)) == 32


def test_a_cut_is_worth_what_rsl_rl_makes_of_it():
    """There the reward of a time-out gets gamma times the value before the step, and the episode ends."""
    trainer = trainer_of(env={**HOVER, "kwargs": {"limit": 3}})
    batch = trainer.collector.collect()
    trainer.parts.estimator(batch)
    with torch.no_grad():
        values = trainer.model.critic(batch.get("observation")).squeeze(-1)
        last = trainer.model.critic(batch.get(("next", "observation"))[:, -1]).squeeze(-1)
    reward, done = (batch.get(("next", name)).squeeze(-1) for name in ("reward", "done"))
    time_outs = batch.get(("next", "truncated")).squeeze(-1)
    assert time_outs.any()
    reward = reward + 0.99 * values * time_outs
    advantage, following = torch.zeros(4), last
    for time in reversed(range(8)):
        open_ = 1.0 - done[:, time].float()
        delta = reward[:, time] + open_ * 0.99 * following - values[:, time]
        advantage = delta + open_ * 0.99 * 0.95 * advantage
        torch.testing.assert_close(batch.get("advantage")[:, time, 0], advantage)
        following = values[:, time]


def test_an_env_without_time_outs_only_terminates():
    env = env_of(make="vec_envs:broken", kwargs={"what": "extras", "value": "drop"})
    env.reset_tensors(0)
    ended = 0
    for _ in range(60):
        step = env.step_tensors(torch.zeros(4, 2))
        assert not step.truncated.any()
        ended += int(step.terminated.sum())
    assert ended


def test_actions_are_limited_on_their_way():
    env, free = env_of(clip_actions=0.25), env_of()
    for each in (env, free):
        each.reset_tensors(0)
    limited = env.step_tensors(torch.full((4, 2), 9.0))
    assert torch.equal(limited.reward, free.step_tensors(torch.full((4, 2), 0.25)).reward)


def test_a_simulator_without_a_state_begins_new_episodes(tmp_path, caplog):
    sections = {**SECTIONS, "env": {**HOVER, "make": "vec_envs:Simulator"}, "evaluator": []}
    trainer = make_run(sections=sections, folder=tmp_path).trainer
    trainer.stop_at = 64
    trainer.train()
    reason = "Simulator has no state_dict and no load_state_dict: a resume begins new episodes"
    assert trainer.collector.inexact() == reason
    resumed = make_run(sections=sections, folder=tmp_path, resume=True).trainer
    assert f"4 running episodes are dropped: {reason}" in caplog.text
    resumed.train()
    assert resumed.progress.frames == 96
    assert trainer_of().collector.inexact() is None


def test_episodes_that_cannot_begin_again_are_an_error():
    env = env_of(make="vec_envs:Simulator")
    env.reset_tensors(0)
    with pytest.raises(EnvError, match=r"Simulator has no reset\(\)"):
        env.reset_tensors(1)


@pytest.mark.parametrize(
    ("what", "value", "expected"),
    [
        ("num_envs", 3, "has 3 envs, and num_envs = 4"),
        ("device", "meta", "is on meta, and the run on cpu"),
        ("get_observations", None, "gives a NoneType; rsl_rl 5 takes a TensorDict"),
        (
            "get_observations",
            {"policy": torch.zeros(3, 2)},
            r"the shape \[3, 2\], not \[4, 2\], for the group 'policy'",
        ),
        ("get_observations", {"policy": [0.0] * 4}, "gives a list, not a tensor, for the group 'policy'"),
        ("observations", "missing", "gives a NoneType, not a tensor, for the group 'critic' of the observations"),
        ("rewards", "column", r"a tensor of the shape \[4, 1\], not \[4\], for rewards"),
        ("rewards", "list", "a list, not a tensor, for rewards"),
        ("rewards", "integers", "rewards of torch.int64, not floats"),
        ("dones", "column", r"the shape \[4, 1\], not \[4\], for dones"),
        ("extras", "short", r"the shape \[1\], not \[4\], for extras\['time_outs'\]"),
        ("extras", "none", "gives a NoneType for extras, not a dict"),
        ("rewards", "nan", "not finite; the batch is discarded"),
        ("observations", "nan_for_critic", "not finite; the batch is discarded"),
    ],
)
def test_what_is_no_vec_env_is_refused(monkeypatch, what, value, expected):
    envs = importlib.import_module("vec_envs")
    monkeypatch.setattr(envs, "broken", partial(envs.broken, what=what, value=value))
    with pytest.raises(RlcoreError, match=expected):
        trainer_of(env={**HOVER, "make": "vec_envs:broken"}).collector.collect()


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"env": {**HOVER, "make": "vec_envs:Hovr"}}, "vec_envs has no 'Hovr'; did you mean 'Hover'"),
        ({"env": {**HOVER, "kwargs": {"limits": 3}}}, "cannot be made: TypeError.*limits"),
        (
            {"env": {**HOVER, "make": "builtins:dict"}},
            "is a dict without num_envs, num_actions, get_observations, step",
        ),
        ({"env": {**HOVER, "groups": ["polcy"]}}, "there is no group 'polcy'; did you mean 'policy'"),
        (
            {"model": {**SECTIONS["model"], "actor_observations": ["state"]}},
            "there is no group 'state'.*policy, critic",
        ),
        (
            {
                "env": {**HOVER, "make": "vec_envs:OneGroup"},
                "model": {**SECTIONS["model"], "critic_observations": ["a"]},
            },
            "there is no group 'a'; it is one array",
        ),
        ({"env": {"use": "torch-envs", "id": "CartPole-v1"}}, "actions without bounds"),
        ({"scheduler": [{"use": "linear"}]}, "moves the learning rate, and .loss. desired_kl does too"),
        (
            {
                "env": {"use": "torch-envs", "id": "CartPole-v1"},
                "model": {"use": "mlp"},
                "hook": [{"use": "rsl-rl:env-log"}],
            },
            "needs .env. use = 'rsl-rl'",
        ),
    ],
)
def test_a_run_that_cannot_be_is_refused(sections, expected):
    with pytest.raises(RlcoreError, match=expected):
        trainer_of(**sections).train()


def test_a_normaliser_that_nobody_shows_anything_is_an_error():
    model = {**SECTIONS["model"], "actor_normalization": True}
    run = {**SECTIONS["run"], "total_frames": 320}
    with pytest.raises(RlcoreError, match="nothing shows the normaliser"):
        trainer_of(run=run, model=model, loss={"use": "ppo"}).train()
    trainer = trainer_of(run=run, model=model)
    trainer.train()
    assert int(trainer.model.actor.obs_normalizer.count) == 320
