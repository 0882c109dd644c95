"""DQN and QR-DQN of Stable-Baselines3 as models and configs here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from rlcore.errors import StorageError
from rlcore_plugin_import.layout import Piece, Translation, layers, linear_layers
from rlcore_plugin_import.sb3_file import SavedModel
from rlcore_plugin_import.sections import (
    activation_of,
    check_extractor,
    frames_between_updates,
    hidden_of,
    note_schedules,
    off_policy_clocks,
    optimizer_layout,
    optimizer_section,
    replay_section,
    run_section,
    translation,
)


def q_learning(saved: SavedModel, name: str, further: int | None) -> Translation:
    """Translate a model with values of all actions; the arguments are those of `on_policy`.

    Raises:
        ConfigError: the model has something that no network here has.
        StorageError: its network is of another form than its settings say.
    """
    check_extractor(saved)
    notes: list[str] = []
    quantiles = saved.algorithm == "QRDQN"
    theirs, ours = ("quantile_net", ".network") if quantiles else ("q_net", "")
    network = linear_layers(saved.tensors, f"{theirs}.{theirs}")
    target = linear_layers(saved.tensors, f"{theirs}_target.{theirs}")
    model: dict[str, Any] = {
        "use": "dqn:q-network",
        "hidden": hidden_of(network, saved.tensors, saved.what),
        "activation": activation_of(saved, "ReLU"),
        **_exploration(saved, further),
    }
    loss: dict[str, Any] = {"use": "dqn:qr-dqn" if quantiles else "dqn", "gamma": saved.number("gamma", 0.99)}
    if quantiles:
        model["quantiles"] = saved.whole("n_quantiles")
        if not model["quantiles"]:
            raise StorageError(f"{saved.what} does not say n_quantiles")
    else:
        loss["error"] = "smooth_l1"
    frames, updates = frames_between_updates(saved, notes)
    interval = saved.whole("target_update_interval", 10_000) * updates / frames
    loss |= {"target_interval": max(1, round(interval)), "target_tau": saved.number("tau", 1.0)}
    section, state = optimizer_section(saved, "policy.optimizer", "q_values")
    config: dict[str, Any] = {
        "run": run_section(saved, name, further),
        "model": model,
        "loss": loss,
        "optimizer": [section],
        "collector": {"frames_per_batch": frames},
        "buffer": replay_section(saved, updates, notes),
    }
    if saved.data.get("max_grad_norm") is not None:
        config["learner"] = {"max_grad_norm": saved.number("max_grad_norm")}
    note_schedules(saved, notes)
    return translation(
        saved,
        config,
        pieces=[
            *_network(network, f"q_values{ours}", saved, model.get("quantiles", 1)),
            *_network(target, f"target_q_values{ours}", saved, model.get("quantiles", 1)),
        ],
        optimizers=[optimizer_layout("q_values", state, saved, f"{theirs}.")],
        clocks=off_policy_clocks(saved),
        notes=notes,
    )


def _network(names: Sequence[str], ours: str, saved: SavedModel, quantiles: int) -> list[Piece]:
    """Return the pieces of a network; its last layer has the quantiles of each action together, and theirs apart."""

    def by_action(tensors: Sequence[Tensor]) -> Tensor:
        (tensor,) = tensors
        rest = tensor.shape[1:]
        return tensor.reshape(quantiles, -1, *rest).transpose(0, 1).reshape(-1, *rest)

    pieces = layers(names, ours, saved.tensors)
    last = f"{ours}.layers.{len(names) - 1}."
    return [replace(piece, join=by_action) if piece.ours.startswith(last) else piece for piece in pieces]


def _exploration(saved: SavedModel, further: int | None) -> dict[str, Any]:
    """Return the keys by which the fraction of random actions falls until the frame at which it did so before."""
    ends = saved.number("exploration_fraction", 0.1) * max(1, saved.whole("_total_timesteps", 1))
    total = run_section(saved, "", further)["total_frames"]
    return {
        "epsilon_start": saved.number("exploration_initial_eps", 1.0),
        "epsilon_end": saved.number("exploration_final_eps", 0.05),
        "epsilon_fraction": min(1.0, max(ends, 1) / total),
    }
