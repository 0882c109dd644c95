"""The loss of DQN and the updates of its target, from settings."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol

from rlcore.errors import NotSupportedError
from rlcore.learners import TargetUpdater
from rlcore.run import published
from rlcore.types import offers
from rlcore_plugin_torchrl.helpers import torchrl_parts
from rlcore_plugin_torchrl.helpers.settings import setting

if TYPE_CHECKING:
    from torch import nn


class _WithQValues(Protocol):
    """A model of rlcore with a Q-network as a part.

    Attributes:
        q_values: that network.
    """

    q_values: Any


def make_dqn_loss(model: nn.Module, cfg: object) -> tuple[Any, Any]:
    """Return the loss of a Q-network, and what moves its target.

    Whoever trains calls `updater.step()` after each optimisation step; the learner of rlcore leaves it to them, since
    `loss.target_updater` is None.

    Args:
        model: from observations to values `[..., action]`, or a model with such a part `q_values`. For
            `distributional`, a network with the methods of `rlcore_plugin_dqn.network.CategoricalQNetwork`. For an
            actor of TorchRL, loss and updater are TorchRL's.
        cfg: settings, of which all have defaults: `loss` ("double"; "single" for a network that is its own target),
            `distributional` (False), `loss_function` ("smooth_l1"; or "l1", "l2": half the squared error), `gamma`
            (0.99), and those of `make_target_updater`. With "double" the targets are those of DQN: the name says that
            there are two networks, as it does in the settings of other trainers.

    Raises:
        ConfigError: another `loss`, or a hard update without a target.
        PluginError: rlcore-plugin-dqn is not installed.
    """
    kind = _kind(cfg)
    if torchrl_parts.is_actor(model):
        loss_and_updater: tuple[Any, Any] = torchrl_parts.builders("losses").make_dqn_loss(
            model, torchrl_parts.complete(cfg)
        )
        return loss_and_updater
    q_values = model.q_values if offers(model, _WithQValues) else model
    target = copy.deepcopy(q_values).requires_grad_(False) if kind == "double" else q_values
    context = SimpleNamespace(model=SimpleNamespace(q_values=q_values, target_q_values=target))
    loss: Any
    if setting(cfg, "distributional", False):
        component = published("loss", "c51")
        config = component.schema()(gamma=setting(cfg, "gamma", 0.99))
    else:
        component = published("loss", "dqn")
        error = setting(cfg, "loss_function", "smooth_l1")
        config = component.schema()(gamma=setting(cfg, "gamma", 0.99), error=error)
    loss = component.target()(config, context)
    loss.target_updater = None
    return loss, make_target_updater(cfg, loss)


def make_target_updater(cfg: object, loss: Any) -> Any:
    """Return what moves the target networks of a loss; None for one without.

    Args:
        cfg: settings, of which all have defaults: `loss` ("double"), `value_network_update_interval` (1000), and
            `hard_update` (False): whether the target is copied after so many steps, or moves by `1 / interval` in each.
        loss: with the modules `q_values` and `target_q_values`; or a loss of TorchRL, for an updater of TorchRL.

    Raises:
        ConfigError: another `loss` than "single" and "double", or a hard update without a target.
    """
    hard, interval = setting(cfg, "hard_update", False), setting(cfg, "value_network_update_interval", 1000)
    if _kind(cfg) == "single":
        if hard:
            raise NotSupportedError(
                "hard_update = True needs a target network: set loss = 'double', or hard_update = False"
            )
        return None
    if torchrl_parts.is_actor(loss):
        return torchrl_parts.builders("losses").make_target_updater(torchrl_parts.complete(cfg), loss)
    pairs = [(loss.q_values, loss.target_q_values)]
    return TargetUpdater(pairs, interval) if hard else TargetUpdater(pairs, interval=1, tau=1 / interval)


def _kind(cfg: object) -> str:
    kind = setting(cfg, "loss", "double")
    if kind not in ("single", "double"):
        raise NotSupportedError(f"loss = {kind!r} must be 'single' or 'double'")
    return str(kind)
