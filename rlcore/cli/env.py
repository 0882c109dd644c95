"""`rlcore env check`: whether an environment can be trained on, by a checker of its library and by ours."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rlcore.cli.arguments import positive, trust_argument
from rlcore.config.file import read
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import RawConfig
from rlcore.config.sections import InvalidConfig, Section, validate
from rlcore.errors import ConfigError

if TYPE_CHECKING:
    from rlcore.envs.examination import Finding
    from rlcore.types import Env

_SIGNS: Final = {"fine": "ok", "advice": "advice", "problem": "PROBLEM"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    text = "find out whether an environment can be trained on: its form, ends, seeds, saved state, infos and speed"
    check = actions.add_parser("check", help=text)
    check.add_argument(
        "id", metavar="ID", nargs="?", help="of a Gymnasium environment; a module before a colon is imported"
    )
    check.add_argument("--config", metavar="CONFIG", help="check the [env] of this config instead, or with this ID")
    check.add_argument("--steps", type=positive, default=1000, metavar="N", help="random steps; default: 1000")
    trust_argument(check)


def run(options: argparse.Namespace) -> int:
    """Check, print each finding as it comes, and return 3 where one is a problem."""
    section = _section(options)
    findings = []
    for finding in _findings(section, options.steps):
        findings.append(finding)
        print(f"{_SIGNS[finding.kind]:<8} {finding.about}: {finding.text}", flush=True)
    counts = {kind: sum(finding.kind == kind for finding in findings) for kind in _SIGNS}
    print(f"problems: {counts['problem']}, advice: {counts['advice']}")
    return 3 if counts["problem"] else 0


def _section(options: argparse.Namespace) -> Section:
    """Return the [env] of the config, or one of a Gymnasium id.

    Raises:
        ConfigError: neither is named, or the env cannot be used.
    """
    if options.config is None and options.id is None:
        raise ConfigError("rlcore env check needs an ID, such as CartPole-v1, or --config CONFIG")
    if options.config is None:
        raw = RawConfig({"run": {"total_frames": 1}, "env": {"use": "gymnasium"}}, Path("env.toml"))
    else:
        raw = read(Path(options.config), trust=options.trust)
    if options.id is not None:
        raw.values.setdefault("env", {"use": "gymnasium"})["id"] = options.id
    try:
        section = validate(raw).one("env")
    except InvalidConfig as error:  # what is wrong elsewhere matters to a run, not to the env
        section = None if error.rest is None else error.rest.one("env")
        if section is None:
            of_env = [problem for problem in error.problems if problem.startswith("[env]")]
            raise ConfigProblems(raw.path if options.config else Path("--"), of_env or error.problems) from None
    assert section is not None, "a config without [env] does not fit"
    return section


def _findings(section: Section, steps: int) -> Iterator[Finding]:
    """Yield what the library of the env and rlcore find out about it."""
    from rlcore.envs.examination import Checked, examine  # torch, which the help of the command does not need
    from rlcore.types.context import Context
    from rlcore.types.optional import offers

    context = Context.alone("check").for_component("env", section.name)

    def make() -> Env:
        return section.provided.build(section.config, context)  # type: ignore[no-any-return]

    first = make()
    try:
        if offers(first, Checked):
            yield from first.checked()
    finally:
        first.close()
    yield from examine(make, steps)
