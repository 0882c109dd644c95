"""Commands of plugins: listed from metadata, imported when they are called, and refused where they cannot be."""

import sys

import pytest

from rlcore.plugins.catalogue import PREFIX, PUBLISHED
from rlcore.plugins.commands import GROUP, plugin_commands
from rlcore.plugins.discovery import installed

GREET = """
    from rlcore.errors import ConfigError

    def add_arguments(parser):
        parser.description = "Greets."
        parser.add_argument("whom")

    def run(options):
        if options.whom == "nobody":
            raise ConfigError("there is nobody")
        print("hello,", options.whom)
        return 3
"""


@pytest.fixture
def greet(site):
    """A distribution with the command `greet`."""
    site.add("greetings", "greetings", GREET, entry_point="greet", group=GROUP, summary="says hello")
    return site


def test_the_help_lists_it_and_imports_nothing(greet, cli):
    shown = cli("--help").out
    assert "says hello (greetings)" in shown
    assert "greetings" not in sys.modules


def test_it_runs_with_its_arguments_and_its_exit_code(greet, cli):
    done = cli("greet", "world")
    assert (done.code, done.out) == (3, "hello, world\n")
    assert "Greets." in cli("greet", "--help").out


def test_its_errors_are_those_of_rlcore(greet, cli):
    refused = cli("greet", "nobody")
    assert refused.code == 2
    assert refused.err.startswith("error: there is nobody")


def test_it_cannot_take_the_place_of_a_command_of_the_core(site, cli):
    site.add("greetings", "greetings", GREET, entry_point="plugins", group=GROUP)
    assert cli("plugins", "list").code == 0
    assert "greetings" not in cli("--help").out


def test_two_that_claim_one_name_are_refused(greet, cli):
    greet.add("salutes", "salutes", GREET, entry_point="greet", group=GROUP)
    refused = cli("greet", "world")
    assert refused.code == 2
    assert "the command 'greet' is claimed by greetings 1.0 and salutes 1.0; uninstall one of them" in refused.err


def test_one_that_is_broken_or_for_another_rlcore_is_refused(site, cli):
    site.add("broken", "broken_command", "import absent_package", entry_point="broken", group=GROUP)
    site.add("old", "old_command", GREET, entry_point="old", group=GROUP, requires=["rlcore<0.1"])
    assert "the command 'broken' (broken 1.0) failed: ModuleNotFoundError" in cli("broken").err
    assert "needs rlcore <0.1" in cli("old").err
    assert cli("--help").code == 0


PUBLISHED_COMMANDS = {command: plugin for plugin, one in PUBLISHED.items() for command in one.commands}


def test_the_published_commands_are_those_of_the_entry_points():
    claims = {claim.name: claim.distribution for claim in installed(GROUP)}
    assert claims == {command: PREFIX + plugin for command, plugin in PUBLISHED_COMMANDS.items()}


@pytest.mark.parametrize("command", PUBLISHED_COMMANDS)
def test_one_that_is_published_and_not_installed_names_what_to_install(command, cli, monkeypatch):
    monkeypatch.setenv("RLCORE_NO_PLUGINS", "1")
    distribution = PREFIX + PUBLISHED_COMMANDS[command]
    command_of_core, _, action = command.rpartition(".")
    words = [*command_of_core.split(), action]
    refused = cli(*words, "file.toml")
    assert refused.code == 2
    assert f"rlcore {' '.join(words)} is provided by {distribution}, which is not installed" in refused.err
    assert f"pip install {distribution}" in refused.err
    text = PUBLISHED[PUBLISHED_COMMANDS[command]].commands[command]
    line = f"{action} {text}; of {distribution}, which is not installed"
    assert "".join(line.split()) in "".join(cli(*words[:-1], "--help").out.split())  # a help line may end at a hyphen


def test_they_are_in_order_of_name_without_those_of_the_core(greet):
    greet.add("another", "another", GREET, entry_point="another", group=GROUP)
    assert [command.name for command in plugin_commands(PUBLISHED_COMMANDS)] == ["another", "greet"]


def test_a_name_with_a_dot_is_that_of_an_action_of_a_command_of_the_core(greet, cli):
    greet.add("another", "another", GREET, entry_point="plugins.greet", group=GROUP)
    greet.add("list-of-others", "others", GREET, entry_point="plugins.list", group=GROUP)
    assert cli("plugins", "greet", "you") == cli("greet", "you")
    assert cli("plugins", "list").code == 0
    assert "plugins.greet" not in cli("--help").out


@pytest.fixture
def no_reports(monkeypatch):
    """An installation without rlcore-plugin-reports."""
    for name in [*sys.modules, "rlcore_plugin_reports"]:
        if name.partition(".")[0] == "rlcore_plugin_reports":
            monkeypatch.setitem(sys.modules, name, None)


def test_seeds_without_the_plugin_that_trains_them_name_what_to_install(cli, write_config, no_reports):
    refused = cli("train", write_config(), "--seeds", "2")
    assert refused.code == 2
    assert "rlcore train --seeds is provided by rlcore-plugin-reports, which is not installed" in refused.err
    assert "pip install rlcore-plugin-reports" in refused.err


def test_a_run_ends_well_without_what_draws_its_curves(cli, write_config, no_reports, pictures):
    done = cli("train", write_config(logger=[{"use": "csv"}]))
    assert done.code == 0, done.err
    assert "run folder" in done.out
    assert "curves" not in done.out
    assert "no curves.png: the drawing of curves is provided by rlcore-plugin-reports, which is not inst" in done.err
