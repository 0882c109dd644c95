"""The sections of several policies: what is whose, and what is refused before anything is built."""

import pytest
from rlcore_plugin_testing import TOY_CONFIG

from rlcore.config.file import read
from rlcore.config.policies import missing_sections, policies_of, policy_problems, qualified, tables
from rlcore.config.sections import validate
from rlcore.errors import ConfigError

MODELS = {
    "hunters": {"use": "mlp", "hidden": [8], "agents": ["adversary_*"]},
    "prey": {"use": "mlp", "agents": ["agent_*"]},
}
CONFIG = {**TOY_CONFIG, "model": MODELS, "loss": {"use": "ppo"}, "estimator": {"use": "gae"}}


def config_of(**sections):
    values = {name: value for name, value in {**CONFIG, **sections}.items() if value is not None}
    return validate(read(values, environment={}))


def problem_of(**sections):
    with pytest.raises(ConfigError) as error:
        config_of(**sections)
    return str(error.value)


def test_every_policy_has_its_own_of_each_section():
    config = config_of(
        loss={"use": "ppo", "clip_epsilon": 0.3, "prey": {"entropy_coef": 0.5}},
        buffer={"minibatch_size": 8, "hunters": {"minibatch_size": 16}},
        optimizer=[{"use": "adam", "lr": 1e-2}, {"use": "sgd", "lr": 1e-1, "policy": "prey"}],
    )
    assert config.policies == ("hunters", "prey")
    own = {name: config.of_policy(name) for name in config.policies}
    assert [own[name].one("model").agents for name in own] == [("adversary_*",), ("agent_*",)]
    assert [own[name].one("loss").config.clip_epsilon for name in own] == [0.3, 0.3]
    assert [own[name].one("loss").config.entropy_coef for name in own] == [0.01, 0.5]
    assert [own[name].one("buffer").config.minibatch_size for name in own] == [16, 8]
    assert [own[name].one("learner").name for name in own] == ["hunters", "prey"]
    names = [[entry.name for entry in own[name].sections["optimizer"]] for name in own]
    assert names == [["hunters.adam"], ["prey.sgd"]]
    assert [own[name].one("env") for name in own] == [config.one("env")] * 2


def test_another_component_takes_the_place_of_that_of_all():
    config = config_of(
        model={**MODELS, "prey": {"use": "q-network", "agents": ["agent_*"]}},
        loss={"use": "ppo", "clip_epsilon": 0.3, "prey": {"use": "dqn"}},
        estimator={"hunters": {"use": "gae"}},
        buffer={"minibatch_size": 8, "prey": {"use": "replay", "capacity": 64}},
    )
    assert config.of_policy("prey").one("loss").provided.component.name == "dqn"
    assert config.of_policy("prey").one("estimator") is None
    assert config.of_policy("hunters").one("estimator").provided.component.name == "gae"
    assert config.of_policy("prey").one("buffer").provided.component.name == "replay"


def test_the_resolved_config_reads_back_as_the_same():
    config = config_of(optimizer=[{"use": "adam"}, {"use": "adam", "name": "own", "policy": "prey"}])
    resolved = config.resolved()
    again = validate(read({**resolved}, environment={}))
    assert again.resolved() == resolved
    assert [entry["name"] for entry in resolved["optimizer"]] == ["hunters.adam", "prey.own"]
    assert resolved["model"]["hunters"]["agents"] == ["adversary_*"]
    assert set(config.free_keys()) == set(again.free_keys())
    assert "learner.prey.parallel" in config.free_keys()


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        ({"model": {**MODELS, "use": "mlp", "hidden": [8]}}, "[model] hidden: a config has one [model], or a"),
        ({"model": {**MODELS, "prey": {"use": "mlp"}}}, "[model.prey] agents: missing"),
        ({"model": {**MODELS, "prey": {"use": "mlp", "agents": "agent_*"}}}, "[model.prey] agents: must be names"),
        ({"model": {**MODELS, "prey": {"use": "mlp", "agents": []}}}, "[model.prey] agents: must be names"),
        ({"model": {**MODELS, "prey": {"agents": ["x"]}}}, "[model.prey] use: missing; name the model to build"),
        ({"model": {**MODELS, "p.q": {"use": "mlp", "agents": ["x"]}}}, "[model.p.q]: a policy is called by letters"),
        ({"model": {**MODELS, "prey": {**MODELS["prey"], "hiden": [8]}}}, "[model.prey] hiden: unknown key"),
        ({"loss": {"use": "ppo", "pray": {"use": "dqn"}}}, "[loss.pray]: there is no policy 'pray'; did you mean"),
        ({"loss": {"hunters": {"use": "ppo"}}}, "[loss]: policy 'prey' has none"),
        ({"loss": None}, "[loss]: missing; every run needs one"),
        ({"optimizer": [{"use": "adam", "policy": "pray"}]}, "[optimizer.0] policy: there is no policy 'pray'"),
        ({"optimizer": [{"use": "adam", "policy": "prey"}]}, "[optimizer]: policy 'hunters' has none"),
        ({"model": {"use": "mlp"}, "optimizer": [{"use": "adam", "policy": "x"}]}, "a run with one policy has no"),
        ({"model": {"hidden": [8], "encoders": {}}}, "[model] use: missing"),
    ],
)
def test_what_does_not_fit_is_said_with_section_and_key(sections, told):
    assert told in problem_of(**sections)


def test_discounts_are_those_of_one_policy():
    gammas = {"use": "gae", "hunters": {"gamma": 0.9}, "prey": {"gamma": 0.99}}
    config = config_of(estimator=gammas)
    assert [config.of_policy(name).one("estimator").config.gamma for name in config.policies] == [0.9, 0.99]
    replay = {"prey": {"use": "replay", "capacity": 64, "n_steps": 3}}
    model = {**MODELS, "prey": {"use": "q-network", "agents": ["agent_*"]}}
    loss = {"use": "ppo", "prey": {"use": "dqn", "gamma": 0.5}}
    config = config_of(model=model, loss=loss, buffer=replay, estimator={"hunters": {"use": "gae"}})
    assert config.of_policy("prey").one("buffer").config.gamma == 0.5


def test_tables_say_where_they_stand():
    raw = read({**CONFIG, "loss": {"use": "ppo", "prey": {"clip_epsilon": 0.1}}}, environment={})
    assert policies_of(raw) == ("hunters", "prey")
    assert [(table.label, table.policy) for table in tables(raw, "loss")] == [
        ("loss", "hunters"),
        ("loss.prey", "prey"),
    ]
    assert [table.label for table in tables(raw, "env")] == ["env"]
    assert policy_problems(raw) == missing_sections(raw, ("loss", "optimizer")) == []
    assert qualified("adam", "prey") == qualified("prey.adam", "prey") == "prey.adam"
