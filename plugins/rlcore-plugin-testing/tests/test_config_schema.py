"""The JSON schema of configs agrees with `rlcore config check`, where a rule can be said in JSON schema at all."""

from __future__ import annotations

import copy
import random
import re
import tomllib
from pathlib import Path

import jsonschema
import pytest
from rlcore_plugin_testing.config_schema import config_schema

from rlcore.config.file import read
from rlcore.config.problems import ConfigProblems
from rlcore.config.sections import validate
from rlcore.errors import ConfigError

pytestmark = pytest.mark.slow  # the schema imports every plugin

EXAMPLES = {
    path: values
    for path in sorted(Path(__file__).parents[3].joinpath("examples").glob("*.toml"))
    if {"run", "extends"} & (values := tomllib.loads(path.read_text())).keys()
}
MUTANTS = 200
# problems that `config check` tells and the schema does not, each with the reason
RULES = {
    "keys together": (
        r"must be less than|are chosen from|name one network|needs the key",
        "what one key may be depends on the value of another",
    ),
    "arguments of a library": (
        r"of TorchRL\)|rlcore-plugin-torchrl|names no wrapper",
        "which arguments there are, the signature of a class says that the config names",
    ),
    "keys of one policy": (
        r"^\[(?!model)\w+\.[a-z]+\]",
        "the table of a policy has keys of the component that the section names outside of it",
    ),
    "plugins that are named": (
        r"which the config does not name",
        "a component has its short name where another section names its plugin",
    ),
}


@pytest.fixture(scope="module")
def fits():
    """Say whether a config fits the schema."""
    schema = config_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema).is_valid


def problems(path, values):
    """Return what `config check` finds in a config, without building its parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path.parent)
        try:
            validate(read(copy.deepcopy(values), trust=True))
        except ConfigError as error:
            return error.problems if isinstance(error, ConfigProblems) else [str(error)]
    return []


def keys_of(table, path=()):
    """Yield the path of each key, those of nested tables too."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        if isinstance(value, dict) or (isinstance(value, list) and value and isinstance(value[0], dict)):
            yield from keys_of(value, (*path, key))
        if isinstance(key, str):
            yield (*path, key)


def mutant(values, chance):
    """Return a config with one key that is misspelt, missing, of a wrong type or out of its range, and what that is."""
    changed = copy.deepcopy(values)
    *path, key = chance.choice(list(keys_of(changed)))
    table = changed
    for part in path:
        table = table[part]
    value, way = table.pop(key), chance.choice(["misspelt", "missing", "type", "range"])
    if way == "misspelt":
        cut = chance.randrange(len(key))
        table[f"{key[:cut]}{key[cut + 1 :]}x"] = value
    elif way == "type":
        others = ("text", True, 1.5, 7, [1], {"a": 1})
        table[key] = chance.choice([other for other in others if type(other) is not type(value)])
    elif way == "range":
        is_number = type(value) in (int, float)
        table[key] = chance.choice([-1, 0, 10**12, -0.5] if is_number else ["", -1, []])
    return changed, f"{way} {path} {key}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_fits(path, fits):
    assert fits(EXAMPLES[path])
    assert not problems(path, EXAMPLES[path])


def test_what_is_refused_is_refused_by_both(fits):
    chance = random.Random(0)
    whole = [path for path, values in EXAMPLES.items() if "extends" not in values]  # of a part, nothing need be there
    refused = 0
    for _ in range(MUTANTS):
        path = chance.choice(whole)
        changed, what = mutant(EXAMPLES[path], chance)
        told = problems(path, changed)
        refused += bool(told)
        if not fits(changed):
            assert told, f"{path.name}, {what}: the schema alone refuses it"
        elif told:
            beyond = [line for line in told if not any(re.search(rule, line) for rule, _ in RULES.values())]
            assert not beyond, f"{path.name}, {what}: the schema fits, and there is no rule for it"
    assert refused > MUTANTS / 2


def test_a_config_that_extends_another_may_leave_out_what_that_says(fits):
    assert fits({"extends": "a.toml", "env": {"num_envs": 2}})
    assert not fits({"extends": "a.toml", "env": {"num_envs": "two"}})
    assert not fits({"run": {"total_frames": 9}, "env": {"num_envs": 2}, "defaults": []})


def test_each_logger_knows_required_and_each_transform_leaf():
    schema = config_schema()["properties"]
    for section, key, kind in (("logger", "required", "boolean"), ("transform", "leaf", "string")):
        for choice in schema[section]["items"]["anyOf"]:
            assert choice["properties"][key]["type"] == kind
