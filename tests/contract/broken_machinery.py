"""Models, envs and machinery of the core that break their contracts, one way each."""

import copy

import numpy as np
import torch

from rlcore.buffer import RolloutBuffer
from rlcore.collect import LocalCollector
from rlcore.evaluate import EpisodeEvaluator
from rlcore.learner import GradientLearner
from rlcore.optimizers import AdamConfig
from rlcore.schedules import Linear, ScheduleConfig
from rlcore.testing.toy import ToyDistribution, ToyEnv, ToyModel
from rlcore.testing.toy_parts import ToyCheckpointer, ToyLogger


class GlobalModel(ToyModel):
    """Starts from the weights that the global generator gives."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self.critic = torch.nn.Linear(3, 1)


class RandomModel(ToyModel):
    """Draws in `act`."""

    def __init__(self, config, context):
        super().__init__(config, context)
        act = self.policy.act
        self.policy.act = lambda observation, noise: act(observation, noise + torch.rand_like(noise))


class LyingModel(ToyModel):
    def __init__(self, config, context):
        super().__init__(config, context)
        describe = self.policy.describe
        self.policy.describe = lambda p, a: {k: v * 1.1 for k, v in describe(p, a).items()}


class StaleModel(ToyModel):
    def __init__(self, config, context):
        super().__init__(config, context)
        self.policy._actor = copy.deepcopy(self.actor)


class UnseededEnv(ToyEnv):
    def reset(self, seed=None):
        return super().reset(np.random.default_rng().integers(1000))


class ConfusedEnv(ToyEnv):
    """Reports every end as both."""

    def step(self, action):
        step = super().step(action)
        both = step.terminated | step.truncated
        return step._replace(terminated=both, truncated=both)


class FinallessEnv(ToyEnv):
    def step(self, action):
        return super().step(action)._replace(final_observation={})


class RestlessEnv(ToyEnv):
    def render(self, indices=None):
        self._position += 1
        return super().render(indices)


class StillEnv(ToyEnv):
    def render(self, indices=None):
        return np.zeros_like(super().render(indices))


class GreyEnv(ToyEnv):
    def render(self, indices=None):
        return super().render(indices).max(-1)


class StubbornEnv(ToyEnv):
    def render(self, indices=None):
        return super().render()


class SingleEnv(ToyEnv):
    def __init__(self, config, context):
        super().__init__(config.model_copy(update={"num_envs": 2}), context)


class AppendingLogger(ToyLogger):
    def load_state_dict(self, state):
        pass


class RoundingLogger(ToyLogger):
    def log_metrics(self, metrics, step):
        super().log_metrics({key: round(value, 3) for key, value in metrics.items()}, step)


class SinglePrecisionCheckpointer(ToyCheckpointer):
    def save(self, folder, tensors):
        super().save(folder, {k: v.float() if v.dtype == torch.bfloat16 else v for k, v in tensors.items()})


class SharingCheckpointer(ToyCheckpointer):
    def load(self, folder):
        loaded = super().load(folder)
        first = next(iter(loaded.values()), None)
        return {k: first if first is not None and torch.equal(v, first) else v for k, v in loaded.items()}


class FragileCheckpointer(ToyCheckpointer):
    def load(self, folder):
        try:
            return super().load(folder)
        except Exception as error:
            raise LookupError from error


class ForgetfulCheckpointer(ToyCheckpointer):
    def load_into(self, folder, tensors):
        for name, tensor in list(self.load(folder).items())[:1]:
            tensors[name].copy_(tensor)


class UnmaskingBuffer(RolloutBuffer):
    def minibatches(self, batch):
        return super().minibatches(batch.exclude("collector"))


class OrderedBuffer(RolloutBuffer):
    def _order(self, batch):
        return torch.arange(batch.numel())


class ForgetfulBuffer(RolloutBuffer):
    def load_state_dict(self, state):
        pass


class ShiftedCollector(LocalCollector):
    def collect(self):
        batch = super().collect()
        return batch.set(("next", "reward"), batch["next", "reward"].roll(1, dims=1))


class SilentCollector(LocalCollector):
    def episodes(self):
        return super().episodes()[1:]


class ForgetfulCollector(LocalCollector):
    def load_state_dict(self, state):
        self._started = False


class RestartingCollector(LocalCollector):
    """Says that it goes on with its episodes, and begins new ones."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self._started = False


class HalfSavingCollector(LocalCollector):
    """Can take a state back, and gives none."""

    state_dict = property()


class UnscheduledLearner(GradientLearner):
    def end_iteration(self):
        self.check_finite()


class HeedlessLearner(GradientLearner):
    """Leaves target networks where they are."""

    def update(self, minibatch):
        self._targets = None
        return super().update(minibatch)


class UncountingLearner(GradientLearner):
    def update(self, minibatch):
        values = super().update(minibatch)
        self.progress.updates -= 1
        return values


class MeddlingEvaluator(EpisodeEvaluator):
    """Steps the training envs."""

    def evaluate(self):
        self._context.env.reset(seed=5)
        return super().evaluate()


class ShortEvaluator(EpisodeEvaluator):
    def evaluate(self):
        result = super().evaluate()
        return type(result)(result.frames, result.seeds, tuple(r - 1 for r in result.returns), result.lengths)


class PartialOptimizer:
    """Trains the actor only."""

    Config = AdamConfig

    def __new__(cls, config, context):
        optimizer = torch.optim.Adam(context.model.actor.parameters(), lr=config.lr)
        optimizer.losses = tuple(config.losses)
        return optimizer


class CountingScheduler(Linear):
    def value(self, initial, progress):
        self._calls = getattr(self, "_calls", 0) + 1
        return super().value(initial, progress) / self._calls


class OpenScheduler(Linear):
    class Config(ScheduleConfig, extra="ignore"):
        """Takes anything."""


class BareScheduler(Linear):
    class Config(ScheduleConfig):
        """A key without a description."""

        slope: float = 1.0


class SteepDistribution(ToyDistribution):
    def log_prob(self, parameters, action):
        return super().log_prob(parameters, action) * 1.1


class NarrowDistribution(ToyDistribution):
    def sample(self, parameters, noise):
        return super().sample(parameters, noise * 0.8)


class RichDistribution(ToyDistribution):
    def entropy(self, parameters):
        return super().entropy(parameters) + 0.1


class DetachedDistribution(ToyDistribution):
    def log_prob_and_entropy(self, parameters, action):
        return self.log_prob(parameters * 0.5 + parameters.detach() * 0.5, action), self.entropy(parameters)
