"""Building from a config: what each part is given, and what is refused before the first frame."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rlcore_plugin_mlp import network as mlp
from rlcore_plugin_testing import make_run, make_trainer

import rlcore
from rlcore import ConfigError, EnvError, PluginError, RlcoreError, hookimpl
from rlcore.plugins.component import Component
from rlcore.plugins.registry import Owner, Provided

PENDULUM = {"env": {"use": "gymnasium", "id": "Pendulum-v1"}, "model": {"use": "mlp", "hidden": [8]}}


def test_a_transform_is_fitted_on_what_the_transforms_before_it_return():
    twice = [{"use": "observation-norm", "name": "first"}, {"use": "observation-norm", "name": "second"}]
    first, second = make_trainer(sections={**PENDULUM, "transform": twice}).transforms
    assert first.state_dict()["scale"][2] < 0.5, "raw angular speeds are in no unit box"
    np.testing.assert_allclose(second.state_dict()["mean"], 0, atol=0.5)
    np.testing.assert_allclose(second.state_dict()["scale"], 1, atol=0.5)


@pytest.mark.parametrize(
    ("device", "message"), [("cuda:90", "torch sees [0-9]+ CUDA devices"), ("mps", "torch sees no Apple GPU")]
)
def test_a_device_that_is_not_there_is_refused(device, message):
    if device == "mps" and torch.backends.mps.is_available():
        pytest.skip("there is one")
    with pytest.raises(ConfigError, match=rf"\[run\] device = '{device}': {message}"):
        make_run(f"run.device={device}")


def test_several_ranks_are_for_the_command_that_starts_them(tmp_path):
    with pytest.raises(ConfigError, match=r"\[ranks\] is for `rlcore train`, which starts the ranks; leave it out, or"):
        make_run("ranks.count=2", folder=tmp_path)
    assert not list(tmp_path.iterdir())


ACTOR_LOSS = """
import torch
from rlcore import Component, hookimpl

class ActorLoss(torch.nn.Module):
    requires = ("actor",)

    def __init__(self, config, context):
        super().__init__()

@hookimpl
def provide_components():
    return [Component("loss", "actor-only", ActorLoss)]
"""


def test_the_parts_that_an_estimator_requires_are_checked(tmp_path):
    (tmp_path / "actor_loss.py").write_text(ACTOR_LOSS)
    sections = {
        **PENDULUM,
        "model": {"use": "mlp", "parts": ["actor"]},
        "loss": {"use": "actor-only"},
        "estimator": {"use": "ppo:gae"},
        "plugins": {"files": [str(tmp_path / "actor_loss.py")]},
    }
    with pytest.raises(ConfigError, match=r"estimator 'gae'.*requires the model parts critic"):
        make_trainer(sections=sections)


@pytest.mark.parametrize("hidden", [[0], [64, -1]])
def test_a_network_without_units_is_refused(hidden):
    with pytest.raises(ConfigError, match="hidden"):
        make_trainer(sections={**PENDULUM, "model": {"use": "mlp", "hidden": hidden}})


def test_building_a_network_draws_from_no_global_generator():
    import torch

    before = torch.get_rng_state()
    mlp.MLP([3, 4, 1], "tanh", "torch", 1.0, torch.Generator().manual_seed(1))
    assert torch.equal(before, torch.get_rng_state())


def test_frozen_weights_are_left_out_of_the_optimizer():
    from types import SimpleNamespace

    from rlcore_plugin_gradient.optimizers import parameters_of

    model = make_trainer().model
    model.critic.requires_grad_(False)
    chosen = parameters_of([], SimpleNamespace(model=model))
    assert list(map(id, chosen)) == list(map(id, model.actor.parameters()))


def test_a_component_that_is_not_called_with_config_and_context_is_named():
    class Wrong:
        def __init__(self):
            pass

    provided = Provided(Component("hook", "wrong", Wrong), Owner("mine", "my-plugin", "1.0"))
    with pytest.raises(PluginError, match=r"hook 'wrong' \(my-plugin 1.0\).*\(config, context\)"):
        provided.build(None, None)


def test_a_type_error_inside_a_constructor_stays_as_it_is():
    class Wrong:
        def __init__(self, config, context):
            len(3)

    provided = Provided(Component("hook", "wrong", Wrong), Owner("mine", "my-plugin", "1.0"))
    with pytest.raises(TypeError, match="has no len") as raised:
        provided.build(None, None)
    assert raised.value.__notes__ == ["raised while building hook 'wrong' (my-plugin 1.0)"]


def test_a_trainer_that_has_run_to_its_end_stays_as_it_is():
    trainer = make_trainer()
    clocks = vars(trainer.train()).copy()
    assert vars(trainer.train()) == clocks
    assert list(trainer) == []


def test_a_trainer_that_was_stopped_refuses_to_go_on():
    trainer = make_trainer()
    trainer.request_stop("enough")
    trainer.train()
    with pytest.raises(RlcoreError, match="build another"):
        trainer.train()


def test_the_manifest_names_no_owner_of_what_it_does_not_hold(tmp_path):
    run = make_run(folder=tmp_path)
    run.trainer.train()
    store = run.trainer.parts.store
    (*_, entry) = store.entries()
    assert "loss" not in entry.manifest["owners"]
    assert set(store.load(entry)) <= set(entry.manifest["owners"])


def test_public_names_resolve():
    for name in rlcore.__all__:
        assert getattr(rlcore, name) is not None
    assert callable(hookimpl)


def test_a_transform_is_fitted_in_one_env_however_many_train():
    sections = {**PENDULUM, "env": {**PENDULUM["env"], "num_envs": 4}, "transform": [{"use": "observation-norm"}]}
    several = make_trainer(sections=sections).transforms[0].state_dict()
    sections["env"]["num_envs"] = 1
    one = make_trainer(sections=sections).transforms[0].state_dict()
    np.testing.assert_array_equal(several["mean"], one["mean"])


def test_parts_make_envs_of_their_own_with_keys_that_the_env_has():
    context = toy_context()
    env = context.part("make_env")(3, render_mode="rgb_array", episode_lengths=[2])
    assert (env.spec.num_envs, env.spec.max_episode_steps) == (3, 2)
    assert env.render().shape == (3, 32, 48, 3)
    with pytest.raises(ConfigError, match=r"env 'toy'.* has no key 'rneder_mode', which is asked of it here"):
        context.part("make_env")(1, rneder_mode="rgb_array")
    with pytest.raises(EnvError, match="without render_mode"):
        context.part("make_env")(1).render()


def toy_context():
    return make_trainer(sections={"hook": [{"use": "testing:toy"}]}).hooks.hooks[0].instance.context


def test_everything_that_is_built_has_a_property_of_its_kind():
    context = toy_context()
    assert {"env", "env_spec", "make_env", "make_env_for", "make_fitting_env", "transforms", "optimizers"} <= {
        *context.built
    }
    for kind, part in context.built.items():
        assert getattr(context, kind) is part
