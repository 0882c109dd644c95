"""rlpyt's algorithms by their keys and defaults: each gives the sections of a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from rlcore.errors import ConfigError
from rlcore_plugin_runners.algorithm import Algorithm as Algorithm
from rlcore_plugin_runners.algorithm import Sections


@dataclass(kw_only=True)
class A2C(Algorithm):
    """Advantage actor-critic: one step on each batch."""

    value_loss_coeff: float = 0.5
    entropy_loss_coeff: float = 0.01
    gae_lambda: float = 1.0
    normalize_advantage: bool = False

    family: ClassVar[str] = "policy gradient"

    def samples_per_update(self, itr_steps: int) -> int:
        """Return the steps of a batch."""
        return itr_steps

    def sections(self, itr_steps: int) -> Sections:
        """Return loss, estimator, optimizer, buffer and learner."""
        loss = {
            "use": "ppo:a2c",
            "critic_coef": self.value_loss_coeff,
            "entropy_coef": self.entropy_loss_coeff,
            "normalize_advantage": self.normalize_advantage,
        }
        return {
            "loss": loss,
            "estimator": {"use": "ppo:gae", "gamma": self.discount, "lmbda": self.gae_lambda},
            "optimizer": [self._optimizer()],
            "buffer": {"use": "rollout", "epochs": 1, "minibatch_size": self.samples_per_update(itr_steps)},
            "learner": {"max_grad_norm": self.clip_grad_norm},
        }


@dataclass(kw_only=True)
class PPO(A2C):
    """Proximal policy optimisation."""

    value_loss_coeff: float = 1.0
    minibatches: int = 4
    epochs: int = 4
    ratio_clip: float = 0.1
    linear_lr_schedule: bool = True

    def samples_per_update(self, itr_steps: int) -> int:
        """Return the steps of a minibatch."""
        return max(1, itr_steps // self.minibatches)

    def sections(self, itr_steps: int) -> Sections:
        """Return those of A2C with another loss and several epochs."""
        found = super().sections(itr_steps)
        found["loss"] |= {"use": "ppo:ppo", "clip_epsilon": self.ratio_clip}
        found["buffer"]["epochs"] = self.epochs
        return found

    def schedulers(self, steps: int) -> list[Sections]:
        """Return those of the learning rate and of the range, which stays above 0."""
        falls = {"use": "linear", "target": "loss.clip_epsilon", "final": 0.01}
        return [{"use": "linear"}, falls] if self.linear_lr_schedule else []


@dataclass(kw_only=True)
class _OffPolicy(Algorithm):
    batch_size: int = 256
    min_steps_learn: int = 10_000
    replay_size: int = 1_000_000
    replay_ratio: float = 256
    target_update_tau: float = 0.005
    target_update_interval: int = 1
    n_step_return: int = 1
    prioritized_replay: bool = False
    pri_alpha: float = 0.6
    pri_beta_init: float = 0.4
    updates_per_sync: int = 1
    bootstrap_timelimit: bool = True
    ReplayBufferCls: None = None

    fixed: ClassVar[Mapping[str, Any]] = {"updates_per_sync": 1, "bootstrap_timelimit": True, "ReplayBufferCls": None}

    def samples_per_update(self, itr_steps: int) -> int:
        """Return the size of a minibatch."""
        return self.batch_size

    def sections(self, itr_steps: int) -> Sections:
        """Return loss, optimizers, buffer and learner."""
        buffer = {
            "use": "replay:prioritized" if self.prioritized_replay else "replay",
            "capacity": int(self.replay_size),
            "minibatch_size": self.batch_size,
            "replay_ratio": self.replay_ratio,
            "warmup_frames": int(self.min_steps_learn),
            "n_steps": self.n_step_return,
            "gamma": self.discount,
        }
        if self.prioritized_replay:
            buffer |= {"alpha": self.pri_alpha, "beta": self.pri_beta_init}
        loss = {
            "gamma": self.discount,
            "target_tau": self.target_update_tau,
            "target_interval": self.target_update_interval,
            **self._loss(),
        }
        learner = {"max_grad_norm": self.clip_grad_norm}
        return {"loss": loss, "optimizer": self._optimizers(), "buffer": buffer, "learner": learner}

    def _loss(self) -> Sections:
        raise NotImplementedError

    def _optimizers(self) -> list[Sections]:
        return [self._optimizer()]


@dataclass(kw_only=True)
class DQN(_OffPolicy):
    """Q-learning with a replay buffer: double, prioritized, over several steps."""

    batch_size: int = 32
    min_steps_learn: int = 50_000
    delta_clip: float | None = 1.0
    replay_ratio: float = 8
    target_update_tau: float = 1.0
    target_update_interval: int = 312
    learning_rate: float = 2.5e-4
    clip_grad_norm: float = 10.0
    double_dqn: bool = False
    eps_steps: float = 1_000_000
    pri_beta_final: float = 1.0
    pri_beta_steps: float = 50_000_000
    default_priority: None = None

    family: ClassVar[str] = "Q-learning"
    fixed: ClassVar[Mapping[str, Any]] = {**_OffPolicy.fixed, "default_priority": None}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta_clip not in (None, 1.0):
            raise ConfigError(f"delta_clip = {self.delta_clip}: errors are clipped at 1, or with None not at all")
        if self.optim_kwargs is None:
            self.optim_kwargs = {"eps": 0.01 / self.batch_size}

    def schedulers(self, steps: int) -> list[Sections]:
        """Return that of `beta`, where priorities count and it changes."""
        if not self.prioritized_replay or self.pri_beta_final == self.pri_beta_init:
            return []
        way = min(1.0, steps / self.pri_beta_steps)
        end = self.pri_beta_init + way * (self.pri_beta_final - self.pri_beta_init)
        fraction = min(1.0, self.pri_beta_steps / steps)
        return [{"use": "linear", "target": "buffer.beta", "final": end / self.pri_beta_init, "fraction": fraction}]

    def _loss(self) -> Sections:
        return {"use": "dqn:dqn", "double": self.double_dqn, "error": "l2" if self.delta_clip is None else "smooth_l1"}


@dataclass(kw_only=True)
class CategoricalDQN(DQN):
    """C51; `V_min` and `V_max` are those of its agent's values."""

    V_min: float = -10.0
    V_max: float = 10.0

    def _loss(self) -> Sections:
        return {"use": "dqn:c51", "double": self.double_dqn}


@dataclass(kw_only=True)
class R2D1(DQN):
    """Q-learning with a memory, from sequences of the past."""

    discount: float = 0.997
    batch_T: int = 80  # noqa: N815, as in rlpyt
    batch_B: int = 64  # noqa: N815
    warmup_T: int = 40  # noqa: N815
    store_rnn_state_interval: int = 40
    min_steps_learn: int = 100_000
    delta_clip: float | None = None
    replay_ratio: float = 1
    target_update_interval: int = 2500
    n_step_return: int = 5
    learning_rate: float = 1e-4
    clip_grad_norm: float = 80.0
    double_dqn: bool = True
    prioritized_replay: bool = True
    pri_beta_init: float = 0.9
    pri_beta_final: float = 0.9
    pri_eta: float = 0.9
    input_priorities: bool = True
    input_priority_shift: int | None = None
    value_scale_eps: float = 1e-3

    fixed: ClassVar[Mapping[str, Any]] = {
        **DQN.fixed,
        "input_priorities": True,
        "input_priority_shift": None,
        "value_scale_eps": 1e-3,
    }

    def __post_init__(self) -> None:
        self.batch_size = self.batch_B
        if self.optim_kwargs is None:
            self.optim_kwargs = {"eps": 1e-3}
        super().__post_init__()
        if not 1 <= self.store_rnn_state_interval <= self.batch_T:
            raise ConfigError(
                f"store_rnn_state_interval = {self.store_rnn_state_interval}: sequences begin with a state that is "
                f"stored, each {self.batch_T} steps (batch_T) or more often; give it a number from 1 to that"
            )

    def samples_per_update(self, itr_steps: int) -> int:
        """Return the steps of a minibatch, with those that only bring the state up to date."""
        return (self.batch_T + self.warmup_T) * self.batch_B

    def sections(self, itr_steps: int) -> Sections:
        """Return those of DQN with sequences."""
        sections = super().sections(itr_steps)
        buffer = {
            "use": "replay:sequences",
            "sequence_length": self.batch_T,
            "burn_in": self.warmup_T,
            "overlap": self.batch_T - self.store_rnn_state_interval,
            "alpha": self.pri_alpha if self.prioritized_replay else 0.0,
            "beta": self.pri_beta_init,
            "eta": self.pri_eta,
            # only the steps that are trained on count here
            "replay_ratio": self.replay_ratio * self.batch_T / (self.batch_T + self.warmup_T),
        }
        sections["buffer"] |= buffer
        return sections

    def _loss(self) -> Sections:
        error = "l2" if self.delta_clip is None else "smooth_l1"
        return {"use": "dqn:r2d2", "double": self.double_dqn, "error": error}


@dataclass(kw_only=True)
class SAC(_OffPolicy):
    """Soft actor-critic."""

    learning_rate: float = 3e-4
    clip_grad_norm: float = 1e9
    fixed_alpha: float | None = None
    reward_scale: float = 1.0
    target_entropy: str | float = "auto"
    action_prior: str = "uniform"
    reparameterize: bool = True

    family: ClassVar[str] = "soft actor-critic"
    fixed: ClassVar[Mapping[str, Any]] = {**_OffPolicy.fixed, "action_prior": "uniform", "reparameterize": True}

    def sections(self, itr_steps: int) -> Sections:
        """Return those of all, and the transform that scales rewards."""
        found = super().sections(itr_steps)
        if self.reward_scale != 1:
            found["transform"] = [{"use": "transforms:reward-scale", "scale": self.reward_scale}]
        return found

    def _loss(self) -> Sections:
        loss: Sections = {"use": "sac:sac", "temperature": "auto" if self.fixed_alpha is None else self.fixed_alpha}
        return loss if self.target_entropy == "auto" else {**loss, "target_entropy": self.target_entropy}


@dataclass(kw_only=True)
class DDPG(_OffPolicy):
    """Deterministic policy gradients."""

    batch_size: int = 64
    replay_ratio: float = 64
    target_update_tau: float = 0.01
    policy_update_interval: int = 1
    learning_rate: float = 1e-4
    q_learning_rate: float = 1e-3
    clip_grad_norm: float = 1e8
    q_target_clip: float = 1e6

    fixed: ClassVar[Mapping[str, Any]] = {**_OffPolicy.fixed, "q_target_clip": 1e6}
    family: ClassVar[str] = "deterministic policy"

    def _loss(self) -> Sections:
        return {"use": "sac:ddpg"}

    def _optimizers(self) -> list[Sections]:
        critics = self._optimizer(self.q_learning_rate, parameters=["critics"], losses=["loss_critics"])
        actor = self._optimizer(parameters=["actor"], losses=["loss_actor"], every=self.policy_update_interval)
        return [{**critics, "name": "critics"}, {**actor, "name": "actor"}]


@dataclass(kw_only=True)
class TD3(DDPG):
    """Twin delayed deterministic policy gradients."""

    batch_size: int = 100
    replay_ratio: float = 100
    target_update_tau: float = 0.005
    target_update_interval: int = 2
    policy_update_interval: int = 2
    learning_rate: float = 1e-3
    target_noise: float = 0.2
    target_noise_clip: float = 0.5

    def _loss(self) -> Sections:
        return {"use": "sac:td3", "target_noise": self.target_noise, "target_noise_clip": self.target_noise_clip}
