"""`rlcore report`: one page about runs, with nothing outside of it."""

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from rlcore_plugin_health.warnings_file import read_warnings
from rlcore_plugin_reports.html import media
from rlcore_plugin_reports.html import page as report
from rlcore_plugin_testing import make_run


class Page(HTMLParser):
    """The tables, pictures and addresses of a page; and whether every element is closed."""

    VOID = ("meta", "img", "input", "br")

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.sources, self.texts, self.headings = [], [], [], [], []
        self.links = []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        if tag not in self.VOID:
            self.open.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "data")]
        self.links += [value for name, value in attributes if name == "href"]
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
        if self.open and {"td", "th"} & set(self.open):
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


def own(text):
    """Return what of a page is neither a config nor the library that draws, which names its home."""
    library = (Path(report.__file__).parent / "web/uplot/uPlot.iife.min.js").read_text()
    assert library in text
    return re.sub(r"<pre>.*?</pre>", "", text.replace(library, ""), flags=re.DOTALL)


def data_of(text):
    """Return what the script of a page reads."""
    return json.loads(re.search(r'<script id="data"[^>]*>(.*?)</script>', text)[1])


def test_a_page_shows_everything_and_fetches_nothing(runs, cli):
    outcome = cli("report", *runs)
    assert outcome.code == 0, outcome.err
    file = runs[0] / "report.html"
    assert str(file) in outcome.out
    text = file.read_text()
    page = Page(text)
    assert page.headings == [
        *("Curves", "Runs", "What differs", "Evaluations", "Images and videos"),
        *("Config", "Versions", "Checkpoints", "Health"),
    ]
    assert page.sources
    assert all(re.match(r"data:image/(gif|png);base64,", source) for source in page.sources)
    assert sorted(page.links) == ["./", "./../other/", "./../two/"]
    assert "http:" not in own(text).replace("http://www.w3.org/2000/svg", ""), "no address of any other place"
    assert "https:" not in own(text), "no address of any other place"
    assert "default-src 'none'" in text
    assert "connect-src 'none'" in text
    assert "@import" not in text
    assert "<b>" not in text
    place = next(place for place, row in enumerate(page.rows) if row[:2] == ["run", "state"])
    assert [row[0] for row in page.rows[place + 1 : place + 4]] == ["one", "two", "other"]
    assert "lr = 0.02" in text


def test_runs_that_differ_in_the_seed_are_one_line_with_a_spread(runs, tmp_path):
    text = report.page([report.RunFiles(run) for run in runs])
    first = text[text.index("<svg") : text.index("</svg>")]
    assert first.count("<polyline") == 2
    assert data_of(text)["settings"] == [{"label": "lr=0.01", "runs": 2}, {"label": "lr=0.02", "runs": 1}]
    values = [report.RunFiles(run).metrics["evaluation/return"][32] for run in runs[:2]]
    row = next(row for row in Page(text).rows if row[0] == "32")
    assert row[1] == f"{sum(values) / 2:,.1f}"
    assert row[2:4] == [f"{min(values):,.1f}", f"{max(values):,.1f}"]
    assert row[6] == "2"
    learned = [report.RunFiles(run).metrics["train/grad_norm"][32] for run in runs]
    assert learned[0] != learned[1], "the two seeds do not learn the same"
    both, other = data_of(text)["metrics"]["train/grad_norm"]["lines"]
    place = both["x"].index(32)
    expected = [min(learned[:2]), sum(learned[:2]) / 2, max(learned[:2])]
    assert [both[name][place] for name in ("low", "mean", "high")] == pytest.approx(expected, rel=1e-5)
    assert (both["runs"], other["runs"]) == (2, 1)
    assert other["mean"][place] == pytest.approx(learned[2], rel=1e-5)
    assert "low" not in other, "one run has no band"


def test_only_keys_that_differ_are_side_by_side(runs):
    rows = Page(report.page([report.RunFiles(run) for run in runs])).rows
    place = rows.index(["key", "lr=0.01", "lr=0.02"])
    assert rows[place + 1] == ["optimizer.adam.lr", "0.01", "0.02"]
    assert rows[place + 2][0] == "frames", "the table of evaluations"
    assert "What differs" not in Page(report.page([report.RunFiles(run) for run in runs[:2]])).headings


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'"


def test_names_and_values_of_a_config_are_text(runs, tmp_path):
    """Folder, env, keys, values, versions, metrics and errors may hold anything."""
    folders = []
    for number in range(2):
        folder = tmp_path / f"{HOSTILE.replace('/', ' ')}{number}"
        folder.mkdir()
        config = {"run": {"name": HOSTILE}, "env": {"id": HOSTILE, HOSTILE: number}, "versions": {HOSTILE: HOSTILE}}
        (folder / "config.toml").write_text(tomli_w.dumps(config))
        (folder / "status.json").write_text(json.dumps({"state": "failed", "reason": HOSTILE, "frames": 3}))
        with (folder / "metrics.csv").open("w", newline="") as stream:
            csv.writer(stream).writerows([("frames", "key", "value"), (1, HOSTILE, 2), (1, "evaluation/return", 2)])
        folders.append(report.RunFiles(folder))
    text = report.page(folders, tmp_path)
    page = Page(text)
    assert text.count("<script") == 4
    assert page.sources == []
    assert "<img" not in text
    assert HOSTILE in data_of(text)["metrics"]
    assert all(link.startswith(("#", "./")) for link in page.links)
    live = "".join(report.news(folders)["parts"].values())
    assert "<script" not in live
    assert "<img" not in live


def test_a_curve_of_a_million_points_makes_no_large_page(tmp_path):
    folder = tmp_path / "long"
    folder.mkdir()
    (folder / "config.toml").write_text("[run]\nname = 'long'\n")
    run = report.RunFiles(folder)
    values = np.random.default_rng(0).normal(size=1_000_000)
    run.__dict__["metrics"] = {"train/loss": dict(enumerate(values.tolist()))}
    text = report.page([run])
    (line,) = data_of(text)["metrics"]["train/loss"]["lines"]
    assert len(line["x"]) <= 4_000
    assert line["of"] == 1_000_000
    assert max(line["mean"]) == pytest.approx(values.max(), rel=1e-5)
    assert len(text) < 1_000_000


def test_a_file_that_is_no_page_is_not_written_over(runs, cli, tmp_path):
    precious = tmp_path / "notes.txt"
    precious.write_text("do not lose me")
    outcome = cli("report", runs[0], "--output", precious)
    assert outcome.code == 2
    assert "notes.txt' is there and is no page of rlcore" in outcome.err
    assert precious.read_text() == "do not lose me"
    for _ in range(2):
        assert cli("report", runs[0], "--output", tmp_path / "page.html").code == 0


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
    assert page.texts.count("nothing recorded") == 1, "a run without metrics has an empty chart"


def test_a_run_that_stopped_where_it_was_asked_to_says_so(runs, tmp_path):
    folder = tmp_path / "until"
    folder.mkdir()
    (folder / "config.toml").write_bytes((runs[0] / "config.toml").read_bytes())
    (folder / "status.json").write_text(json.dumps({"state": "stopped-resumable", "reason": ""}))
    rows = Page(report.page([report.RunFiles(folder)])).rows
    assert ["until", "stopped-resumable: at the end that was asked for"] in [list(row) for row in rows]


def test_what_the_hook_health_warned_of_is_shown(tmp_path):
    sections = {"hook": [{"use": "health"}], "logger": [{"use": "csv"}], "optimizer": [{"use": "adam", "lr": 0.5}]}
    run = make_run("run.total_frames=256", "run.name=ill", folder=tmp_path, sections=sections)
    run.trainer.train()
    said = [row[1] for row in Page(report.page([report.RunFiles(run.folder)])).rows if row and row[0] == "ill"]
    (warned, *_) = read_warnings(run.folder)
    assert f"frame {warned['frames']:,}: {warned['message']}" in said


def test_a_page_without_faults_says_none(runs):
    texts = Page(report.page([report.RunFiles(runs[0])])).texts
    assert "None of the runs recorded anything that went wrong." in texts


def test_media_beyond_the_room_are_named(runs, monkeypatch):
    monkeypatch.setattr(media, "EMBEDDED_BYTES", 0)
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
