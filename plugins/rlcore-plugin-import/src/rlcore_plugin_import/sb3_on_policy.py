"""PPO, A2C, TRPO, MaskablePPO and RecurrentPPO of Stable-Baselines3 as models and configs here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore_plugin_import.layout import Piece, Translation, layers, linear_layers, outputs
from rlcore_plugin_import.sb3_file import SavedModel
from rlcore_plugin_import.sections import (
    activation_of,
    check_extractor,
    note_schedules,
    optimizer_layout,
    optimizer_section,
    run_section,
    translation,
)

_GATES: Final = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def on_policy(saved: SavedModel, name: str, further: int | None) -> Translation:
    """Translate a model with an actor, a critic and rollouts.

    Args:
        saved: the model.
        name: of the run.
        further: frames to train; None for as many as the last `learn` had.

    Raises:
        ConfigError: the model has something that no network here has.
    """
    check_extractor(saved)
    notes: list[str] = []
    recurrent = saved.algorithm == "RecurrentPPO"
    actor, critic = (linear_layers(saved.tensors, f"mlp_extractor.{part}_net") for part in ("policy", "value"))
    has_box = "log_std" in saved.tensors
    model, pieces = (_with_memory if recurrent else _without_memory)(saved, actor, critic)
    if has_box:
        pieces.append(_log_std(saved, model, recurrent))
    steps, envs = saved.whole("n_steps", 1), max(1, saved.whole("n_envs", 1))
    frames = steps * envs
    config: dict[str, Any] = {
        "run": run_section(saved, name, further),
        "transform": [{"use": "transforms:action-clip"}] if has_box else [],
        "model": model,
        "loss": _loss(saved, notes),
        "estimator": {"use": "gae", "gamma": saved.number("gamma", 0.99), "lmbda": saved.number("gae_lambda", 1.0)},
        "collector": {"frames_per_batch": frames},
        "buffer": _buffer(saved, steps, frames, recurrent, notes),
    }
    if saved.number("max_grad_norm", 0) > 0:
        config["learner"] = {"max_grad_norm": saved.number("max_grad_norm")}
    section, state = optimizer_section(saved, "policy.optimizer", "policy")
    config["optimizer"] = [section]
    note_schedules(saved, notes)
    trains = saved.algorithm != "TRPO"
    return translation(
        saved,
        config,
        pieces=pieces,
        optimizers=[optimizer_layout("policy", state, saved)] if trains else [],
        clocks={"frames": saved.whole("num_timesteps"), "episodes": saved.whole("_episode_num")},
        notes=notes,
        trains=trains,
    )


def _without_memory(
    saved: SavedModel, actor: Sequence[str], critic: Sequence[str]
) -> tuple[dict[str, Any], list[Piece]]:
    tensors = saved.tensors
    model: dict[str, Any] = {
        "use": "mlp",
        "hidden": [64, 64],
        "actor_hidden": outputs(tensors, actor),
        "critic_hidden": outputs(tensors, critic),
        "activation": activation_of(saved, "Tanh"),
        "initialisation": "orthogonal",
    }
    pieces = [
        *layers([*actor, "action_net"], "actor.network", tensors),
        *layers([*critic, "value_net"], "critic", tensors),
    ]
    return model, pieces


def _with_memory(saved: SavedModel, actor: Sequence[str], critic: Sequence[str]) -> tuple[dict[str, Any], list[Piece]]:
    """Return the model with an LSTM for each part.

    Raises:
        ConfigError: the memory is of another form.
    """
    tensors, hidden = saved.tensors, [outputs(saved.tensors, part) for part in (actor, critic)]
    if "lstm_critic.weight_ih_l0" not in tensors:
        raise ConfigError(
            f"{saved.what}: a critic without an LSTM of its own cannot be taken along (enable_critic_lstm)"
        )
    if hidden[0] != hidden[1]:
        raise ConfigError(
            f"{saved.what}: actor and critic have other layers behind their LSTM; here they have the same"
        )
    size = int(tensors["lstm_actor.weight_hh_l0"].shape[1])
    count = sum(name.startswith("lstm_actor.weight_hh_l") for name in tensors)
    model = {
        "use": "recurrent:lstm",
        "size": size,
        "layers": count,
        "encoder_hidden": [],
        "shared": False,
        "hidden": hidden[0],
        "activation": activation_of(saved, "Tanh"),
        "initialisation": "orthogonal",
    }
    pieces = [
        *layers([*actor, "action_net"], "actor.head.network", tensors),
        *layers([*critic, "value_net"], "critic.head", tensors),
    ]
    for part in ("actor", "critic"):
        for layer in range(count):
            cell = f"{part}.body.cell" + (f".layers.{layer}" if count > 1 else "")
            pieces += [Piece(f"{cell}.{gate}_l0", (f"lstm_{part}.{gate}_l{layer}",)) for gate in _GATES]
    return model, pieces


def _log_std(saved: SavedModel, model: dict[str, Any], recurrent: bool) -> Piece:
    """Return the piece of the standard deviations, which the model has as parameters.

    Raises:
        ConfigError: they are functions of the observation in another form than here.
    """
    model["log_std"] = 0.0
    if not saved.data.get("use_sde"):
        return Piece("actor.head.log_std" if recurrent else "actor.log_std", ("log_std",))
    if recurrent or saved.policy_keyword("squash_output", False):
        raise ConfigError(f"{saved.what}: use_sde with memory or squash_output cannot be taken along")
    every = saved.number("sde_sample_freq", -1)
    model |= {"sde": True, "sde_every": max(0, int(every))}
    return Piece("actor.exploration.log_std", ("log_std",))


def _loss(saved: SavedModel, notes: list[str]) -> dict[str, Any]:
    loss: dict[str, Any] = {
        "use": "ppo:a2c" if saved.algorithm == "A2C" else "ppo",
        "entropy_coef": saved.number("ent_coef", 0.0),
        "critic_coef": 2 * saved.number("vf_coef", 0.5),
        "normalize_advantage": bool(saved.data.get("normalize_advantage")),
    }
    if loss["use"] == "ppo":
        clip = saved.schedule("clip_range")
        if clip is None and saved.algorithm != "TRPO":
            notes.append("clip_range was a schedule, which cannot be read: it is 0.2 here")
        loss["clip_epsilon"] = clip or 0.2
        if saved.data.get("clip_range_vf") is not None:
            notes.append("clip_range_vf is that of clip_epsilon here")
            loss["clip_value"] = True
        if saved.algorithm != "TRPO" and saved.number("target_kl", 0) > 0:
            loss["target_kl"] = 1.5 * saved.number("target_kl")  # that is where theirs stops
    return loss


def _buffer(saved: SavedModel, steps: int, frames: int, recurrent: bool, notes: list[str]) -> dict[str, Any]:
    if saved.algorithm == "A2C":
        return {"epochs": 1, "minibatch_size": frames}
    size = min(saved.whole("batch_size", 64) or 64, frames)
    if saved.algorithm == "TRPO":
        return {"epochs": 1, "minibatch_size": size}
    buffer = {"epochs": saved.whole("n_epochs", 10), "minibatch_size": size}
    if not recurrent:
        return buffer
    length = math.gcd(steps, size)
    notes.append(f"minibatches are made of stretches of {length} steps, not of whole episodes")
    return {"use": "rollout-sequences", "sequence_length": length, **buffer}
