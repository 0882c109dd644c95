"""APPO as a learner, with the settings that RLlib's has."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore_plugin_learners.apis import TARGET_NETWORK_ACTION_DIST_INPUTS, TargetNetworkAPI
from rlcore_plugin_learners.columns import Columns
from rlcore_plugin_learners.impala import IMPALAConfig, IMPALATorchLearner
from rlcore_plugin_learners.kl import KL, KL_COEFF, KLLearner
from rlcore_plugin_learners.masks import mean_over
from rlcore_plugin_learners.module import ModelRLModule, RLModuleSpec
from rlcore_plugin_learners.targets import TargetLearner, check_targets

if TYPE_CHECKING:
    from torch import nn

    from rlcore_plugin_learners.learner import Learner


@dataclass
class APPOConfig(IMPALAConfig):
    """Settings of `APPOTorchLearner`.

    The old policy moves when `target_network_update_freq * circular_buffer_num_batches *
    circular_buffer_iterations_per_batch * train_batch_size_per_learner` steps more were trained on. No batch is
    kept: it is trained on when it comes.

    Attributes:
        clip_param: how far the probability of an action may move from that of the old policy.
        use_kl_loss: whether to punish the distance from the old policy.
        kl_coeff: weight of it, at first; it follows `kl_target`.
        kl_target: the distance that is aimed at.
        tau: how far the old policy moves towards the one that is trained; 1 copies.
        target_network_update_freq: see above; likewise the next two.
        circular_buffer_num_batches: see above.
        circular_buffer_iterations_per_batch: see above.
        target_worker_clipping: largest ratio of the policy that collected to the old one, which RLlib fixes at 2.
    """

    clip_param: float = 0.4
    use_kl_loss: bool = False
    kl_coeff: float = 1.0
    kl_target: float = 0.01
    tau: float = 1.0
    target_network_update_freq: float = 2
    circular_buffer_num_batches: int = 8
    circular_buffer_iterations_per_batch: int = 2
    target_worker_clipping: float = 2.0

    def get_default_learner_class(self) -> type[Learner]:
        """Return `APPOTorchLearner`."""
        return APPOTorchLearner

    def get_default_rl_module_spec(self) -> RLModuleSpec:
        """Return the spec of an actor with an old policy, and a critic."""
        return RLModuleSpec(DefaultAPPOTorchRLModule)

    def validate(self) -> None:
        """Refuse settings that fit nothing."""
        super().validate()
        check_targets(self)


class DefaultAPPOTorchRLModule(ModelRLModule, TargetNetworkAPI):
    """A model of rlcore with actor and critic, such as `mlp`, and a copy of the actor: the old policy."""

    def setup(self) -> None:
        """Build the model and the copy."""
        super().setup()
        self._old_actor = copy.deepcopy(self.model.actor).requires_grad_(False)

    def make_target_networks(self) -> None:
        """Make the old policy equal to the actor."""
        self._old_actor.load_state_dict(self.model.actor.state_dict())

    def get_target_network_pairs(self) -> list[tuple[nn.Module, nn.Module]]:
        """Return the actor and its copy."""
        return [(self.model.actor, self._old_actor)]

    def forward_target(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the parameters of the old policy's distributions, as `target_network_action_dist_inputs`."""
        return {TARGET_NETWORK_ACTION_DIST_INPUTS: self._old_actor(batch[Columns.OBS])}

    def get_non_inference_attributes(self) -> list[str]:
        """Return the critic and the copy."""
        return [*super().get_non_inference_attributes(), "_old_actor"]


class APPOTorchLearner(KLLearner, TargetLearner, IMPALATorchLearner):
    """PPO around an old policy that follows slowly, with V-trace (IMPACT; Luo et al., 2020, arXiv 1912.00167).

    Reads the columns of `IMPALATorchLearner`; the modules also have `forward_target`, as `TargetNetworkAPI` says. The
    clock of the old policy is `num_env_steps_trained_lifetime`.
    """

    clock = "num_env_steps_trained_lifetime"

    def compute_loss_for_module(
        self, *, module_id: str, config: Any, batch: Any, fwd_out: Mapping[str, Tensor]
    ) -> Tensor:
        """Return the clipped objective, the critic's error, the entropy and the distance, weighted and added."""
        module: Any = self.module[module_id]
        family = module.get_train_action_dist_cls()
        policy = family.from_logits(fwd_out[Columns.ACTION_DIST_INPUTS])
        old_policy = family.from_logits(module.forward_target(batch)[TARGET_NETWORK_ACTION_DIST_INPUTS].detach())
        actions, chosen = batch[Columns.ACTIONS], batch[Columns.ACTION_LOGP]
        logp, entropies = policy.logp_and_entropy(actions)
        old_logp, mask = old_policy.logp(actions), batch[Columns.LOSS_MASK].float()
        values = self.values(module, batch, fwd_out)
        targets, advantages = self._targets(config, batch, old_logp, values.detach(), mask)
        mean = mean_over(batch)
        weight = (chosen - old_logp).exp().clamp(max=config.target_worker_clipping)
        ratio = weight * (logp - chosen).exp()
        clipped = ratio.clamp(1 - config.clip_param, 1 + config.clip_param)
        policy_loss = -mean(torch.minimum(advantages * ratio, advantages * clipped))
        vf_loss, entropy = 0.5 * mean((values - targets).square()), mean(entropies)
        loss = policy_loss + config.vf_loss_coeff * vf_loss - self.entropy_weight(module_id, config) * entropy
        if config.use_kl_loss:
            distance = mean(old_policy.kl(policy))
            loss = loss + self.curr_kl_coeffs_per_module[module_id] * distance
            self.metrics.log_value((module_id, KL), distance, reduce="item")
        mean_weight = mean(weight)
        logged = {"policy_loss": policy_loss, "vf_loss": vf_loss, "entropy": entropy, "mean_IS": mean_weight}
        self.metrics.log_dict(logged | {"var_IS": mean((weight - mean_weight).square())}, key=module_id)
        return loss  # type: ignore[no-any-return]

    def target_interval(self, config: Any) -> float:
        """Return how many trained steps are between two moves of the old policy, by the settings of a module."""
        batches = int(config.circular_buffer_num_batches) * int(config.circular_buffer_iterations_per_batch)
        return super().target_interval(config) * batches * int(config.train_batch_size_per_learner)

    def after_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Let the weight of the distance follow, besides what every learner with an old policy does."""
        super().after_gradient_based_update(timesteps=timesteps)
        for module_id, weight in self.curr_kl_coeffs_per_module.items():
            self.metrics.log_value((module_id, KL_COEFF), float(weight), window=1)
        self.follow_kl()
