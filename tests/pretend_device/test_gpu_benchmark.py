"""What a GPU runs for minutes runs on the pretend device too, and leaves its table row by row."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ABOVE = "# On a GPU\n\nWhat was measured before.\n"
NAMES = [
    "tests that need CUDA",
    "components train and resume",
    "PPO, CartPole, 4,096 envs",
    "PQN, CartPole, 4,096 envs",
    "SAC, Pendulum, 256 envs",
]


def started(path, *options):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    script = [
        sys.executable,
        str(ROOT / "benchmarks" / "gpu.py"),
        "--device",
        "pretend",
        "--small",
        "--output",
        str(path),
    ]
    return subprocess.Popen([*script, *options], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def rows_in(path):
    """Return the cells of each row; the two lines of the heading are left out."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("|")][2:]


@pytest.mark.slow
def test_every_row_is_measured(tmp_path):
    table = tmp_path / "gpu.md"
    table.write_text(f"{ABOVE}\n## Envs of tensors\n\nOf a run before.\n")
    process = started(table)
    _, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors.decode()
    text = table.read_text()
    assert text.startswith(ABOVE)
    assert "Of a run before" not in text
    assert "The pretend device, which is no GPU" in text
    rows = rows_in(table)
    assert [name for name, *_ in rows] == NAMES
    of_cuda, of_suites, *measured = [result for _, result, *_ in rows]
    assert "skipped" in of_cuda or "passed" in of_cuda
    assert int(of_suites.removesuffix(" passed")) > 10
    for result in measured:
        rate, _, words = result.partition(" frames/s, ")
        assert float(rate.replace(",", "")) > 0
        assert "return" in words


@pytest.mark.slow
def test_rows_are_there_after_a_kill_and_where_the_time_is_over(tmp_path):
    table = tmp_path / "gpu.md"
    process = started(table)
    deadline = time.monotonic() + 300
    while not rows_in(table) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert [name for name, *_ in rows_in(table)] == NAMES[: len(rows_in(table))] != []
    assert len(rows_in(table)) < len(NAMES)

    process = started(table, "--seconds", "6")
    process.communicate(timeout=300)
    assert process.returncode == 0
    cut, *rest = [result for _, result, *_ in rows_in(table)]
    assert "skipped" in cut or "until the limit" in cut
    assert set(rest) == {"not begun: the time is over"}
