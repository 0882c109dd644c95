"""The server of `rlcore mcp`, driven by a real client over real pipes."""

from __future__ import annotations

import json
import sys
from contextlib import asynccontextmanager
from importlib.util import find_spec

import pytest

from rlcore.cli.command_line import main

needs_protocol = pytest.mark.skipif(find_spec("mcp") is None, reason="the package of the protocol is not installed")


@asynccontextmanager
async def client(folder):
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "rlcore.cli.command_line", "mcp", str(folder)], cwd=folder
    )
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        begun = await session.initialize()
        assert "thirty answers" in begun.instructions
        yield session


async def call(session, tool, **arguments):
    """Return whether a tool failed, and what it said."""
    result = await session.call_tool(tool, arguments)
    return result.is_error, "".join(part.text for part in result.content)


def run(function, folder):
    import anyio

    async def within():
        async with client(folder) as session:
            return await function(session)

    return anyio.run(within)


def test_a_folder_that_is_none_is_refused(capsys, tmp_path):
    assert main(["mcp", str(tmp_path / "none")]) == 2
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("mcp") is not None, reason="the package of the protocol is installed")
def test_says_what_to_install(capsys, tmp_path):
    assert main(["mcp", str(tmp_path)]) == 2
    assert "rlcore-plugin-assistants[mcp]" in capsys.readouterr().err


@needs_protocol
@pytest.mark.slow
def test_from_an_env_to_an_evaluated_policy(tmp_path):
    async def train(session):
        tools = {tool.name for tool in (await session.list_tools()).tools}
        assert tools >= {"init", "check", "train", "status", "stop"}
        failed, text = await call(session, "init", preset="ppo", env="CartPole-v1", name="first")
        assert not failed, text
        failed, text = await call(session, "check", config="first.toml", overrides=["loss.clpi=0.3"])
        assert failed
        assert "exit code 2" in text
        assert "clpi" in text
        overrides = ["run.total_frames=2_048", "evaluator.episodes=1", "evaluator.every=2_048"]
        failed, text = await call(session, "train", config="first.toml", overrides=overrides)
        assert not failed, text
        status = await until(session, lambda status: status["exit_code"] is not None)
        assert status["state"] == "done", status
        failed, text = await call(session, "evaluate", run="runs/first", episodes=2)
        assert not failed, text
        assert len(json.loads(text)["returns"]) == 2
        failed, text = await call(session, "train", config="first.toml")
        assert failed
        assert "exists already" in text

    run(train, tmp_path)


async def until(session, is_so):
    """Return the status of the run once a condition holds for it."""
    import anyio

    with anyio.fail_after(120):
        while True:
            failed, text = await call(session, "status", run="runs/first")
            assert not failed, text
            if is_so(json.loads(text)):
                return json.loads(text)
            await anyio.sleep(0.2)


@needs_protocol
@pytest.mark.slow
def test_a_training_is_stopped_with_its_state_saved_and_goes_on(tmp_path):
    async def stopped(session):
        await call(session, "init", preset="ppo", env="CartPole-v1", name="first")
        arguments = {"config": "first.toml", "overrides": ["checkpoint.every=1_024"]}
        failed, text = await call(session, "train", **arguments)
        assert not failed, text
        await until(session, lambda status: status.get("frames", 0) > 0)
        failed, text = await call(session, "stop", run="runs/first")
        assert not failed, text
        assert json.loads(text)["state"] == "stopped-resumable"
        failed, text = await call(session, "stop", run="runs/first")
        assert failed
        failed, text = await call(session, "train", **arguments, resume=True)
        assert not failed, text
        await until(session, lambda status: status["state"] == "running" and status["exit_code"] is None)

    run(stopped, tmp_path)
    status = json.loads((tmp_path / "runs/first/status.json").read_text())
    assert status["state"] == "stopped-resumable"  # the client left, and what trained was stopped with its state


@needs_protocol
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("check", {"config": "../outside.toml"}),
        ("explain", {"config": "/etc/hosts"}),
        ("runs", {"folder": ".."}),
        ("status", {"run": "/"}),
        ("stop", {"run": "../../runs"}),
        ("compare", {"folders": ["/tmp"]}),
        ("init", {"preset": "ppo", "env": "CartPole-v1", "name": "../escaped"}),
        ("train", {"config": "../outside.toml"}),
        ("evaluate", {"run": ".."}),
    ],
)
def test_no_path_leads_out_of_the_folder(tmp_path, tool, arguments):
    import anyio
    from rlcore_plugin_assistants.server import server
    from rlcore_plugin_assistants.workshop import Workshop

    inside = tmp_path / "served"
    inside.mkdir()
    workshop = Workshop(inside)
    with pytest.raises(Exception, match="outside of the folder"):
        anyio.run(server(workshop).call_tool, tool, arguments)
    assert list(tmp_path.iterdir()) == [inside]


@needs_protocol
def test_a_link_that_leads_out_is_refused(tmp_path):
    from rlcore_plugin_assistants.workshop import Workshop, WorkshopError

    inside = tmp_path / "served"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    with pytest.raises(WorkshopError, match="outside of the folder"):
        Workshop(inside).path("link/config.toml")


def test_a_name_like_an_option_is_read_as_a_path(tmp_path):
    from rlcore_plugin_assistants.workshop import Workshop

    assert Workshop(tmp_path).path("--trust") == "./--trust"
