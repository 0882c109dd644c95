"""The actor of DQN, from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from rlcore.errors import ConfigError, NotSupportedError
from rlcore.run import published
from rlcore.types import Context, offers
from rlcore_plugin_torchrl.helpers import torchrl_parts
from rlcore_plugin_torchrl.helpers.settings import setting
from rlcore_plugin_torchrl.protocols import WithSpec

if TYPE_CHECKING:
    import torch
    from rlcore_plugin_dqn.model import QNetworkModel

_ABSENT: Final = {
    "noisy": "it explores with random actions: set eps_init and eps_end",
    "from_pixels": "its network takes vectors; bring a model of your own for images",
}


class _WithObservations(Protocol):
    """The spec of an env of rlcore.

    Attributes:
        observation_space: of one env.
    """

    observation_space: Any


def make_dqn_actor(proof_environment: Any, cfg: object, device: torch.device | str = "cpu") -> Any:
    """Return a Q-network with its target and an epsilon-greedy policy, for `make_dqn_loss` and the collectors.

    Hand it to `make_trainer` as `policy_exploration` too: then epsilon falls with the frames of that trainer.

    Args:
        proof_environment: a vector env of rlcore, of which only the `spec` is read. For an env of TorchRL, the actor
            is TorchRL's, and so are the settings.
        cfg: settings, of which all have defaults: `hidden` ([512, 512]), `distributional` (False) with `atoms` (51),
            `v_min` (-3) and `v_max` (3); `eps_init` (1.0), `eps_end` (0.05), `annealing_frames` (50,000) of
            `total_frames` (50,000,000), `seed` (42). `noisy` and `from_pixels` must be False.
        device: of the weights.

    Raises:
        ConfigError: the env has no spec of rlcore, or its spaces do not fit; a setting that is not there.
        PluginError: rlcore-plugin-dqn is not installed.
    """
    if torchrl_parts.is_env(proof_environment):
        return torchrl_parts.builders("models").make_dqn_actor(proof_environment, torchrl_parts.complete(cfg), device)
    if not (offers(proof_environment, WithSpec) and offers(proof_environment.spec, _WithObservations)):
        raise ConfigError(
            f"make_dqn_actor: a {type(proof_environment).__name__} has no spec with observation_space and "
            "action_space; it takes a vector env of rlcore, such as transformed_env_constructor makes"
        )
    for name, instead in _ABSENT.items():
        if setting(cfg, name, False):
            raise NotSupportedError(f"{name} = True: make_dqn_actor has no such network; {instead}")
    component = published("model", "q-network")
    context = Context.alone("script", setting(cfg, "seed", 42), device=device).for_component("model", "q-network")
    context.built["env_spec"] = proof_environment.spec
    config = component.schema()(**_shape(cfg), **_exploration(cfg))
    model: QNetworkModel = component.target()(config, context).to(device)
    return model


def _shape(cfg: object) -> dict[str, Any]:
    shape = {"hidden": setting(cfg, "hidden", [512, 512])}
    if setting(cfg, "distributional", False):
        shape |= {"atoms": setting(cfg, "atoms", 51), "v_min": setting(cfg, "v_min", -3.0)}
        shape["v_max"] = setting(cfg, "v_max", 3.0)
    return shape


def _exploration(cfg: object) -> dict[str, float]:
    frames, total = setting(cfg, "annealing_frames", 50_000), setting(cfg, "total_frames", 50_000_000)
    return {
        "epsilon_start": setting(cfg, "eps_init", 1.0),
        "epsilon_end": setting(cfg, "eps_end", 0.05),
        "epsilon_fraction": min(1.0, frames / total),
    }
