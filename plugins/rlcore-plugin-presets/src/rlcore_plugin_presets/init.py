"""What `rlcore init` does: write a config from a preset and say what to type next, or list the presets."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from rlcore.cli import Answer
from rlcore.config import validate
from rlcore.errors import ConfigError
from rlcore_plugin_presets.command import Begun, ListedPreset
from rlcore_plugin_presets.config_text import as_raw, checked_name, filled, remedied, run_name, write_new
from rlcore_plugin_presets.fitting import chosen, lacking_data, remedies
from rlcore_plugin_presets.presets import About, Preset, named, presets

_EXAMPLE: Final = "rlcore init ppo --env CartPole-v1"


def run(options: argparse.Namespace) -> Answer:
    """Write the config, or list the presets."""
    if options.list:
        return _list(presets())
    if options.preset is None:
        _ask(options)
    candidates = _candidates(options)
    given = options.output or (options.name and f"{checked_name(options.name)}.toml")
    preset = chosen(candidates, options.env, Path(given or "init.toml"))
    name = checked_name(options.name or run_name(preset, options.env))
    path = Path(given or f"{name}.toml")
    text = filled(preset, name, options.env)
    lacking: list[str] = []
    changes = remedies(text, lambda changed: lacking.append(lacking_data(as_raw(changed, path))))
    complete = reduce(remedied, changes, text)
    run = str(validate(as_raw(complete, path)).run.place)
    write_new(path, complete)
    begun = Begun([str(path)], preset.name, run, [_told(change, text) for change in changes], lacking[-1])
    return Answer(begun, "".join(f"{line}\n" for line in _lines(begun, preset.about)))


def _lines(begun: Begun, about: About) -> Iterator[str]:
    """Yield what was written, and what to type next."""
    path, place = begun.files[0], shlex.quote(str(begun.run))
    yield f"wrote {path}: {about.summary} (preset {begun.preset})"
    yield from (f"  measured: {reached}" for reached in about.reached)
    yield from (f"  to fit the env: {change}" for change in begun.changes)
    if begun.lacking:
        yield f"before it trains: {begun.lacking}"
    yield "next:"
    yield f"  rlcore train {shlex.quote(path)}"
    yield f"  rlcore evaluate {place} --best"
    yield f"  rlcore report {place}"


def _told(remedy: Mapping[str, Any], text: str) -> str:
    """Return what a remedy changed in the text of a preset, as `[env] num_envs = 3`."""
    told = []
    for section, change in remedy.items():
        if isinstance(change, list):
            told += [f"[[{section}]] use = {table['use']!r}" for table in change]
        else:
            told += [f"[{section}] {key} = {value!r}" for key, value in change.items() if value is not None]
            told += [f"no {key}" for key, value in change.items() if value is None and f':{key}"' in text]
    return ", ".join(told)


def _candidates(options: argparse.Namespace) -> Sequence[Preset]:
    """Return the presets among which the environment chooses.

    Raises:
        ConfigError: an environment is needed and not named.
    """
    candidates = named(options.preset)
    if options.env is None and any(preset.env_id is not None for preset in candidates):
        raise ConfigError(
            f"rlcore init {options.preset} needs an environment: rlcore init {options.preset} --env "
            f"{next(preset.env_id for preset in candidates if preset.env_id is not None)}"
        )
    return candidates


def _ask(options: argparse.Namespace) -> None:
    """Ask on the terminal for what the command line does not say.

    Raises:
        ConfigError: there is no terminal to ask on.
    """
    if options.json or not sys.stdin.isatty():
        raise ConfigError(f"rlcore init needs a preset where nobody can be asked: {_EXAMPLE}; rlcore init --list")
    algorithms = sorted({preset.about.algorithm for preset in presets()})
    options.preset = _answer(f"algorithm ({', '.join(algorithms)})", "ppo" if "ppo" in algorithms else algorithms[0])
    candidates = named(options.preset)
    example = next((preset.env_id for preset in candidates if preset.env_id is not None), None)
    if options.env is None and example is not None:
        options.env = _answer("environment, a Gymnasium id", example)
    if options.name is None:
        options.name = _answer("name of the run", run_name(candidates[0], options.env))


def _answer(question: str, default: str) -> str:
    """Return what is typed, or the default where nothing is."""
    try:
        return input(f"{question} [{default}]: ").strip() or default
    except EOFError:
        raise ConfigError(f"nothing was answered; the same in one line: {_EXAMPLE}") from None


def _list(everything: Sequence[Preset]) -> Answer:
    listed = [
        ListedPreset(
            name=preset.name,
            algorithm=preset.about.algorithm,
            summary=preset.about.summary,
            owner=str(preset.owner),
            envs=preset.about.envs,
            actions=preset.about.actions,
            measured=list(map(str, preset.about.reached)),
            waits_for=[*preset.waits_for],
        )
        for preset in everything
    ]
    lines = [] if listed else ["no presets are installed; pip install 'rlcore[standard]' brings some"]
    for algorithm, presets_of_it in groupby(listed, key=lambda preset: preset.algorithm):
        lines += [algorithm, *(line for preset in presets_of_it for line in _listed(preset))]
    return Answer(Begun(presets=listed), "".join(f"{line}\n" for line in lines))


def _listed(preset: ListedPreset) -> Iterator[str]:
    kind = "" if preset.actions == "any" else f", {preset.actions} actions"
    yield f"  {preset.name}: {preset.summary} ({preset.owner})"
    yield f"    for {', '.join(preset.envs) or 'any environment'}{kind}"
    yield from (f"    measured on {reached}" for reached in preset.measured)
    if preset.waits_for:
        yield f"    needs pip install {' '.join(preset.waits_for)}"
