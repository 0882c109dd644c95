"""Ranks as actors of a real Ray: the run is that of processes to the bit, whatever dies meanwhile."""

import os
import re
import signal
import time

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install rlcore-plugin-ray")

from rlcore.run_folder.status import read_status

from .on_ray import RANKS, Namespace, Ray, Trained

pytestmark = pytest.mark.slow

SECONDS = 300  # Ray takes its time to start


@pytest.fixture(scope="module")
def namespace():
    opened = Namespace()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def ray(namespace):
    started = Ray(namespace)
    yield started
    started.close()


@pytest.fixture(scope="module")
def in_processes(namespace, tmp_path_factory):
    """Return the result of the same config in processes without Ray."""
    trained = Trained(namespace, tmp_path_factory.mktemp("processes"), ranks={"count": 2})
    assert trained.end(SECONDS) == 0, trained.text()
    return trained.result()


def test_a_rank_that_is_killed_costs_nothing_but_time(namespace, ray, in_processes, tmp_path):
    trained = Trained(namespace, tmp_path, ranks={**RANKS, "address": ray.address})
    trained.wait_for(2048, SECONDS)
    os.kill(trained.ranks()[0], signal.SIGKILL)
    assert trained.end(SECONDS) == 0, trained.text()
    assert trained.result() == in_processes
    text = trained.text()
    assert re.search(r"rank [01] (is gone with its actor of Ray|ended with exit code 3).*go on from frame [1-9]", text)
    assert "8,192 frames" in text, "the summary that the first rank writes"
    assert not trained.ranks()


def test_ranks_on_several_hosts_that_stand_still_are_replaced(namespace, ray, in_processes, tmp_path):
    ranks = {**RANKS, "address": ray.address, "group": "gloo", "deadline": 4.0}
    trained = Trained(namespace, tmp_path, ranks=ranks)
    trained.wait_for(2048, SECONDS)
    stopped = trained.ranks()[1]
    os.kill(stopped, signal.SIGSTOP)
    assert trained.end(SECONDS) == 0, trained.text()
    assert trained.result() == in_processes
    assert "did not move for 4 s" in trained.text()
    assert not os.path.exists(f"/proc/{stopped}")


def test_a_ray_of_its_own_listens_on_one_address_and_ends_with_the_command(tmp_path):
    namespace = Namespace()
    try:
        trained = Trained(namespace, tmp_path, run={"total_frames": 1_000_000})
        trained.wait_for(2048, SECONDS)
        listening = namespace.listening()
        trained.process.kill()
        until = time.monotonic() + 30
        while left := namespace.processes():
            assert time.monotonic() < until, left
            time.sleep(0.05)
    finally:
        namespace.close()
    assert set(listening) == {"127.0.0.1"}


def test_a_node_that_disappears_and_a_head_that_is_gone(namespace, ray, in_processes, tmp_path):
    """The ranks go on where there is room; without any Ray the run ends, and can be resumed without it."""
    second = ray.add("--num-cpus=1", '--resources={"own": 1}')
    ray.nodes.append(second)
    ranks = {**RANKS, "address": ray.address, "wait": 60.0, "restarts": 1}
    trained = Trained(namespace, tmp_path, ranks=ranks)
    trained.wait_for(2048, SECONDS)
    os.killpg(ray.nodes[0].pid, signal.SIGKILL)
    assert trained.end(SECONDS) == 3, trained.text()
    status = read_status(trained.folder)
    assert status["state"] == "failed-resumable"
    assert "continue with: rlcore train --resume" in trained.text()
    resumed = Trained(namespace, tmp_path, "--resume", ranks={"count": 2})
    assert resumed.end(SECONDS) == 0, resumed.text()
    assert resumed.result() == in_processes


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ({"address": "127.0.0.1:9"}, "no Ray answers at address = '127.0.0.1:9' within 1 s"),
        ({"address": "ray://127.0.0.1:10001"}, "is that of a client of Ray"),
    ],
)
def test_a_ray_that_is_not_there_is_said_before_the_run_begins(namespace, tmp_path, ranks, message):
    trained = Trained(namespace, tmp_path, ranks={**RANKS, "wait": 1.0, **ranks})
    assert trained.end(SECONDS) == 2, trained.text()
    assert message in trained.text()
    assert not trained.folder.exists()
