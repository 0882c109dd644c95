"""Small runs: stopped and resumed, compiled, over wrong rewards."""

import re
import shutil

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from rlcore.errors import ConfigError, EnvError

from .sections import DETERMINISTIC, DROPOUT, ONE_CRITIC, REPLAY, around

THREE = [
    {"use": "adam", "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"], "lr": 1e-3},
    {"use": "adam", "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"], "every": 2},
    {"use": "adam", "name": "temperature", "parameters": ["temperature"], "losses": ["loss_temperature"], "every": 2},
]
PRIORITIZED = {**REPLAY, "use": "replay:prioritized", "n_steps": 3}
RUNS = {
    "sac": around(model={"random_frames": 40}, buffer=REPLAY),
    "sac three optimizers": around(model={"random_frames": 24}, buffer=PRIORITIZED, optimizer=THREE),
    "sac sde": around(model={"random_frames": 24, "sde": True, "sde_every": 3}, buffer=REPLAY),
    "redq": around(model={"critics": 5}, loss={"target_subset": 2}, buffer=REPLAY, optimizer=THREE),
    "droq": around(model=DROPOUT, buffer=REPLAY),
    "td3": {**DETERMINISTIC, "buffer": {**PRIORITIZED, "updates_per_batch": 3}, "optimizer": THREE[:2]},
    "ddpg": {**ONE_CRITIC, "buffer": REPLAY},
}


@pytest.mark.parametrize("name", ["sac three optimizers", "td3"])
def test_a_run_that_stops_between_two_steps_of_the_actor_resumes_exactly(name, tmp_path):
    """The one among its random frames; both in the middle of what they draw by priorities over several steps."""
    check_resumed(tmp_path, sections=RUNS[name])


SWAPPED = [{**THREE[0], "parameters": ["actor"]}, {**THREE[1], "parameters": ["critics"]}, THREE[2]]
UNTRAINED = [*THREE, {"use": "adam", "name": "slow", "parameters": ["target_critics"]}]
FORGOTTEN = [{**THREE[0], "losses": ["loss_critics", "loss_temperature"]}, THREE[1]]


@pytest.mark.parametrize(
    ("optimizers", "message"),
    [
        (
            SWAPPED,
            "'critics' minimises loss_critics, which trains critics, and moves actor; 'actor' minimises loss_actor, "
            "which trains actor, and moves critics",
        ),
        (FORGOTTEN, "'critics' minimises loss_temperature, which trains temperature, and moves critics"),
        (UNTRAINED, "'slow': the parts ['target_critics'] have no weights to train"),
    ],
    ids=["swapped", "forgotten", "untrained"],
)
def test_optimizers_that_move_other_parts_than_their_losses_train_are_refused(optimizers, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        make_trainer(sections=around(buffer=REPLAY, optimizer=optimizers))


@pytest.mark.parametrize("name", ["sac", "sac three optimizers", "droq", "td3"])
def test_critics_and_actor_side_by_side_are_trained_to_the_same_bits(name):
    states = []
    for parallel in ("false", "true"):
        together = (f"learner.parallel={parallel}", "loss.in_turn=false")
        trainer = make_trainer(*together, "learner.max_grad_norm=0.5", sections=RUNS[name])
        trainer.train()
        states.append(trainer.model.state_dict())
    assert all(torch.equal(value, states[1][key]) for key, value in states[0].items())


def test_one_optimizer_of_all_losses_takes_them_together_and_says_so(caplog):
    make_trainer("loss.in_turn=true", sections=RUNS["sac"])
    assert caplog.text.count("in_turn: an optimizer without `losses` minimises all of them in one step") == 1


@pytest.mark.parametrize("name", ["sac three optimizers", "td3"])
def test_losses_in_turn_train_otherwise_than_at_equal_weights(name):
    states = []
    for in_turn in ("false", "true", "true"):
        trainer = make_trainer(f"loss.in_turn={in_turn}", "learner.parallel=false", sections=RUNS[name])
        trainer.train()
        states.append(trainer.model.actor.state_dict())
    assert all(torch.equal(value, states[2][key]) for key, value in states[1].items())
    assert not all(torch.equal(value, states[0][key]) for key, value in states[1].items())


def test_an_actor_that_follows_the_critics_of_the_same_update_is_not_computed_beside_them():
    with pytest.raises(ConfigError, match=r"\[learner\] parallel = true: the losses of TD3Loss.*\[loss\] in_turn"):
        make_trainer("learner.parallel=true", sections=RUNS["td3"])


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize("name", ["redq", "droq", "td3"])  # plain SAC is DroQ without dropout
def test_the_compiled_update_is_the_eager_one(name):
    results = []
    for compiled in ("false", "true"):
        one_optimizer = {key: value for key, value in RUNS[name].items() if key != "optimizer"}
        trainer = make_trainer(f"learner.compile={compiled}", sections=one_optimizer)
        trainer.train()
        results.append(trainer.model.state_dict())
    for name, value in results[0].items():
        torch.testing.assert_close(results[1][name], value, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("sections", [RUNS["sac"], RUNS["td3"]], ids=["sac", "td3"])
def test_a_reward_that_is_not_a_number_reaches_no_update(sections):
    env = {"use": "testing:faulty", "actions": "bounded", "fault": "nan reward", "at": 9}
    trainer = make_trainer(sections={**sections, "env": env, "evaluator": None})
    weights = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    with pytest.raises(EnvError, match=r"reward of env 0 at step 1 .* is nan"):
        trainer.train()
    assert trainer.progress.frames == 16
    assert all(value.isfinite().all() for value in trainer.model.state_dict().values())
    assert not all(torch.equal(value, weights[name]) for name, value in trainer.model.state_dict().items())
