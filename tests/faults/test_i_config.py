"""Rows I: configs that cannot be meant as they are written. All are refused before the first frame."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest
import tomli_w

from rlcore.config.core import CORE_SECTIONS, CheckpointConfig
from rlcore.config.sections import load_config
from rlcore.errors import ConfigError

ROOT = Path(__file__).parents[2]
EXAMPLE = tomllib.loads((ROOT / "examples" / "ppo-idp.toml").read_text())
EXAMPLE["transform"][0]["frames"] = 16  # each check of a config steps an env so often


def written(workdir, values):
    path = workdir / "changed.toml"
    path.write_text(tomli_w.dumps(values))
    return path


def refused(cli, path, message=""):
    outcome = cli("train", path)
    assert outcome.code == 2, outcome.err
    assert message in outcome.err
    assert "Traceback" not in outcome.err
    assert not list(Path("runs").glob("*")), "no frame was collected"
    return outcome.err


def keys_of_example():
    config = load_config(ROOT / "examples" / "ppo-idp.toml")
    for section, model in CORE_SECTIONS.items():
        if section == "ranks":  # refused by the process that would start them: test_shares.py of rlcore-plugin-ddp
            continue
        yield from ((section, key) for key in model.model_fields)
    yield from (("checkpoint", key) for key in CheckpointConfig.model_fields)
    for section, entries in config.sections.items():
        for entry in entries[:1]:
            yield from ((section, key) for key in type(entry.config).model_fields)


def table_of(values, section):
    table = values.setdefault(section, {})
    return table[0] if isinstance(table, list) else table


def written_misspelt(workdir, section, key):
    """Write the example with a letter more in a key; return its path, and how the key is written there."""
    values = tomllib.loads(tomli_w.dumps(EXAMPLE))
    misspelt = key + "q"  # the last letter stays: some keys differ by it
    table = table_of(values, section)
    table.pop(key, None)
    table[misspelt] = 1
    return written(workdir, values), misspelt


KEYS = sorted(set(keys_of_example()))


@pytest.mark.parametrize(("section", "key"), KEYS)
def test_i1_every_key_misspelt_is_refused_with_the_right_one(workdir, section, key):
    path, misspelt = written_misspelt(workdir, section, key)
    with pytest.raises(ConfigError) as error:
        load_config(path)
    message = str(error.value)
    assert misspelt in message
    assert section in message
    if len(key) > 3:
        assert f"did you mean '{key}'" in message


@pytest.mark.parametrize(("section", "key"), dict(KEYS).items())
def test_i1_a_misspelt_key_of_every_section_begins_no_run(cli, workdir, section, key):
    path, misspelt = written_misspelt(workdir, section, key)
    assert misspelt in refused(cli, path)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("run", "total_frames", -5),
        ("run", "total_frames", "many"),
        ("run", "seed", 1.5),
        ("run", "name", "../elsewhere"),
        ("optimizer", "lr", float("nan")),
        ("optimizer", "lr", True),
        ("learner", "max_grad_norm", 0),
        ("buffer", "epochs", 0),
        ("checkpoint", "keep_last", 0),
        ("evaluator", "every", 0),
    ],
)
def test_i2_a_value_that_cannot_be_is_refused(cli, workdir, section, key, value):
    values = tomllib.loads(tomli_w.dumps(EXAMPLE))
    table_of(values, section)[key] = value
    assert key in refused(cli, written(workdir, values))


@pytest.mark.parametrize(
    ("section", "use", "message"),
    [
        ("loss", "pppo", "did you mean 'ppo'"),
        ("env", "gymnasum", "did you mean 'gymnasium'"),
        ("logger", "wandbb", "wandb"),
        ("checkpoint", "torhc", "did you mean 'torch'"),
    ],
)
def test_i3_an_unknown_component_is_refused_with_the_nearest(cli, workdir, section, use, message):
    values = tomllib.loads(tomli_w.dumps(EXAMPLE))
    table_of(values, section)["use"] = use
    refused(cli, written(workdir, values), message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "missing"),
        ("[run", "Expected ']'"),
        ("[run]\nseed = 1\nseed = 2\n", "line 3"),
        ("\ufeff[run]\nname = 'x'\n", "missing"),
        ("[run]\nname = 'x\n", "end of document"),
        ("run = 3\n", "table"),
    ],
    ids=["empty", "broken", "twice", "byte order mark", "open string", "no table"],
)
def test_i4_a_broken_file_is_refused_with_the_place(cli, workdir, text, message):
    path = workdir / "broken.toml"
    path.write_text(text)
    refused(cli, path, message)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"collector.frames_per_batch": 7, "env.num_envs": 2}, ["frames_per_batch", "num_envs"]),
        ({"buffer.minibatch_size": 5000}, ["minibatch_size", "frames_per_batch"]),
    ],
)
def test_i5_keys_that_contradict_are_both_named(cli, workdir, changes, named):
    values = tomllib.loads(tomli_w.dumps(EXAMPLE))
    for key, value in changes.items():
        section, _, name = key.partition(".")
        table_of(values, section)[name] = value
    message = refused(cli, written(workdir, values))
    assert all(name in message for name in named)


def test_i6_ten_errors_are_reported_at_once(cli, workdir):
    values = tomllib.loads(tomli_w.dumps(EXAMPLE))
    wrong = ["run", "env", "model", "loss", "estimator", "collector", "buffer", "learner", "evaluator", "metrics"]
    for section in wrong:
        table_of(values, section)[f"wrong_{section}"] = 1
    message = refused(cli, written(workdir, values), "10 problems")
    assert all(f"wrong_{section}" in message for section in wrong)


@pytest.mark.parametrize("seed", range(3))
def test_i10_a_config_with_random_edits_is_refused_or_runs(cli, workdir, seed):
    """No edit may end in a traceback of ours; building is enough to find one."""
    generator = np.random.default_rng(seed)
    text = (ROOT / "examples" / "ppo-cartpole.toml").read_text()
    path = workdir / "edited.toml"
    for _ in range(40):
        lines = text.splitlines()
        for _ in range(int(generator.integers(1, 4))):
            place = int(generator.integers(len(lines)))
            edit = generator.integers(4)
            if edit == 0:
                lines.pop(place)
            elif edit == 1:
                lines.insert(place, lines[int(generator.integers(len(lines)))])
            elif edit == 2 and lines[place]:
                at = int(generator.integers(len(lines[place])))
                lines[place] = lines[place][:at] + chr(int(generator.integers(32, 127))) + lines[place][at + 1 :]
            else:
                lines[place] = lines[place].replace("=", "= -", 1)
        path.write_text("\n".join(lines))
        outcome = cli("train", path, "--dry-run")
        assert outcome.code in (0, 2, 3), f"{outcome.err}\n{path.read_text()}"
        assert "Traceback" not in outcome.err, path.read_text()
