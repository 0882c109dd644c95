"""The page about learning is what its rows give, and has every one of them."""

from pathlib import Path

from rlcore_plugin_bench.bench_file import read_bench
from rlcore_plugin_bench.figures import figures_of
from rlcore_plugin_bench.page import page, pictures

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
