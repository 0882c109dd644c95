"""Models, envs and machinery of the core that break their contracts, one way each."""

import copy
import os

import numpy as np
import torch
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_gradient.optimizers import AdamConfig
from rlcore_plugin_gradient.schedules import Linear, ScheduleConfig
from rlcore_plugin_rollout.evaluator import EpisodeEvaluator
from rlcore_plugin_rollout.local import LocalCollector
from rlcore_plugin_rollout.rollout import RolloutBuffer
from rlcore_plugin_testing.toy import ToyDistribution, ToyEnv, ToyModel
from rlcore_plugin_testing.toy_parts import ToyCheckpointer, ToyLogger


class GuessingModel(ToyModel):
    """Its critic leaves the size of a row to be found out, which no rows do not say."""

    def __init__(self, config, context):
        super().__init__(config, context)
        forward = self.critic.forward
        self.critic.forward = lambda seen: forward(seen.view(seen.size(0), -1) if seen.ndim == 2 else seen)


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


class WrongProphetModel(ToyModel):
    """Foretells zeros."""

    def __init__(self, config, context):
        super().__init__(config, context)
        action = context.env_spec.action_space.shape
        self.policy.foretold = lambda noise: (torch.zeros(*noise.shape[:2], *action), [True] * len(noise))


class UnseededEnv(ToyEnv):
    def reset(self, seed=None):
        return super().reset(np.random.default_rng().integers(1000))


class ConfusedEnv(ToyEnv):
    """Reports every end as both."""

    def step(self, action):
        step = super().step(action)
        both = step.terminated | step.truncated
        return step._replace(terminated=both, truncated=both)


class LimitedEnv(ToyEnv):
    """Reports an end at its limit as both, and others as they are."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._lasted = np.zeros(self.spec.num_envs, dtype=int)

    def step(self, action):
        step = super().step(action)
        self._lasted += 1
        both = (step.terminated | step.truncated) & (self._lasted == self.spec.max_episode_steps)
        self._lasted[step.terminated | step.truncated] = 0
        return step._replace(terminated=step.terminated | both, truncated=step.truncated | both)


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


class TwinEnv(ToyEnv):
    """Gives one seed to all envs but the first."""

    def reset(self, seed=None):
        super().reset(seed)
        if seed is not None:
            for index in range(2, self.spec.num_envs):
                self._generators[index] = np.random.default_rng(seed + 1)
                self._begin(index)
        return self._observation


class AlikeEnv(ToyEnv):
    """Gives one seed to all envs."""

    def reset(self, seed=None):
        super().reset(seed)
        if seed is not None:
            for index in range(self.spec.num_envs):
                self._generators[index] = np.random.default_rng(seed)
                self._begin(index)
        return self._observation


class ResetlessEnv(ToyEnv):
    """Tells of its steps alone."""

    def tell_infos(self, listener):
        super().tell_infos(lambda index, infos, first: None if first else listener(index, infos, first))


class EchoingEnv(ToyEnv):
    """Tells of where it is when its state is loaded."""

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self._listener(0, {}, True)


class RepeatingEnv(ToyEnv):
    """Begins every episode alike."""

    def _begin(self, index):
        state = self._generators[index].bit_generator.state
        super()._begin(index)
        self._generators[index].bit_generator.state = state


class SometimesBothEnv(ToyEnv):
    """Reports every second end as both."""

    ends = 0

    def step(self, action):
        step = super().step(action)
        self.ends += int((step.terminated | step.truncated).sum())
        both = (step.terminated | step.truncated) & (self.ends % 2 == 0)
        return step._replace(terminated=step.terminated | both, truncated=step.truncated | both)


class UntoldEnv(ToyEnv):
    """Counts for its infos, and does not save the count."""

    count = 0

    def step(self, action):
        step = super().step(action)
        self.count += 1
        return step._replace(infos={index: {**info, "count": self.count} for index, info in step.infos.items()})


class DrawingEnv(ToyEnv):
    """Draws whenever its state is taken, and saves what was before."""

    def state_dict(self):
        state = super().state_dict()
        for generator in self._generators:
            generator.random()
        return state


class NextEnv(ToyEnv):
    """Gives the first observation of the next episode as the last one."""

    def step(self, action):
        step = super().step(action)
        finals = {index: np.array(step.observation[index]) for index in step.final_observation}
        return step._replace(final_observation=finals)


class AppendingLogger(ToyLogger):
    def load_state_dict(self, state):
        pass


class PaddingLogger(ToyLogger):
    def load_state_dict(self, state):
        self.file.close()
        os.truncate(self.file.path, state["size"])


class SilentLogger(ToyLogger):
    def load_state_dict(self, state):
        self.file.go_back(state)


class RepeatingLogger(ToyLogger):
    def begin_anew(self):
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
    def _order(self, *arguments):
        order, count = super()._order(*arguments)
        return torch.arange(order.shape[0]), count


class ForgetfulBuffer(RolloutBuffer):
    def load_state_dict(self, state):
        pass


class HalfBuffer(RolloutBuffer):
    """Draws from the first half of a batch, twice."""

    def _order(self, units, *arguments):
        order, count = super()._order(units, *arguments)
        return torch.where(order < units // 2, order, order - units // 2), count


class SeedlessBuffer(RolloutBuffer):
    """Draws in the same orders in every run."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._generator = torch.Generator().manual_seed(5)


class MiscountingBuffer(RolloutBuffer):
    """Yields one more than it says."""

    def minibatches(self, batch):
        yield from super().minibatches(batch)
        yield next(super().minibatches(batch))


class WritingBuffer(RolloutBuffer):
    """Scales the rewards of the batch itself."""

    def add(self, batch):
        super().add(batch)
        batch["next", "reward"].mul_(0.5)


class CastingBuffer(RolloutBuffer):
    """Takes every observation for numbers."""

    def minibatches(self, batch):
        batch = batch.clone()
        batch["observation"] = batch["observation"].double().to(batch["observation"].dtype)
        return super().minibatches(batch)


class FirstBuffer(RolloutBuffer):
    """Draws from its first batch for ever."""

    kept = None

    def add(self, batch):
        super().add(batch)
        self.kept = batch.clone() if self.kept is None else self.kept

    def minibatches(self, batch):
        return super().minibatches(self.kept)


class ShiftedCollector(LocalCollector):
    def collect(self):
        batch = super().collect()
        return batch.set(("next", "reward"), batch["next", "reward"].roll(1, dims=1))


class UnmaskingCollector(LocalCollector):
    """Says afterwards that every action was allowed."""

    def collect(self):
        batch = super().collect().clone()
        self._spec.observation_space.tensor(batch["observation"], "action_mask").fill_(1)
        return batch


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


class BothCollector(LocalCollector):
    """Says of every end that it was a cut, too."""

    def collect(self):
        batch = super().collect()
        return batch.set(("next", "truncated"), batch["next", "done"].clone())


class QuietCollector(LocalCollector):
    """Leaves out what the env says of an end."""

    def episodes(self):
        return [episode._replace(infos={}) for episode in super().episodes()]


class MutedCollector(LocalCollector):
    """Does so only after a resume."""

    resumed = False

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.resumed = True

    def episodes(self):
        return [episode._replace(infos={}) if self.resumed else episode for episode in super().episodes()]


class ContraryCollector(LocalCollector):
    """Steps the envs with other actions than it records."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._env.step = lambda action: ToyEnv.step(self._env, -action)


class SeedlessCollector(LocalCollector):
    """Begins the same episodes in every run."""

    def collect(self):
        if not self._started:
            self._stepper.begin(7, 0)
            self._started = True
        return super().collect()


class StaleCollector(LocalCollector):
    """Draws the same noise in every run."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._generator = torch.Generator().manual_seed(5)


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
