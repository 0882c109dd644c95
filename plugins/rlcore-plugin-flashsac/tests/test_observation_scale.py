"""Observations are normalised by what is known at the update, and replayed ones too."""

import pytest
import torch
from rlcore_plugin_testing import make_trainer

from .sections import OF_PAPERS, REPLAY, around

LAYERS = {"width": 4, "critic_width": 6, "random_frames": 24}


@pytest.fixture
def trained():
    trainer = make_trainer(sections=around(model={**OF_PAPERS["simbav2"], **LAYERS}, buffer=REPLAY))
    batches = []
    collect = trainer.collector.collect
    trainer.collector.collect = lambda: batches.append(collect().clone()) or batches[-1]
    trainer.train()
    return trainer, torch.cat([batch["observation"].flatten(0, 1) for batch in batches])


def test_the_statistics_are_those_of_all_observations(trained):
    trainer, observations = trained
    norm = trainer.model.observation_norm
    torch.testing.assert_close(norm.mean, observations.double().mean(0).float())
    torch.testing.assert_close(norm.deviation, observations.double().std(0, correction=0).float(), atol=1e-4, rtol=1e-4)


def test_actor_critics_and_targets_see_normalised_observations(trained):
    trainer, observations = trained
    model = trainer.model
    norm, rows, actions = model.observation_norm, observations[:5], torch.zeros(5, model.box.size)

    def outputs(inputs):
        critics = [network(inputs, model.box.from_unit(actions)) for network in (model.critics, model.target_critics)]
        return [model.actor(inputs), *critics]

    with torch.no_grad():
        raw = outputs(rows)
        mean, deviation = norm.mean.clone(), norm.deviation.clone()
        norm.mean.zero_()
        norm.deviation.fill_(1.0)
        normalised = outputs((rows - mean) / deviation)
    for one, other in zip(raw, normalised, strict=True):
        torch.testing.assert_close(one, other)


def test_no_part_holds_them_so_that_a_reset_leaves_them():
    last = {"hook": [{"use": "flashsac:resets", "at": [64]}]}  # after the last batch, which would write them again
    trainer = make_trainer(sections=around(model={**OF_PAPERS["simbav2"], **LAYERS}, buffer=REPLAY, **last))
    trainer.train()
    assert trainer.progress.frames == 64
    model = trainer.model
    assert not torch.equal(model.observation_norm.mean, torch.zeros_like(model.observation_norm.mean))
    assert not [name for part in model.parts() for name in getattr(model, part).state_dict() if "mean" in name]
    assert "observation_norm.mean" in model.state_dict()
