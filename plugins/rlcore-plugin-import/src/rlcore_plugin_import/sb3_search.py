"""ARS of sb3-contrib as a policy here: its actor, which acts and is not trained further."""

from __future__ import annotations

from typing import Any

import torch

from rlcore_plugin_import.layout import Piece, Translation, layers, linear_layers, outputs
from rlcore_plugin_import.pickle_records import Name
from rlcore_plugin_import.sb3_file import SavedModel
from rlcore_plugin_import.sections import activation_of, check_extractor, hidden_of, run_section, translation


def random_search(saved: SavedModel, name: str, further: int | None) -> Translation:
    """Translate a model with an actor alone; the arguments are those of `on_policy`.

    Raises:
        ConfigError: the model has something that no network here has.
    """
    check_extractor(saved)
    network = linear_layers(saved.tensors, "action_net")
    network_keys = {
        "hidden": hidden_of(network, saved.tensors, saved.what),
        "activation": activation_of(saved, "ReLU"),
    }
    is_box = saved.space("action_space").get("kind") == "Box"
    policy = saved.records("policy_class")
    is_linear = isinstance(policy, Name) and policy.text.endswith("ARSLinearPolicy")
    squashes = is_box and bool(saved.policy_keyword("squash_output", not is_linear))
    config: dict[str, Any] = {"run": run_section(saved, name, further), "optimizer": [{"use": "adam"}]}
    if squashes:
        config["model"] = {"use": "sac:actor-critic", "actor": "deterministic", **network_keys}
        config |= {"loss": {"use": "sac:td3"}, "buffer": {"use": "replay", "capacity": 1}}
    else:
        log_std = {"log_std": 0.0} if is_box else {}
        config["model"] = {"use": "mlp", **network_keys, **log_std}
        config |= {"loss": {"use": "ppo"}, "estimator": {"use": "gae"}}
        config["transform"] = [{"use": "transforms:action-clip"}] if is_box else []
    zeros = {f"{name}.bias": torch.zeros(saved.tensors[f"{name}.weight"].shape[0]) for name in network}
    made = translation(saved, config, pieces=[], trains=False)
    made.tensors = {**zeros, "log_std": torch.zeros(outputs(saved.tensors, network)[-1]), **saved.tensors}
    made.pieces = layers(network, "actor.network", made.tensors)
    if is_box and not squashes:
        made.pieces.append(Piece("actor.log_std", ("log_std",)))
    made.clocks = {"frames": saved.whole("num_timesteps")}
    return made
