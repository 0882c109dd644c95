"""A config that extends another one: what of the two counts, and where it comes from."""

from __future__ import annotations

import tomllib

import pytest
import tomli_w

import rlcore
from rlcore import ConfigError
from rlcore.config.file import read


@pytest.fixture
def layers(workdir):
    """Write files of which each extends the one before, and read the last; a path may lie in a folder."""

    def make(*texts, names=("base.toml", "own.toml", "last.toml")):
        for before, name, text in zip((None, *names), names, texts, strict=False):
            path = workdir / name
            path.parent.mkdir(exist_ok=True)
            path.write_text((f"extends = '{before}'\n" if before else "") + text)
        return read(workdir / names[len(texts) - 1])

    return make


def test_a_section_has_the_keys_of_both_and_the_values_of_the_one_that_extends(layers):
    raw = layers(
        "[run]\nseed = 1\nname = 'a'\n[loss]\nuse = 'ppo'\nclip = 0.1\n", "[run]\nseed = 2\n[model]\nuse = 'mlp'\n"
    )
    assert raw.values == {
        "run": {"seed": 2, "name": "a"},
        "loss": {"use": "ppo", "clip": 0.1},
        "model": {"use": "mlp"},
    }


def test_the_value_of_a_key_replaces_also_where_it_is_a_table(layers):
    raw = layers("[metrics]\nevery = { updates = 3 }\n", "[metrics]\nevery = { iterations = 2 }\n")
    assert raw.values["metrics"] == {"every": {"iterations": 2}}


@pytest.mark.parametrize(
    ("base", "own", "both"),
    [
        ("use = 'ppo'\nclip = 1", "use = 'other'\nx = 1", {"use": "other", "x": 1}),
        ("use = 'ppo'\nclip = 1", "use = 'ppo:ppo'\nx = 1", {"use": "ppo:ppo", "clip": 1, "x": 1}),
        ("use = 'a:ppo'\nclip = 1", "use = 'b:ppo'", {"use": "b:ppo"}),
        ("use = 'ppo'\nclip = 1", "x = 1", {"use": "ppo", "clip": 1, "x": 1}),
    ],
)
def test_a_section_of_another_component_replaces_that_of_the_base(layers, base, own, both):
    assert layers(f"[loss]\n{base}\n", f"[loss]\n{own}\n").values["loss"] == both


def test_a_section_that_has_a_default_component_knows_it(layers):
    base = "[buffer]\nepochs = 3\n"
    assert layers(base, "[buffer]\nuse = 'replay'\n").values["buffer"] == {"use": "replay"}
    assert layers(base, "[buffer]\nuse = 'core:rollout'\n").values["buffer"] == {"epochs": 3, "use": "core:rollout"}


def test_another_back_end_keeps_when_checkpoints_are_saved(layers):
    raw = layers("[checkpoint]\nuse = 'dcp'\nevery = 5\nodd = 1\n", "[checkpoint]\nuse = 'torch'\n")
    assert raw.values["checkpoint"] == {"use": "torch", "every": 5}


POLICIES = """
[model.hunters]
use = 'mlp'
agents = ['h_*']
hidden = [8]
[model.prey]
use = 'mlp'
agents = ['p']
[loss]
use = 'ppo'
entropy_coef = 0.1
[loss.prey]
entropy_coef = 0.2
clip = 1
[[optimizer]]
use = 'adam'
[[optimizer]]
use = 'adam'
policy = 'prey'
lr = 1
"""


def test_of_several_policies_each_table_is_a_section_of_its_own(layers):
    raw = layers(
        POLICIES,
        "[model.hunters]\nhidden = [16]\n[model.prey]\nuse = 'q-network'\n[model.third]\nuse = 'mlp'\nagents = ['t']\n"
        "[loss.hunters]\nclip = 3\n[loss.prey]\nclip = 2\n[[optimizer]]\npolicy = 'prey'\nlr = 2\n",
    )
    assert raw.values["model"] == {
        "hunters": {"use": "mlp", "agents": ["h_*"], "hidden": [16]},
        "prey": {"use": "q-network", "agents": ["p"]},
        "third": {"use": "mlp", "agents": ["t"]},
    }
    assert raw.values["loss"] == {
        "use": "ppo",
        "entropy_coef": 0.1,
        "prey": {"entropy_coef": 0.2, "clip": 2},
        "hunters": {"clip": 3},
    }
    assert raw.values["optimizer"] == [{"use": "adam"}, {"use": "adam", "policy": "prey", "lr": 2}]
    assert raw.sources["loss.prey.entropy_coef"].endswith("base.toml")
    assert raw.sources["loss.prey.clip"].endswith("own.toml")


@pytest.mark.parametrize(
    ("own", "section", "both"),
    [
        ("[loss.prey]\nuse = 'dqn'\n", "loss", {"use": "ppo", "entropy_coef": 0.1, "prey": {"use": "dqn"}}),
        ("[loss]\nuse = 'dqn'\n[loss.prey]\nx = 1\n", "loss", {"use": "dqn", "prey": {"x": 1}}),
        ("[model]\nuse = 'mlp'\nhidden = [4]\n", "model", {"use": "mlp", "hidden": [4]}),
    ],
)
def test_another_component_replaces_what_there_was_of_policies(layers, own, section, both):
    assert layers(POLICIES, own).values[section] == both


def test_several_policies_replace_one(layers):
    base = "[model]\nuse = 'mlp'\nhidden = [8]\nkwargs = { a = 1 }\n"
    assert layers(base, "[model.prey]\nuse = 'mlp'\nagents = ['p']\n").values["model"] == {
        "prey": {"use": "mlp", "agents": ["p"]}
    }
    assert layers(base, "[model.kwargs]\nb = 2\n").values["model"]["kwargs"] == {"b": 2}


def test_entries_with_a_use_replace_those_of_the_base(layers):
    hooks = "[[hook]]\nuse = 'a'\n[[hook]]\nuse = 'b'\n"
    assert layers(hooks, "[[hook]]\nuse = 'c'\n").values["hook"] == [{"use": "c"}]
    assert layers(hooks, "hook = []\n").values["hook"] == []
    assert layers(hooks, "").values["hook"] == [{"use": "a"}, {"use": "b"}]


def test_entries_without_a_use_change_those_of_the_base(layers):
    both = "[[optimizer]]\nuse = 'adam'\nlr = 1\n[[optimizer]]\nuse = 'adam'\nlr = 2\n"
    only = "[[optimizer]]\nuse = 'adam'\nlr = 1\n"
    assert layers(only, "[optimizer]\neps = 3\n").values["optimizer"] == [{"use": "adam", "lr": 1, "eps": 3}]
    assert layers(both, "[optimizer]\nname = 'adam-2'\nlr = 3\n").values["optimizer"] == [
        {"use": "adam", "lr": 1},
        {"use": "adam", "name": "adam-2", "lr": 3},
    ]


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            "[[hook]]\nlimit = 1\n",
            r"own.toml: a \[\[hook\]\] without a use changes one of .*base.toml, which has a, b;",
        ),
        ("[[hook]]\nname = 'x'\n", "none is called 'x'; name one of them, or give it a use"),
        ("[[hook]]\nname = 'a'\n[[hook]]\nuse = 'c'\n", "give all of them a use, or none"),
        ("[run]\nextends = 'b.toml'\n", r"extends stands in \[run\]; write it at the top"),
    ],
)
def test_what_neither_replaces_nor_changes_is_refused(layers, own, message):
    with pytest.raises(ConfigError, match=message):
        layers("[[hook]]\nuse = 'a'\n[[hook]]\nuse = 'b'\n", own)


def test_chains_are_followed_and_circles_are_refused(layers, workdir):
    raw = layers("[run]\nseed = 1\nname = 'a'\n", "[run]\nseed = 2\nthreads = 2\n", "[run]\nthreads = 3\n")
    assert raw.values == {"run": {"seed": 2, "name": "a", "threads": 3}}
    (workdir / "base.toml").write_text("extends = 'last.toml'\n")
    with pytest.raises(
        ConfigError, match=r"goes round in a circle: .*last.toml extends .*own.toml extends .*base.toml"
    ):
        read(workdir / "last.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends = 'nowhere.toml'\n", r"own.toml: extends: config file '.*nowhere.toml' does not exist"),
        ("extends = 3\n", "extends must name a config file, not 3"),
        ("extends = 'broken.toml'\n", r"own.toml: extends: .*broken.toml: not valid TOML"),
        ("extends = 'table.toml'\n", r"table.toml: run must be a table"),
    ],
)
def test_a_base_that_cannot_be_read_is_an_error(workdir, text, message):
    (workdir / "broken.toml").write_text("[run")
    (workdir / "table.toml").write_text("run = 1")
    (workdir / "own.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(workdir / "own.toml")


def test_paths_of_the_base_are_relative_to_the_base(workdir, layers):
    raw = layers("[plugins]\nfiles = ['mine.py']\n", "[run]\nseed = 1\n", names=("sub/base.toml", "own.toml"))
    assert raw.values["plugins"]["files"] == [str(workdir / "sub" / "mine.py")]


def test_explain_and_errors_say_from_which_file_a_value_comes(write_config, cli, workdir):
    write_config("base.toml", env={"kwargs": {"sutton_barto_reward": True}})
    own = workdir / "own.toml"
    own.write_text("extends = 'base.toml'\n[run]\nseed = 7\n[optimizer]\nlr = 1.0\n")
    lines = cli("config", "explain", "own.toml", "--set", "env.kwargs.render_mode=x").out.splitlines()

    def line(begin):
        return next(line for line in lines if line.startswith(begin))

    assert "(own.toml)" in line("  seed = 7")
    assert "(base.toml)" in line("  total_frames")
    assert "(base.toml and --set)" in line("  kwargs")
    assert "(own.toml)" in line("  lr = 1.0")
    assert line("[optimizer]").endswith("(base.toml)")
    assert line("[hook]").endswith("(default)")
    write_config("base.toml", loss={"clip_epsilon": -1})
    outcome = cli("config", "check", "own.toml")
    assert outcome.code == 2
    assert "own.toml: [loss] clip_epsilon: Input should be greater than 0" in outcome.err
    assert "; from base.toml" in outcome.err


def test_the_run_folder_is_whole_and_the_original_resumes(write_config, cli, workdir):
    write_config("base.toml")
    own = workdir / "own.toml"
    own.write_text("extends = 'base.toml'\n[optimizer]\nlr = 1e-3\n")
    assert cli("train", own, "--until", 32, "--quiet").code == 0
    folder = workdir / "runs" / "tiny"
    values = tomllib.loads((folder / "config.toml").read_text())
    assert "extends" not in values
    assert values["optimizer"][0]["lr"] == 1e-3
    assert cli("train", own, "--resume", "--until", 64, "--quiet").code == 0
    (workdir / "base.toml").unlink()
    outcome = cli("train", "--resume", folder, "--quiet")
    assert outcome.code == 0
    assert "exact = false" not in outcome.err


def test_the_config_of_a_run_can_be_extended_and_its_code_is_not_trusted_for_that(write_config, cli, workdir):
    (workdir / "mine.py").write_text("raise SystemError('it was imported')\n")
    base = tomllib.loads(write_config().read_text()) | {"versions": {"rlcore": "0"}, "plugins": {"files": ["mine.py"]}}
    (workdir / "base.toml").write_text(tomli_w.dumps(base))
    (workdir / "own.toml").write_text("extends = 'base.toml'\n")
    assert cli("config", "show", "own.toml").code == 0
    assert "it was imported" in cli("config", "show", "own.toml", "--trust").err


def test_a_mapping_is_a_config_too(write_config, workdir):
    values = tomllib.loads(write_config("base.toml").read_text())
    given = {"extends": "base.toml", "run": {"seed": 9}, "hook": ({"use": "reward-clip"},)}
    config = rlcore.load_config(given, ["loss.clip_epsilon=0.3"])
    assert config.run.seed == 9
    assert config.one("hook").name == "reward-clip"
    assert config.one("loss").config.clip_epsilon == 0.3
    assert given == {"extends": "base.toml", "run": {"seed": 9}, "hook": ({"use": "reward-clip"},)}
    assert rlcore.load_config(values).resolved() == rlcore.load_config("base.toml").resolved()
    run = rlcore.build(rlcore.load_config({**values, "run": {**values["run"], "name": "given"}}))
    run.trainer.train()
    assert run.trainer.progress.frames == 96


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": {"use": "ppo", "clip": 1}}, r"^the config: \[loss\] clip: unknown key"),
        ({"loss": 3}, r"^the config: loss must be a table"),
        ({"loss": {1: 2}}, r"^the config: the key 1 is not text"),
        ({"run": {}, "model": {}}, r"^the config: 3 problems"),
    ],
)
def test_errors_of_a_mapping_say_the_config(write_config, change, message):
    values = tomllib.loads(write_config().read_text())
    with pytest.raises(ConfigError, match=message):
        rlcore.load_config({**values, **change})
