"""The figures of a page against NumPy, and the page itself."""

import json

import numpy as np
import pytest
from rlcore_plugin_bench.bench_file import read_bench
from rlcore_plugin_bench.figures import figures_of, line_of
from rlcore_plugin_bench.row import rows_of
from rlcore_plugin_bench.stored_row import Curve, StoredRow, read_row, write_row

from rlcore.cli.command_line import main
from rlcore.errors import ConfigError

SCORES = [3.0, 10.0, 5.0, 4.0, 8.0]


@pytest.fixture
def bench(write_bench):
    """Return a bench file of which all rows are stored, and a published method."""
    paper = {"source": "a paper, 2026", "mean": 12.5, "std": 1.5, "runs": 10}
    task = {"threshold": 5.0, "method": {"ours": {"config": "toy.toml", "title": "Ours"}, "paper": paper}}
    path = write_bench(bench={"seeds": [1, 2, 3, 4, 5]}, toy=task)
    for row, score in zip(rows_of(read_bench(path)), SCORES, strict=True):
        curve = Curve([0, 50, 100], [0.0, score / 2, score], [0.0, 1.0, 3.0])
        write_row(row.stored, StoredRow("toy", "ours", row.seed, score, frames=100, seconds=3.0, curve=curve))
    return path


def test_figures_are_those_of_numpy(bench):
    ours, paper = figures_of([read_bench(bench)])[0].methods
    scores = np.asarray(SCORES)
    assert ours.mean == scores.mean()
    assert ours.deviation == pytest.approx(scores.std(ddof=1))
    assert ours.figures["median"].value == np.median(scores)
    assert ours.figures["iqm"].value == np.sort(scores)[1:4].mean()
    again = np.random.RandomState(7).choice(scores, (200_000, 5))
    low, high = np.percentile(np.sort(again)[:, 1:4].mean(-1), [2.5, 97.5])
    assert ours.figures["iqm"].low == pytest.approx(low, abs=0.1)
    assert ours.figures["iqm"].high == pytest.approx(high, abs=0.1)
    # 10 is at 5 after 50 frames, 5 and 8 after 100, 3 and 4 never: of five the third
    assert ours.frames_to_threshold() == 100
    assert ours.seconds_to_threshold() == 3.0
    assert sum(each is not None for each in ours.reached) == 3
    assert (paper.mean, paper.deviation, paper.count) == (12.5, 1.5, 10)


def test_a_line_is_the_mean_of_curves_at_the_frames_that_all_span():
    curves = [Curve([0, 10, 20], [0.0, 1.0, 2.0], [None] * 3), Curve([10, 30], [3.0, 5.0], [None] * 2)]
    line = line_of("both", curves)
    assert line.x.tolist() == [10.0, 20.0]
    assert line.y.tolist() == [2.0, 3.0]
    assert line.low.tolist() == [1.0, 2.0]
    assert line.high.tolist() == [3.0, 4.0]
    alone = line_of("one", curves[:1])
    assert alone.low.tolist() == alone.y.tolist() == [0.0, 1.0, 2.0]


def test_the_page_has_the_figures_and_its_pictures_and_is_the_same_again(bench, tmp_path, capsys):
    assert main(["bench", "table", str(bench), "--output", "page.md"]) == 0
    page = (tmp_path / "page.md").read_text()
    assert "| Ours | 1, 2, 3, 4, 5 | 3.0, 10.0, 5.0, 4.0, 8.0 | 5.0 | 6.0 ± 2.9 | 5.7 [" in page
    assert "| 100 (3 of 5) | 3.0 |" in page
    assert "| paper | 10, published |  |  | 12.5 ± 1.5 |" in page
    assert "* paper: a paper, 2026" in page
    assert "* Scores alone, without curve and config: Ours 1, 2, 3, 4, 5" in page
    assert "![curves of toy](page/toy.svg)" in page
    picture = (tmp_path / "page" / "toy.svg").read_text()
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert ">Ours</text>" in picture
    assert main(["bench", "table", str(bench), "--output", "page.md"]) == 0
    assert (tmp_path / "page.md").read_text() == page
    assert (tmp_path / "page" / "toy.svg").read_text() == picture

    capsys.readouterr()
    assert main(["bench", "table", str(bench), "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["data"]["tasks"]
    assert task["methods"][0]["mean"] == 6.0
    assert task["methods"][0]["reached"] == 3
    assert task["methods"][1]["source"] == "a paper, 2026"


def test_equal_rows_are_equal_bytes_and_a_damaged_one_is_named(bench, tmp_path):
    file = next(tmp_path.rglob("seed-1.json.gz"))
    before = file.read_bytes()
    write_row(file, read_row(file))
    assert file.read_bytes() == before
    file.write_bytes(before[:40])
    with pytest.raises(ConfigError, match=r"seed-1\.json\.gz is no row of a benchmark"):
        read_row(file)


def test_a_task_in_two_files_and_a_page_that_is_no_markdown_are_refused(bench, write_bench, refused):
    other = write_bench("other")
    assert "task 'toy' is in " in refused("bench", "table", bench, other)
    assert "--output page.html: the page is Markdown" in refused("bench", "table", bench, "--output", "page.html")


def test_a_page_of_several_tasks_begins_with_a_line_for_each(bench, write_bench, capsys):
    other = write_bench("other", others={"method": {"unknown": {"source": "a paper, 2026", "mean": 3.0}}})
    assert main(["bench", "table", str(bench)]) == 0
    assert "## All tasks" not in capsys.readouterr().out
    assert main(["bench", "table", str(bench), str(other)]) == 0
    page = capsys.readouterr().out
    assert "| toy | Ours: 6.0 ± 2.9 (5); paper: 12.5 ± 1.5 (10) |" in page
    assert "| others | unknown: 3.0 |" in page
