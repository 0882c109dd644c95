"""What a person sees in a notebook: cells that run in a real kernel, one after the other."""

import asyncio
import base64
import importlib.util
import re

import pytest

if any(importlib.util.find_spec(name) is None for name in ("ipykernel", "nbclient")):
    pytest.skip("needs the extra `test`: ipykernel and nbclient", allow_module_level=True)
import nbclient
import nbformat

SMALL = "overrides={'epochs': 1, 'episodes': 2, 'metrics.every': 256, 'hidden': [8]}"


def run_cells(folder, *sources, interrupt_at=None):
    """Run cells in one kernel, and return them; the first is interrupted when its output has a text."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    place = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout=300, resources=place, allow_errors=True)

    async def execute():
        async with client.async_setup_kernel():
            for index, cell in enumerate(notebook.cells):
                running = asyncio.ensure_future(client.async_execute_cell(cell, index))
                if interrupt_at is not None and index == 0:
                    while not re.search(interrupt_at, str(cell.outputs)):
                        assert not running.done(), f"{interrupt_at!r} was never shown: {cell.outputs}"
                        await asyncio.sleep(0.05)
                    await client.km.interrupt_kernel()
                await running

    asyncio.run(execute())
    return notebook.cells


def html_of(cell):
    """Return the HTML of the one picture of a cell."""
    (html,) = [output.data["text/html"] for output in cell.outputs if "text/html" in output.get("data", {})]
    return html


def error_of(cell):
    return next(output.evalue for output in cell.outputs if output.output_type == "error")


def test_a_picture_is_replaced_in_its_place(tmp_path):
    cells = run_cells(
        tmp_path,
        "from rlcore_plugin_notebook.kernel import in_kernel, replace, show\n"
        "handle = show({'text/html': '<b>1</b>', 'text/plain': '1'})\n"
        "replace(handle, {'text/html': '<b>2</b>', 'text/plain': '2'})\n"
        "in_kernel()",
    )
    assert html_of(cells[0]) == "<b>2</b>"
    assert cells[0].outputs[-1].data["text/plain"] == "True"


@pytest.mark.slow
def test_an_interrupted_cell_leaves_a_run_that_the_next_one_resumes(tmp_path):
    cells = run_cells(
        tmp_path,
        f"import rlcore\ntraining = rlcore.PPO('CartPole-v1', seed=1, {SMALL})\nrun = training.train(1_000_000)",
        "run",
        "training.train(1_000_000)",
        "length = run.frames + 4_000\nrun = training.train(length, resume=True)\nassert run.length >= length",
        "run",
        "run.agent",
        "rlcore.load_agent(run.folder)",
        f"rlcore.PPO('CartPole-v1', name=run.folder.name, {SMALL}).train(512)",
        interrupt_at=r"return \d",
    )
    shown = html_of(cells[0])
    assert "of 1,000,000 frames" in shown
    assert "stopped: SIGINT" in shown
    assert "train(1000000, resume=True)" in shown
    assert "<progress" in shown
    printed = [output.text for output in cells[0].outputs if output.output_type == "stream"]
    assert len(printed) == 1, "only how a command goes on is printed"
    assert "rlcore train --resume runs/ppo-CartPole-v1" in printed[0]
    assert "SIGINT" in html_of(cells[1])
    assert "was stopped at" in error_of(cells[2])
    assert "done" in html_of(cells[3])
    svg = base64.b64decode(re.search(r"base64,([^\"]+)", html_of(cells[3]))[1]).decode()
    assert svg.count("<polyline") == 2, "evaluations and training"
    picture = html_of(cells[4])
    assert "last evaluation" in picture
    assert "id CartPole-v1" in picture
    assert "lr 0.001" in picture
    for cell in cells[5:7]:
        assert re.search(r"Discrete\(2\).*\d+ parameters: actor, critic", html_of(cell))
    assert "exists already" in error_of(cells[7])
    assert "resume=True" in error_of(cells[7])


@pytest.mark.slow
def test_quiet_shows_nothing_and_a_failed_run_says_so(tmp_path):
    fails = (
        "class Fails:\n    @rlcore.hookimpl\n    def post_steps(self, batch):\n        raise OSError('it is full')\n"
        f"rlcore.PPO('CartPole-v1', {SMALL}).train(512, hooks=[Fails()])"
    )
    quiet = f"import rlcore\nrun = rlcore.PPO('CartPole-v1', {SMALL}).train(512, quiet=True)"
    cells = run_cells(tmp_path, quiet, fails)
    assert cells[0].outputs == []
    assert "failed: OSError" in html_of(cells[1])
    assert "it is full" in error_of(cells[1])
