"""Gradients that a learner hands on: steps as without an override, or as the override says."""

import numpy as np
import pytest
import torch
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.ranks import in_ranks

from rlcore import ALL_MODULES
from rlcore.errors import NumericalError
from tests.regression import Regression, config_of, rows


class Open(Regression):
    """Overrides a part of a step without changing it, which lets all parts be called."""

    def compute_gradients(self, loss_per_module, **kwargs):
        return super().compute_gradients(loss_per_module, **kwargs)


class Doubled(Regression):
    def postprocess_gradients_for_module(self, *, module_id, config=None, module_gradients_dict):
        return {ref: 2 * gradient for ref, gradient in module_gradients_dict.items()}


class OneOptimizer(Regression):
    """One optimizer for the sum of the losses of all modules."""

    def configure_optimizers(self):
        parameters = [parameter for module in self.module.values() for parameter in self.get_parameters(module)]
        self.register_optimizer(module_id=ALL_MODULES, optimizer=torch.optim.SGD(parameters, lr=0.1), params=parameters)


class Plain(Regression):
    """Plain gradient descent."""

    def configure_optimizers_for_module(self, module_id, config):
        parameters = self.get_parameters(self.module[module_id])
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        self.register_optimizer(module_id=module_id, optimizer=optimizer, params=parameters)


def built(kind, **settings):
    return config_of("a", "b", learner_class=kind, **settings).build_learner()


def weights(learner):
    return torch.cat([weight.detach().reshape(-1) for weight in learner.module.parameters()])


@pytest.mark.parametrize("settings", [{}, {"grad_clip": 0.5}, {"grad_clip": 0.1, "grad_clip_by": "value"}], ids=str)
def test_handing_gradients_on_changes_no_step(settings):
    learners = [built(kind, **settings) for kind in (Regression, Open)]
    batch = {"a": rows(10), "b": rows(4, 1)}
    told = [learner.update(batch, minibatch_size=4, num_epochs=3) for learner in learners]
    torch.testing.assert_close(weights(learners[1]), weights(learners[0]), rtol=0, atol=1e-6)
    assert told[0]["a"] == pytest.approx(told[1]["a"], rel=1e-5)
    assert set(told[0]["b"]) == set(told[1]["b"])


def test_the_norm_of_each_tensor_is_limited():
    learner, batch = built(Plain, grad_clip=0.01, grad_clip_by="norm"), rows(8)
    before = [parameter.detach().clone() for parameter in learner.module["a"].parameters()]
    learner.update({"a": batch})
    for old, new in zip(before, learner.module["a"].parameters(), strict=True):
        assert (new - old).detach().norm().item() == pytest.approx(0.1 * 0.01, rel=1e-4)


def test_what_an_override_returns_is_applied():
    once, twice = built(Plain), built(type("Both", (Doubled, Plain), {}))
    before = weights(once)
    for learner in (once, twice):
        learner.update({"a": rows(8)})
    torch.testing.assert_close(weights(twice) - before, 2 * (weights(once) - before))


def test_parts_of_a_step_may_be_called_by_a_script():
    learner = built(Plain)
    parameters = learner.get_parameters(learner.module["a"])
    gradients = learner.compute_gradients({"a": sum(parameter.sum() for parameter in parameters)})
    assert all(torch.equal(gradients[learner.get_param_ref(p)], torch.ones_like(p)) for p in parameters)
    before = weights(learner)
    learner.apply_gradients({learner.get_param_ref(parameter): torch.ones_like(parameter) for parameter in parameters})
    moved = before - weights(learner)
    torch.testing.assert_close(moved, torch.tensor([0.1] * 4 + [0.0] * 4))


def test_one_optimizer_may_step_all_modules():
    learner, apart = built(OneOptimizer), built(Plain)
    for one in (learner, apart):
        one.update({"a": rows(8), "b": rows(4, 1)}, minibatch_size=4)
    torch.testing.assert_close(weights(learner), weights(apart))
    assert list(learner.get_optimizers()) == ["__all_modules___default_optimizer"]


def test_what_is_not_finite_changes_nothing_here_too():
    learner = built(Open)
    before = weights(learner)
    with pytest.raises(NumericalError):
        learner.update({"a": {**rows(4), "target": np.full(4, np.nan)}})
    assert torch.equal(weights(learner), before)
    learner.update({"a": rows(4)})
    assert not torch.equal(weights(learner), before)


@pytest.mark.parametrize("kind", [Open, OneOptimizer])
def test_gradients_are_those_of_all_ranks(kind):
    whole = rows(8)
    alone = built(kind)
    alone.update({"a": whole})

    def train(group):
        config = config_of("a", "b", learner_class=kind)
        learner = kind(config, config.get_multi_rl_module_spec(), group=group)
        learner.build()
        part = slice(0, 6) if group.rank else slice(6, 8)
        learner.update({"a": {name: column[part] for name, column in whole.items()}})
        return learner

    first, second = in_ranks(2, train)
    assert difference(weights(first), weights(second)) is None
    torch.testing.assert_close(weights(first), weights(alone), rtol=0, atol=1e-5)
