from __future__ import annotations

from types import SimpleNamespace

import pytest
from pydantic import BaseModel

from rlcore import Component, ConfigError, PluginError
from rlcore.plugins.registry import Owner, Provided, Registry

OWNER = Owner("mine", "rlcore-plugin-mine", "1.2")


class Takes:
    class Config(BaseModel, extra="forbid"):
        size: int = 1

    def __init__(self, config, context):
        if config.size < 0:
            raise ValueError("too small")
        if config.size == 0:
            raise ConfigError("[hook] size = 0 makes no sense")
        self.size, self.context = config.size, context


def provided(**changes):
    return Provided(Component(**{"kind": "hook", "name": "takes", "target": Takes} | changes), OWNER)


@pytest.mark.parametrize("name", ["ppo", "reward-clip", "a2c", "sac-v2"])
def test_a_component_name_is_taken(name):
    assert Component("hook", name, Takes).name == name


@pytest.mark.parametrize("name", ["PPO", "reward_clip", "2ppo", "a--b", "-a", "a-", "", "a b", "a:b", "é"])
def test_another_component_name_is_refused(name):
    with pytest.raises(PluginError, match="must be lower case letters, digits and single hyphens"):
        Component("hook", name, Takes)


def test_an_unknown_kind_is_refused_with_the_known_ones():
    with pytest.raises(PluginError, match=r"unknown kind 'enviroment'.*kinds are env, transform, model"):
        Component("enviroment", "a", Takes)


def test_building_passes_config_and_context():
    context = SimpleNamespace()
    built = provided().build(Takes.Config(size=3), context)
    assert (built.size, built.context) == (3, context)


def test_an_error_while_building_keeps_its_type_and_says_whose_component_it_was():
    with pytest.raises(ValueError, match="too small") as raised:
        provided().build(Takes.Config(size=-1), None)
    assert raised.value.__notes__ == ["raised while building hook 'takes' (rlcore-plugin-mine 1.2)"]


def test_an_error_of_rlcore_says_it_all_already():
    with pytest.raises(ConfigError) as raised:
        provided().build(Takes.Config(size=0), None)
    assert not getattr(raised.value, "__notes__", [])


def test_targets_and_schemas_are_imported_from_where_they_are_named():
    entry = provided(target="rlcore.core_hooks.reward_clip:RewardClip")
    assert entry.target().__name__ == "RewardClip"
    assert list(entry.schema().model_fields) == ["limit"]
    entry = provided(config="rlcore.core_hooks.reward_clip:RewardClip.Config")
    assert list(entry.schema().model_fields) == ["limit"], "the schema of the record goes before the target's"


def test_a_component_without_a_schema_takes_no_keys():
    schema = provided(target=lambda config, context: None).schema()
    assert schema.model_validate({}) is not None
    with pytest.raises(ValueError, match="Extra inputs"):
        schema.model_validate({"a": 1})


def test_a_target_that_cannot_be_called_is_refused():
    with pytest.raises(PluginError, match=r"hook 'takes' \(rlcore-plugin-mine 1.2\): its target .* is not callable"):
        provided(target="rlcore:__version__").target()


def test_find_knows_kinds_apart():
    registry = Registry()
    registry.add([Component("hook", "same", Takes), Component("loss", "same", Takes)], OWNER)
    assert registry.find("loss", "same").component.kind == "loss"
    assert registry.find("loss", "mine:same").owner is OWNER
    with pytest.raises(PluginError, match="unknown loss 'other:same'"):
        registry.find("loss", "other:same")
    with pytest.raises(PluginError, match=r"unknown loss 'sane'; did you mean 'same'\?; known here: same"):
        registry.find("loss", "sane")


class TakesParts(Takes):
    class Config(BaseModel, extra="forbid"):
        shape: str
        size: int = 1


def test_use_names_a_part_of_a_component_that_declares_the_key_of_parts():
    registry = Registry()
    registry.add(
        [Component("hook", "mine", TakesParts, part_key="shape"), Component("loss", "mine", TakesParts)], OWNER
    )
    entry = registry.find("hook", "mine:Round")
    assert (entry.use, entry.target()) == ("mine:Round", TakesParts)
    assert dict(entry.schema()(size=2)) == {"shape": "Round", "size": 2}
    assert entry.schema()(shape="Round").shape == "Round"
    with pytest.raises(ValueError, match="Input should be 'Round'"):
        entry.schema()(shape="Flat")
    assert dict(registry.find("hook", "mine").schema()(shape="Flat")) == {"shape": "Flat", "size": 1}
    for kind, use in [("loss", "mine:Round"), ("hook", "other:Round"), ("hook", "Round")]:
        with pytest.raises(PluginError, match=f"unknown {kind} '{use}'"):
            registry.find(kind, use)
