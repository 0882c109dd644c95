"""Runs that are counted in updates: tables, pages and messages say so, and do not mix them with runs of frames."""

import re

import pytest
from rlcore_plugin_reports.comparison import compare
from rlcore_plugin_reports.comparison_table import FORMATS
from rlcore_plugin_reports.html.page import page
from rlcore_plugin_reports.run_files import RunFiles

from rlcore import ConfigError


@pytest.fixture
def make_updates(make_run):
    def make(name, evaluations, **sections):
        folder = make_run(name, evaluations, run={"name": name, "seed": 1, "total_updates": 100}, **sections)
        table = folder / "evaluations.csv"
        table.write_text(table.read_text().replace("frames,", "updates,"))
        return folder

    return make


def test_a_comparison_speaks_of_updates(make_updates):
    runs = [
        make_updates("a", {0: [1, 2], 50: [3, 4]}),
        make_updates("b", {0: [1, 2], 100: [5, 6]}, buffer={"use": "x"}),
    ]
    found = compare(runs, threshold=3)
    assert (found.clock, found.unit, found.frame) == ("updates", "update", 50)
    for write in FORMATS.values():
        assert not re.search(r"\b[Ff]rames?\b", write(found))
    with pytest.raises(ConfigError, match=r"--at 60: .* ends at update 50"):
        compare(runs, at=60)


def test_a_page_speaks_of_updates(make_updates):
    text = page([RunFiles(make_updates("a", {0: [1, 2], 50: [3, 4]}))])
    shown = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.DOTALL)
    assert "<dt>Updates</dt>" in shown
    assert not re.search(r">[^<]*\b[Ff]rames?\b[^<]*<", shown)


def test_runs_of_two_clocks_are_not_compared(make_run, make_updates):
    with pytest.raises(ConfigError, match=r"counts frames and .* counts updates"):
        compare([make_run("a", {0: [1], 50: [3]}), make_updates("b", {0: [1], 50: [3]})])
