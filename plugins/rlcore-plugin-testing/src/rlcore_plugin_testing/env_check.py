"""Checks an environment, by a checker of its library and by ours: what `rlcore env check` does."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rlcore.cli import Answer
from rlcore.config.file import read
from rlcore.config.problems import ConfigProblems
from rlcore.config.raw import RawConfig
from rlcore.config.sections import InvalidConfig, Section, validate
from rlcore.errors import ConfigError
from rlcore.types import Env
from rlcore.types.context import Context
from rlcore_plugin_testing.env_command import CheckedEnv, EnvFinding
from rlcore_plugin_testing.examination import Finding, examine

_SIGNS: Final = {"fine": "ok", "advice": "advice", "problem": "PROBLEM"}


def run(options: argparse.Namespace) -> Answer:
    """Check, and print each finding as it comes; the exit code is 3 where one is a problem."""
    section = _section(options)
    findings = []
    for finding in _findings(section, options.steps):
        findings.append(EnvFinding(finding.kind, finding.about, finding.text))
        print(f"{_SIGNS[finding.kind]:<8} {finding.about}: {finding.text}", flush=True)
    counts = Counter(finding.kind for finding in findings)
    print(f"problems: {counts['problem']}, advice: {counts['advice']}")
    return Answer(CheckedEnv(findings), code=3 if counts["problem"] else 0)


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
    context = Context.alone("check").for_component("env", section.name)

    def make() -> Env:
        return section.provided.build(section.config, context)  # type: ignore[no-any-return]

    first = make()
    try:
        if hasattr(first, "checked"):  # an env of a library that has a checker
            yield from (Finding(*finding) for finding in first.checked())
    finally:
        first.close()
    yield from examine(make, steps)
