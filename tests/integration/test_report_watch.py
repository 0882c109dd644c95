"""`rlcore report --watch`: a page that follows runs, from a server for this machine alone."""

import http.client
import json
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from html import unescape

import pytest
from rlcore_plugin_reports.html import server as watching
from rlcore_plugin_testing import make_run

from .test_report_in_a_browser import BROWSER, FLAGS

PROGRAM = (sys.executable, "-m", "rlcore")


@contextmanager
def served(*folders):
    with watching.Server(folders, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def asked(server, path, host=None):
    """Return status and text of an answer."""
    connection = http.client.HTTPConnection(watching.ADDRESS, server.server_address[1], timeout=30)
    connection.request("GET", path, headers={} if host is None else {"Host": host})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.fixture
def run(tmp_path):
    return make_run("run.name=live", folder=tmp_path, sections={"logger": [{"use": "csv"}]})


def test_news_are_what_the_run_wrote_since(run):
    with served(run.folder) as server:
        status, page = asked(server, "/")
        assert status == 200
        assert 'data-poll-seconds="2.0"' in page
        assert "connect-src 'self'" in page
        status, text = asked(server, "/data.json?seen=")
        before = json.loads(text)
        assert before["charts"]["metrics"] == {}
        assert asked(server, f"/data.json?seen={before['version']}") == (204, "")
        run.trainer.train()
        time.sleep(max(0.0, server.watched._next_look - time.monotonic()))
        status, text = asked(server, f"/data.json?seen={before['version']}")
        after = json.loads(text)
    assert status == 200
    assert after["version"] != before["version"]
    assert after["charts"]["metrics"]["evaluation/return"]["lines"][0]["x"][-1] == 64
    assert set(after["parts"]) == {"headline", "runs", "evaluations", "checkpoints", "health"}
    assert "64" in after["parts"]["runs"]


@pytest.mark.parametrize("path", ["/etc/passwd", "/../../etc/passwd", "/report.html", "/data.jsonx"])
def test_nothing_else_is_served(run, path):
    with served(run.folder) as server:
        assert asked(server, path)[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1"])
def test_a_page_of_another_place_gets_nothing(run, host):
    with served(run.folder) as server:
        for path in ("/", "/data.json"):
            status, text = asked(server, path, host)
            assert status == 403
            assert "live" not in text


def test_a_folder_that_goes_away_is_said_and_comes_back(run, tmp_path):
    run.trainer.train()  # to its end, so that no logger makes the folder again
    with served(run.folder) as server:
        run.folder.rename(tmp_path / "away")
        status, text = asked(server, "/data.json")
        assert status == 503
        assert "is not a run folder" in text
        (tmp_path / "away").rename(run.folder)
        assert asked(server, "/data.json")[0] == 200


def test_runs_that_take_long_to_read_are_looked_at_seldom(run, monkeypatch):
    looks = []
    monkeypatch.setattr(watching, "news", lambda runs: looks.append(1) or time.sleep(0.2) or {"looks": len(looks)})
    watched, began = watching.Watched([run.folder]), time.monotonic()
    first = json.loads(watched.news(""))
    (run.folder / "metrics.csv").write_text("frames,key,value\n1,a,1\n")
    assert json.loads(watched.news(""))["version"] == first["version"]
    assert watched._next_look - began >= 10 * 0.2, "ten times as long as the look took"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nowhere", "--watch"), "is not a run folder"),
        (("RUN", "--watch", "--output", "x.html"), "leave out --output"),
        (("RUN", "--port", "8000"), "--port is the port of --watch"),
        (("RUN", "--watch", "--port", "TAKEN"), "cannot be had"),
    ],
)
def test_what_cannot_be_watched_is_refused(run, cli, arguments, message):
    with served(run.folder) as server:
        words = {"RUN": run.folder, "TAKEN": server.server_address[1]}
        outcome = cli("report", *(words.get(word, word) for word in arguments))
    assert outcome.code == 2
    assert message in outcome.err


@contextmanager
def started(*command):
    process = subprocess.Popen([*PROGRAM, *map(str, command)], stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_ctrl_c_ends_it(run):
    with started("report", "--watch", run.folder) as process:
        url = process.stdout.readline().split()[0]
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert b"<title>live</title>" in answer.read()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "ended\n"
        assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")
def test_a_browser_follows_a_run(write_config, workdir):
    config = write_config(run={"total_frames": 10**8}, logger=[{"use": "csv"}], metrics={"every": 512})
    folder = workdir / "runs" / "tiny"
    with started("train", config, "--quiet"):
        while not (folder / "status.json").is_file() or "running" not in (folder / "status.json").read_text():
            time.sleep(0.2)
        with started("report", "--watch", folder) as server:
            url = server.stdout.readline().split()[0]
            with urllib.request.urlopen(url, timeout=30) as answer:
                first = frames_of(answer.read().decode())
            profile = f"--user-data-dir={workdir / 'profile'}"
            flags = [flag for flag in FLAGS if "virtual-time" not in flag]
            command = [BROWSER, *flags, profile, "--timeout=9000", "--dump-dom", url]
            seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert frames_of(seen) > first
    assert ">live</span>" in seen


def frames_of(page):
    """Return the frames of the only run, as its page shows them."""
    cell = page.partition('data-label="frames"')[2].partition(">")[2]
    return int(unescape(cell).split()[0].partition("<")[0].replace(",", ""))
