"""What a config gets from the command line where it says nothing of hooks and loggers."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
import rlcore_plugin_testing

import rlcore
from rlcore.config import observers
from rlcore.config.file import read
from rlcore.config.observers import add_observers, leave_out_shown

BAR = {"use": "core:progress-bar", "always": False}
TABLE = {"use": "csv:csv"}


def filled(path, *overrides, **arguments):
    raw = read(path, overrides)
    add_observers(raw, **arguments)
    return raw.values.get("hook"), raw.values.get("logger")


def test_a_config_without_hooks_and_loggers_gets_a_bar_and_a_table(write_config):
    assert filled(write_config()) == ([BAR], [TABLE])


def test_sections_that_are_there_stay_as_they_are_and_so_do_empty_ones(write_config):
    clip = [{"use": "reward-clip"}]
    assert filled(write_config(hook=clip)) == (clip, [TABLE])
    assert filled(write_config(hook=[], logger=[])) == ([], [])
    assert filled(write_config(), "hook.0.use=reward-clip") == (clip, [TABLE])


@pytest.mark.parametrize("how", ["flag", "config", "variable", "absent"])
def test_no_table_is_written_without_the_plugin_for_it(write_config, monkeypatch, how):
    sections, arguments = {}, {}
    if how == "flag":
        arguments = {"disable": ["csv"]}
    elif how == "config":
        sections = {"plugins": {"disable": ["csv"]}}
    elif how == "variable":
        monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    else:
        others = [plugin for plugin in observers.installed() if plugin.name != "csv"]
        monkeypatch.setattr(observers, "installed", lambda: others)
    assert filled(write_config(**sections), **arguments) == ([BAR], None)


def test_a_resumed_run_goes_on_writing_what_it_wrote(write_config):
    run = {"run": {"name": "tiny"}}
    assert filled(write_config(), run=run) == ([BAR], None)
    assert filled(write_config(), run=run | {"logger": [{"use": "csv:csv", "name": "csv"}]}) == ([BAR], [TABLE])


def test_a_library_call_builds_what_the_config_says(write_config):
    config = rlcore.load_config(write_config())
    assert not config.sections["hook"]
    assert not config.sections["logger"]


def test_the_run_folder_says_all_and_its_resume_adds_nothing(write_config, cli, workdir):
    path = write_config(hook=[], logger=[])
    assert cli("train", path, "--until", 32).code == 0
    folder = workdir / "runs" / "tiny"
    assert not (folder / "metrics.csv").exists()
    write_config()
    for again in (["--resume", folder], [path, "--resume"]):
        outcome = cli("train", *again)
        assert outcome.code == 0, outcome.err
        assert "exact = false" not in outcome.err
        assert not (folder / "metrics.csv").exists()
    assert "logger" not in tomllib.loads((folder / "config.toml").read_text())


def test_a_run_with_defaults_resumes_from_its_config_and_from_its_folder(write_config, cli, workdir):
    path = write_config()
    assert cli("train", path, "--until", 32).code == 0
    folder = workdir / "runs" / "tiny"
    values = tomllib.loads((folder / "config.toml").read_text())
    assert [entry["use"] for entry in [*values["hook"], *values["logger"]]] == ["core:progress-bar", "csv:csv"]
    assert cli("train", path, "--resume", "--until", 64).code == 0
    outcome = cli("train", "--resume", folder)
    assert outcome.code == 0
    assert "exact = false" not in outcome.err
    assert cli("train", path, "--set", "run.name=whole").code == 0
    assert (folder / "metrics.csv").read_text() == (workdir / "runs" / "whole" / "metrics.csv").read_text()


def test_explain_says_that_they_are_defaults(write_config, cli):
    out = cli("config", "explain", write_config()).out
    assert "[hook] hook 'progress-bar' (rlcore 0.1.0)  (default)" in out
    assert "[loss] loss 'ppo' (rlcore-plugin-ppo 0.1.0)  (" in out
    shown = tomllib.loads(cli("config", "show", write_config()).out)
    assert [entry["use"] for entry in [*shown["hook"], *shown["logger"]]] == ["core:progress-bar", "csv:csv"]


def test_quiet_leaves_the_bar_out_and_writes_the_table(write_config, cli, workdir):
    outcome = cli("train", write_config(), "--quiet")
    assert outcome.code == 0
    values = tomllib.loads((workdir / "runs" / "tiny" / "config.toml").read_text())
    assert "hook" not in values
    assert (workdir / "runs" / "tiny" / "metrics.csv").exists()


def test_hooks_that_only_show_are_left_out_by_what_they_declare(write_config, monkeypatch):
    hooks = ["progress-bar", "core:console-table", "reward-clip", "testing:recorder", "no-such-hook", 3]
    raw = read(write_config(hook=[{"use": use} for use in hooks]))
    leave_out_shown(raw)
    assert [hook["use"] for hook in raw.values["hook"]] == hooks[2:]
    shown = [replace(one, shows=one.name == "recorder") for one in rlcore_plugin_testing.provide_components()]
    monkeypatch.setattr(rlcore_plugin_testing, "provide_components", rlcore.hookimpl(lambda: shown))
    leave_out_shown(raw)
    assert [hook["use"] for hook in raw.values["hook"]] == ["reward-clip", "no-such-hook", 3]
