"""The page about learning is what its rows give, and has every one of them."""

from pathlib import Path

from rlcore_plugin_bench.bench_file import read_bench
from rlcore_plugin_bench.figures import figures_of
from rlcore_plugin_bench.page import page, pictures
from rlcore_plugin_presets.presets import presets

ROOT = Path(__file__).parents[2]
PAGE = Path("benchmarks/results/learning.md")


def test_the_page_is_made_of_the_rows(monkeypatch):
    """Make it again with the command that stands on it."""
    monkeypatch.chdir(ROOT)
    files = [read_bench(path) for path in sorted(Path("benchmarks/learning/table").glob("*.toml"))]
    tasks = figures_of(files)
    assert page(files, tasks, PAGE.stem) == PAGE.read_text()
    drawn = pictures(tasks)
    assert {path.name: path.read_text() for path in PAGE.with_suffix("").glob("*.svg")} == drawn
    shown = sum(len(method.rows) + len(method.stale) for task in tasks for method in task.methods)
    assert shown == len(list(Path("benchmarks/results/rows/learning").rglob("*.json.gz")))


def test_what_presets_say_that_they_reached_is_in_the_table():
    """Their returns are those of the rows, seed by seed; the rows that are there for presets alone are all said."""
    rows = {}
    for path in (ROOT / "benchmarks/learning/table").glob("*.toml"):
        file = read_bench(path)
        for task in figures_of([file]):
            methods = dict(file.methods_of(task.name))
            for method in task.methods:
                if preset := methods[method.name].preset:
                    scores = [round(score, 1) for score in method.scores]
                    rows[preset, methods[method.name].env, *scores] = (path.stem, task.title)
    said = {
        (preset.name, reached.env, *reached.returns): f"{reached.frames:,} frames"
        for preset in presets()
        for reached in preset.about.reached
    }
    assert said.keys() <= rows.keys()
    assert {key for key, (file, _) in rows.items() if file == "presets"} <= said.keys()
    assert all(frames in rows[key][1] for key, frames in said.items())
