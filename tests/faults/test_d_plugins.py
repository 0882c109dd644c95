"""Rows D: plugins and hooks that are broken, or break something. What is about finding them is in third_party/."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from rlcore_plugin_testing import make_run

from rlcore import HookError, PluginError, hookimpl
from rlcore.hooks.specs import POINTS

SAVING = ("run.total_frames=96", "checkpoint.every=16")
RAISING_STOPS = [name for name in POINTS if name not in ("on_exception", "shutdown")]
# what no point accepts
WRONG = {"pipeline": 3.5, "collect": [1.0], "notify": {"a": 1}, "owner": 7}


def faulty(**keys):
    return {"hook": [{"use": "testing:faulty", **keys}]}


def test_d1_a_plugin_whose_dependency_is_missing_names_it(site, write_config, cli):
    site.add("rlcore-plugin-bad", "module_of_bad", "import a_package_that_is_not_there")
    outcome = cli("train", write_config(hook=[{"use": "bad"}]))
    assert outcome.code == 2
    assert "plugin 'bad' (rlcore-plugin-bad 1.0) failed: ModuleNotFoundError" in outcome.err
    assert "pip install a_package_that_is_not_there" in outcome.err
    assert cli("train", write_config(), "--quiet").code == 0, "it stops no run that does not name it"


def test_d2_a_plugin_for_another_core_is_refused_unread(site, write_config, cli, workdir):
    source = f"open({str(workdir / 'imported')!r}, 'w')"
    site.add("rlcore-plugin-new", "module_of_new", source, requires=["rlcore>=7"])
    outcome = cli("train", write_config(hook=[{"use": "new"}]))
    assert outcome.code == 2
    assert "needs rlcore >=7" in outcome.err
    assert not (workdir / "imported").exists()


def test_d3_one_name_of_two_plugins_is_refused_until_the_config_says_which(site, write_config, cli):
    source = """
    from rlcore import Component, hookimpl
    from rlcore_plugin_testing.toy_parts import ToyHook

    @hookimpl
    def provide_components():
        return [Component("hook", "shared", ToyHook)]
    """
    site.add("rlcore-plugin-one", "module_of_one", source, entry_point="one")
    site.add("rlcore-plugin-two", "module_of_two", source, entry_point="two")
    enabled = {"plugins": {"enable": ["one", "two"]}}
    outcome = cli("train", write_config(**enabled, hook=[{"use": "shared"}]))
    assert outcome.code == 2
    assert "rlcore-plugin-one 1.0" in outcome.err
    assert "rlcore-plugin-two 1.0" in outcome.err
    assert cli("train", write_config(**enabled, hook=[{"use": "two:shared"}]), "--quiet").code == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("post_step", "self", "did you mean 'post_steps'"),
        ("post_steps", "self, traner", "did you mean 'trainer'"),
    ],
)
def test_d5_a_misspelt_point_or_argument_is_refused_before_the_first_frame(name, arguments, message):
    namespace = {"hookimpl": hookimpl}
    exec(f"class Misspelt:\n    @hookimpl\n    def {name}({arguments}):\n        pass", namespace)
    with pytest.raises(PluginError, match=message):
        make_run(hooks=[namespace["Misspelt"]()])


@pytest.mark.parametrize("point", RAISING_STOPS)
def test_d6_a_hook_that_raises_is_named_and_the_run_goes_on_from_what_was_saved(tmp_path, point):
    sections = faulty(point=point, fault="raise", from_frame=0 if point == "setup" else 48)
    run = make_run(*SAVING, folder=tmp_path, sections=sections)
    with pytest.raises(RuntimeError, match="on purpose") as raised:
        run.trainer.train()
    owner = "hook 'faulty' (rlcore-plugin-testing 0.1.0)"
    assert any(f"{owner} at point {point!r}" in note for note in raised.value.__notes__)
    if point == "setup":
        return
    frames = run.trainer.parts.store.entries()[-1].frames
    assert frames in (32, 48, 64), "the state before the iteration in which it raised"
    again = make_run(*SAVING, folder=tmp_path, sections=sections, resume=True)
    assert again.trainer.progress.frames == frames
    with pytest.raises(RuntimeError, match="on purpose"):
        again.trainer.train()  # the fault is still in the config


@pytest.mark.parametrize("point", RAISING_STOPS)
def test_d7_a_wrong_return_is_refused_with_what_was_expected(tmp_path, point):
    sections = faulty(point=point, fault="return", returns=WRONG[POINTS[point].kind])
    run = make_run(folder=tmp_path, sections=sections)
    with pytest.raises(HookError, match=rf"hook 'faulty' \(rlcore-plugin-testing 0.1.0\) at point '{point}'.*expected"):
        run.trainer.train()


def test_d8_a_slow_hook_is_named_in_the_summary_and_the_timings(write_config, cli):
    slow = {"use": "testing:faulty", "fault": "sleep", "name": "dawdler"}
    outcome = cli("train", write_config(hook=[slow], logger=[{"use": "csv"}]))
    assert outcome.code == 0
    assert "slow hook        'dawdler' took 0." in outcome.out
    with open("runs/tiny/timings.csv") as stream:
        rows = [line.split(",") for line in stream.read().splitlines()]
    spent = [float(value) for _, key, value in rows if key == "time/hooks/dawdler"]
    assert spent == sorted(spent)
    assert spent[-1] >= 0.15


def test_d10_a_hook_that_quits_the_program_is_an_error(tmp_path):
    run = make_run(*SAVING, folder=tmp_path, sections=faulty(fault="quit", from_frame=48))
    with pytest.raises(HookError, match=r"a hook cannot exit.*request_stop"):
        run.trainer.train()
    assert run.trainer.parts.store.entries()


def test_d13_the_order_of_hooks_is_that_of_the_config_whatever_was_installed_first(site, write_config, cli):
    for name in ("zebra", "ant"):
        source = f"""
        from rlcore import Component, hookimpl
        from rlcore_plugin_testing.toy_parts import ToyHook

        @hookimpl
        def provide_components():
            return [Component("hook", "{name}", ToyHook)]
        """
        site.add(f"rlcore-plugin-{name}", f"module_of_{name}", source)
    for order in (["zebra", "ant"], ["ant", "zebra"]):
        outcome = cli("plugins", "order", write_config(hook=[{"use": name} for name in order]))
        (line,) = [line for line in outcome.out.splitlines() if "zebra" in line][:1]
        assert (line.index("zebra") < line.index("ant'")) == (order[0] == "zebra")


def test_j6_a_plugin_that_was_replaced_by_another_distribution_is_refused_at_the_resume(site, write_config, cli):
    source = """
    from rlcore import Component, hookimpl
    from rlcore_plugin_testing.toy_parts import ToyHook

    @hookimpl
    def provide_components():
        return [Component("hook", "mine", ToyHook)]
    """
    site.add("rlcore-plugin-mine", "module_of_mine", source)
    config = write_config(hook=[{"use": "mine"}])
    assert cli("train", config, "--quiet", "--until", "32").code == 0
    shutil.rmtree(next(site.folder.glob("rlcore_plugin_mine-*.dist-info")))
    site.add("another-dist", "module_of_another", source, entry_point="mine")
    outcome = cli("train", config, "--quiet", "--resume")
    assert outcome.code == 5
    assert "hook.mine was written by rlcore-plugin-mine, and is provided by another-dist here" in outcome.err
    assert cli("train", config, "--quiet", "--resume", "--accept-changes").code == 0
    assert json.loads(Path("runs/tiny/status.json").read_text())["exact"] is False
