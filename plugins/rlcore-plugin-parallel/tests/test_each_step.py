"""A call after each step of the envs: it sees all of them, changes nothing, and can stop the run."""

import pytest
import torch
from rlcore_plugin_testing import difference, make_run

from rlcore.errors import ConfigError, PluginError

HERE = "each_step_calls"
CALLS = """
seen = []

def note(action, step):
    seen.append((action.copy(), step.reward.copy(), step.terminated | step.truncated))

def stop(action, step):
    return False

def fail(action, step):
    raise KeyError("mine")

class Counting:
    def __init__(self):
        self.count = 0

    def __call__(self, action, step):
        self.count += 1

    def metrics(self):
        return {"steps": float(self.count)}

    def state_dict(self):
        return {"count": self.count}

    def load_state_dict(self, state):
        self.count = state["count"]

class Mute: ...

class Needing:
    def __init__(self, something): ...
"""


@pytest.fixture(autouse=True)
def calls(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / f"{HERE}.py").write_text(CALLS)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(__import__("sys").modules, HERE, raising=False)


def trainer_of(call, *overrides, **keywords):
    collector = {"use": "parallel:each-step", "frames_per_batch": 16, "call": f"{HERE}:{call}"}
    return make_run(*overrides, sections={"collector": collector}, **keywords).trainer


def test_every_step_is_seen_and_the_run_is_that_of_the_local_collector():
    trainer, plain = trainer_of("note"), make_run().trainer
    batch, expected = trainer.parts.collector.collect().clone(), plain.parts.collector.collect().clone()
    assert difference(batch.to_dict(), expected.to_dict()) is None
    seen = __import__(HERE).seen
    assert torch.equal(torch.stack([torch.as_tensor(action) for action, _, _ in seen], 1), batch["action"])
    rewards = torch.stack([torch.as_tensor(reward) for _, reward, _ in seen], 1).float()
    assert torch.equal(rewards, batch["next", "reward"].squeeze(-1))
    assert torch.equal(
        torch.stack([torch.as_tensor(done) for _, _, done in seen], 1), batch["next", "done"].squeeze(-1)
    )


def test_a_call_that_returns_false_stops_the_run_after_the_batch():
    trainer = trainer_of("stop")
    trainer.train()
    assert trainer.progress.frames == 16
    assert trainer.stop_reason == "the collector has no more batches"


def test_figures_and_state_of_an_object_outlive_a_resume(tmp_path):
    first = trainer_of("Counting", folder=tmp_path)
    first.stop_at = 32
    first.train()
    second = trainer_of("Counting", folder=tmp_path, resume=True)
    second.train()
    steps = second.progress.frames / second.parts.collector.batch_envs
    assert second.metrics.latest["collector/steps"] == steps


def test_an_error_of_the_call_says_whose_it_is():
    with pytest.raises(PluginError, match=r"call = 'each_step_calls:fail' raised KeyError"):
        trainer_of("fail").train()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("Needing", "called without arguments, raised"),
        ("seen", "cannot be called"),
        ("Mute", "is a Mute, which cannot be called"),
    ],
)
def test_what_cannot_be_called_is_refused_before_the_first_frame(call, message):
    with pytest.raises(ConfigError, match=message):
        trainer_of(call)
