"""The parts of Dreamer over an env of TorchRL, from settings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError, NotSupportedError
from rlcore_plugin_torchrl.helpers import torchrl_parts

if TYPE_CHECKING:
    import torch
    from torch import nn

_ENTRIES: Final = ("pixels", "state", "belief")


def make_dreamer(
    cfg: object,
    proof_environment: Any = None,
    device: torch.device | str = "cpu",
    action_key: str = "action",
    value_key: str = "state_value",
    use_decoder_in_env: bool = False,
    obs_norm_state_dict: Any = None,
) -> tuple[nn.Module, Any, nn.Module, nn.Module, nn.Module]:
    """Return a world model, an env of it, the actor there, its values, and the actor of the real env, as TorchRL does.

    They are the modules of DreamerV1 for losses of TorchRL. DreamerV3 is the model `dreamer` of a config.

    Args:
        cfg: settings; what they lack has TorchRL's default: `state_dim` (30), `rssm_hidden_dim` (200), `mlp_num_units`
            (400), and without an env those of `transformed_env_constructor`.
        proof_environment: of TorchRL, with images of 64 x 64 as `pixels`, and a primer of `state` and `belief`; None
            for one that TorchRL makes by the settings, where `env_library` names a library.
        device: of the modules.
        action_key: of the entry with actions.
        value_key: of the entry with values.
        use_decoder_in_env: whether the env of the model shows images.
        obs_norm_state_dict: statistics of observations, where there is no env.

    Raises:
        ConfigError: the env has no such entries.
        NotSupportedError: the env is not of TorchRL, or none is named.
    """
    if not torchrl_parts.is_env(proof_environment):
        if proof_environment is not None or not torchrl_parts.names_library(cfg):
            kind = type(proof_environment).__name__
            raise NotSupportedError(
                f"proof_environment = {'None' if proof_environment is None else kind}: make_dreamer builds modules of "
                "TorchRL over one of its envs, or over one that cfg.env_library names; over an env of rlcore, Dreamer "
                'is one model: [model] use = "dreamer", as rlcore init dreamer writes it'
            )
    elif lacking := [name for name in _ENTRIES if name not in proof_environment.observation_spec.keys(True)]:
        raise ConfigError(
            f"proof_environment has no {' and no '.join(lacking)}: make_dreamer takes an env whose images are "
            "'pixels', and with a TensorDictPrimer of 'state' and 'belief', of the sizes state_dim and rssm_hidden_dim"
        )
    chosen = torchrl_parts.complete(cfg)
    settings = SimpleNamespace(**{**vars(torchrl_parts.builders("models").DreamerConfig()), **vars(chosen)})
    parts: tuple[nn.Module, Any, nn.Module, nn.Module, nn.Module] = torchrl_parts.builders("models").make_dreamer(
        settings, proof_environment, device, action_key, value_key, use_decoder_in_env, obs_norm_state_dict
    )
    return parts
