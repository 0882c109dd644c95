"""One of several policies of a run by itself: what was saved of it, as of a run that had it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlcore.assembly.saved import Saved
from rlcore.config.changes import entries_of
from rlcore.config.policies import AGENTS
from rlcore.envs.spec_records import recorded_spec, spec_record
from rlcore.errors import ConfigError, did_you_mean
from rlcore.policies.shares import assigned
from rlcore.types import EnvSpec


def models_of(saved: Saved) -> dict[str, dict[str, Any]]:
    """Return the keys of the model of each policy by its name; of a run with one policy by the empty name."""
    return {name: dict(table) for name, table in entries_of(saved.config, "model").items()}


def agents_of(saved: Saved) -> dict[str, list[str]]:
    """Return the names of the agents that each policy acts for."""
    return {name: list(table[AGENTS]) for name, table in models_of(saved).items()}


def of_policy(saved: Saved, policy: str | None) -> Saved:
    """Return what was saved of one policy.

    Args:
        saved: of a run.
        policy: its name; None where the run has one policy.

    Raises:
        ConfigError: the run has several policies and none is named, or none of that name.
    """
    models = models_of(saved)
    if "" in models:
        if policy is not None:
            raise ConfigError(f"policy {policy!r}: {saved.path} is of a run with one policy; leave it out")
        return saved
    if policy not in models:
        asked = "" if policy is None else f", and none is called {policy!r}{did_you_mean(policy, models)}"
        raise ConfigError(
            f"{saved.path} is of a run with several policies, {', '.join(models)}{asked}: name one of them "
            "(rlcore.load_agent(..., policy=...), rlcore export --policy)"
        )
    table = {key: value for key, value in models[policy].items() if key != AGENTS}
    own = {name: state for name, state in saved.states.items() if not name.startswith("model.")}
    return replace(
        saved,
        config={**saved.config, "model": table},
        states={**own, "model": saved.states[f"model.{policy}"]},
        env=spec_record(_spec_of(saved, policy)),
    )


def _spec_of(saved: Saved, policy: str) -> EnvSpec:
    """Return what a policy knows of the env, before any transform."""
    spec = recorded_spec(saved.env)
    return assigned(spec, agents_of(saved)).spec(policy, spec)
