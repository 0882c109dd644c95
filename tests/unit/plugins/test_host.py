"""Plugins that exist only for a test: real distributions, found through their metadata."""

from __future__ import annotations

import sys

import pytest

import rlcore
from rlcore import ConfigError, PluginError
from rlcore.plugins import host
from rlcore.plugins.catalogue import PUBLISHED, Published
from rlcore.plugins.component import is_repeated
from rlcore.plugins.discovery import installed
from rlcore.plugins.host import PluginHost

HOOK = """
    from rlcore import Component, hookimpl

    class Hook:
        def __init__(self, config, context):
            pass

        @hookimpl
        def post_steps(self):
            pass

    @hookimpl
    def provide_components():
        return [Component("hook", {name!r}, Hook)]
"""
EXPLODES = "raise RuntimeError('imported')\n"


def hook(name):
    return HOOK.format(name=name)


def problem(path, **arguments):
    with pytest.raises(ConfigError) as raised:
        rlcore.load_config(path, **arguments)
    return str(raised.value)


def test_what_is_installed_is_known_without_importing_anything(site):
    site.add("rlcore-plugin-bomb", "module_of_bomb", EXPLODES, version="2.3", requires=["rlcore>=0.1,<1", "numpy"])
    (bomb,) = [plugin for plugin in installed() if plugin.name == "bomb"]
    assert (bomb.distribution, bomb.version, bomb.module) == ("rlcore-plugin-bomb", "2.3", "module_of_bomb")
    assert set(bomb.requires_rlcore.split(",")) == {">=0.1", "<1"}
    assert "module_of_bomb" not in sys.modules


def test_a_broken_plugin_that_nothing_names_has_no_effect(site, build):
    site.add("rlcore-plugin-bomb", "module_of_bomb", EXPLODES)
    site.add("rlcore-plugin-old", "module_of_old", EXPLODES, requires=["rlcore>=99"])
    site.add("rlcore-plugin-odd", "module_of_odd", EXPLODES, requires=["this is no requirement !!", "rlcore>=0.1"])
    site.add("twin-a", "module_of_twin_a", EXPLODES, entry_point="twin")
    site.add("twin-b", "module_of_twin_b", EXPLODES, entry_point="twin")
    assert build().trainer.train().frames == 96
    assert not {name for name in sys.modules if name.startswith("module_of_")}


def test_a_distribution_without_metadata_has_no_effect(site, build):
    site.add("rlcore-plugin-rest", "module_of_rest", EXPLODES)
    (site.folder / "rlcore_plugin_rest-1.0.dist-info" / "METADATA").write_text("")
    assert build(run={"total_frames": 32}).trainer.train().frames == 32


def test_only_what_the_config_names_is_imported(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("one"))
    site.add("rlcore-plugin-two", "module_of_two", hook("two"))
    config = rlcore.load_config(write_config(hook=[{"use": "one"}]))
    assert "one" in config.host.loaded
    assert "module_of_one" in sys.modules
    assert "module_of_two" not in sys.modules
    assert config.resolved()["versions"]["rlcore-plugin-one"] == "1.0"


def test_enabled_plugins_are_imported_too(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("hook-of-one"))
    path = write_config(hook=[{"use": "hook-of-one"}])
    assert "unknown hook 'hook-of-one'" in problem(path)
    assert rlcore.load_config(path, enable=["one"]).sections["hook"][0].provided.owner.plugin == "one"
    path = write_config(plugins={"enable": ["one"]}, hook=[{"use": "hook-of-one"}])
    assert rlcore.load_config(path).one("hook").name == "hook-of-one"


def test_a_disabled_plugin_that_is_named_is_refused(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("one"))
    path = write_config(hook=[{"use": "one"}])
    for message in (
        problem(path, disable=["one"]),
        problem(write_config("other.toml", hook=[{"use": "one"}], plugins={"disable": ["one"]})),
        problem(write_config("third.toml"), enable=["one"], disable=["one"]),
    ):
        assert "plugin 'one' is named by the config but disabled" in message
    assert "module_of_one" not in sys.modules


def test_disabling_what_nothing_names_changes_nothing(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("one"))
    assert rlcore.load_config(write_config(), disable=["one", "nonexistent"]).one("hook") is None


@pytest.mark.parametrize("needs", ["rlcore>=99", "rlcore<0.1", "rlcore==0.0.1"])
def test_a_plugin_for_another_rlcore_is_refused_before_it_is_imported(site, write_config, needs):
    site.add("rlcore-plugin-old", "module_of_old", EXPLODES, version="0.5", requires=["numpy", needs])
    message = problem(write_config(hook=[{"use": "old"}]))
    assert f"plugin 'old' (rlcore-plugin-old 0.5) needs rlcore {needs.removeprefix('rlcore')}" in message
    assert f"this is rlcore {rlcore.__version__}" in message
    assert "module_of_old" not in sys.modules


def test_a_requirement_of_an_extra_is_not_one_of_the_plugin(site, write_config):
    requires = ["rlcore>=99; extra == 'future'", "rlcore>=0.1"]
    site.add("rlcore-plugin-one", "module_of_one", hook("one"), requires=requires)
    assert rlcore.load_config(write_config(hook=[{"use": "one"}])).one("hook").name == "one"


def test_two_distributions_with_one_plugin_name_are_refused_by_name(site, write_config):
    site.add("first-dist", "module_of_first", EXPLODES, version="1.1", entry_point="twin")
    site.add("second-dist", "module_of_second", EXPLODES, version="2.2", entry_point="twin")
    message = problem(write_config(hook=[{"use": "twin"}]))
    assert "[hook] use: plugin name 'twin' is claimed by first-dist 1.1 and second-dist 2.2" in message


def test_two_providers_of_one_component_are_refused_unless_the_plugin_is_named(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("same"), version="1.1")
    site.add("rlcore-plugin-two", "module_of_two", hook("same"), version="2.2")
    both = {"enable": ["one", "two"]}
    message = problem(write_config(plugins=both, hook=[{"use": "same"}]))
    assert "hook 'same' is provided by several plugins" in message
    assert "rlcore-plugin-one 1.1 (use = 'one:same')" in message
    assert "rlcore-plugin-two 2.2 (use = 'two:same')" in message
    config = rlcore.load_config(write_config(plugins=both, hook=[{"use": "two:same"}, {"use": "one:same"}]))
    assert [section.provided.owner.plugin for section in config.sections["hook"]] == ["two", "one"]


def test_a_qualified_name_imports_its_plugin(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("same"))
    assert rlcore.load_config(write_config(hook=[{"use": "one:same"}])).one("hook").name == "same"


def test_a_component_of_the_core_can_be_provided_again_under_a_qualified_name(site, write_config):
    site.add("rlcore-plugin-one", "module_of_one", hook("reward-clip"))
    path = write_config(plugins={"enable": ["one"]}, hook=[{"use": "reward-clip"}])
    assert "use = 'core:reward-clip'" in problem(path)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (EXPLODES, "RuntimeError: imported"),
        ("import package_that_is_not_there", "ModuleNotFoundError: .*pip install package_that_is_not_there"),
        ("def (", "SyntaxError"),
        ("x = 1", "has no function provide_components with @hookimpl"),
        ("def provide_components():\n    return []", "has no function provide_components with @hookimpl"),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n    return 1 / 0",
            "provide_components failed: ZeroDivisionError",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n    return [7]",
            "provides 7, not a Component",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n"
            "    return [rlcore.Component('hok', 'a', print)]",
            "unknown kind 'hok'; did you mean 'hook'",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n"
            "    return [rlcore.Component('hook', 'Not_A_Name', print)]",
            "component name 'Not_A_Name' must be lower case",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_component():\n    return []",
            "implements 'provide_component'.*did you mean 'provide_components'",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n    return []\n"
            "@rlcore.hookimpl\ndef post_loss():\n    pass",
            "implements 'post_loss', which a plugin module cannot.*hook component",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n"
            "    return [rlcore.Component('hook', 'bad', 'module_of_bad:Missing')]",
            r"importing 'module_of_bad:Missing' failed: AttributeError",
        ),
        (
            "import rlcore\n@rlcore.hookimpl\ndef provide_components():\n"
            "    return [rlcore.Component('hook', 'bad', 'nowhere_to_be_found:X')]",
            r"importing 'nowhere_to_be_found:X' failed: ModuleNotFoundError",
        ),
    ],
)
def test_a_named_plugin_that_is_broken_stops_the_run_and_says_whose_it_is(site, write_config, source, expected):
    site.add("rlcore-plugin-bad", "module_of_bad", source, version="3.1")
    path = write_config(hook=[{"use": "bad"}])
    with pytest.raises(ConfigError, match=expected) as raised:
        rlcore.load_config(path)
    assert "'bad' (rlcore-plugin-bad 3.1)" in str(raised.value)


def test_a_broken_plugin_is_reported_once_and_beside_other_problems(site, write_config):
    site.add("rlcore-plugin-bad", "module_of_bad", EXPLODES)
    path = write_config(hook=[{"use": "bad"}, {"use": "bad"}, {"use": "reward-clipp"}], loss={"clpi": 1})
    message = problem(path)
    assert message.count("RuntimeError: imported") == 1
    assert "[hook.2] use: unknown hook 'reward-clipp'" in message
    assert "[loss] clpi" in message
    assert ": 3 problems" in message


def test_what_is_not_installed_comes_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setitem(PUBLISHED, "imagined", Published({"logger": ["imagined"]}))
    message = "'imagined' is provided by rlcore-plugin-imagined, .* pip install rlcore-plugin-imagined$"
    with pytest.raises(PluginError, match=message):
        PluginHost().load("imagined")


def test_what_is_installed_but_not_named_comes_with_the_name_that_finds_it(write_config):
    path = write_config(loss=None, env=None)
    message = problem(path)
    assert (
        "[estimator] use: 'gae' is provided by plugin 'ppo', which the config does not name: write use = 'ppo:gae'"
        in message
    )
    assert "[estimator]" not in problem(write_config(loss=None, env=None, estimator={"use": "ppo:gae"}))


OF_CORE = [
    (plugin, kind, name)
    for plugin, one in PUBLISHED.items()
    if one.of_core
    for kind, names in one.components.items()
    for name in names
]


@pytest.mark.parametrize("use", ["log-scalar", "core:log-scalar", "torchrl:log-scalar"])
def test_a_component_that_is_named_as_the_core_s_is_found_and_written_so(use, write_config):
    """Runs that say `core:log-scalar` in their folder go on."""
    (hook,) = rlcore.load_config(write_config(hook=[{"use": use}])).sections["hook"]
    assert hook.provided.owner.distribution == "rlcore-plugin-torchrl"
    assert (hook.dump()["use"], hook.name) == ("core:log-scalar", "log-scalar")


@pytest.mark.parametrize(("plugin", "kind", "name"), OF_CORE)
@pytest.mark.parametrize("core", ["", "core:"])
def test_a_component_that_is_named_as_the_core_s_says_what_to_install(
    core, plugin, kind, name, write_config, monkeypatch
):
    monkeypatch.setattr(host, "installed", lambda: [one for one in installed() if one.name != plugin])
    section = {"use": f"{core}{name}"}
    path = write_config(**{kind: [section] if is_repeated(kind) else section})
    assert f"'{name}' is provided by rlcore-plugin-{plugin}, which is not installed: pip install" in problem(path)


def test_a_name_that_nobody_knows_comes_with_the_nearest_one(site):
    site.add("rlcore-plugin-frobnicate", "module_of_frobnicate", EXPLODES)
    with pytest.raises(PluginError, match="no plugin or component 'frobnicat' is installed; did you mean 'frobnicate'"):
        PluginHost().load("frobnicat")


def test_rlcore_no_plugins_leaves_only_the_core(write_config, monkeypatch):
    monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    assert PluginHost().names() == ["core"]
    message = problem(write_config())
    assert "RLCORE_NO_PLUGINS is set" in message
    assert all(f"[{section}] use: " in message for section in ("env", "model", "loss", "checkpoint"))
    *_, at_once = message.splitlines()
    said, _, packages = at_once.partition(": pip install ")
    assert said == "  what is not installed, at once"
    assert {"rlcore-plugin-ppo", "rlcore-plugin-gradient", "rlcore-plugin-rollout"} <= set(packages.split())
    assert len(set(packages.split())) == len(packages.split())


def test_the_core_provides_its_parts_through_the_same_door():
    host = PluginHost()
    assert host.loaded["core"].distribution == "rlcore"
    kinds = {provided.component.kind for provided in host.registry.provided}
    assert kinds == {"hook"}
    for provided in host.registry.provided:
        assert callable(provided.target())
        assert provided.component.summary


# the same distribution in two places, as an editable install over another


def test_of_a_distribution_installed_twice_the_first_on_the_path_is_taken(site, write_config, tmp_path, monkeypatch):
    site.add("rlcore-plugin-one", "module_of_one", EXPLODES, version="1.0")
    front = type(site)(tmp_path / "front")
    front.folder.mkdir()
    monkeypatch.syspath_prepend(str(front.folder))
    front.add("rlcore-plugin-one", "module_of_one", hook("one"), version="2.0")
    config = rlcore.load_config(write_config(hook=[{"use": "one"}]))
    assert config.host.loaded["one"].version == "2.0"
    sys.modules.pop("module_of_one")


# loose files

LOOSE = hook("loose").replace("\n    ", "\n")


def test_a_loose_file_beside_the_config_is_a_plugin(write_config, workdir, monkeypatch):
    (workdir / "my_hooks.py").write_text(LOOSE)
    path = write_config(plugins={"files": ["my_hooks.py"]}, hook=[{"use": "loose"}, {"use": "my-hooks:loose"}])
    monkeypatch.chdir("/")  # relative to the config, not to the working directory
    config = rlcore.load_config(path)
    owners = [section.provided.owner for section in config.sections["hook"]]
    assert [str(owner) for owner in owners] == ["my_hooks.py loose file"] * 2
    assert config.host.files() == {"my_hooks": str(workdir / "my_hooks.py")}


def test_files_are_those_of_one_host_and_not_of_another_in_the_same_process(write_config, workdir):
    (workdir / "my_hooks.py").write_text(LOOSE)
    rlcore.load_config(write_config(plugins={"files": ["my_hooks.py"]}, hook=[{"use": "loose"}]))
    assert "my_hooks" in sys.modules
    assert PluginHost().files() == {}


def test_components_of_a_loose_file_can_be_named_by_text(write_config, workdir):
    text = LOOSE.replace('"loose", Hook', '"loose", f"{__name__}:Hook"').replace(
        "'loose', Hook", "'loose', f'{__name__}:Hook'"
    )
    assert "__name__" in text
    (workdir / "my_hooks.py").write_text(text)
    path = write_config(plugins={"files": ["my_hooks.py"]}, hook=[{"use": "loose"}])
    assert rlcore.build(rlcore.load_config(path), write=False).trainer.hooks.used("post_steps")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("absent.py", None, "absent.py', which does not exist"),
        ("notes.txt", "hello", "notes.txt', which is not a Python file"),
        ("broken_file.py", "1 / 0", "broken_file.py' failed: ZeroDivisionError"),
        ("empty_file.py", "", "has no function provide_components"),
        ("json.py", LOOSE, "would hide the module or plugin 'json'; rename the file"),
        ("wave.py", LOOSE, "would hide the module or plugin 'wave'"),
        ("torch.py", LOOSE, "would hide the module or plugin 'torch'"),
        ("ppo.py", LOOSE, "would hide the module or plugin 'ppo'"),
    ],
)
def test_a_loose_file_that_cannot_be_used_is_refused(write_config, workdir, name, content, message):
    if content is not None:
        (workdir / name).write_text(content)
    before = {module: sys.modules.get(module) for module in ("json", "torch", "broken_file")}
    assert message in problem(write_config(plugins={"files": [name]}))
    assert {module: sys.modules.get(module) for module in before} == before


def test_what_a_missing_loose_file_would_provide_is_no_further_problem(write_config):
    said = problem(write_config(plugins={"files": ["gone_hooks.py"]}, hook=[{"use": "gone-hooks:clip"}]))
    assert "gone_hooks.py', which does not exist" in said
    assert "problems" not in said


def test_a_loose_file_can_be_disabled(write_config, workdir):
    (workdir / "my_hooks.py").write_text(LOOSE)
    path = write_config(plugins={"files": ["my_hooks.py"]})
    assert "plugin 'my-hooks' is named by plugins.files but disabled" in problem(path, disable=["my-hooks"])


def test_a_changed_loose_file_is_read_again(write_config, workdir):
    file = workdir / "my_hooks.py"
    path = write_config(plugins={"files": ["my_hooks.py"]}, hook=[{"use": "loose"}])
    file.write_text(LOOSE)
    rlcore.load_config(path)
    file.write_text(LOOSE.replace("'loose'", "'changed'"))
    assert "unknown hook 'loose'; " in problem(path)


@pytest.mark.parametrize("name", ["PixelRenderTransform", "TensorDictRecorder", "VideoRecorder"])
def test_a_name_that_a_plugin_lends_to_rlcore_says_which_to_install(name, monkeypatch):
    for module in [module for module in sys.modules if module.startswith("rlcore_plugin_video.")]:
        monkeypatch.delitem(sys.modules, module)  # which another test may have imported
    monkeypatch.setitem(sys.modules, "rlcore_plugin_video", None)  # as if it were not installed
    with pytest.raises(PluginError, match=f"rlcore.{name} is provided by .*: pip install rlcore-plugin-video$"):
        getattr(rlcore, name)
    assert name not in rlcore.__all__, "`from rlcore import *` must work without plugins"


@pytest.mark.parametrize(
    ("kind", "use", "told"),
    [
        (
            "loss",
            "gae",
            r"unknown loss 'gae'.*is of kind estimator: it belongs in \[estimator\], use = 'ppo:gae'",
        ),
        ("loss", "adam", r"'adam' is of kind optimizer: it belongs in \[\[optimizer\]\], use = 'adam'"),
        (
            "model",
            "transformer",
            r"unknown model 'transformer'; well known: sac:actor-critic, .*sac:crossq, .*, mlp, .*dqn:q-network",
        ),
        ("model", "mpl", r"unknown model 'mpl'; did you mean 'mlp'\?$"),
        ("logger", "comet", r"unknown logger 'comet'; well known: csv, mlflow, tensorboard, trackio, wandb"),
    ],
)
def test_an_unknown_name_is_answered_with_what_its_kind_has(kind, use, told):
    with pytest.raises(PluginError, match=told) as error:
        PluginHost().find(kind, use)
    assert "core'?" not in str(error.value)
