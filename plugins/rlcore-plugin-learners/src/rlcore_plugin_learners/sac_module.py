"""The networks of SAC's modules: an actor, one or two critics, and the targets of the critics."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from itertools import pairwise
from typing import Any, Final

import gymnasium
import torch
from rlcore_plugin_mlp.network import ACTIVATIONS
from rlcore_plugin_sac.actors import squashed_sample
from rlcore_plugin_sac.box import ActionBox, squashed_normal
from torch import Tensor, nn

from rlcore.errors import ConfigError, NotSupportedError, did_you_mean
from rlcore_plugin_learners.actions import ActionDistributions
from rlcore_plugin_learners.apis import QNetAPI, TargetNetworkAPI
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.model_config import DefaultModelConfig
from rlcore_plugin_learners.module import RLModule
from rlcore_plugin_learners.q_learning import QF_PREDS

ACTION_DIST_INPUTS_NEXT: Final = "action_dist_inputs_next"
ACTION_LOG_PROBS: Final = "action_log_probs"
ACTION_LOG_PROBS_NEXT: Final = "action_log_probs_next"
ACTION_PROBS: Final = "action_probs"
ACTION_PROBS_NEXT: Final = "action_probs_next"
LOGP: Final = "logp_resampled"
LOGP_NEXT: Final = "logp_next_resampled"
Q_CURR: Final = "q_curr"
QF_TARGET_NEXT: Final = "q_target_next"
QF_TWIN_PREDS: Final = "qf_twin_preds"
# standard normal noise of the actions of a minibatch, `[row, action]`, which a learner adds to its columns
NOISE: Final = "noise"
NEXT_NOISE: Final = "next_noise"
# of the logarithms of standard deviations
_LEAST, _MOST = -5.0, 2.0


class DefaultSACTorchRLModule(RLModule, QNetAPI, TargetNetworkAPI):
    """MLPs for the actor and the critics, each with an encoder and a head; the actions are discrete or a bounded box.

    `model_config` has `fcnet_hiddens`, `fcnet_activation` and `head_fcnet_hiddens`, as `DefaultModelConfig` has them,
    and `twin_q`. Critics of a box see observations and actions; those of discrete actions value each action. Actions
    of a batch are in the units of the space, as the distributions of the module have them. A subclass may build other
    networks in `setup`, and override `q_values`.

    Attributes:
        pi_encoder: of the actor; `pi` is its head, and `qf_encoder`, `qf`, `qf_twin_encoder` and `qf_twin` are those
            of the critics.
        twin_q: whether there are two critics.
    """

    pi_encoder: nn.Module
    pi: nn.Module
    qf_encoder: nn.Module
    qf: nn.Module
    qf_twin_encoder: nn.Module
    qf_twin: nn.Module

    def setup(self) -> None:
        """Build the networks, unless they are for acting alone without the critics."""
        self.begin()
        shape = self._shape()
        inputs, actions = self._sizes()
        self.pi_encoder, self.pi = _network(inputs, actions if self.is_discrete else 2 * actions, shape)
        if not self.inference_only:
            of_critic = (inputs, actions, shape) if self.is_discrete else (inputs + actions, 1, shape)
            for name in self._critics():
                encoder, head = _network(*of_critic)
                setattr(self, f"{name}_encoder", encoder)
                setattr(self, name, head)

    def begin(self) -> None:
        """Read the settings and the action space; a `setup` of a subclass calls it first."""
        self.twin_q: bool = self.model_config.get("twin_q", True)
        self.is_discrete = isinstance(self.action_space, gymnasium.spaces.Discrete)
        if self.action_space is None:
            raise ConfigError("no spaces to build a module for: hand over env=, or spaces in its RLModuleSpec")
        if not self.is_discrete:
            self._distribution = squashed_normal(self.action_space, torch.device("cpu"))
            self._box = ActionBox(self._distribution)

    def _critics(self) -> tuple[str, ...]:
        return ("qf", "qf_twin") if self.twin_q else ("qf",)

    def _sizes(self) -> tuple[int, int]:
        space, actions = self.observation_space, self.action_space
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise NotSupportedError(f"observations are flat here, not {space}; write an RLModule, or flatten them")
        if isinstance(actions, gymnasium.spaces.Discrete):
            return space.shape[0], int(actions.n)
        return space.shape[0], self._box.size

    def _shape(self) -> DefaultModelConfig:
        settings = {name: value for name, value in self.model_config.items() if name != "twin_q"}
        known = [entry.name for entry in fields(DefaultModelConfig)]
        for name in settings:
            if name not in known:
                raise NotSupportedError(f"model_config: there is no {name!r}{did_you_mean(name, known)}")
        shape = DefaultModelConfig(**settings)
        if shape.vf_share_layers:
            raise NotSupportedError("model_config: vf_share_layers=True; actor and critics have layers of their own")
        if shape.fcnet_activation not in ACTIVATIONS:
            raise ConfigError(f"model_config: fcnet_activation takes {', '.join(ACTIVATIONS)}")
        return shape

    def make_target_networks(self) -> None:
        """Make the targets, equal to the critics."""
        for name in self._critics():
            setattr(self, f"target_{name}_encoder", copy.deepcopy(getattr(self, f"{name}_encoder")))
            setattr(self, f"target_{name}", copy.deepcopy(getattr(self, name)))
        for _, target in self.get_target_network_pairs():
            target.requires_grad_(False)

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Return each part of the critics and its target."""
        names = [part for name in self._critics() for part in (f"{name}_encoder", name)]
        return [(getattr(self, name), getattr(self, f"target_{name}")) for name in names]

    def get_non_inference_attributes(self) -> list[str]:
        """Return the critics and their targets."""
        names = [part for name in self._critics() for part in (f"{name}_encoder", name)]
        return [*names, *(f"target_{name}" for name in names)]

    def get_inference_action_dist_cls(self) -> Any:
        """Return categorical distributions, or normal ones squashed to the bounds."""
        if self.is_discrete:
            return super().get_inference_action_dist_cls()
        return ActionDistributions(squashed_normal(self.action_space, next(self.parameters()).device))  # type: ignore[arg-type]

    def compute_q_values(self, batch: Mapping[str, Any]) -> Tensor:
        """Return the least value of the critics, `[row]`, or `[row, action]` for discrete actions."""
        return self._least(batch, "")

    def forward_target(self, batch: Mapping[str, Any]) -> Tensor:
        """Return the least value of the targets, `[row]`, or `[row, action]` for discrete actions."""
        return self._least(batch, "target_")

    def q_values(self, batch: Mapping[str, Any], encoder: nn.Module, head: nn.Module) -> Tensor:
        """Return the values of a critic, `[row]`, or `[row, action]` for discrete actions.

        Args:
            batch: columns; `actions` scaled to [-1, 1].
            encoder: of the critic.
            head: of the critic.
        """
        observation = batch[Columns.OBS].float()
        if self.is_discrete:
            return head(encoder(observation))  # type: ignore[no-any-return]
        return head(encoder(torch.cat([observation, batch[Columns.ACTIONS]], -1))).squeeze(-1)  # type: ignore[no-any-return]

    def action_inputs(self, observation: Tensor) -> Tensor:
        """Return the parameters of the actor's distributions, with limits on the logarithms of deviations."""
        parameters: Tensor = self.pi(self.pi_encoder(observation.float()))
        if self.is_discrete:
            return parameters
        mean, log_std = parameters.chunk(2, -1)
        return torch.cat([mean, log_std.clamp(_LEAST, _MOST)], -1)

    def _of(self, batch: Mapping[str, Any], name: str) -> Tensor:
        return self.q_values(batch, getattr(self, f"{name}_encoder"), getattr(self, name))

    def _least(self, batch: Mapping[str, Any], prefix: str) -> Tensor:
        values = [self._of(batch, f"{prefix}{name}") for name in self._critics()]
        return values[0] if len(values) == 1 else torch.minimum(*values)

    def _forward(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Tensor]:
        return {Columns.ACTION_DIST_INPUTS: self.action_inputs(batch[Columns.OBS])}

    def _forward_train(self, batch: Mapping[str, Any], **_: Any) -> dict[str, Tensor]:
        return self._train_discrete(batch) if self.is_discrete else self._train_continuous(batch)

    def _train_discrete(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        log_probs = self.action_inputs(batch[Columns.OBS]).log_softmax(-1)
        following = {Columns.OBS: batch[Columns.NEXT_OBS]}
        with torch.no_grad():
            next_log_probs = self.action_inputs(following[Columns.OBS]).log_softmax(-1)
            target = self.forward_target(following)
        values = {QF_PREDS: self._of(batch, "qf")} | (
            {QF_TWIN_PREDS: self._of(batch, "qf_twin")} if self.twin_q else {}
        )
        return values | {
            ACTION_LOG_PROBS: log_probs,
            ACTION_PROBS: log_probs.exp(),
            ACTION_LOG_PROBS_NEXT: next_log_probs,
            ACTION_PROBS_NEXT: next_log_probs.exp(),
            QF_TARGET_NEXT: target,
        }

    def _train_continuous(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        observation, following = batch[Columns.OBS], batch[Columns.NEXT_OBS]
        taken = {Columns.OBS: observation, Columns.ACTIONS: self._box.to_unit(batch[Columns.ACTIONS])}
        returned = {QF_PREDS: self._of(taken, "qf")}
        if self.twin_q:
            returned[QF_TWIN_PREDS] = self._of(taken, "qf_twin")
        parameters = self.action_inputs(observation)
        unit, logp = squashed_sample(parameters, _noise(batch, NOISE, parameters))
        with torch.no_grad():
            next_parameters = self.action_inputs(following)
            next_unit, next_logp = squashed_sample(next_parameters, _noise(batch, NEXT_NOISE, parameters))
            target = self.forward_target({Columns.OBS: following, Columns.ACTIONS: next_unit})
        with _frozen(
            [part for pair in self._critics() for part in (getattr(self, f"{pair}_encoder"), getattr(self, pair))]
        ):
            value = self.compute_q_values({Columns.OBS: observation, Columns.ACTIONS: unit})
        return returned | {
            Columns.ACTION_DIST_INPUTS: parameters,
            ACTION_DIST_INPUTS_NEXT: next_parameters,
            LOGP: logp.squeeze(-1),
            LOGP_NEXT: next_logp.squeeze(-1),
            Q_CURR: value,
            QF_TARGET_NEXT: target,
        }


def _noise(batch: Mapping[str, Any], name: str, parameters: Tensor) -> Tensor:
    """Return noise `[row, action]` of a batch; of torch's global generator where a learner brings none."""
    return batch[name] if name in batch else torch.randn_like(parameters.chunk(2, -1)[0])


@contextmanager
def _frozen(parts: list[nn.Module]) -> Iterator[None]:
    """Let gradients flow through networks, and none into their weights."""
    moved = [weight for part in parts for weight in part.parameters() if weight.requires_grad]
    for weight in moved:
        weight.requires_grad_(False)
    try:
        yield
    finally:
        for weight in moved:
            weight.requires_grad_(True)


def _network(inputs: int, outputs: int, shape: DefaultModelConfig) -> tuple[nn.Module, nn.Module]:
    """Return an encoder and its head."""
    sizes = [inputs, *shape.fcnet_hiddens]
    head = [sizes[-1], *shape.head_fcnet_hiddens]
    return _layers(sizes, shape.fcnet_activation), nn.Sequential(
        _layers(head, shape.fcnet_activation), nn.Linear(head[-1], outputs)
    )


def _layers(sizes: list[int], activation: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for pair in pairwise(sizes):
        layers += [nn.Linear(*pair), _Activation(activation)]
    return nn.Sequential(*layers)


class _Activation(nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def forward(self, values: Tensor) -> Tensor:
        return ACTIVATIONS[self._name](values)
