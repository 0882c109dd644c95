"""SAC, TD3, DDPG, CrossQ and TQC of Stable-Baselines3 as models and configs here."""

from __future__ import annotations

from typing import Any

from rlcore.errors import ConfigError
from rlcore_plugin_import.layout import (
    OptimizerLayout,
    Piece,
    Translation,
    first,
    layers,
    linear_layers,
    number,
    rows,
    rows_of_critics,
    weights_of_critics,
)
from rlcore_plugin_import.sb3_file import SavedModel
from rlcore_plugin_import.sections import (
    activation_of,
    check_extractor,
    critics_in,
    frames_between_updates,
    hidden_of,
    noise_of,
    note_schedules,
    off_policy_clocks,
    optimizer_layout,
    optimizer_section,
    replay_section,
    run_section,
    temperature_of,
    translation,
)

_TEMPERATURE = "log_ent_coef"


def actor_critic(saved: SavedModel, name: str, further: int | None) -> Translation:
    """Translate a model with an actor and critics of its actions; the arguments are those of `on_policy`.

    Raises:
        ConfigError: the model has something that no network here has.
    """
    check_extractor(saved)
    if saved.data.get("use_sde"):
        raise ConfigError(
            f"{saved.what}: use_sde of {saved.algorithm} cannot be taken along: its actor is clipped otherwise"
        )
    notes: list[str] = []
    soft = saved.algorithm in ("SAC", "TQC", "CrossQ")
    model, pieces = _networks(saved, soft)
    frames, updates = frames_between_updates(saved, notes)
    config: dict[str, Any] = {
        "run": run_section(saved, name, further),
        "model": model,
        "collector": {"frames_per_batch": frames},
        "buffer": replay_section(saved, updates, notes),
    }
    optimizers: list[OptimizerLayout] = []
    if soft:
        loss, learned = _soft_loss(saved, notes)
    else:
        loss, learned = _deterministic_loss(saved), False
        model["noise"] = noise_of(saved, notes)
    if learned:
        pieces.append(Piece("temperature.log_alpha", (_TEMPERATURE,), number))
    config["loss"] = loss
    config["optimizer"] = _optimizers(saved, learned, optimizers)
    note_schedules(saved, notes)
    return translation(
        saved, config, pieces=pieces, optimizers=optimizers, clocks=off_policy_clocks(saved), notes=notes
    )


def _networks(saved: SavedModel, soft: bool) -> tuple[dict[str, Any], list[Piece]]:
    """Return the model, and its pieces but the temperature."""
    tensors, crossq = saved.tensors, saved.algorithm == "CrossQ"
    body = linear_layers(tensors, "actor.latent_pi" if soft else "actor.mu")
    critics = critics_in(saved)
    layers_of_critics = [linear_layers(tensors, critic) for critic in critics]
    model: dict[str, Any] = {
        "use": "sac:crossq" if crossq else "sac:actor-critic",
        "hidden": hidden_of([*body, "actor.mu"] if soft else body, tensors, saved.what),
        "critic_hidden": hidden_of(layers_of_critics[0] if critics else [], tensors, saved.what),
        "critics": len(critics),
        "activation": activation_of(saved, "ReLU"),
        "random_frames": saved.whole("learning_starts"),
    }
    if not soft:
        model["actor"] = "deterministic"
    if saved.algorithm == "TQC":
        model["quantiles"] = saved.policy_keyword("n_quantiles", 25)
    if crossq:
        model |= _normalisation(saved)
    pieces = _soft_actor(saved, body) if soft else layers(body, "actor.network", tensors)
    if not soft:
        pieces += layers(linear_layers(tensors, "actor_target.mu"), "target_actor.network", tensors)
    pieces += _critics(saved, "critic", "critics")
    if crossq:
        pieces += _norms("actor.network", _norms_in(saved, "actor.latent_pi"), critics=False)
    else:
        pieces += _critics(saved, "critic_target", "target_critics")
    return model, pieces


def _normalisation(saved: SavedModel) -> dict[str, Any]:
    """Return the keys of batch renormalisation.

    Raises:
        ConfigError: it adds another number to the variance than here.
    """
    if saved.policy_keyword("batch_norm_eps", 0.001) != 0.001:
        raise ConfigError(f"{saved.what}: batch_norm_eps cannot be taken along; it is 0.001 here")
    return {
        "norm_momentum": saved.policy_keyword("batch_norm_momentum", 0.01),
        "norm_warmup": saved.policy_keyword("renorm_warmup_steps", 100_000),
    }


def _soft_actor(saved: SavedModel, body: list[str]) -> list[Piece]:
    """Return the actor, whose last layer has the means and then the logarithms of the deviations."""
    last = f"actor.network.layers.{len(body)}"
    heads = [
        Piece(f"{last}.{kind}", (f"actor.mu.{kind}", f"actor.log_std.{kind}"), rows) for kind in ("weight", "bias")
    ]
    return [*layers(body, "actor.network", saved.tensors), *heads]


def _critics(saved: SavedModel, theirs: str, ours: str) -> list[Piece]:
    """Return the critics, which are one network here."""
    critics = critics_in(saved, theirs)
    each = [linear_layers(saved.tensors, critic) for critic in critics]
    pieces = []
    for index, names in enumerate(zip(*each, strict=False)):
        layer = f"{ours}.layers.{index}"
        pieces += [
            Piece(f"{layer}.weight", tuple(f"{name}.weight" for name in names), weights_of_critics),
            Piece(f"{layer}.bias", tuple(f"{name}.bias" for name in names), rows_of_critics),
        ]
    norms = [_norms_in(saved, critic) for critic in critics]
    return pieces + (_norms(ours, *norms, critics=True) if any(norms) else [])


def _norms_in(saved: SavedModel, prefix: str) -> list[str]:
    """Return the names of the batch renormalisations, in order."""
    ends = ".ra_mean"
    names = [name.removesuffix(ends) for name in saved.tensors if name.startswith(f"{prefix}.") and name.endswith(ends)]
    return sorted(names, key=lambda name: int(name.rpartition(".")[2]) if name.rpartition(".")[2].isdecimal() else -1)


def _norms(ours: str, *each: list[str], critics: bool) -> list[Piece]:
    """Return batch renormalisations, of one network or of the critics."""
    kinds = {"scale": "scale", "shift": "bias", "running_mean": "ra_mean", "running_var": "ra_var"}
    pieces = []
    for index, names in enumerate(zip(*each, strict=False)):
        norm = f"{ours}.norms.{index}"
        for here, there in kinds.items():
            theirs = tuple(f"{name}.{there}" for name in names)
            pieces.append(
                Piece(f"{norm}.{here}", theirs, rows_of_critics) if critics else Piece(f"{norm}.{here}", theirs)
            )
        pieces.append(Piece(f"{norm}.updates", tuple(f"{name}.steps" for name in names), first))
    return pieces


def _soft_loss(saved: SavedModel, notes: list[str]) -> tuple[dict[str, Any], bool]:
    """Return `[loss]`, and whether the weight of the entropy is learned."""
    crossq = saved.algorithm == "CrossQ"
    fixed, target = temperature_of(saved, notes)
    use = {"CrossQ": "sac:crossq", "TQC": "tqc"}.get(saved.algorithm, "sac")
    loss: dict[str, Any] = {"use": use, "gamma": saved.number("gamma", 0.99)}
    if use == "tqc":
        loss["dropped"] = saved.whole("top_quantiles_to_drop_per_net", 2)
    if not crossq:
        loss |= {
            "target_tau": saved.number("tau", 0.005),
            "target_interval": max(1, saved.whole("target_update_interval", 1)),
            "in_turn": True,
        }
    if fixed is not None:
        loss["temperature"] = fixed
    elif target is not None:
        loss["target_entropy"] = target
    return loss, fixed is None


def _deterministic_loss(saved: SavedModel) -> dict[str, Any]:
    ddpg = len(critics_in(saved)) == 1
    loss: dict[str, Any] = {
        "use": "sac:ddpg" if ddpg else "sac:td3",
        "gamma": saved.number("gamma", 0.99),
        "target_tau": saved.number("tau", 0.005),
        "target_interval": max(1, saved.whole("policy_delay", 2)),
    }
    if not ddpg:
        loss["target_noise"] = saved.number("target_policy_noise", 0.2)
        loss["target_noise_clip"] = saved.number("target_noise_clip", 0.5)
    return loss


def _optimizers(saved: SavedModel, learned: bool, layouts: list[OptimizerLayout]) -> list[dict[str, Any]]:
    """Return the `[[optimizer]]` sections, and add their layouts."""
    parts = [("critics", "critic.optimizer", "critic."), ("actor", "actor.optimizer", "actor.")]
    delay = max(1, saved.whole("policy_delay", 1)) if saved.algorithm in ("TD3", "CrossQ") else 1
    sections = []
    for part, file, prefix in parts:
        every = {"every": delay} if part == "actor" and delay > 1 else {}
        keys = {"parameters": [part], "losses": [f"loss_{part}"], **every}
        section, state = optimizer_section(saved, file, part, **keys)
        sections.append(section)
        layouts.append(optimizer_layout(part, state, saved, prefix))
    if learned:
        every = {"every": delay} if saved.algorithm == "CrossQ" and delay > 1 else {}
        keys = {"parameters": ["temperature"], "losses": ["loss_temperature"], **every}
        section, state = optimizer_section(saved, "ent_coef_optimizer", "temperature", **keys)
        sections.append(section)
        layouts.append(OptimizerLayout("temperature", state, [_TEMPERATURE]))
    return sections
