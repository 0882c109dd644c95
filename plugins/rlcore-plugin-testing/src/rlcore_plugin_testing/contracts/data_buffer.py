"""What a buffer must keep that has its data from the start: it needs no batch, and what it draws is a file's alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import torch

from rlcore.types import Buffer
from rlcore.types.context import Context
from rlcore.types.part import defines, with_defaults
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.small_run import TOY_CONFIG

_RUN: Final = {key: value for key, value in TOY_CONFIG["run"].items() if key != "total_frames"}
COLLECTS_NOTHING: Final[Mapping[str, Any]] = {
    "run": {**_RUN, "total_updates": 32},
    "collector": [],
    "estimator": [],
}


class DataBufferContract(StateContract):
    """Base of the tests of a buffer that has its data.

    The loss in `around` has to read what is in the data; that of the toy parts reads advantages.
    """

    kind = "buffer"
    around: ClassVar[Mapping[str, Any]] = COLLECTS_NOTHING

    def epoch(self, buffer: Any) -> list[dict[Any, list[Any]]]:
        """Return the minibatches of an iteration as plain values."""
        return [{key: found[key].tolist() for key in found.keys()} for found in buffer.minibatches(None)]  # noqa: SIM118

    def exercise(self, component: Any, context: Context) -> None:
        """Run an epoch."""
        component.add(None)
        self.epoch(component)

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what the next epoch samples."""
        return self.epoch(component)

    def test_says_that_it_has_data(self) -> None:
        """A run without a collector is refused otherwise."""
        buffer = self.make(self.bench())
        assert buffer.warmup_frames == 0, "frames never pass, so a warm-up would never end"
        assert with_defaults(buffer, Buffer).has_data, "has_data is not True"

    def test_minibatches_have_one_shape(self) -> None:
        """A compiled update sees one shape."""
        buffer = self.make(self.bench())
        shapes = {
            tuple((key, tuple(found[key].shape), found[key].dtype) for key in found.keys())  # noqa: SIM118
            for _ in range(3)
            for found in buffer.minibatches(None)
        }
        assert len(shapes) == 1, f"minibatches have several forms: {shapes}"

    def test_yields_no_more_than_it_says(self) -> None:
        """What an iteration is follows from it, in proofs and in messages."""
        buffer = self.make(self.bench())
        most = with_defaults(buffer, Buffer).most_updates(0)
        if most is not None:
            assert len(self.epoch(buffer)) <= most

    def test_samples_differ_each_time(self) -> None:
        """The same order every time would correlate the updates."""
        buffer = self.make(self.bench())
        assert self.epoch(buffer) != self.epoch(buffer), "two iterations sample the same rows"

    def test_the_seed_of_the_run_decides(self) -> None:
        """Runs of several seeds must differ in the order of their samples."""
        around = [{"run": {**self.around["run"], "seed": seed}} for seed in (1, 2)]
        first, second = (self.epoch(self.make(self.bench(around=run))) for run in around)
        assert first != second, "the order of the samples is the same whatever the run's seed"

    def test_takes_feedback(self) -> None:
        """The trainer hands over the result of every update."""
        buffer = self.make(self.bench())
        for found in buffer.minibatches(None):
            assert buffer.feedback(found, {"loss": torch.tensor(1.0)}) is None

    def test_the_spaces_of_the_data_are_those_of_a_model(self) -> None:
        """Where the class knows the spaces, a model is built for them without an env."""
        target: Any = self.provided().target()
        if defines(target, Buffer.spec_of):
            context = self.bench()
            spec = target.spec_of(self.settings(), context)
            assert spec.observation_space == context.env_spec.observation_space
            assert spec.action_space == context.env_spec.action_space
