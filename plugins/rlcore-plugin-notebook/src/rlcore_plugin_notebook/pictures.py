"""The pictures of what a notebook shows at the end of a cell: runs and agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import tomli_w

from rlcore.errors import RlcoreError
from rlcore.run_folder import read_config
from rlcore_plugin_notebook import html

if TYPE_CHECKING:
    from rlcore.types import EvaluationResult

# of each section, what the line about a config says besides the component
_SHORT: Final = {
    "env": ("id", "num_envs"),
    "model": ("hidden",),
    "loss": ("gamma",),
    "optimizer": ("lr",),
    "run": ("seed",),
}


def run_html(run: Any) -> str:
    """Return the picture of a run that has ended: what it reached, its curves, its config.

    Args:
        run: a `TrainedRun`; its folder may be gone.
    """
    rows = {"trained": f"{run.frames:,} frames, {run.updates:,} updates"}
    for name, result in (("last evaluation", run.last_evaluation), ("best evaluation", run.best_evaluation)):
        rows |= {} if result is None else {name: _evaluation(result)}
    rows |= {"stopped": run.stop_reason} if run.stop_reason else {}
    config = read_config(run.folder)
    rows |= {"config": _short(config)} if config else {}
    whole = html.folded("config.toml", tomli_w.dumps(config)) if config else ""
    return html.framed([html.line("", bold=str(run.folder)), html.table(rows), _chart(run), whole])


def agent_html(agent: Any) -> str:
    """Return the picture of an agent: its environment, its spaces, and how large its network is.

    Args:
        agent: an `Agent`.
    """
    rows = {
        "environment": str(agent.env_id),
        "observations": str(agent.observation_space),
        "actions": str(agent.action_space),
        "transforms": ", ".join(type(transform).__name__ for transform in agent.transforms) or "none",
        "network": "in an exported program" if agent.network is None else _network(agent.network),
        "trained for": f"{agent.frames:,} frames",
    }
    rows |= {"remembers": "call reset() where episodes begin"} if agent.remembers else {}
    return html.framed([html.line("", bold="Agent"), html.table(rows)])


def _evaluation(result: EvaluationResult) -> str:
    return f"return {result.mean_return:,.1f} of {len(result.returns)} episodes, at {result.frames:,}"


def _chart(run: Any) -> str:
    try:
        curves = {key: (curve.frames, curve.values) for key, curve in run.curves.items() if html.is_charted(key)}
    except RlcoreError:  # no logger wrote metrics, or the folder is gone
        return ""
    return html.chart(curves, "frames" if run.length == run.frames else "updates")


def _short(config: Mapping[str, Any]) -> str:
    """Return the line about a config, such as `env gymnasium, id CartPole-v1; loss ppo:ppo, gamma 0.99`."""
    parts = []
    for section, keys in _SHORT.items():
        values = config.get(section)
        values = values[0] if isinstance(values, list) and values else values  # the first of those that repeat
        if isinstance(values, Mapping):
            said = [str(values["use"]).rpartition(":")[2]] if "use" in values else []
            said += [f"{key} {values[key]}" for key in keys if key in values]
            parts += [f"{section} {', '.join(said)}"] if said else []
    return "; ".join(parts)


def _network(network: Any) -> str:
    """Return how many numbers a network has, and of which parts it is."""
    count = sum(parameter.numel() for parameter in network.parameters())
    return f"{count:,} parameters: {', '.join(network.parts())}"
