"""The skill: its front matter, its size, its questions, and that each command and key in it exists."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

import rlcore_plugin_assistants

from rlcore.cli.command_line import main, parser
from rlcore.cli.parsing import Parser

SKILL = Path(rlcore_plugin_assistants.__file__).parent / "skill" / "SKILL.md"
TEXT = SKILL.read_text()


def test_the_command_prints_the_folder_and_the_text(capsys):
    assert main(["skill"]) == 0
    assert Path(capsys.readouterr().out.strip()) == SKILL.parent
    assert main(["skill", "--text"]) == 0
    assert capsys.readouterr().out.strip() == TEXT.strip()


def test_front_matter_says_name_and_when_to_use_it():
    front = TEXT.split("---")[1]
    assert re.search(r"^name: rlcore$", front, re.MULTILINE)
    description = re.search(r"^description: (.+)$", front, re.MULTILINE)
    assert description is not None
    assert len(description[1]) <= 1024  # more is cut off by those who read it


def test_answers_thirty_questions_in_few_words():
    numbers = [int(number) for number in re.findall(r"^### (\d+)\. .+\?", TEXT, re.MULTILINE)]
    assert numbers == list(range(1, 31))
    assert len(TEXT) < 4 * 20_000 / 2  # four letters a token, with a margin of two


def _options(command: argparse.ArgumentParser, words: list[str]) -> set[str]:
    """Return the flags of a command and of its actions."""
    if isinstance(command, Parser):
        command.complete()
    flags = set(command._option_string_actions)
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction) and words:
            assert words[0] in action.choices, f"there is no command {words[0]!r}"
            return flags | _options(action.choices[words[0]], words[1:])
    return flags


def test_each_command_and_flag_that_a_sentence_names_exists():
    sentences = re.sub(r"```.*?```", "", TEXT, flags=re.DOTALL)
    commands = re.findall(r"`rlcore ([^`]+)`", sentences)
    assert len(commands) > 10
    for command in commands:
        words = [word for word in command.split() if not word.startswith("-")]
        missing = {word for word in command.split() if word.startswith("--")} - _options(parser(), words)
        assert not missing, command


def test_each_algorithm_of_the_table_has_a_preset():
    from rlcore_plugin_presets.presets import presets

    algorithms = {preset.about.algorithm for preset in presets()}
    table = TEXT.split("| task |")[1].split("###")[0]
    assert {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z0-9-]+)`", row)} <= algorithms


def test_each_plugin_that_brings_envs_is_published():
    from rlcore.plugins.catalogue import PUBLISHED

    answer = TEXT.split("### 21.")[1].split("### 22.")[0]
    assert set(re.findall(r"`([a-z-]+)`", answer)) <= set(PUBLISHED)


def test_the_whole_config_is_toml():
    (config,) = re.findall(r"```toml file=whole.toml\n(.*?)```", TEXT, re.DOTALL)
    assert tomllib.loads(config)["run"]["name"] == "whole"
