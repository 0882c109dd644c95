"""The tools of the server: what an assistant can ask, each a few words and one command of rlcore."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from rlcore_plugin_assistants.workshop import Workshop, WorkshopError


def server(workshop: Workshop) -> MCPServer[Any]:
    """Return a server with the tools of a workshop, and with the skill as its instructions.

    Args:
        workshop: where the tools work.
    """
    text = (files("rlcore_plugin_assistants") / "skill" / "SKILL.md").read_text(encoding="utf-8")
    made: MCPServer[Any] = MCPServer("rlcore", version=version("rlcore"), instructions=text.split("---", 2)[2].strip())
    for tool in _looking(workshop) + _training(workshop):
        made.tool()(_with_reason(tool))
    return made


def _with_reason(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool with errors that say what was wrong; of any other error the protocol says nothing."""

    @wraps(tool)
    def called(**arguments: Any) -> Any:
        try:
            return tool(**arguments)
        except WorkshopError as error:
            raise ToolError(str(error)) from error

    return called


def _looking(workshop: Workshop) -> list[Any]:
    """Return the tools that change nothing."""

    def presets() -> list[Any]:
        """List the presets: for which algorithm and env, and what return they reached."""
        return list(workshop.call("init", "--list")["presets"])

    def plugins() -> list[Any]:
        """List the installed plugins."""
        return list(workshop.call("plugins", "list")["plugins"])

    def show_plugin(name: str) -> dict[str, Any]:
        """Show the components of a plugin and every key of their config sections."""
        return workshop.call("plugins", "show", "--", name)

    def check(config: str, overrides: list[str] | None = None) -> dict[str, Any]:
        """Report all problems of a config, before any training. An override is like `loss.clip_epsilon=0.3`."""
        return workshop.call("config", "check", workshop.path(config), *_sets(overrides))

    def explain(config: str) -> dict[str, Any]:
        """Say each key of a config: its value, where the value is from, what it means."""
        return workshop.call("config", "explain", workshop.path(config))

    def runs(folder: str = "runs") -> list[Any]:
        """List runs with their states."""
        return list(workshop.call("runs", workshop.path(folder))["runs"])

    def status(run: str) -> dict[str, Any]:
        """Say how a run stands: state, frames, reason; with its last output where it was begun by `train`."""
        return workshop.status(run)

    def compare(folders: list[str], metric: str = "evaluation/return") -> dict[str, Any]:
        """Compare settings over their seeds: means, interquartile means and their 95 % intervals."""
        return workshop.call("compare", *map(workshop.path, folders), "--metric", metric)

    return [presets, plugins, show_plugin, check, explain, runs, status, compare]


def _training(workshop: Workshop) -> list[Any]:
    """Return the tools that write files and train."""

    def init(preset: str, env: str, name: str) -> dict[str, Any]:
        """Write NAME.toml, a config from a preset or an algorithm for an env; nothing is overwritten."""
        file = workshop.path(f"{name}.toml")
        return workshop.call("init", f"--env={env}", f"--name={name}", f"--output={file}", "--", preset)

    def train(config: str, overrides: list[str] | None = None, resume: bool = False) -> dict[str, Any]:
        """Begin a training in the background, or go on with a stopped one; `status` says how it stands."""
        return workshop.train(config, overrides or [], resume)

    def stop(run: str) -> dict[str, Any]:
        """Stop a training with its state saved, so that it can be resumed."""
        return workshop.stop(run)

    def evaluate(run: str, episodes: int = 10, best: bool = True) -> dict[str, Any]:
        """Play episodes with the policy of a run; returns and lengths."""
        flags = [f"--episodes={episodes}", *(["--best"] if best else [])]
        return workshop.call("evaluate", workshop.path(run), *flags)

    return [init, train, stop, evaluate]


def _sets(overrides: list[str] | None) -> list[str]:
    return [f"--set={override}" for override in overrides or []]
