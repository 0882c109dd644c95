"""W&B online: its own library against a server on this machine, which is killed and started again."""

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from rlcore_plugin_spool.contracts import wait_until_sent
from rlcore_plugin_testing import make_run
from rlcore_plugin_wandb.logger import WandbLogger

pytestmark = pytest.mark.slow
KEY = "0123456789" * 4


class Server:
    """The server in a process of its own, always at the same port."""

    def __init__(self, folder):
        self.file, self.port, self.process = folder / "server.json", 0, None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = [sys.executable, str(Path(__file__).with_name("wandb_server.py")), str(self.port), str(self.file)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None

    def runs(self):
        """Id to run, the oldest first."""
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def values(self, run):
        rows = [json.loads(line) for _, line in sorted(self.runs()[run]["rows"].items(), key=lambda row: int(row[0]))]
        return [(row["frames"], row["a"]) for row in rows if "a" in row]

    def only_run(self):
        (run,) = self.runs()
        return run


@pytest.fixture(autouse=True)
def no_key(monkeypatch, tmp_path):
    """No account of whoever runs the tests is used."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path).start()
    yield server
    server.kill()


def logger_of(server, folder, **arguments):
    place = {"save_dir": folder, "base_url": server.url, "api_key": KEY, "project": "games"}
    return WandbLogger("trial", **place, process=True, **arguments)


def write(logger, *steps):
    for step in steps:
        logger.log_metrics({"a": step / 2}, step)


def rows(*steps):
    return [(step, step / 2) for step in steps]


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "this never comes about"
        time.sleep(0.1)


def test_a_run_arrives_whole(server, tmp_path):
    section = {"use": "wandb", "base_url": server.url, "api_key": {"env": "MY_KEY"}, "project": "games"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MY_KEY", KEY)
        run = make_run(folder=tmp_path, sections={"logger": [section]})
        run.trainer.train()
    assert wait_until_sent(tmp_path / "toy", 60)
    until(lambda: server.runs()[server.only_run()]["exit"] == 0)
    found = server.runs()[server.only_run()]
    steps = [json.loads(line)["frames"] for line in found["rows"].values()]
    assert steps == [0, 16, 32, 48, 64]
    assert found["config"]["run"]["value"]["total_frames"] == 64
    until(lambda: run.trainer.metrics.writers[0].unsent == 0)


def test_an_outage_in_the_middle_of_a_run_costs_nothing(server, tmp_path):
    logger = logger_of(server, tmp_path)
    write(logger, *range(5))
    assert logger.catch_up(60)
    server.kill()
    began = time.monotonic()
    write(logger, *range(5, 10))
    logger.flush()
    assert time.monotonic() - began < 1, "nothing waits for the server"
    time.sleep(2)
    server.start()
    write(logger, 10)
    logger.close()
    until(lambda: server.values(server.only_run()) == rows(*range(11)))
    until(lambda: logger.unsent == 0)


@pytest.mark.parametrize("arrived", [False, True])
def test_what_the_server_never_confirmed_is_counted_and_sent_the_next_time(server, tmp_path, caplog, arrived):
    logger = logger_of(server, tmp_path)
    write(logger, *range(5))
    assert logger.catch_up(60)
    if arrived:
        until(lambda: server.values(server.only_run()) == rows(*range(5)))
    server.kill()
    write(logger, *range(5, 10))
    assert logger.catch_up(60), "W&B takes them all the same"
    process = logger._sender._process
    logger.close()
    process.kill()  # the machine goes down before the server is back
    process.wait()
    assert logger.unsent == 10
    assert "10 records of logger 'trial' have not arrived" in caplog.text
    server.start()
    again = logger_of(server, tmp_path, spool=logger.spool.folder)
    again.start(wait=True)
    assert again.catch_up(60)
    again.close()
    until(lambda: again.unsent == 0)
    assert server.values(server.only_run()) == rows(*range(10))


def test_a_server_that_is_not_there_at_the_start_is_waited_for(tmp_path, caplog):
    server = Server(tmp_path).start()
    server.kill()
    logger = logger_of(server, tmp_path)
    write(logger, *range(5))
    until(lambda: logger.error)
    assert logger.unsent == 5
    assert "what is logged waits on disk" in caplog.text
    assert not list((tmp_path / "wandb").glob("run-*")), "attempts leave nothing behind"
    server.start()
    try:
        assert logger.catch_up(120)
        logger.close()
        until(lambda: server.values(server.only_run()) == rows(*range(5)))
    finally:
        server.kill()


def test_a_resume_sends_what_the_killed_run_left_before_it_goes_on(server, tmp_path):
    code = f"""
    import json, os, sys, time
    from rlcore_plugin_wandb.logger import WandbLogger
    logger = WandbLogger("trial", save_dir={str(tmp_path)!r}, base_url={server.url!r}, api_key={KEY!r},
                         project="games", log_env_packages=False, process=True)
    for step in range(10):
        logger.log_metrics({{"a": step / 2}}, step)
        if step == 4:
            state = logger.state_dict()
        if step == 0:
            logger.start(wait=True)
            sys.stdin.readline()
    assert logger.catch_up(60)
    print(json.dumps([state, logger._sender._process.pid]), flush=True)
    time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as training:
        until(lambda: server.runs())
        server.kill()
        training.stdin.write("\n")
        training.stdin.flush()
        state, sender = json.loads(training.stdout.readline())
        training.send_signal(signal.SIGKILL)
        subprocess.run(["kill", "-9", str(sender)], check=False)
    server.start()
    resumed = logger_of(server, tmp_path)
    resumed.load_state_dict(state)
    write(resumed, *range(5, 12))
    assert resumed.catch_up(120)
    resumed.close()
    until(lambda: resumed.unsent == 0)
    assert server.values(server.only_run()) == rows(*range(12))


@pytest.mark.parametrize("lost", [False, True])
def test_a_run_that_has_lines_of_others_gets_all_of_ours(server, tmp_path, lost):
    """Another script logged into it; or the spool is lost, and the checkpoint knows the run."""
    first = logger_of(server, tmp_path / "first")
    write(first, *range(5))
    assert first.catch_up(60)
    state = first.state_dict()
    first.close()
    until(lambda: first.unsent == 0)
    second = logger_of(server, tmp_path / "second", **({} if lost else {"id": state["id"]}))
    if lost:
        second.load_state_dict(state)
    write(second, *range(5, 10))
    assert second.catch_up(60)
    second.close()
    until(lambda: second.unsent == 0)
    assert server.values(server.only_run()) == rows(*range(10))
