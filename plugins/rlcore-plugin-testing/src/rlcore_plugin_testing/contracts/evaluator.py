"""What an evaluator must keep: complete episodes on fixed seeds, the same each time, and training untouched."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch

from rlcore.state.tree import through_checkpoint
from rlcore.types import EvaluationResult
from rlcore.types.context import Context
from rlcore.types.progress import Every
from rlcore_plugin_testing.compare import difference, snapshot
from rlcore_plugin_testing.contracts.base import ComponentContract
from rlcore_plugin_testing.toy import ToyEnv

MODES = ["same_step", "next_step"]


class EvaluatorContract(ComponentContract):
    """Base of the tests of an evaluator. They use the toy env, whose returns are known."""

    kind = "evaluator"

    def test_says_when_it_is_due(self) -> None:
        """The trainer reads `every` and `at_start`."""
        evaluator = self.make(self.bench())
        assert isinstance(evaluator.at_start, bool), "at_start must be a bool"
        if evaluator.every is not None:
            Every(evaluator.every)

    @pytest.mark.parametrize("mode", MODES)
    def test_returns_are_those_of_complete_episodes(self, mode: str) -> None:
        """Episode `i` is the first one of env `i`; nothing is counted after its end."""
        context = self.bench(around=_env(reset_mode=mode))
        context.progress.frames = 48
        result: EvaluationResult = self.make(context).evaluate()
        env = context.env
        assert isinstance(env, ToyEnv)
        count = len(result.seeds)
        assert count, "the result has no seeds"
        lengths = tuple(env.length(index, 0) for index in range(count))
        assert len(set(result.seeds)) == count, f"episodes share seeds: {result.seeds}"
        assert result.lengths == lengths, f"episodes of {lengths} steps are reported as {result.lengths}"
        expected = tuple(length * (length + 1) / 2 for length in lengths)
        assert result.returns == expected, f"returns of {expected} are reported as {result.returns}"
        assert result.frames == 48, f"result.frames is {result.frames}; it is progress.frames at the evaluation"

    @pytest.mark.parametrize("mode", MODES)
    def test_the_same_weights_give_the_same_result(self, mode: str) -> None:
        """Fixed seeds, the deterministic policy, and frozen transforms."""
        around = {**_env(reset_mode=mode, reward="aim"), "transform": [{"use": "testing:toy"}]}
        context = self.bench(around=around)
        evaluator = self.make(context)
        results = [evaluator.evaluate()]
        torch.manual_seed(99)
        context.collector.collect()
        for transform in context.transforms:
            transform.frozen().step(np.ones((1, 3), dtype=np.float32), np.ones(1, dtype=bool))
        frozen = [transform.frozen() for transform in context.transforms]
        results += [self._with_transforms(evaluator, context, frozen) for _ in range(2)]
        assert results[1] == results[2], f"two evaluations differ: {results[1]} and {results[2]}"

    def test_training_is_left_alone(self) -> None:
        """Envs, transforms, weights, clocks and generators are where they were."""
        context = self.bench(around={"transform": [{"use": "testing:toy"}]})
        context.collector.collect()
        evaluator = self.make(context)
        before = _training(context)
        evaluator.evaluate()
        where = difference(before, _training(context))
        assert where is None, f"an evaluation changed training: {where}"

    def test_follows_the_weights(self) -> None:
        """An evaluation measures the model as it is now."""
        context = self.bench(around=_env(reward="aim"))
        evaluator = self.make(context)
        before = evaluator.evaluate()
        model: Any = context.model
        with torch.no_grad():
            for parameter in model.parameters():
                parameter += 0.2
        assert evaluator.evaluate().returns != before.returns, "the evaluation does not follow the weights"

    def test_closes_twice_and_unused(self) -> None:
        """A run may fail before its first evaluation."""
        context = self.bench()
        unused = self.make(context)
        unused.close()
        used = self.make(context)
        used.evaluate()
        used.close()
        used.close()

    def _with_transforms(self, evaluator: Any, context: Context, frozen: list[Any]) -> EvaluationResult:
        context.transforms[:] = frozen
        result: EvaluationResult = evaluator.evaluate()
        return result


def _env(**keys: Any) -> Mapping[str, Any]:
    return {"env": {"use": "testing:toy", **keys}}


def _training(context: Context) -> dict[str, Any]:
    model: Any = context.model
    env: Any = context.env
    return {
        "env": through_checkpoint(env.state_dict()),
        "transforms": [snapshot(transform) for transform in context.transforms],
        "model": {name: value.clone() for name, value in model.state_dict().items()},
        "mode": model.training,
        "progress": context.progress.state_dict(),
        "torch generator": torch.get_rng_state(),
        "numpy generator": np.random.get_state(legacy=False),
        "python generator": random.getstate(),
    }
