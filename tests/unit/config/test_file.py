"""Reading: files, overrides, and where values come from."""

from __future__ import annotations

import pytest

import rlcore
from rlcore import ConfigError
from rlcore.config.file import read
from rlcore.plugins import host as plugins
from rlcore.types.settings import Secret


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "config.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def values(path, *overrides, **environment):
    return read(path, overrides, environment).values


def test_a_byte_order_mark_is_read_over(file):
    assert values(file(b"\xef\xbb\xbf[run]\nseed = 3\n")) == {"run": {"seed": 3}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[run\nseed = 1", r"config.toml: not valid TOML.*line 1"),
        ("[run]\nseed = 1\nseed = 2\n[env]\n", "line 3"),
        ("[run]\nseed = ", "not valid TOML"),
        ("seed 1", "not valid TOML"),
        (b"[run]\nname = '\xff'", "cannot be read.*utf-8"),
        ("run = 3", r"run must be a table: write \[run\]"),
        ("hook = 3", r"hook must be a table: write \[\[hook\]\]"),
        ("hook = [1, 2]", r"hook must be a table: write \[\[hook\]\]"),
        ("[[loss]]\nuse = 'ppo'", r"loss must be a table: write \[loss\]"),
        ("a = " + "[" * 100_000, "nested too deeply"),
    ],
)
def test_a_broken_file_is_refused_with_its_place(file, content, message):
    with pytest.raises(ConfigError, match=message) as raised:
        values(file(content))
    assert "config.toml" in str(raised.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere.toml' does not exist"):
        read(tmp_path / "nowhere.toml")
    with pytest.raises(ConfigError, match="is a folder"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("loss.clip=0.3", 0.3),
        ("loss.clip=1e-4", 1e-4),
        ("loss.clip=5", 5),
        ("loss.clip=50_000", 50000),
        ("loss.clip=true", True),
        ("loss.clip=[1, 2]", [1, 2]),
        ("loss.clip={updates = 5}", {"updates": 5}),
        ("loss.clip='text'", "text"),
        ("loss.clip=CartPole-v1", "CartPole-v1"),
        ("loss.clip=a=b", "a=b"),
        ("loss.clip=", ""),
        ("loss.clip= 7", 7),
        ("loss.clip =7", 7),
    ],
)
def test_an_override_is_toml_or_else_text(file, text, expected):
    result = values(file("[loss]\nclip = 0.2\n"), text)["loss"]["clip"]
    assert result == expected
    assert type(result) is type(expected)


def test_an_override_makes_sections_and_tables_that_are_not_there(file):
    assert values(file(""), "env.kwargs.gravity=3.0") == {"env": {"kwargs": {"gravity": 3.0}}}


def test_an_override_of_a_repeated_section_names_its_number_or_means_the_first(file):
    content = "[[hook]]\nuse = 'a'\n[[hook]]\nuse = 'b'\n"
    result = values(file(content), "hook.limit=1", "hook.1.limit=2", "hook.2.use=c")
    assert result["hook"] == [{"use": "a", "limit": 1}, {"use": "b", "limit": 2}, {"use": "c"}]


def test_a_repeated_section_written_once_is_a_list_of_one(file):
    assert values(file("[optimizer]\nuse = 'adam'\n"), "optimizer.lr=1.0") == {
        "optimizer": [{"use": "adam", "lr": 1.0}]
    }


def test_the_last_override_of_a_key_counts(file):
    assert values(file(""), "run.seed=1", "run.seed=2") == {"run": {"seed": 2}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed=1", "must read section.key=value"),
        ("run.seed", "must read section.key=value"),
        ("run.=1", "must read section.key=value"),
        (".seed=1", "must read section.key=value"),
        ("hook.7.use=a", r"there are only 0 \[\[hook\]\]"),
        ("run.seed.deeper=1", "'seed' is not a table"),
        ("hook.0=1", "must read section.number.key=value"),
        ("env.list.x=1", "'list' is not a table"),
        ("env.list.0=1", "'list' is not a table"),
    ],
)
def test_an_override_that_does_not_fit_is_refused(file, text, message):
    with pytest.raises(ConfigError, match=message) as raised:
        values(file("[run]\nseed = 1\n[env]\nlist = [1]\n"), text)
    assert repr(text) in str(raised.value)


def test_sources_say_which_values_are_not_from_the_file(file):
    raw = read(file(""), ["run.seed=1", "optimizer.lr=1.0"], {"CKPT_BACKEND": "dcp"})
    assert raw.sources == {
        "run.seed": "--set",
        "optimizer.0.lr": "--set",
        "checkpoint.use": "environment variable CKPT_BACKEND",
    }


def test_ckpt_backend_replaces_the_back_end(file):
    content = "[checkpoint]\nuse = 'torch'\nevery = 5\n"
    assert values(file(content), CKPT_BACKEND="dcp")["checkpoint"] == {"use": "dcp", "every": 5}
    assert values(file(content), "checkpoint.use=other", CKPT_BACKEND="dcp")["checkpoint"]["use"] == "dcp"
    assert values(file(""), CKPT_BACKEND="dcp")["checkpoint"] == {"use": "dcp"}
    assert values(file(content), CKPT_BACKEND="")["checkpoint"]["use"] == "torch"


def test_ckpt_backend_of_the_process_is_written_into_the_resolved_config(write_config, monkeypatch):
    monkeypatch.setenv("CKPT_BACKEND", "torch:torch")
    assert rlcore.load_config(write_config()).resolved()["checkpoint"]["use"] == "torch:torch"


def test_an_unknown_ckpt_backend_is_refused_with_the_nearest_name_or_the_command(write_config, monkeypatch):
    monkeypatch.setenv("CKPT_BACKEND", "torhc")
    with pytest.raises(ConfigError, match=r"\[checkpoint\] use:.*'torhc'.*did you mean 'torch'"):
        rlcore.load_config(write_config())
    others = [plugin for plugin in plugins.installed() if plugin.name != "dcp"]
    monkeypatch.setattr(plugins, "installed", lambda: others)
    monkeypatch.setenv("CKPT_BACKEND", "dcp")
    with pytest.raises(ConfigError, match=r"\[checkpoint\] use:.*pip install rlcore-plugin-dcp"):
        rlcore.load_config(write_config())


@pytest.mark.parametrize(
    "name",
    ["../escape", "..", ".", "/absolute", "a/b", "a\\b", ".hidden", "", " ", "a b", "x" * 101, "a\0b", "a\n", "-rf"],
)
def test_j8_a_run_name_that_is_no_folder_name_is_refused(write_config, name):
    with pytest.raises(ConfigError, match=r"\[run\] name: a run name is a folder name"):
        rlcore.load_config(write_config(run={"name": name}))


@pytest.mark.parametrize("name", ["run", "2024-01-01_a.b", "x" * 100])
def test_a_plain_run_name_is_taken(write_config, name):
    assert rlcore.load_config(write_config(run={"name": name})).run.name == name


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:3", "mps"])
def test_a_device_is_taken(write_config, device):
    assert rlcore.load_config(write_config(run={"device": device})).run.device == device


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cpu:0x", "CUDA", "cuda:-1"])
def test_another_device_is_refused(write_config, device):
    with pytest.raises(ConfigError, match=r"\[run\] device: a device is auto, cpu, cuda, cuda:N or mps"):
        rlcore.load_config(write_config(run={"device": device}))


def test_a_secret_is_revealed_only_from_the_environment(monkeypatch):
    secret = Secret(env="MY_KEY")
    monkeypatch.setenv("MY_KEY", "hush-7f3a")
    assert secret.reveal() == "hush-7f3a"
    assert "hush" not in f"{secret!r} {secret.model_dump()}"
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigError, match=r"'MY_KEY'.*is not set"):
        secret.reveal()


def test_j9_a_secret_of_a_run_is_in_no_file_that_the_run_writes(write_config, workdir, monkeypatch):
    (workdir / "with_secret.py").write_text("""
from pydantic import BaseModel
from rlcore import Component, hookimpl
from rlcore.types import Secret

class Keeps:
    class Config(BaseModel, extra="forbid"):
        api_key: Secret

    def __init__(self, config, context):
        self.value = config.api_key.reveal()

    @hookimpl
    def post_steps(self):
        assert self.value == "hush-7f3a"

@hookimpl
def provide_components():
    return [Component("hook", "keeps", Keeps)]
""")
    monkeypatch.setenv("MY_KEY", "hush-7f3a")
    hook = [{"use": "keeps", "api_key": {"env": "MY_KEY"}}]
    path = write_config(plugins={"files": ["with_secret.py"]}, hook=hook, logger=[{"use": "csv"}])
    config = rlcore.load_config(path)
    assert config.resolved()["hook"][0]["api_key"] == {"env": "MY_KEY"}
    run = rlcore.build(config)
    run.trainer.train()
    files = [file for file in run.folder.rglob("*") if file.is_file()]
    assert len(files) > 5
    assert not any(b"hush-7f3a" in file.read_bytes() for file in files)


ENTRIES = """
[[optimizer]]
use = "adam"
name = "actor"
[[optimizer]]
use = "core:adam"
[[optimizer]]
use = "sgd"
param = { a = 1 }
"""


@pytest.mark.parametrize(
    ("text", "number"),
    [("actor", 0), ("adam", 1), ("sgd", 2), ("0", 0), ("2", 2)],
)
def test_an_override_of_a_repeated_section_may_name_the_entry(file, text, number):
    raw = read(file(ENTRIES), [f"optimizer.{text}.lr=0.5"])
    assert [entry.get("lr") for entry in raw.values["optimizer"]] == [0.5 if n == number else None for n in range(3)]
    assert raw.sources == {f"optimizer.{number}.lr": "--set"}


def test_an_override_of_an_entry_reaches_its_tables(file):
    assert values(file(ENTRIES), "optimizer.sgd.param.b=2")["optimizer"][2]["param"] == {"a": 1, "b": 2}
    table = values(file("[[hook]]\nuse = 'a'\nevery = {}\n"), "hook.every.updates=5")["hook"][0]
    assert table["every"] == {"updates": 5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("optimizer.acotr.lr=1", r"of \[\[optimizer\]\] there is no 'acotr'; did you mean 'actor'"),
        ("optimizer.no-such.lr=1", r"there is no 'no-such'; there are actor, adam, sgd"),
        ("hook.early-stopping.patience=1", r"of \[\[hook\]\] there is no 'early-stopping'; there is none at all"),
    ],
)
def test_an_override_of_an_entry_that_is_not_there_is_refused(file, text, message):
    with pytest.raises(ConfigError, match=message):
        values(file(ENTRIES), text)


def test_an_override_may_empty_a_repeated_section(file):
    assert values(file(ENTRIES), "optimizer=[]", "hook=[]") == {"optimizer": [], "hook": []}
    for text in ("optimizer=[1]", "optimizer=3", "loss=[]"):
        with pytest.raises(ConfigError, match=r"must read section\.key=value"):
            values(file(ENTRIES), text)


def test_a_section_that_is_written_below_another_one_is_told(write_config):
    with pytest.raises(ConfigError, match=r"\[run\] hook: unknown key .* at the top, before the first section"):
        rlcore.load_config(write_config(run={"hook": []}))


def test_an_override_may_name_what_the_command_line_adds(file):
    assert values(file(""), "logger.csv.video_format=mp4")["logger"] == [{"use": "csv:csv", "video_format": "mp4"}]
    assert values(file(""), "hook.progress-bar.always=true")["hook"] == [{"use": "core:progress-bar", "always": True}]
