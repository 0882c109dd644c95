"""The loss against plain loops over samples, critics and quantiles, and what is refused."""

import numpy as np
import pytest
import torch
from rlcore_plugin_testing import make_trainer

from rlcore.errors import ConfigError

from .sections import around

SAMPLES, GAMMA, QUANTILES, CRITICS = 12, 0.9, 5, 3


def made_up(weights):
    generator = torch.Generator().manual_seed(5)
    minibatch = {
        "observation": torch.randn(SAMPLES, 3, generator=generator),
        "action": torch.rand(SAMPLES, 2, generator=generator) * 2.5 - 0.5,
        ("next", "observation"): torch.randn(SAMPLES, 3, generator=generator),
        ("next", "reward"): 2 * torch.randn(SAMPLES, 1, generator=generator),
        ("next", "terminated"): torch.rand(SAMPLES, 1, generator=generator) < 0.3,
    }
    if weights:
        minibatch["priority_weight"] = torch.rand(SAMPLES, 1, generator=generator)
    return minibatch


def built(**loss):
    """Return loss and model, with targets that are not the critics and quantiles that spread."""
    trainer = make_trainer(sections=around(loss={"gamma": GAMMA, "temperature": 0.3, **loss}))
    generator = torch.Generator().manual_seed(6)
    with torch.no_grad():
        for parameter in trainer.model.parameters():
            parameter += 0.5 * torch.randn(parameter.shape, generator=generator)
    return trainer.learner._loss, trainer.model


def huber(error):
    return 0.5 * error**2 if abs(error) <= 1 else abs(error) - 0.5


def errors_of(entries, model, dropped, members):
    """Return the quantile Huber loss of each critic and sample, by equations 11 to 14 of the paper."""
    found = np.zeros((CRITICS, SAMPLES))
    with torch.no_grad():
        unit, log_prob = model.actor.rsample(entries["next", "observation"], entries["next", "noise"])
        following = model.target_critics.values(entries["next", "observation"], unit).double().numpy()
        quantiles = model.critics(entries["observation"], entries["action"]).double().numpy()
    for row in range(SAMPLES):
        pooled = sorted(value for critic in members for value in following[critic, row])
        kept = pooled[: len(pooled) - dropped * len(members)]
        going = 0.0 if entries["next", "terminated"][row] else GAMMA
        reward, entropy = float(entries["next", "reward"][row]), -0.3 * float(log_prob[row])
        targets = [reward + going * (value + entropy) for value in kept]
        for critic in range(CRITICS):
            terms = []
            for number, quantile in enumerate(quantiles[critic, row]):
                fraction = (2 * number + 1) / (2 * QUANTILES)
                for target in targets:
                    error = target - quantile
                    terms.append(abs(fraction - (error < 0)) * huber(error))
            found[critic, row] = np.mean(terms)
    return found


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("dropped", [0, 2])
def test_the_critics_learn_the_truncated_mixture(dropped, weights):
    loss, model = built(dropped=dropped)
    entries = made_up(weights)
    entries |= loss.sample_noise(SAMPLES, torch.Generator().manual_seed(7))
    errors = errors_of(entries, model, dropped, range(CRITICS))
    factor = entries["priority_weight"].squeeze(-1).numpy() if weights else 1.0
    found = loss(entries)
    assert found["loss_critics"].item() == pytest.approx((errors * factor).mean(), rel=1e-4)
    np.testing.assert_allclose(found["td_error"].squeeze(-1), errors.max(0), rtol=1e-4, atol=1e-6)


def test_some_critics_make_the_target():
    loss, model = built(dropped=1, target_subset=2)
    entries = made_up(weights=False)
    entries |= loss.sample_noise(SAMPLES, torch.Generator().manual_seed(7))
    members = entries["target_members"].tolist()
    assert len(set(members)) == 2
    errors = errors_of(entries, model, 1, members)
    assert loss(entries)["loss_critics"].item() == pytest.approx(errors.mean(), rel=1e-4)


def test_the_actor_maximises_the_mean_of_all_quantiles():
    loss, model = built()
    entries = made_up(weights=False)
    entries |= loss.sample_noise(SAMPLES, torch.Generator().manual_seed(7))
    with torch.no_grad():
        unit, log_prob = model.actor.rsample(entries["observation"], entries["noise"])
        values = model.critics.values(entries["observation"], unit).numpy()
    expected = 0.3 * log_prob.numpy().squeeze(-1) - values.mean((0, 2))
    assert loss(entries)["loss_actor"].item() == pytest.approx(expected.mean(), rel=1e-4)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"model": {"quantiles": 1}}, "tqc needs critics that give quantiles; set .* quantiles = 25"),
        ({"loss": {"dropped": 5}}, "dropped = 5 must be less than .* quantiles = 5"),
        ({"loss": {"use": "sac"}}, "quantiles = 5: the loss sac takes one value of each critic"),
        (
            {"loss": {"use": "sac:td3"}, "model": {"actor": "deterministic"}},
            "quantiles = 5: the loss .*td3 takes one value of each critic",
        ),
    ],
)
def test_critics_and_losses_that_do_not_fit_are_refused(keys, message):
    with pytest.raises(ConfigError, match=message):
        make_trainer(sections=around(**keys))
