"""Hooks, transforms, estimators and losses that break their contracts, one way each."""

import copy

import gymnasium
import numpy as np
import torch
from pydantic import Field
from rlcore_plugin_rollout.sequences import RolloutSequences
from rlcore_plugin_testing.toy_memory import ToyMemoryModel
from rlcore_plugin_testing.toy_parts import ToyEstimator, ToyHook, ToyLoss, ToyTransform

from rlcore.hooks.specs import hookimpl


class ForgetfulHook:
    """Counts, and saves nothing."""

    Config = ToyHook.Config

    def __init__(self, config, context):
        self.count = 0

    @hookimpl
    def post_steps(self):
        self.count += 1


class HalfSavingHook(ToyHook):
    def load_state_dict(self, state):
        pass


class SharingHook(ForgetfulHook):
    seen = []

    @hookimpl
    def post_steps(self):
        self.seen.append(1)


class GraphHook(ToyHook):
    """Logs what still has a graph."""

    @hookimpl
    def post_optim_log(self, learner):
        return {"weight": next(learner.model.parameters()).square().sum()}


class EndingHook(ToyHook):
    @hookimpl
    def batch_process(self, batch):
        return batch.set(("next", "done"), torch.ones_like(batch["next", "done"]))


class UnpreparedHook(ToyHook):
    @hookimpl
    def setup(self):
        self.handle = object()

    @hookimpl
    def shutdown(self):
        del self.handle


class UnfrozenTransform(ToyTransform):
    def frozen(self):
        return copy.copy(self)


class SharedTransform(ToyTransform):
    def frozen(self):
        return self


class ForgetfulTransform(ToyTransform):
    def state_dict(self):
        return {"count": self._count, "mean": np.zeros(3)}


class WideTransform(ToyTransform):
    def step(self, observation, first):
        return super().step(observation, first).astype(np.float64)


class ChangingTransform(ToyTransform):
    def step(self, observation, first):
        observation += 1
        return super().step(observation, first)


class TooFarTransform(ToyTransform):
    """Lets the policy take actions that the env does not."""

    def action_space(self, space):
        return gymnasium.spaces.Box(-np.inf, np.inf, space.shape, space.dtype)

    def action(self, action):
        return action.copy()


class DoneEstimator(ToyEstimator):
    """Takes a cut for an end."""

    def __call__(self, batch):
        changed = batch.copy()
        changed["next", "terminated"] = changed["next", "done"]
        super().__call__(changed)
        for key in ("state_value", "advantage", "value_target"):
            batch[key] = changed[key]


class EndlessEstimator(DoneEstimator):
    """Bootstraps after an end."""

    def __call__(self, batch):
        changed = batch.copy()
        changed["next", "done"] = torch.zeros_like(batch["next", "done"])
        super().__call__(changed)
        for key in ("state_value", "advantage", "value_target"):
            batch[key] = changed[key]


class RowEstimator(ToyEstimator):
    """Bootstraps from the row that follows, whatever it is."""

    def __call__(self, batch):
        observation = batch["next", "observation"].clone()
        observation[:, :-1] = batch["observation"][:, 1:]
        changed = batch.copy()
        changed["next", "observation"] = observation
        super().__call__(changed)
        for key in ("state_value", "advantage", "value_target"):
            batch[key] = changed[key]


class AskingEstimator(ToyEstimator):
    """Asks the critic about the observations after cuts, also where there are none."""

    def __call__(self, batch):
        following = batch["next"]
        self._critic(following["observation"][following["truncated"].squeeze(-1)])
        super().__call__(batch)


class OneStepEstimator(ToyEstimator):
    """Takes the weight of longer returns, and does not use it."""

    class Config(ToyEstimator.Config):
        """Both discounts."""

        lmbda: float = Field(0.5, description="weight of longer returns")


class LeakingEstimator(ToyEstimator):
    """Sums advantages over a cut, but not over an end; its value targets are right."""

    def __call__(self, batch):
        super().__call__(batch)
        advantage = batch["advantage"].clone()
        for time in range(advantage.shape[1] - 2, -1, -1):
            advantage[:, time] += 0.5 * advantage[:, time + 1] * ~batch["next", "terminated"][:, time]
        batch["advantage"] = advantage


class UndiscountedEstimator(ToyEstimator):
    """Takes a discount, and does not use it."""

    def __init__(self, config, context):
        super().__init__(config.model_copy(update={"gamma": 1.0}), context)


class BothEstimator(ToyEstimator):
    """Lets a cut count for more than an end."""

    def __call__(self, batch):
        changed = batch.copy()
        changed["next", "terminated"] = batch["next", "terminated"] & ~batch["next", "truncated"]
        super().__call__(changed)
        for key in ("state_value", "advantage", "value_target"):
            batch[key] = changed[key]


class CutEstimator(ToyEstimator):
    """Takes a cut for an end in the advantage alone."""

    def __call__(self, batch):
        super().__call__(batch)
        ended = batch["next", "reward"] - batch["state_value"]
        batch["advantage"] = torch.where(batch["next", "done"], ended, batch["advantage"])


class NegativeEstimator(ToyEstimator):
    def __call__(self, batch):
        super().__call__(batch)
        batch["advantage"] = -batch["advantage"]


class MixingEstimator(ToyEstimator):
    """Takes the mean over envs out of advantages."""

    def __call__(self, batch):
        super().__call__(batch)
        batch["advantage"] = batch["advantage"] - batch["advantage"].mean(0, keepdim=True)


class OwningLoss(ToyLoss):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.temperature = torch.nn.Parameter(torch.ones(()))


class AttachedLoss(ToyLoss):
    def forward(self, minibatch):
        losses = super().forward(minibatch)
        return {**losses, "error": losses["loss_critic"] * 2}


class LazyLoss(ToyLoss):
    def forward(self, minibatch):
        losses = super().forward(minibatch)
        return {**losses, "loss_critic": losses["loss_critic"].detach().requires_grad_()}


class CentredLoss(ToyLoss):
    """Takes the mean of a minibatch from its advantages, which is all there is of one."""

    def forward(self, minibatch):
        advantage = minibatch["advantage"]
        return super().forward({**minibatch, "advantage": advantage - advantage.mean()})


class DoneLoss(ToyLoss):
    def forward(self, minibatch):
        return {**super().forward(minibatch), "ends": minibatch["next", "done"].float().mean()}


class NoisyLoss(ToyLoss):
    """Keeps the contract: the action is off by its noise."""

    def sample_noise(self, samples, generator):
        return {"noise": torch.randn(samples, 1, generator=generator)}

    def forward(self, minibatch):
        losses = super().forward(minibatch)
        return {**losses, "loss_actor": losses["loss_actor"] * (1 + self.noise_in(minibatch).square().mean())}

    def noise_in(self, minibatch):
        return minibatch["noise"]


class BareNoiseLoss(NoisyLoss):
    def sample_noise(self, samples, generator):
        return torch.randn(samples, 1, generator=generator)


class TakenNoiseLoss(NoisyLoss):
    def sample_noise(self, samples, generator):
        return {"noise": super().sample_noise(samples, generator)["noise"], "advantage": torch.zeros(samples, 1)}


class GlobalNoiseLoss(NoisyLoss):
    def sample_noise(self, samples, generator):
        return {"noise": torch.randn(samples, 1)}


class ConstantNoiseLoss(NoisyLoss):
    def sample_noise(self, samples, generator):
        return {"noise": torch.ones(samples, 1)}


class FurtherNoiseLoss(NoisyLoss):
    def noise_in(self, minibatch):
        return minibatch["noise"] + torch.rand(())


class HeedlessNoiseLoss(NoisyLoss):
    def noise_in(self, minibatch):
        return torch.ones(1)


class DrawingLoss(ToyLoss):
    """Draws, and uses it for nothing: resumes go on otherwise all the same."""

    def forward(self, minibatch):
        torch.rand(())
        return super().forward(minibatch)


class SeparateLoss(ToyLoss):
    """Keeps the contract: returns the losses that are asked for, and their metrics."""

    loss_names = ("loss_actor", "loss_critic")

    def forward(self, minibatch, names=None):
        losses = super().forward(minibatch)
        asked = self.loss_names if names is None else names
        metrics = {"error": losses["error"]} if "loss_critic" in asked else {}
        return {name: losses[name] for name in self.loss_names if name in asked} | metrics


class MisnamedLoss(SeparateLoss):
    loss_names = ("loss_actor", "loss_critics")

    def forward(self, minibatch, names=None):
        return ToyLoss.forward(self, minibatch)


class DeafLoss(SeparateLoss):
    """Computes all whatever is asked for."""

    def forward(self, minibatch, names=None):
        return super().forward(minibatch)


class TouchyLoss(SeparateLoss):
    """The actor's loss is another when the critic's is asked for."""

    def forward(self, minibatch, names=None):
        losses = super().forward(minibatch, names)
        if len(losses) > 1 and "loss_actor" in losses:
            losses["loss_actor"] = losses["loss_actor"] * 2
        return losses


class UnfedLoss(SeparateLoss):
    """Asked for alone, a loss has the same value and no gradient."""

    def forward(self, minibatch, names=None):
        losses = super().forward(minibatch, names)
        if names == ("loss_critic",):
            losses["loss_critic"] = losses["loss_critic"].detach() + 0 * losses["loss_critic"]
        return losses


class HoldingLoss(SeparateLoss):
    """A metric has a graph when a loss is asked for alone."""

    def forward(self, minibatch, names=None):
        losses = super().forward(minibatch, names)
        if names == ("loss_critic",):
            losses["error"] = losses["error"] + 0 * losses["loss_critic"]
        return losses


class DiscountedLoss(ToyLoss):
    """Takes a discount, and does not use it."""

    class Config(ToyLoss.Config):
        """A discount."""

        gamma: float = Field(0.9, description="discount")


class ShyLoss(SeparateLoss):
    """A metric comes with no loss that is asked for alone."""

    def forward(self, minibatch, names=None):
        losses = super().forward(minibatch, names)
        if names is not None and len(names) < 2:
            losses.pop("error", None)
        return losses


class CountingLoss(ToyLoss):
    calls = 0

    def forward(self, minibatch):
        self.calls += 1
        losses = super().forward(minibatch)
        return {**losses, "loss_actor": losses["loss_actor"] * self.calls}


class AmnesicModel(ToyMemoryModel):
    """Its policy acts on the latest observation alone."""

    def __init__(self, config, context):
        super().__init__(config, context)
        act = self.policy.act

        def forgetting(seen, noise, state, first):
            return *act(seen, noise, state, torch.ones_like(first))[:2], act(seen, noise, state, first)[2]

        self.policy.act = forgetting


class HauntedModel(ToyMemoryModel):
    """Its policy goes on with the state of the episode before."""

    def __init__(self, config, context):
        super().__init__(config, context)
        act, mode = self.policy.act, self.policy.mode
        self.policy.act = lambda seen, noise, state, first: act(seen, noise, state, torch.zeros_like(first))
        self.policy.mode = lambda seen, state, first: mode(seen, state, torch.zeros_like(first))


class StuckModel(ToyMemoryModel):
    """Its policy returns the state that it was given."""

    def __init__(self, config, context):
        super().__init__(config, context)
        act, mode = self.policy.act, self.policy.mode
        self.policy.act = lambda seen, noise, state, first: (*act(seen, noise, state, first)[:2], state.clone())
        self.policy.mode = lambda seen, state, first: (mode(seen, state, first)[0], state.clone())


class HoardingModel(ToyMemoryModel):
    """Its policy keeps the state itself."""

    def __init__(self, config, context):
        super().__init__(config, context)
        act, kept = self.policy.act, {}

        def remembering(seen, noise, state, first):
            found = act(seen, noise, kept.get(len(seen), state), first)
            kept[len(seen)] = found[2]
            return found

        self.policy.act = remembering


class SeamlessModel(ToyMemoryModel):
    """Its critic does not begin again inside a sequence."""

    def __init__(self, config, context):
        super().__init__(config, context)
        forward = self.critic.forward
        self.critic.forward = lambda seen, state, first: forward(
            seen, state, torch.zeros_like(first) if first.ndim == 3 else first
        )


class LeakyModel(ToyMemoryModel):
    """Its gradient crosses the beginning of an episode."""

    def __init__(self, config, context):
        super().__init__(config, context)
        step = self.actor.body.step

        def leaking(observation, state, first):
            return step(observation, state - (state * first.reshape(-1, 1)).detach(), torch.zeros_like(first))

        self.actor.body.step = leaking


class WrongStateBuffer(RolloutSequences):
    """Hands out the state after the first step of a sequence."""

    def minibatches(self, batch):
        later = batch.copy()
        later["policy_state"] = batch["policy_state"].roll(-1, 1)
        return super().minibatches(later)


class ShufflingBuffer(RolloutSequences):
    """Hands out steps that do not follow each other."""

    def minibatches(self, batch):
        return super().minibatches(batch[:, torch.randperm(batch.shape[1], generator=torch.Generator().manual_seed(0))])
