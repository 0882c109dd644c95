"""Each name of RLlib's classes, overridden in turn: it is called, or the class is refused by name."""

import inspect
import json
from contextlib import suppress

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from rlcore_plugin_learners.config_names import REFUSED, RENAMED
from rlcore_plugin_learners.originals import TABLE

from rlcore import (
    AlgorithmConfig,
    LearnerGroup,
    MultiRLModule,
    MultiRLModuleSpec,
    PPOConfig,
    PPOTorchLearner,
    RLModule,
    RLModuleSpec,
)
from rlcore.errors import ConfigError, NotSupportedError
from rlcore.types import Carries, Original

OBSERVATIONS, ACTIONS = Box(-1, 1, (3,), np.float32), Discrete(2)


class Policy(RLModule):
    def setup(self):
        self.actor, self.critic = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)

    def _forward(self, batch):
        return {"action_dist_inputs": self.actor(batch["obs"])}

    def compute_values(self, batch, embeddings=None):
        return self.critic(batch["obs"]).squeeze(-1)


def batch():
    generator = np.random.default_rng(0)
    return {
        "obs": generator.normal(size=(8, 3)),
        "actions": generator.integers(0, 2, 8),
        "action_logp": np.full(8, -0.7),
        "action_dist_inputs": np.zeros((8, 2)),
        "advantages": generator.normal(size=8),
        "value_targets": generator.normal(size=8),
    }


def recording(kind, name, calls):
    """Return a subclass that overrides a name, and records each call or look at it."""
    there = inspect.getattr_static(kind, name, None)

    def of_base(owner):
        if isinstance(owner, type):
            return there.__get__(None, owner)
        return there.__get__(owner, type(owner)) if hasattr(there, "__get__") else there

    def method(self, *args, **kwargs):
        calls.append(name)
        base = of_base(self)
        return base(*args, **kwargs) if callable(base) else None

    def look(self):
        calls.append(name)
        return of_base(self)

    if isinstance(there, classmethod):
        return type(f"Own_{name}", (kind,), {name: classmethod(method)})
    if callable(there) or there is None:
        return type(f"Own_{name}", (kind,), {name: method})
    return type(f"Own_{name}", (kind,), {name: property(look)})


def use_learners(learner_class=PPOTorchLearner, module=Policy, several=MultiRLModule, folder=None, config=PPOConfig):
    """Do all that a script does with learners and a group of them."""
    settings = config().environment(observation_space=OBSERVATIONS, action_space=ACTIONS)
    settings = settings.learners(learner_class=learner_class).training(grad_clip=1.0)
    spec = MultiRLModuleSpec({"a": RLModuleSpec(module)}, multi_rl_module_class=several)
    settings = settings.rl_module(rl_module_spec=spec)
    learner = settings.build_learner()
    learner.get_optimizer("a")
    learner.update_from_batch(batch())
    group = settings.build_learner_group()
    use_group(group, module, folder)
    again = type(learner).from_checkpoint(folder, settings, settings.get_multi_rl_module_spec())
    again.module.get("a"), again.module.values(), again.module.items(), again.module.keys()
    again.module.foreach_module(lambda module_id, one: one.get_exploration_action_dist_cls())
    again.module.save_to_path(folder / "all")
    again.module.restore_from_path(folder / "all")
    columns = {"obs": torch.zeros(2, 3)}
    for name in ("train", "exploration", "inference"):
        getattr(again.module["a"], f"forward_{name}")(columns)
        getattr(again.module, f"forward_{name}")({"a": columns})
        getattr(again.module["a"], f"get_{name}_action_dist_cls")()
    one = module.from_checkpoint(again.module["a"].save_to_path(folder / "one"), OBSERVATIONS, ACTIONS)
    alone = learner_class(settings, module=one)
    alone.build()
    alone.restore_from_path(alone.save_to_path(folder / "alone"))
    several.from_checkpoint(folder / "all", rl_module_specs=spec.specs())
    joined = learner_class(settings, module=several(rl_module_specs=spec.specs()))
    joined.build()


def use_group(group, module, folder):
    group.update(batch=batch(), num_epochs=2, minibatch_size=4)
    group.update_from_batch(batch())
    group.update_from_episodes([batch()])
    group.add_module(module_id="b", module_spec=RLModuleSpec(module, OBSERVATIONS, ACTIONS))
    group.remove_module("b")
    group.set_state(group.get_state())
    group.set_weights(group.get_weights())
    group.foreach_learner(lambda learner: learner.module)
    group.save_to_path(folder)
    group.restore_from_path(folder)
    group.get_stats(), group.is_local, group.is_remote
    group.shutdown()


def group_of(kind, folder):
    config = PPOConfig().environment(observation_space=OBSERVATIONS, action_space=ACTIONS)
    config = config.rl_module(rl_module_spec=RLModuleSpec(Policy))
    use_group(kind(config), Policy, folder)
    kind.from_checkpoint(folder, config).shutdown()


def use_config(kind, folder):
    config = kind()
    config.env_runners(num_env_runners=2).debugging(seed=1).framework("torch").multi_agent(policies={"default_policy"})
    for method in TABLE["settings"]:
        getattr(config, method)()
    use_learners(folder=folder, config=kind)
    config.environment(observation_space=OBSERVATIONS, action_space=ACTIONS).rl_module(model_config={"hidden": [8]})
    config.build_learner_group().shutdown()
    config.get_rl_module_spec()
    config.get_config_for_module("a")
    for call in (config.items, config.keys, config.values):
        call()
    config.get("lr"), config.pop("lr"), config.serialize(), config.freeze()
    kind.from_dict(config.to_dict())
    kind.from_state(config.get_state())
    kind().update_from_dict(kind.overrides(num_learners=0))
    for name in ("build", "build_algo"):
        with suppress(NotSupportedError):
            getattr(config, name)()


USES = {
    "Learner": (PPOTorchLearner, lambda kind, folder: use_learners(kind, folder=folder)),
    "RLModule": (Policy, lambda kind, folder: use_learners(module=kind, folder=folder)),
    "MultiRLModule": (MultiRLModule, lambda kind, folder: use_learners(several=kind, folder=folder)),
    "LearnerGroup": (LearnerGroup, group_of),
    "AlgorithmConfig": (PPOConfig, use_config),
}


NAMES = [(of, name) for of in USES for name in TABLE["names"][of] if name not in ("learner_class", "rl_module_spec")]


@pytest.mark.parametrize(("of", "name"), NAMES)
def test_every_override_is_called_or_refused(of, name, tmp_path):
    calls = []
    kind, use = USES[of]
    own = recording(kind, name, calls)
    refusals = []
    try:
        use(own, tmp_path)
    except NotSupportedError as error:
        refusals.append(str(error))
    assert bool(calls) != bool(refusals)
    assert all(f"Own_{name}.{name} would never be called" in told for told in refusals)


def test_settings_may_be_attributes_of_a_subclass():
    class Mine(PPOConfig):
        learner_class = type("Own", (PPOTorchLearner,), {})
        rl_module_spec = RLModuleSpec(Policy, OBSERVATIONS, ACTIONS)
        lr = 0.5

    learner = Mine(clip_param=0.1).build_learner()
    assert isinstance(learner, Mine.learner_class)
    assert learner.get_optimizer().param_groups[0]["lr"] == 0.5
    assert learner.config.clip_param == 0.1


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        (PPOTorchLearner, "_update", "override compute_losses"),
        (PPOTorchLearner, "compute_loss", "override compute_loss_for_module"),
        (Policy, "is_stateful", "modules here have no memory"),
        (LearnerGroup, "load_module_state", "leave it out"),
    ],
)
def test_a_refusal_says_what_to_do_instead(kind, name, told):
    own = type("Mine", (type("Between", (kind,), {name: lambda self: None}),), {})
    with pytest.raises(NotSupportedError, match=rf"Between\.{name} would never be called: .*{told}"):
        own(PPOConfig()) if kind is not Policy else own(OBSERVATIONS, ACTIONS)


def test_what_changes_nothing_is_no_override():
    assert type("Mine", (Policy,), {"framework": "torch", "helper": 1})(OBSERVATIONS, ACTIONS).helper == 1
    with pytest.raises(NotSupportedError, match="it is torch"):
        type("Mine", (Policy,), {"framework": "tf2"})(OBSERVATIONS, ACTIONS)


def test_the_mechanism_is_for_any_class_and_library():
    class Here(Carries):
        original = Original("There", {"Here": ["run", "stop"]}, {"stop": "override end"})

        def run(self):
            return 1

    Here.__module__ = "mine.here"
    assert type("Own", (Here,), {"run": lambda self: 2})().run() == 2
    with pytest.raises(NotSupportedError, match="There calls it, rlcore does not; override end"):
        type("Own", (Here,), {"stop": lambda self: 2})()


def test_settings_of_other_parts_are_kept_and_checked():
    config = AlgorithmConfig().env_runners(num_env_runners=2).evaluation(evaluation_interval=1)
    assert config.others == {"env_runners": {"num_env_runners": 2}, "evaluation": {"evaluation_interval": 1}}
    with pytest.raises(ConfigError, match="no 'num_env_runner'; did you mean 'num_env_runners'"):
        config.env_runners(num_env_runner=2)
    with pytest.raises(AttributeError, match=r"RLlib's AlgorithmConfig\.build_learner_connector is not here; batches"):
        config.build_learner_connector()
    with pytest.raises(NotSupportedError, match="builds no algorithm"):
        config.build_algo()
    assert json.dumps(config.copy().to_dict()["lr"]) == "0.001"


def test_every_name_of_a_config_answers_or_says_what_to_write_instead():
    config = AlgorithmConfig()
    answered, refused = [], {}
    for name in TABLE["names"]["AlgorithmConfig"]:
        if not name.startswith("_"):
            try:
                getattr(config, name)
                answered.append(name)
            except AttributeError as error:
                refused[name] = str(error)
    assert set(refused) == (set(REFUSED) | set(RENAMED)) & set(TABLE["names"]["AlgorithmConfig"])
    assert len(answered) > len(refused)
    assert all(f"RLlib's AlgorithmConfig.{name} is not here; " in told for name, told in refused.items())
    for name in RENAMED.values():
        assert hasattr(config, name), name


@pytest.mark.parametrize("method", sorted(TABLE["settings"]))
def test_every_keyword_of_a_config_is_set_kept_or_refused_by_name(method):
    for name in TABLE["settings"][method]:
        config = AlgorithmConfig()
        if name in (*REFUSED, *RENAMED):
            with pytest.raises(NotSupportedError, match=f"AlgorithmConfig.{method} has no '{name}': "):
                getattr(config, method)(**{name: 1})
        elif name in vars(config):
            getattr(config, method)(**{name: getattr(config, name)})
        elif name not in ("framework", "torch_skip_nan_gradients"):  # these set what has another name
            assert getattr(getattr(config, method)(**{name: 1}), name) == 1


def test_what_is_kept_is_read_as_an_attribute_with_defaults_of_rllib():
    config = AlgorithmConfig().training(gamma=0.9).multi_agent(policy_mapping_fn=len).environment(clip_rewards=True)
    assert (config.gamma, config.policy_mapping_fn, config.clip_rewards) == (0.9, len, True)
    assert (config.num_env_runners, AlgorithmConfig().gamma, config.total_train_batch_size) == (0, 0.99, 32)
    config.training(train_batch_size_per_learner=50).learners(num_learners=2)
    assert config.total_train_batch_size == 100
    assert config.framework(torch_skip_nan_gradients=True).on_nonfinite == "skip"
    with pytest.raises(NotSupportedError, match="has no 'num_rollout_workers': it is num_env_runners"):
        config.num_rollout_workers = 2
    with pytest.raises(NotSupportedError, match="training has no 'model': rl_module"):
        config.training(model={"fcnet_hiddens": [3]})
    assert AlgorithmConfig().update_from_dict({"gamma": 0.5, "lr": 0.1}).gamma == 0.5
    with pytest.raises(ConfigError, match="no 'gama'"):
        AlgorithmConfig.overrides(gama=0.5)


def test_a_frozen_config_is_changed_in_a_copy():
    config = PPOConfig().environment(observation_space=OBSERVATIONS, action_space=ACTIONS)
    config.freeze()
    with pytest.raises(ConfigError, match="the config is frozen"):
        config.lr = 1.0
    with pytest.raises(ConfigError, match="the config is frozen"):
        config.copy().training(lr=1.0)
    assert config.copy(copy_frozen=False).training(lr=1.0).lr == 1.0
    config.build_learner().add_module(
        module_id="b", module_spec=config.get_rl_module_spec(), config_overrides={"lr": 1}
    )


def test_a_config_comes_back_from_its_state():
    config = PPOConfig(clip_param=0.1).training(gamma=0.5)
    for again in (PPOConfig.from_state(config.get_state()), PPOConfig.from_dict(config.to_dict())):
        assert again == config
    assert json.loads(json.dumps(config.serialize()))["clip_param"] == 0.1
