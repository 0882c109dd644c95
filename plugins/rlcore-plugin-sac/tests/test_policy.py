"""Which actions are uniform, and what the policies do afterwards."""

import pytest
import torch
from rlcore_plugin_testing import make_run, make_trainer

from rlcore import hookimpl
from rlcore.errors import ConfigError

from .sections import DETERMINISTIC, around

LOW, HIGH = torch.tensor([-0.5, -0.5]), torch.tensor([2.0, 2.0])


class Copies:
    """A hook that keeps the batches."""

    observer = True

    def __init__(self):
        self.batches = []

    @hookimpl
    def batch_process(self, batch):
        self.batches.append(batch.clone())


def model_of(**model):
    return make_trainer(sections=around(model=model)).model


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("random_frames", [0, 5, 18, 24])
def test_exactly_so_many_frames_are_random(random_frames):
    """Also where they end within a step of several envs; in batches of 4 steps of 4 envs."""
    trainer = make_trainer(sections=around(model={"random_frames": random_frames}))
    policy, progress = trainer.model.policy, trainer.progress
    found = []
    for frames in (0, 16, 32):
        progress.frames = frames
        policy.refresh()
        noise = policy.draw(4, 4, generator())
        assert noise.shape == (4, 4, 3 if random_frames else 2)
        random = noise[..., -1] if random_frames else torch.zeros(4, 4)
        found += random.flatten().tolist()
    assert found == [1.0] * random_frames + [0.0] * (48 - random_frames)


def test_frames_are_those_of_the_env():
    """An env that repeats an action counts each repetition."""
    env = {"use": "testing:toy", "actions": "bounded", "frame_skip": 2}
    policy = make_trainer(sections=around(model={"random_frames": 10}, env=env)).model.policy
    assert policy.draw(2, 4, generator())[..., -1].sum() == 5


@pytest.mark.parametrize(("random_frames", "warnings"), [(63, 0), (64, 1)])
def test_a_run_whose_policy_never_acts_is_warned_of_once(random_frames, warnings, caplog):
    trainer = make_trainer(sections=around(model={"random_frames": random_frames}))
    trainer.train()
    assert trainer.progress.frames == 64
    expected = f"[model] random_frames = {random_frames}: the run ends after 64 frames ([run] total_frames)"
    assert caplog.text.count(expected) == warnings


def test_random_actions_are_uniform_over_the_box():
    model = model_of(random_frames=10_000)
    noise = model.policy.draw(100, 100, generator())
    actions = torch.cat([model.policy.act(torch.randn(100, 3), row)[0] for row in noise])
    assert torch.equal(actions, noise[..., :2].reshape(-1, 2))
    unit = (actions - LOW) / (HIGH - LOW)
    assert unit.min() >= 0
    assert unit.max() <= 1
    for column in unit.unbind(-1):
        share = torch.histc(column, 10, 0, 1) / len(column)
        torch.testing.assert_close(share, torch.full((10,), 0.1), atol=0.015, rtol=0)


def test_then_actions_are_samples_of_the_actor():
    model, seen = model_of(random_frames=3), torch.randn(4, 3)
    noise = model.policy.draw(1, 4, generator())[0]
    action, _ = model.policy.act(seen, noise)
    expected = model.actor.distribution.sample(model.actor(seen), noise[:, :2])
    assert torch.equal(action[:3], noise[:3, :2])
    torch.testing.assert_close(action[3], expected[3].detach())


def test_evaluations_take_the_squashed_mean():
    model, seen = model_of(random_frames=1000), torch.randn(4, 3)
    mean = model.actor(seen)[:, :2]
    torch.testing.assert_close(model.policy.mode(seen), LOW + (HIGH - LOW) * (mean.tanh() + 1) / 2)


def test_a_run_begins_at_random_and_goes_on_with_the_actor():
    """Two actors that differ: up to the frame where they begin, their runs are the same."""
    taken = []
    for hidden in ([8], [4]):
        copies = Copies()
        make_trainer(sections=around(model={"random_frames": 20, "hidden": hidden}), hooks=[copies]).train()
        taken.append(torch.cat([batch["action"] for batch in copies.batches], 1).transpose(0, 1).reshape(-1, 2))
    same = (taken[0] == taken[1]).all(-1)
    assert same.tolist() == [True] * 20 + [False] * 44


def deterministic(**model):
    return make_trainer(sections={**DETERMINISTIC, "model": {**DETERMINISTIC["model"], **model}}).model


def test_noise_is_so_wide_and_clipped_to_the_box():
    model, seen = deterministic(noise=0.5), torch.randn(1000, 3)
    noise = model.policy.draw(1, 1000, generator())[0]
    assert noise.std().item() == pytest.approx(0.5, rel=0.05)
    action, _ = model.policy.act(seen, noise)
    expected = torch.max(torch.min(model.actor(seen).detach() + 1.25 * noise, HIGH), LOW)
    torch.testing.assert_close(action, expected)
    assert (action == HIGH).any()
    torch.testing.assert_close(model.policy.mode(seen), model.actor(seen).detach())


def test_noise_takes_a_schedule():
    schedule = {"use": "linear", "target": "model.noise", "final": 0.0}
    trainer = make_trainer(sections={**DETERMINISTIC, "scheduler": [schedule]})
    assert trainer.model.schedulable["noise"] == pytest.approx(0.1)
    trainer.train()
    assert trainer.model.schedulable["noise"] == pytest.approx(0.0)
    assert not trainer.model.policy.draw(2, 4, generator()).any()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"actor": "deterministic", "noise": 1.5}, "noise"),
        ({"actor": "deterministic", "log_std_max": 1.0}, "log_std_max count for nothing with a deterministic actor"),
        ({"noise": 0.2}, "noise count for nothing with a stochastic actor"),
    ],
)
def test_keys_that_cannot_work_are_refused(model, message):
    with pytest.raises(ConfigError, match=message):
        make_run(sections=around(model=model, loss={"use": "sac:td3" if "actor" in model else "sac"}))


def test_a_schedule_that_makes_noise_too_wide_is_refused():
    with pytest.raises(ConfigError, match=r"target 'model.noise': 1.5 is no standard deviation"):
        deterministic().schedulable["noise"] = 1.5
