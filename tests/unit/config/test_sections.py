"""Validation: every problem of a config is found before anything is built, and says whose key it is."""

from __future__ import annotations

import math
import random

import pytest
import tomli_w
from rlcore_plugin_testing import make_config
from rlcore_plugin_testing.config_explanation import explain

import rlcore
from rlcore import ConfigError
from rlcore.plugins.catalogue import PUBLISHED, Published
from rlcore.run_folder import folder as run_folder


def problem(path, *overrides):
    with pytest.raises(ConfigError) as raised:
        rlcore.load_config(path, overrides)
    return str(raised.value)


def test_a_key_may_be_called_keys(write_config):
    config = rlcore.load_config(write_config(hook=[{"use": "select-keys", "keys": ["observation"]}]))
    assert config.sections["hook"][0].config.keys == ["observation"]
    assert any("keys = ['observation']" in str(section) for section in explain(config))


def test_all_problems_are_reported_together(write_config):
    path = write_config(
        run={"total_frames": -1, "sede": 1},
        loss={"clpi": 0.1},
        model={"hidden": "wide"},
        optimizer=[{"use": "adam", "lr": 0.0}, {"use": "adamw", "weight_decay": -1.0}],
        collector={"frames_per_batch": 0},
        modle={"use": "mlp"},
        hook=[{"limit": 1.0}, {"use": "reward-clipp"}],
        env=None,
    )
    message = problem(path)
    expected = [
        "[modle]: unknown section; did you mean 'model'?",
        "[run] total_frames: Input should be greater than 0; found -1 (the core)",
        "[run] sede: unknown key for the core; did you mean 'seed'?",
        "[model] hidden: Input should be a valid list; found 'wide' (model 'mlp' (rlcore-plugin-mlp 0.1.0))",
        "[loss] clpi: unknown key for loss 'ppo' (rlcore-plugin-ppo 0.1.0); did you mean 'clip_epsilon'?",
        "[optimizer.0] lr: Input should be greater than 0; found 0.0 (optimizer 'adam' (rlcore-plugin-gradient 0.1.0))",
        "[optimizer.1] weight_decay: ",
        "[collector] frames_per_batch: ",
        "[hook.0] use: missing; name the hook to build",
        "[hook.1] use: unknown hook 'reward-clipp'; did you mean 'reward-clip'?",
        "[env]: missing; every run needs one",
    ]
    for line in expected:
        assert line in message, f"{line!r} is not in\n{message}"
    assert f"{path}: {len(expected)} problems" in message
    assert len(message.splitlines()) == 1 + len(expected)


def test_one_problem_is_one_line_with_the_file(write_config):
    path = write_config(loss={"clpi": 0.1})
    assert problem(path) == (
        f"{path}: [loss] clpi: unknown key for loss 'ppo' (rlcore-plugin-ppo 0.1.0); did you mean 'clip_epsilon'?"
    )


@pytest.mark.parametrize("section", ["env", "model", "loss", "optimizer"])
def test_a_missing_section_is_named(write_config, section):
    assert f"[{section}]: missing; every run needs one" in problem(write_config(**{section: None}))


def test_an_empty_file_names_everything_that_is_missing(workdir):
    path = workdir / "empty.toml"
    path.write_text("")
    message = problem(path)
    assert "[run] total_frames: missing, and the core needs it" in message
    assert all(f"[{name}]: missing" in message for name in ("env", "model", "loss", "optimizer"))


def test_a_missing_key_is_named_with_who_needs_it(write_config):
    path = write_config(env={"use": "gymnasium", "id": "CartPole-v1"})
    path.write_text(path.read_text().replace('id = "CartPole-v1"\n', ""))
    assert "[env] id: missing, and env 'gymnasium' (rlcore-plugin-gymnasium 0.1.0) needs it" in problem(path)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("run.total_frames=many", "[run] total_frames: Input should be a valid integer"),
        ("run.total_frames=1.5", "[run] total_frames: Input should be a valid integer"),
        ('run.total_frames="100"', "[run] total_frames: must be a number; found '100' (the core)"),
        ("run.seed=true", "[run] seed: must be a number; found True (the core)"),
        ("run.seed=-1", "[run] seed: Input should be greater than or equal to 0"),
        ("run.seed=9223372036854775808", "[run] seed: "),
        ("run.threads=0", "[run] threads: "),
        ("run.name=7", "[run] name: Input should be a valid string"),
        ("run.name=true", "[run] name: Input should be a valid string"),
        ("loss.clip_epsilon=nan", "[loss] clip_epsilon: "),
        ("loss.entropy_coef=nan", "[loss] entropy_coef: "),
        ("loss.clip_epsilon='0.2'", "[loss] clip_epsilon: must be a number; found '0.2'"),
        ("loss.clip_epsilon=[0.2]", "[loss] clip_epsilon: Input should be a valid number"),
        ("loss.clip_value='yes'", "[loss] clip_value: must be true or false; found 'yes'"),
        ("loss.clip_value=1", "[loss] clip_value: must be true or false; found 1"),
        ("loss.critic_loss=l3", "[loss] critic_loss: Input should be 'smooth_l1' or 'l2'; found 'l3'"),
        ("optimizer.lr=inf", "[optimizer] lr: "),
        ("optimizer.lr=nan", "[optimizer] lr: "),
        ("optimizer.betas=[0.9, nan]", "[optimizer] betas"),
        ("optimizer.betas=[0.9, 1.5]", "[optimizer] betas"),
        ("optimizer.betas=[0.9]", "[optimizer] betas"),
        ("model.hidden=[8, '8']", "[model] hidden"),
        ("model.hidden={a = 1}", "[model] hidden"),
        ("metrics.every=0", "[metrics] every: an interval must be positive; found 0 (the core)"),
        ("metrics.every=true", "[metrics] every: an interval is a number of frames, or names another clock"),
        ("metrics.every=often", "[metrics] every: an interval is a number of frames"),
        ("metrics.every={update = 5}", "[metrics] every: unknown clock 'update'; did you mean 'updates'?"),
        ("checkpoint.every={updates = 0}", "[checkpoint] every: an interval must be positive"),
        ("checkpoint.keep_last=0", "[checkpoint] keep_last: "),
        ("checkpoint.kepe_last=1", "[checkpoint] kepe_last: unknown key"),
        ("evaluator.every=-5", "[evaluator] every: an interval must be positive; found -5"),
        ("estimator.gamma=1.5", "[estimator] gamma: Input should be less than or equal to 1"),
        ("scheduler.final=-1.0", "[scheduler] final: "),
        ("loss.use=5", "[loss] use: missing; name the loss to build"),
        ("plugins.enable=csv", "[plugins] enable: Input should be a valid list"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_with_its_key(write_config, override, message):
    path = write_config(evaluator={"use": "episodes"}, scheduler=[{"use": "linear"}])
    assert message in problem(path, override)


def test_a_whole_number_may_be_written_with_an_exponent(write_config):
    assert rlcore.load_config(write_config(), ["run.total_frames=1e6"]).run.total_frames == 1_000_000


def keys_of(schema):
    return [name for name in schema.model_fields if len(name) > 3]


def test_every_misspelt_key_is_refused_with_the_right_one(write_config):
    config = rlcore.load_config(write_config(evaluator={"use": "episodes"}, scheduler=[{"use": "linear"}]))
    tried = 0
    for sections in config.sections.values():
        for section in sections:
            if section.label == "checkpoint":
                continue
            for key in keys_of(type(section.config)):
                misspelt = key[:-2] + key[-1] + key[-2] if key[-1] != key[-2] else key + "x"
                message = problem(config.raw.path, f"{section.label}.{misspelt}=1")
                assert f"[{section.label}] {misspelt}: unknown key for" in message
                assert f"did you mean '{key}'?" in message
                tried += 1
    assert tried > 20


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("loss.use=poo", "[loss] use: unknown loss 'poo'; did you mean 'ppo'?; known here: a2c, ppo"),
        ("optimizer.use=adma", "[optimizer] use: unknown optimizer 'adma'; did you mean 'adam'?"),
        ("loss.use=mlp", "[loss] use: unknown loss 'mlp'"),
        ("loss.use=ppo:ppq", "[loss] use: unknown loss 'ppo:ppq'; did you mean 'ppo'?"),
        ("loss.use=qqq:ppo", "[loss] use: no plugin or component 'qqq' is installed"),
        (
            "logger.use=imagined",
            "'imagined' is provided by rlcore-plugin-imagined, which is not installed: pip install",
        ),
    ],
)
def test_an_unknown_component_is_refused_with_what_was_meant(write_config, monkeypatch, override, message):
    monkeypatch.setitem(PUBLISHED, "imagined", Published({"logger": ["imagined"]}))
    # a2c comes from the plugin ppo, which is imported because the config enables it
    assert message in problem(write_config(plugins={"enable": ["ppo"]}), override)


def test_several_loggers_of_one_kind_get_names_of_their_own(write_config):
    config = rlcore.load_config(write_config(logger=[{"use": "csv"}, {"use": "csv"}, {"use": "csv", "name": "third"}]))
    assert [section.name for section in config.sections["logger"]] == ["csv", "csv-2", "third"]


def test_defaults_fill_the_sections_that_a_config_leaves_out(write_config):
    path = write_config(collector=None, buffer=None, checkpoint=None, metrics=None)
    resolved = rlcore.load_config(path).resolved()
    uses = {name: resolved[name]["use"] for name in ("collector", "buffer", "learner", "checkpoint")}
    assert uses == {
        "collector": "core:local",
        "buffer": "core:rollout",
        "learner": "core:gradient",
        "checkpoint": "torch:torch",
    }


BITS = ["nan", "-1", "0", "true", '"x"', "[]", "{}", "[[hook]]", "[run]", "=", '"', "\n", "1e400", "{a=1}", "[1,2]"]
BITS += ['name = "x"\n', "every = {updates=5}\n", '"../x"', "2024-01-01", "9" * 30, "[plugins]\nfiles = ['a.py']\n"]


def damaged(text, generator):
    """Cut, insert, exchange a value or repeat a line, once to three times."""
    for _ in range(generator.randint(1, 3)):
        kind, place = generator.randrange(4), generator.randrange(len(text))
        lines = text.split("\n")
        line = generator.randrange(len(lines))
        if kind == 0:
            text = text[:place] + text[place + generator.randint(1, 12) :]
        elif kind == 1:
            text = text[:place] + generator.choice(BITS) + text[place:]
        elif kind == 2:
            lines[line] = lines[line].split("=")[0] + "= " + generator.choice(BITS)
            text = "\n".join(lines)
        else:
            lines.insert(line, generator.choice(lines))
            text = "\n".join(lines)
    return text


def test_a_damaged_config_is_taken_or_refused_but_never_breaks_rlcore(write_config):
    path = write_config(evaluator={"use": "episodes"}, hook=[{"use": "reward-clip"}], logger=[{"use": "csv"}])
    text, generator, messages = path.read_text(), random.Random(0), []
    for _ in range(500):
        path.write_text(damaged(text, generator))
        try:
            tomli_w.dumps(rlcore.load_config(path).resolved())
        except ConfigError as error:
            messages.append(str(error))
    assert all("config.toml" in message for message in messages)
    assert 300 < len(messages) < 495, "most are refused, some are still configs"


# the resolved config


def test_the_resolved_config_reads_back_to_the_same(write_config, workdir):
    path = write_config(
        run={"name": "a", "seed": 7},
        evaluator={"use": "episodes", "every": {"updates": 5}},
        scheduler=[{"use": "cosine", "final": 0.1}, {"use": "linear", "target": "second.lr"}],
        optimizer=[{"use": "adam", "betas": [0.8, 0.9]}, {"use": "adam", "name": "second", "parameters": ["critic"]}],
        logger=[{"use": "csv"}, {"use": "tensorboard"}],
        hook=[{"use": "reward-clip", "limit": 0.5}, {"use": "reward-clip"}],
        env={"use": "gymnasium", "id": "CartPole-v1", "kwargs": {"sutton_barto_reward": True}},
    )
    first = rlcore.load_config(path).resolved()
    (workdir / "resolved.toml").write_text(tomli_w.dumps(first))
    second = rlcore.load_config(workdir / "resolved.toml").resolved()
    assert second == first
    assert first["optimizer"][1]["name"] == "second"
    assert first["hook"][1] == {"use": "core:reward-clip", "name": "reward-clip-2", "limit": 1.0}


def test_the_resolved_config_names_every_version(write_config):
    versions = rlcore.load_config(write_config()).resolved()["versions"]
    expected = {
        "python",
        "rlcore",
        "torch",
        "numpy",
        "tensordict",
        "gymnasium",
        "rlcore-plugin-ppo",
        "rlcore-plugin-mlp",
    }
    assert expected <= set(versions)
    assert versions["rlcore"] == rlcore.__version__
    assert "rlcore-plugin-csv" not in versions, "not used by this run"


def test_loose_files_are_found_again_from_the_resolved_config(write_config, workdir):
    (workdir / "loose_clip.py").write_text(
        "from rlcore import Component, hookimpl\n"
        "from rlcore.core_hooks.reward_clip import RewardClip\n"
        "@hookimpl\n"
        "def provide_components():\n"
        "    return [Component('hook', 'loose-clip', RewardClip)]\n"
    )
    path = write_config(plugins={"files": ["loose_clip.py"]}, hook=[{"use": "loose-clip"}])
    first = rlcore.load_config(path).resolved()
    elsewhere = workdir / "runs" / "x"
    elsewhere.mkdir(parents=True)
    run_folder.write_config(elsewhere, first)
    assert rlcore.load_config(elsewhere / "config.toml").resolved() == first


def test_a_config_can_be_loaded_again_and_again(write_config):
    path = write_config()
    assert rlcore.load_config(path).resolved() == rlcore.load_config(path).resolved()


def test_numbers_keep_their_value_through_the_resolved_config(write_config, workdir):
    value = math.pi * 1e-5
    resolved = rlcore.load_config(write_config(), [f"optimizer.lr={value!r}"]).resolved()
    (workdir / "resolved.toml").write_text(tomli_w.dumps(resolved))
    assert rlcore.load_config(workdir / "resolved.toml").resolved()["optimizer"][0]["lr"] == value


def test_required_is_a_key_of_every_logger_and_no_other_section():
    config = make_config(sections={"logger": [{"use": "testing:toy", "required": True}, {"use": "csv"}]})
    assert [section.required for section in config.sections["logger"]] == [True, False]
    assert [table.get("required") for table in config.resolved()["logger"]] == [True, None]
    with pytest.raises(ConfigError, match="required: must be true or false, not 1"):
        make_config(sections={"logger": [{"use": "csv", "required": 1}]})
    with pytest.raises(ConfigError, match="required"):
        make_config("env.required=true")


def test_leaf_is_a_key_of_every_transform_and_no_other_section():
    config = make_config(sections={"transform": [{"use": "testing:toy", "leaf": "state"}, {"use": "testing:toy"}]})
    assert [section.leaf for section in config.sections["transform"]] == ["state", None]
    assert [table.get("leaf") for table in config.resolved()["transform"]] == ["state", None]
    with pytest.raises(ConfigError, match="leaf: must be the name of a leaf of the observations, not 1"):
        make_config(sections={"transform": [{"use": "testing:toy", "leaf": 1}]})
    with pytest.raises(ConfigError, match=r"leef: unknown key .*did you mean 'leaf'"):
        make_config(sections={"transform": [{"use": "testing:toy", "leef": "state"}]})
    with pytest.raises(ConfigError, match="leaf"):
        make_config("env.leaf=state")
