"""Networks that start over within a run."""

import shutil

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from rlcore import hookimpl
from rlcore.errors import ConfigError

from .sections import REPLAY, around, paces

CRITICS = ("critics", "target_critics")


def sections(at, optimizer=None, **keys):
    hook = [{"use": "flashsac:resets", "at": at, **keys}]
    return around(model={"random_frames": 24}, optimizer=optimizer or paces(), buffer=REPLAY, hook=hook)


class Watcher:
    """Keeps, as the updates of each iteration find them, the weights and how many steps the optimizers have taken."""

    def __init__(self):
        self.weights, self.steps = {}, {}

    @hookimpl(trylast=True)
    def pre_optim_steps(self, trainer):
        now = trainer.progress.frames
        self.weights[now] = {name: value.clone() for name, value in trainer.model.state_dict().items()}
        self.steps[now] = {
            name: max((float(state["step"]) for state in optimizer.state.values()), default=0.0)
            for name, optimizer in trainer.learner.optimizers.items()
        }


def watched(*overrides, **keys):
    watcher = Watcher()
    trainer = make_trainer(*overrides, sections=sections(**keys), hooks=[watcher])
    first = {name: value.clone() for name, value in trainer.model.state_dict().items()}
    trainer.train()
    return watcher, first


def changed(weights, first):
    """Return the names of the parts with a weight that is not the first one."""
    names = [name for name in first if not name.startswith("reward_scale")]
    return {name.split(".")[0] for name in names if not torch.equal(weights[name], first[name])}


def test_all_parts_and_their_optimizers_start_over_once_at_each_place():
    watcher, first = watched(at=[64, 33])
    fresh = [frames for frames, weights in watcher.weights.items() if not changed(weights, first)]
    learning = sorted(watcher.weights)
    expected = [learning[0], *(min(frames for frames in learning if frames >= place) for place in (33, 64))]
    assert fresh == expected
    assert all((not any(steps.values())) == (frames in expected) for frames, steps in watcher.steps.items())


def test_other_parts_go_on():
    watcher, first = watched(at=[64], parts=list(CRITICS))
    assert changed(watcher.weights[64], first) == {"actor", "temperature"}
    assert watcher.steps[64]["critics"] == 0
    assert watcher.steps[64]["actor"] > 0


def test_a_resumed_run_does_not_repeat_a_reset(tmp_path):
    check_resumed(tmp_path, sections=sections(at=[33]))


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"parts": ["critic"]}, r"no part 'critic'; did you mean 'critics'\?; it has actor, critics"),
        ({"parts": ["actor"], "optimizer": [{"use": "adam"}]}, "optimizer 'adam' steps parts that are set back and"),
        ({"at": []}, "at"),
        ({"at": [0]}, "at"),
    ],
)
def test_what_cannot_start_over_is_refused(keys, message):
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=sections(**{"at": [33], **keys}))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_a_compiled_update_goes_on_from_the_first_weights():
    eager, compiled = (watched(f"learner.compile={flag}", at=[33]) for flag in ("false", "true"))
    last = max(eager[0].weights)
    assert not changed(compiled[0].weights[48], compiled[1])
    for name, value in eager[0].weights[last].items():
        torch.testing.assert_close(compiled[0].weights[last][name], value, atol=1e-4, rtol=1e-3, msg=name)
