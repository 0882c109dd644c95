"""One HTML page about one or several runs, with nothing outside of it: curves, tables, videos, config, faults.

It is made from the files of the run folders; torch is not needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import tomli_w
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rlcore.errors import ConfigError
from rlcore.files import replacing
from rlcore.run_folder import check_is_run
from rlcore.types import unit_of
from rlcore_plugin_reports.html import numbers
from rlcore_plugin_reports.html.health import findings
from rlcore_plugin_reports.html.lines import FIRST, chart_data, line_of, main_titles
from rlcore_plugin_reports.html.media import media
from rlcore_plugin_reports.html.overview import checkpoint_rows, evaluations, headline, run_rows
from rlcore_plugin_reports.html.settings import Setting, differences, settings
from rlcore_plugin_reports.run_files import RunFiles
from rlcore_plugin_reports.svg import chart

_FIRST_LINE: Final = b"<!DOCTYPE html>"
WEB: Final = Path(__file__).parent / "web"
# parts of the page that change while a run goes on
_LIVE_PARTS: Final = ("headline", "runs", "evaluations", "checkpoints", "health")


def run_files(folders: Sequence[Path]) -> list[RunFiles]:
    """Return what the files of run folders say.

    Raises:
        ConfigError: a folder is none of a run.
    """
    for folder in folders:
        check_is_run(folder)
    return [RunFiles(folder) for folder in folders]


def write_report(folders: Sequence[Path], output: Path, linked: bool = True) -> Path:
    """Write the page. Runs whose configs differ in name, folder and seed alone are one line with its spread.

    Args:
        folders: run folders.
        output: the HTML file, replaced as a whole.
        linked: whether it links the run folders, from where it lies.

    Raises:
        ConfigError: a folder is none of a run, or the page cannot be written.
    """
    text = page(run_files(folders), output.parent if linked else None)
    try:
        _check_replaceable(output)
        with replacing(output) as place:
            place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{str(output)!r} cannot be written: {error}") from error
    return output


def _check_replaceable(output: Path) -> None:
    """Refuse a file that this command did not write.

    Raises:
        ConfigError: it is one.
    """
    if output.is_file():
        with output.open("rb") as stream:
            begin = stream.read(len(_FIRST_LINE))
        if begin not in (b"", _FIRST_LINE):
            raise ConfigError(f"{str(output)!r} is there and is no page of rlcore report; choose another --output")


def page(runs: Sequence[RunFiles], beside: Path | None = None, poll_seconds: float | None = None) -> str:
    """Return the page as HTML.

    Args:
        runs: at least one.
        beside: the folder that it is to lie in, from which the run folders are linked; None to link nothing.
        poll_seconds: how often its script asks the server for what is new; None not to.
    """
    content = _content(runs, beside)
    return (
        _environment()
        .get_template("page.html")
        .render(
            **content,
            poll_seconds=poll_seconds,
            media=media(runs),
            configs=_configs(content["all_settings"]),
            versions=_versions(runs),
            drawings=_drawings(content["all_settings"], content["clock"]),
            text=_text,
        )
    )


def news(runs: Sequence[RunFiles]) -> dict[str, Any]:
    """Return what of the page changes while a run goes on: lines of charts, and parts as HTML."""
    content = _content(runs, None)
    parts = {name: _environment().get_template(f"parts/{name}.html").render(**content) for name in _LIVE_PARTS}
    running = any(run.status.get("state") == "running" for run in runs)
    return {"charts": content["charts"], "parts": parts, "running": running}


def _content(runs: Sequence[RunFiles], beside: Path | None) -> dict[str, Any]:
    all_settings, clocks = settings(runs), sorted({run.clock for run in runs})
    name = runs[0].folder.resolve().name if len(runs) == 1 else f"{len(runs)} runs"
    return {
        "all_settings": all_settings,
        "clock": " or ".join(clocks),
        "unit": " or ".join(unit_of(clock) for clock in clocks),
        "charts": chart_data(all_settings),
        "headline": headline(all_settings, name),
        "rows": run_rows(all_settings, beside),
        "evaluations": [(setting, evaluations(setting)) for setting in all_settings],
        "differing": differences(all_settings),
        "checkpoints": checkpoint_rows(runs),
        "health": [(run.folder.resolve().name, text) for run in runs for text in findings(run)],
    }


def _configs(all_settings: Sequence[Setting]) -> list[tuple[str, str]]:
    return [
        (
            setting.name,
            tomli_w.dumps({name: value for name, value in setting.runs[0].config.items() if name != "versions"}),
        )
        for setting in all_settings
    ]


def _versions(runs: Sequence[RunFiles]) -> dict[str, str]:
    """Return the versions of each distribution over all runs."""
    found: dict[str, dict[str, None]] = {}
    for run in runs:
        for name, version in run.section("versions").items():
            found.setdefault(name, {})[str(version)] = None
    return {name: ", ".join(sorted(versions)) for name, versions in found.items()}


def _drawings(all_settings: Sequence[Setting], clock: str) -> list[Markup]:
    """Return the main charts as SVG, for a reader without a script."""
    drawn = []
    for key, title in main_titles(all_settings).items():
        lines = [found[0] for setting in all_settings if (found := line_of(setting, key)) is not None]
        if lines or key == FIRST:
            drawn.append(Markup(chart(title, lines, clock)))  # which escapes its texts
    return drawn


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,  # names, configs and errors are of anyone
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":"), "allow_nan": False}
    environment.filters |= numbers.FILTERS
    return environment


def _text(name: str) -> Markup:
    return Markup((WEB / name).read_text(encoding="utf-8"))
