"""What a buffer imagines: where rollouts begin, go and end, how long they are, and how they are mixed."""

import pytest
import torch
from pydantic import ValidationError
from rlcore_plugin_mbpo.pace import Pace
from rlcore_plugin_mbpo.replay import ImaginedReplay
from rlcore_plugin_mbpo.rollouts import imagine
from rlcore_plugin_testing import make_trainer

from rlcore.types import Heart, Progress

from .sections import REPLAY, around


def config(**keys):
    return ImaginedReplay.Config(**{**{k: v for k, v in REPLAY.items() if k != "use"}, **keys})


@pytest.fixture
def model():
    """A model whose dynamics are certain: each observation grows by 1, and the reward is 5."""
    model = make_trainer(sections=around()).model
    dynamics = model.dynamics
    for parameter in dynamics.parameters():
        parameter.zero_()
    dynamics.least.fill_(-40)
    dynamics.layers[-1].bias[:, :, 4:8] = -40.0  # log-variances
    dynamics.end_layers[-1].bias.fill_(-1.0)
    dynamics.target_mean.copy_(torch.tensor([1.0, 1.0, 1.0, 5.0]))
    dynamics.high.fill_(10)
    return model


def rolled(model, start, length, **keys):
    generator = torch.Generator().manual_seed(0)
    return imagine(model, start, length, config(**keys), generator, Heart())


def test_a_rollout_goes_on_from_what_it_imagined(model):
    found = rolled(model, torch.zeros(4, 3), 3)
    assert len(found) == 12
    steps = found.columns["observation"].view(3, 4, 3)
    assert torch.allclose(steps, torch.arange(3.0).view(3, 1, 1).expand(3, 4, 3), atol=1e-4)
    assert torch.allclose(found.columns["next", "observation"].view(3, 4, 3), steps + 1, atol=1e-4)
    assert torch.allclose(found.columns["next", "reward"], torch.tensor(5.0), atol=1e-4)
    assert not found.columns["next", "done"].any(), "what is cut after its last step has no end"
    assert found.columns["action"].std() > 0, "the policy samples"


def test_it_ends_where_its_episode_does(model):
    model.rule = lambda observation, action, following: following[:, 0] > 1.5
    model.dynamics.end_layers = None
    found = rolled(model, torch.zeros(4, 3), 5)
    assert len(found) == 8
    assert found.columns["next", "terminated"].flatten().tolist() == [False] * 4 + [True] * 4
    assert torch.equal(found.columns["next", "done"], found.columns["next", "terminated"])
    assert not found.columns["next", "truncated"].any()


@pytest.mark.parametrize(("margin", "steps"), [(0.0, 2), (0.5, 3), (2.0, 5)])
def test_it_is_cut_where_it_leaves_the_range_of_the_data(model, margin, steps):
    model.dynamics.high.fill_(2.0001)
    found = rolled(model, torch.zeros(4, 3), 5, range_margin=margin)
    assert len(found) == 4 * steps
    assert found.left == (0 if steps == 5 else 4)
    assert found.columns["next", "observation"].max() <= 2.001 + 2 * margin


@pytest.mark.parametrize("what", ["target_mean", "input_mean"])
def test_it_is_cut_where_a_prediction_is_not_finite(model, what):
    getattr(model.dynamics, what)[-1] = torch.nan
    found = rolled(model, torch.zeros(4, 3), 5)
    assert (len(found), found.left) == (0, 4)


def test_rewards_are_lower_by_the_deviation_times_the_penalty(model):
    model.dynamics.layers[-1].bias[1, :, 7] = 0.0  # the reward, to one member
    model.dynamics.target_scale.fill_(3.0)
    found = rolled(model, torch.zeros(4, 3), 1, penalty=2.0)
    deviation = 3 / 2**0.5  # bounded by exp(-softplus(0)), a variance of a half
    assert found.penalty == pytest.approx(2 * deviation, rel=1e-3)
    assert found.columns["next", "reward"].mean() < 5 + 3 * 2 - 2 * deviation


def test_the_length_follows_the_clock():
    schedule = config(rollout_length=[1, 15, 20_000, 100_000])
    times = [0, 20_000, 25_715, 60_000, 100_000, 900_000]
    assert [schedule.length_at(now) for now in times] == [1, 1, 2, 8, 15, 15]
    assert config(rollout_length=[5, 1, 0, 100]).length_at(50) == 3
    assert config(rollout_length=4).length_at(10**9) == 4


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rollout_length": 0}, "at least one step, not 0"),
        ({"rollout_length": [1, 5]}, "first, last, begin, end"),
        ({"rollout_length": [0, 5, 0, 10]}, "at least one step, not 0"),
        ({"rollout_length": [1, 5, 10, 10]}, "from 10 to 10 must begin at 0 or later, and end after that"),
        ({"rollout_length": [1, 5, -1, 10]}, "from -1 to 10"),
        ({"real_share": 1.5}, "less than or equal to 1"),
        ({"real_share": -0.1}, "greater than or equal to 0"),
        ({"real_share": 0.01}, "leaves no real row"),
        ({"real_share": 0.99}, "leaves no imagined row"),
        ({"n_steps": 3}, "n_steps = 3: imagined transitions are of one step"),
        ({"held_out": 1.0}, "less than 1"),
        ({"penalty": float("inf")}, "finite"),
        ({"dynamics_every": 0}, "an interval must be positive"),
    ],
)
def test_a_config_that_cannot_be_is_refused(keys, message):
    with pytest.raises(ValidationError, match=message):
        config(**keys)


def test_a_pace_is_due_at_once_and_then_at_each_multiple():
    progress, pace, once = Progress(100), Pace(10), Pace(None)
    due = []
    for frames in range(7, 40, 2):
        progress.frames = frames
        if pace.due(progress):
            due.append(frames)
        assert once.due(progress) is (frames == 7)
    assert due == [7, 11, 21, 31]


def real_rows(trainer, minibatch):
    """Return which rows of a minibatch are transitions that the replay holds, bool `[row]`."""
    held = trainer.buffer._real()["observation"]
    return (minibatch["observation"].unsqueeze(1) == held).all(-1).any(-1) & (
        (minibatch["next", "reward"].unsqueeze(1) == trainer.buffer._real()["next", "reward"]).all(-1).any(-1)
    )


@pytest.mark.parametrize(("share", "real"), [(0.25, 2), (0.0, 0), (1.0, 8)])
def test_a_minibatch_has_its_share_of_real_rows(share, real):
    trainer = make_trainer(sections=around(buffer={"real_share": share}))
    trainer.train()
    for minibatch in trainer.buffer.minibatches(trainer.batch):
        rows = real_rows(trainer, minibatch)
        assert int(rows.sum()) == real
        assert rows[:real].all()
        kinds = {key: value.dtype for key, value in minibatch.items()}
        assert kinds["next", "terminated"] is torch.bool
        assert kinds["action"] is torch.float32


def test_rollouts_begin_at_real_observations():
    trainer = make_trainer(sections=around(buffer={"rollout_length": 1, "real_share": 0.0, "capacity": 64}))
    trainer.train()
    held = trainer.buffer._real()["observation"]
    for minibatch in trainer.buffer.minibatches(trainer.batch):
        assert (minibatch["observation"].unsqueeze(1) == held).all(-1).any(-1).all()


def test_the_metrics_say_what_was_learned_and_imagined():
    trainer = make_trainer(sections=around())
    logged = {}
    for _ in trainer:
        logged |= trainer.metrics.latest
    names = {"dynamics/error", "dynamics/epochs", "imagined/length", "imagined/transitions", "imagined/left_range"}
    assert names <= set(logged)
