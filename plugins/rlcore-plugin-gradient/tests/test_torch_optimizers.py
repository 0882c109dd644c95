"""The optimizers of `torch.optim` as components: which there are, what their keys are, and what is refused."""

from __future__ import annotations

import inspect

import pytest
import torch
from rlcore_plugin_gradient import torch_optimizers

import rlcore
from rlcore import ConfigError
from rlcore.plugins.host import PluginHost

OURS = {name for name, value in vars(torch_optimizers).items() if isinstance(value, torch_optimizers.TorchOptimizer)}
WITH_KEYS_OF_THEIR_OWN = {"Adam", "AdamW", "SGD"}
REFUSED = {"LBFGS", "Muon", "SparseAdam"}


def weights(run):
    return [parameter.detach().clone() for parameter in run.trainer.model.parameters()]


def test_every_optimizer_of_torch_can_be_named_or_is_refused_with_a_reason():
    found = {name for name, value in vars(torch.optim).items() if inspect.isclass(value)} - {"Optimizer"}
    assert found <= OURS | WITH_KEYS_OF_THEIR_OWN | REFUSED
    host = PluginHost()
    host.load("gradient")
    provided = {entry.component.name for entry in host.registry.of_kind("optimizer")}
    assert provided == {name.lower() for name in OURS | WITH_KEYS_OF_THEIR_OWN}


@pytest.mark.parametrize("name", sorted(OURS))
def test_without_keys_it_is_what_torch_builds_without_arguments(name, build):
    optimizer = build(optimizer=[{"use": name.lower()}]).trainer.learner.optimizers[name.lower()]
    plain = getattr(torch.optim, name)([torch.nn.Parameter(torch.zeros(1))])
    assert type(optimizer) is type(plain)
    assert optimizer.defaults == plain.defaults


def test_its_keys_are_the_arguments_of_its_constructor(build):
    section = {"use": "rmsprop", "lr": 0.01, "alpha": 0.5, "centered": True, "momentum": 0.25, "weight_decay": 0.125}
    (optimizer,) = build(optimizer=[section]).trainer.learner.optimizers.values()
    assert {name: optimizer.defaults[name] for name in section if name != "use"} == {
        name: value for name, value in section.items() if name != "use"
    }


def test_a_run_steps_as_torch_does(build):
    run = build(optimizer=[{"use": "radam", "lr": 0.01}])
    twin = build(optimizer=[{"use": "radam", "lr": 0.01}])
    (optimizer,) = run.trainer.learner.optimizers.values()
    parameters = [torch.nn.Parameter(value) for value in weights(run)]
    plain = torch.optim.RAdam(parameters, lr=0.01)
    gradients = []
    step = optimizer.step

    def record(*arguments, **keys):
        gradients.append([p.grad.clone() for p in run.trainer.model.parameters()])
        return step(*arguments, **keys)

    optimizer.step = record
    run.trainer.train()
    for gradient in gradients:
        for parameter, value in zip(parameters, gradient, strict=True):
            parameter.grad = value
        plain.step()
    twin.trainer.train()
    assert len(gradients) == run.trainer.progress.updates
    for ours, theirs, untouched in zip(weights(run), parameters, weights(twin), strict=True):
        assert torch.equal(ours, theirs)
        assert torch.equal(ours, untouched)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"use": "lbfgs"}, "asks for the loss several times in a step, by a closure"),
        ({"use": "SparseAdam"}, "steps sparse gradients, and those of networks are dense"),
        ({"use": "RAdm"}, "did you mean 'radam'"),
        ({"use": "radam", "momentum_deca": 1.0}, r"momentum_deca: unknown key for optimizer 'radam'"),
        ({"use": "nadam", "momentum_deca": 1.0}, "did you mean 'momentum_decay'"),
        ({"use": "radam", "lr": "fast"}, r"\[optimizer\] lr: Input should be a valid number"),
        ({"use": "radam", "lr": float("inf")}, r"\[optimizer\] lr: Input should be a finite number"),
    ],
)
def test_what_cannot_be_is_refused_with_the_config(section, message, write_config):
    with pytest.raises(ConfigError, match=message):
        rlcore.load_config(write_config(optimizer=[section]))


def test_a_value_that_torch_refuses_is_an_error_of_the_config(build):
    with pytest.raises(ConfigError, match=r"\[optimizer\] 'rprop': torch.optim.Rprop refuses it: Invalid eta values"):
        build(optimizer=[{"use": "rprop", "etas": [2.0, 3.0]}])


def test_nesterov_and_amsgrad_are_keys_of_those_that_have_them(build):
    (sgd,) = build(optimizer=[{"use": "sgd", "momentum": 0.5, "nesterov": True}]).trainer.learner.optimizers.values()
    (adam,) = build(optimizer=[{"use": "adam", "amsgrad": True}]).trainer.learner.optimizers.values()
    assert sgd.defaults["nesterov"]
    assert adam.defaults["amsgrad"]
    with pytest.raises(ConfigError, match="Nesterov momentum requires a momentum and zero dampening"):
        build(optimizer=[{"use": "sgd", "nesterov": True}])
