"""A part that inherits from the interface of its kind defines what is abstract there, and does without the rest."""

import copy

import pytest
from rlcore_plugin_gradient.learner import GradientLearner
from rlcore_plugin_rollout.evaluator import EpisodeEvaluator
from rlcore_plugin_rollout.local import LocalCollector
from rlcore_plugin_rollout.rollout import RolloutBuffer
from rlcore_plugin_testing.contracts import ComponentContract
from rlcore_plugin_testing.toy_parts import ToyTransform

from rlcore.types import Buffer, Collector, Evaluator, Learner, Transform


class Around:
    """Keeps a part of the core, to which a small one hands what it is asked."""

    whole: type

    def __init__(self, config, context):
        self.part = self.whole(config, context)


class SmallBuffer(Around, Buffer):
    whole, Config = RolloutBuffer, RolloutBuffer.Config
    num_epochs, warmup_frames = 1, 0

    def add(self, batch):
        self.part.add(batch)

    def minibatches(self, batch):
        return self.part.minibatches(batch)


class SmallCollector(Around, Collector):
    whole, Config = LocalCollector, LocalCollector.Config

    @property
    def batch_steps(self):
        return self.part.batch_steps

    def collect(self):
        return self.part.collect()


class SmallEvaluator(Around, Evaluator):
    whole, Config = EpisodeEvaluator, EpisodeEvaluator.Config
    every, at_start = 32, False

    def evaluate(self):
        return self.part.evaluate()


class SmallLearner(Around, Learner):
    whole, Config = GradientLearner, GradientLearner.Config

    def update(self, minibatch):
        return self.part.update(minibatch)


class SmallTransform(Transform):
    Config = ToyTransform.Config

    def __init__(self, config, context):
        pass

    def observation_space(self, space):
        return space

    def step(self, observation, first):
        return observation

    def final(self, observation, env_index):
        return observation

    def frozen(self):
        return copy.copy(self)


SMALL = {
    "buffer": (SmallBuffer, {"minibatch_size": 8}),
    "collector": (SmallCollector, {"frames_per_batch": 16}),
    "evaluator": (SmallEvaluator, {"episodes": 2}),
    "learner": (SmallLearner, {}),
    "transform": (SmallTransform, {}),
}


@pytest.mark.parametrize("kind", SMALL)
def test_a_part_with_no_more_than_is_abstract_trains(kind):
    part, config = SMALL[kind]
    case = type("Small", (ComponentContract,), {"kind": kind, "target": part, "config": config})()
    trainer = case.run().trainer
    trainer.train()
    assert trainer.progress.frames == trainer.progress.total


@pytest.mark.parametrize("kind", SMALL)
def test_a_part_without_what_is_abstract_is_refused_when_it_is_built(kind):
    part, config = SMALL[kind]
    interface = part.__mro__[-4]
    missing = type("Missing", (interface,), {"Config": part.Config, "__init__": lambda self, config, context: None})
    case = type("Small", (ComponentContract,), {"kind": kind, "target": missing, "config": config})()
    with pytest.raises(Exception, match="abstract method"):
        case.run()
