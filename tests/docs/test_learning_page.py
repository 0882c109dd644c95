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
    """Their returns are those of the rows, seed by seed."""
    file = read_bench(ROOT / "benchmarks/learning/table/presets.toml")
    tasks = figures_of([file])
    in_table = {
        (task.file.task[task.name].method["rlcore"].preset, task.title, *task.methods[0].scores) for task in tasks
    }
    said = {
        (preset.name, f"Preset {preset.name}, {reached.env}, {reached.frames:,} frames", *reached.returns)
        for preset in presets()
        for reached in preset.about.reached
    }
    assert in_table == said
