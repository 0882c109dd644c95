"""What a push writes besides the files themselves: a page for people, the proof of a run, and its report."""

from __future__ import annotations

import csv
import importlib.util
import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from rlcore import __version__
from rlcore.checkpoints import CheckpointEntry
from rlcore.errors import RlcoreError
from rlcore.run_folder import read_status
from rlcore_plugin_share.kinds import KINDS, PAGE, PROOF, REPORT
from rlcore_plugin_share.manifest import shown
from rlcore_plugin_share.source import Source

_MADE: Final = "<!-- written by rlcore push -->"
_EVALUATIONS: Final = "evaluations.csv"
# evaluations that the page lists; the report has all
_MOST_ROWS: Final = 10
_PROOF: Final = (
    *("id", "time", "progress", "evaluation", "run_id", "exact", "inexact", "digest", "config_hash"),
    *("versions", "domain", "data"),
)


def write_beside(source: Source, address: str, folder: Path, whole: bool) -> None:
    """Write page, proof and report of what is pushed, and add them to its files.

    Args:
        source: gets them.
        address: that it is pushed to.
        folder: to write them into.
        whole: whether what the run logged goes too, so that a report says something.
    """
    own = source.files.get(PAGE)
    if own is None or _MADE in own.read_text(encoding="utf-8", errors="replace"):
        (folder / PAGE).write_text("\n".join(_page(source, _without_password(address))), encoding="utf-8")
        source.files[PAGE] = folder / PAGE
    if source.checkpoint is not None:
        (folder / PROOF).write_text(json.dumps(proof_of(source.checkpoint), indent=1) + "\n", encoding="utf-8")
        source.files[PROOF] = folder / PROOF
    if source.kind is KINDS["run"] and whole and importlib.util.find_spec("rlcore_plugin_reports") is not None:
        from rlcore_plugin_reports import write_report

        try:
            source.files[REPORT] = write_report([source.folder], folder / REPORT, linked=False)
        except RlcoreError as error:  # of logs that cannot be read
            source.left.append(f"{REPORT}: {error}")


def proof_of(checkpoint: CheckpointEntry) -> dict[str, Any]:
    """Return what the manifest of a checkpoint says of its bits: whether a resume gives them, and what they hang on."""
    return {key: checkpoint.manifest[key] for key in _PROOF if key in checkpoint.manifest}


def _page(source: Source, address: str) -> Iterator[str]:
    config = source.config()
    facts = dict(_facts(source, config))
    yield "---"
    yield "library_name: rlcore"
    yield f"tags: {json.dumps(['reinforcement-learning', 'rlcore', *_tags(config)])}"
    yield "---"
    yield f"{_MADE}\n\n# {_plain(source.name)}\n"
    yield f"A {source.kind.name} of [rlcore](https://rlcore.readthedocs.io), pushed by version {__version__}.\n"
    yield from (f"- {name}: {_plain(value)}" for name, value in facts.items())
    yield from _returns(source)
    yield f"\n## Use it\n\n```bash\n{_commands(source, shlex.quote(address), config)}\n```\n"
    versions = config.get("versions")
    if isinstance(versions, Mapping) and versions:
        yield "## Made with\n"
        yield from (f"- {_plain(name)} {_plain(version)}" for name, version in versions.items())
        yield ""


def _facts(source: Source, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, section in (("environment", "env"), ("algorithm", "loss"), ("model", "model")):
        if text := _used(config, section):
            yield name, text
    if source.checkpoint is None:
        if source.kind is KINDS["dataset"]:
            yield from _dataset_facts(source.folder)
        return
    yield "trained", f"{source.checkpoint.reached:,} {source.checkpoint.clock}"
    status = read_status(source.folder)
    if reason := status.get("reason"):
        yield "state", f"{status.get('state')}: {reason}"
    exact = source.checkpoint.manifest.get("exact")
    why = "; ".join(map(str, source.checkpoint.manifest.get("inexact") or ()))
    yield "a resume gives the bits of a run that never stopped", "yes" if exact else f"no: {why or 'not recorded'}"
    yield "digest of its state", str(source.checkpoint.manifest.get("digest"))


def _dataset_facts(folder: Path) -> Iterator[tuple[str, str]]:
    try:
        about = json.loads((folder / "metadata.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return
    for key in ("dataset_id", "total_episodes", "total_steps", "data_format"):
        if isinstance(about, dict) and isinstance(about.get(key), str | int):
            yield key.replace("_", " "), str(about[key])


def _used(config: Mapping[str, Any], name: str) -> str:
    """Return what a section names: the id of an env, or its component; of several policies, that of each."""
    section = config.get(name)
    if not isinstance(section, Mapping):
        return ""
    tables = [section, *(table for table in section.values() if isinstance(table, Mapping))]
    uses = [str(table.get("id") or table.get("use") or "") for table in tables]
    return ", ".join(dict.fromkeys(filter(None, uses if uses[0] == "" else uses[:1])))


def _tags(config: Mapping[str, Any]) -> list[str]:
    return [text for section in ("env", "loss") if (text := _used(config, section).rpartition(":")[2])]


def _returns(source: Source) -> Iterator[str]:
    """Yield the table of the evaluations of a run: the last ones, and the best."""
    if _EVALUATIONS not in source.files:
        return
    returns: dict[int, list[float]] = {}
    with source.files[_EVALUATIONS].open(encoding="utf-8", errors="replace", newline="") as stream:
        reader = csv.DictReader(stream)
        clock = next(iter(reader.fieldnames or ()), "frames")
        for row in reader:
            try:
                returns.setdefault(int(row[clock]), []).append(float(row["return"]))
            except (KeyError, TypeError, ValueError):  # a line that was cut off
                continue
    if not returns:
        return
    best = max(returns, key=lambda at: fmean(returns[at]))
    yield f"\n## Returns\n\n| {_plain(clock)} | mean return | lowest | highest | episodes |"
    yield "| --- | --- | --- | --- | --- |"
    for at in sorted({best, *sorted(returns)[-_MOST_ROWS:]}):
        values = returns[at]
        mark = " (best)" if at == best else ""
        yield f"| {at:,}{mark} | {fmean(values):,.1f} | {min(values):,.1f} | {max(values):,.1f} | {len(values)} |"


def _commands(source: Source, address: str, config: Mapping[str, Any]) -> str:
    versions = config.get("versions")
    names = versions if isinstance(versions, Mapping) else {}
    needed = [name for name in names if name.startswith("rlcore-plugin-") and name.isascii()]
    install = f"pip install {' '.join(['rlcore-plugin-share', 'rlcore-plugin-agents', *needed])}"
    if source.kind is KINDS["dataset"]:
        return (
            f"pip install rlcore-plugin-share rlcore-plugin-datasets\nrlcore pull {address} data\nrlcore data show data"
        )
    pulled = "pulled"
    use = f"rlcore evaluate {pulled}\nrlcore train --resume {pulled}"
    if source.kind is KINDS["policy"]:
        use = f"python -c \"import rlcore; print(rlcore.load_agent('{pulled}/{source.name}'))\""
    return f"{install}\nrlcore pull {address} {pulled}\n{use}"


def _without_password(address: str) -> str:
    scheme, separator, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}" if separator else address


def _plain(value: object) -> str:
    """Return a value as text of a page, in which it is no markup."""
    text = shown(str(value))
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]<>|#" else letter for letter in text)
