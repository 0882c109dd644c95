"""`rlcore report`: one page about runs, with nothing outside of it."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from rlcore.reports import page as report
from rlcore.testing import make_run


class Page(HTMLParser):
    """The tables, pictures and addresses of a page; and whether every element is closed."""

    VOID = ("meta", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.sources, self.texts, self.headings = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href", "data")]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of one config, and a run of another."""
    folder = tmp_path_factory.mktemp("runs")
    made = []
    for name, seed, rate in (("one", 1, 0.01), ("two", 2, 0.01), ("other", 1, 0.02)):
        overrides = (f"run.name={name}", f"run.seed={seed}", f"optimizer.0.lr={rate}")
        run = make_run(*overrides, folder=folder, sections={"logger": [{"use": "csv"}]})
        run.trainer.metrics.log_video("evaluation/video", np.zeros((1, 2, 3, 8, 8), np.uint8), 16)
        run.trainer.metrics.log_image("a<b>", np.zeros((1, 8, 8), np.uint8), 16)
        run.trainer.train()
        made.append(run.folder)
    return made


def test_a_page_shows_everything_and_fetches_nothing(runs, cli):
    outcome = cli("report", *runs)
    assert outcome.code == 0, outcome.err
    file = runs[0] / "report.html"
    assert str(file) in outcome.out
    text = file.read_text()
    page = Page(text)
    assert page.headings == [
        *("Runs", "Curves", "Evaluations", "Images and videos", "Faults seen"),
        *("Further metrics", "Config", "Versions"),
    ]
    assert page.sources
    assert all(re.match(r"data:image/(gif|png);base64,", source) for source in page.sources)
    assert "http" not in re.sub(r"<pre>.*?</pre>", "", text, flags=re.DOTALL), "no address of any other place"
    assert "@import" not in text
    assert "<b>" not in text
    assert [row[0] for row in page.rows[1:4]] == ["one", "two", "other"]
    assert "lr = 0.02" in text


def test_runs_that_differ_in_the_seed_are_one_line_with_a_spread(runs, tmp_path):
    text = report.page([report.RunFiles(run) for run in runs])
    first = text[text.index("<svg") : text.index("</svg>")]
    assert first.count("<polyline") == 2
    assert "<polygon" in text, "the two seeds do not learn the same"
    assert "<polygon" not in report.page([report.RunFiles(run) for run in runs[1:]])
    assert "one and 1 more: mean, lowest to highest" in first
    values = [report.RunFiles(run).metrics["evaluation/return"][32] for run in runs[:2]]
    (row,) = [row for row in Page(text).rows if row[:2] == ["one", "32"]]
    assert row[2] == f"{sum(values) / 2:,.1f}"
    assert row[4] == f"{min(values):,.1f} to {max(values):,.1f}"
    assert row[6] == "2"


def test_what_went_wrong_is_said(runs, tmp_path):
    folder = tmp_path / "unlucky"
    folder.mkdir()
    (folder / "config.toml").write_bytes((runs[0] / "config.toml").read_bytes())
    status = {"state": "failed-resumable", "reason": "EnvError: <gone>", "losses": {"updates skipped as not finite": 3}}
    (folder / "status.json").write_text(json.dumps(status))
    (folder / "stacks.txt").write_text("")
    page = Page(report.page([report.RunFiles(folder)]))
    said = [row[1] for row in page.rows if row and row[0] == "unlucky" and len(row) == 2]
    assert said[0] == "failed-resumable: EnvError: <gone>"
    assert said[1] == "3 updates skipped as not finite"
    assert said[2].startswith("nothing moved")
    assert page.texts.count("nothing recorded") == 4, "a run without metrics has empty charts"


def test_a_page_without_faults_says_none(runs):
    assert "None." in Page(report.page([report.RunFiles(runs[0])])).texts


def test_media_beyond_the_room_are_named(runs, monkeypatch):
    monkeypatch.setattr(report, "EMBEDDED_BYTES", 0)
    page = Page(report.page([report.RunFiles(runs[0])]))
    assert not page.sources
    assert any("000000000016.gif: left out" in text for text in page.texts)


@pytest.mark.parametrize(("arguments", "message"), [(["nowhere"], "is not a run folder"), ([], "cannot be written")])
def test_what_cannot_be_reported_is_refused(runs, cli, arguments, message):
    outcome = cli("report", *(arguments or [runs[0], "--output", "no/such/folder.html"]))
    assert outcome.code == 2
    assert message in outcome.err


def test_a_report_needs_no_torch(runs, tmp_path):
    code = (
        "import sys; from rlcore.cli.command_line import main; "
        f"assert main(['report', {str(runs[0])!r}, '--output', {str(tmp_path / 'page.html')!r}]) == 0; "
        "print([name for name in ('torch', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr
