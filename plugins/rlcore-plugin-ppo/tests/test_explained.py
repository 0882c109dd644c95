"""How much of the returns the critic explains is logged once per batch, where a config enables it."""

import pytest
import torch
from rlcore_plugin_ppo.explained import ExplainedVariance
from rlcore_plugin_testing import make_run
from tensordict import TensorDict

from rlcore import hookimpl

NAME = "train/explained_variance"
LOSSES = {
    "ppo": {"loss": {"use": "ppo"}, "estimator": {"use": "gae"}},
    "ppo, target_kl": {"loss": {"use": "ppo", "target_kl": 0.5}, "estimator": {"use": "gae", "every": "epoch"}},
    "a2c": {"loss": {"use": "ppo:a2c"}, "estimator": {"use": "ppo:gae"}},
    "impala": {"loss": {"use": "impala"}, "estimator": {"use": "vtrace"}},
    "appo": {"loss": {"use": "appo"}, "estimator": {"use": "vtrace"}},
}


class Batches:
    """Notes the value targets of each batch after its first epoch, and counts the rows of the metric."""

    def __init__(self):
        self.expected, self.first = [], True

    @hookimpl
    def pre_optim_steps(self):
        self.first = True

    @hookimpl
    def post_epoch(self, batch):
        if self.first:
            target, value = (batch[key].double() for key in ("value_target", "state_value"))
            self.expected.append(float(1 - (target - value).var(correction=0) / target.var(correction=0)))
        self.first = False


@pytest.mark.parametrize("sections", LOSSES.values(), ids=LOSSES)
def test_it_is_logged_once_per_batch_before_the_first_update(sections):
    batches = Batches()
    model = {"use": "mlp", "hidden": [4]}
    sections = {**sections, "model": model, "hook": [{"use": "ppo:explained-variance"}]}
    trainer = make_run(sections=sections, hooks=[batches]).trainer
    found = []
    for _ in trainer:
        found.append(trainer.metrics.latest.get(NAME))
        assert f"{NAME}/count" not in trainer.metrics.latest  # one value of each batch
    assert found == pytest.approx(batches.expected)
    assert len(found) == 4


def test_masked_steps_do_not_count_and_equal_targets_say_nothing():
    def explained(target, value, mask):
        entries = {"value_target": target, "state_value": value, "collector": {"mask": mask}}
        hook = ExplainedVariance(ExplainedVariance.Config(), None)
        hook.pre_optim_steps()
        return hook.post_epoch_log(TensorDict(entries, batch_size=[1, 4]))

    target, value = torch.tensor([[[0.0], [2.0], [4.0], [99.0]]]), torch.tensor([[[0.0], [2.0], [3.0], [-99.0]]])
    mask = torch.tensor([[[True], [True], [True], [False]]])
    assert explained(target, value, mask) == {NAME: pytest.approx(1 - (2 / 9) / (8 / 3))}
    assert explained(torch.ones(1, 4, 1), value, mask) is None
