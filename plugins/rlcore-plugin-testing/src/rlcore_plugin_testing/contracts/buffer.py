"""What a buffer must keep: rows that belong together, fixed shapes, nothing masked, its position."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest
import torch

from rlcore.types import Buffer
from rlcore.types.collected import CollectedBatch, takes_columns
from rlcore.types.context import Context
from rlcore.types.part import with_defaults
from rlcore.types.records import MASK
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import made_up
from rlcore_plugin_testing.small_run import TOY_CONFIG

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types.records import Key


_MANY: Final = 400


class BufferContract(StateContract):
    """Base of the tests of a buffer.

    Attributes:
        steps: steps per env of the batches in the tests; two envs.
        keeps_experience: whether experience outlives the iteration, as in a replay buffer.
    """

    kind = "buffer"
    steps: ClassVar[int] = 16
    keeps_experience: ClassVar[bool] = False

    def batch(self, context: Context, masked: tuple[int, ...] = ()) -> TensorDict:
        """Return a batch whose rewards number its steps."""
        nothing = torch.zeros(2, self.steps, dtype=torch.bool)
        mask = None
        if masked:
            mask = torch.ones(2, self.steps, dtype=torch.bool)
            mask.reshape(-1)[list(masked)] = False
        batch = made_up(context, nothing, nothing, mask)
        batch["next", "reward"] = torch.arange(2.0 * self.steps).reshape(2, self.steps, 1)
        return batch

    def trained(self, minibatch: Any, key: Key) -> Tensor:
        """Return an entry of the steps that are trained on, `[step, ...]`: of sequences those whose mask is True."""
        entry: Tensor = minibatch[key]
        return entry[minibatch[MASK].squeeze(-1)] if MASK in minibatch else entry

    def epoch(self, buffer: Any, batch: TensorDict) -> list[list[int]]:
        """Return the numbers of the steps in each minibatch of an epoch."""
        minibatches = buffer.minibatches(batch)
        return [self.trained(found, ("next", "reward")).flatten().int().tolist() for found in minibatches]

    def exercise(self, component: Any, context: Context) -> None:
        """Run an epoch."""
        batch = self.batch(context)
        component.add(batch)
        self.epoch(component, batch)

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what the next epoch samples."""
        batch = self.batch(context)
        component.add(batch)
        return self.epoch(component, batch)

    def test_says_how_it_is_used(self) -> None:
        """The trainer reads both numbers."""
        buffer = self.make(self.bench())
        assert buffer.num_epochs >= 1, f"num_epochs = {buffer.num_epochs}; it must be at least 1"
        assert buffer.warmup_frames >= 0, f"warmup_frames = {buffer.warmup_frames}; it must not be negative"

    def test_rows_belong_together(self) -> None:
        """Every entry of a sample comes from the same step."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        drawn = 0
        for found in buffer.minibatches(batch):
            rows = self.trained(found, ("next", "reward")).flatten().long()
            drawn += len(rows)
            for key in batch.keys(include_nested=True, leaves_only=True):
                expected = batch[key].flatten(0, 1)[rows]
                assert torch.equal(self.trained(found, key), expected), (
                    f"{key!r} of a minibatch belongs to other steps than the reward"
                )
        assert drawn, "the buffer yields no minibatch"

    def test_leaves_keep_their_bits(self) -> None:
        """Observations that are dicts are rows of words, in which every leaf has its own dtype."""
        context = self.seeing_dicts()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        for found in buffer.minibatches(batch):
            for key in ("observation", ("next", "observation")):
                if key in found:
                    there = {tuple(row) for row in batch[key].flatten(0, 1).tolist()}
                    drawn = {tuple(row) for row in self.trained(found, key).tolist()}
                    assert drawn <= there, f"{key!r} is not what it was, to the bit"

    def test_yields_no_more_than_it_says(self) -> None:
        """A run refuses optimizers whose steps come less often than all its updates."""
        context = self.bench()
        buffer: Any = self.make(context)
        batch = self.batch(context)
        most = with_defaults(buffer, Buffer).most_updates(batch.numel())
        if most is None:
            pytest.skip("it does not say how many minibatches it yields")
        for _ in range(3):
            self.exercise(buffer, context)
            count = len(self.epoch(buffer, batch))
            assert count <= most, f"an epoch has {count} minibatches, and most_updates returned {most}"

    def test_minibatches_have_one_shape(self) -> None:
        """A compiled update sees one shape, whatever is masked."""
        context = self.bench()
        buffer = self.make(context)
        sizes: set[int] = set()
        for masked in ((), (3,), (0, 1, 2, 3, 4), tuple(range(2 * self.steps - 3)), tuple(range(2 * self.steps))):
            batch = self.batch(context, masked)
            buffer.add(batch)
            sizes |= {found["next", "reward"].numel() for found in buffer.minibatches(batch)}
        assert len(sizes) == 1, f"minibatches have the sizes {sorted(sizes)}; fill up, or drop the remainder"

    def test_masked_steps_are_never_drawn(self) -> None:
        """A step that only resets an env must not be trained on."""
        context = self.bench()
        buffer = self.make(context)
        masked = (0, 7, 8, 2 * self.steps - 1)
        batch = self.batch(context, masked)
        buffer.add(batch)
        for _ in range(5):
            drawn = {number for rows in self.epoch(buffer, batch) for number in rows}
            assert not drawn & set(masked), f"masked steps were sampled: {sorted(drawn & set(masked))}"

    def test_epochs_are_shuffled_each_time(self) -> None:
        """The same order every time would correlate the updates."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        orders = [self.epoch(buffer, batch) for _ in range(2)]
        assert orders[0] != orders[1], "two epochs sample in the same order"

    def test_every_step_can_be_drawn(self) -> None:
        """Experience that is never sampled was collected in vain."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        missing = set(range(2 * self.steps))
        for _ in range(_MANY):
            missing -= {number for rows in self.epoch(buffer, batch) for number in rows}
            if not missing:
                return
        pytest.fail(f"in {_MANY} epochs these steps were never sampled: {sorted(missing)}")

    def test_the_seed_of_the_run_decides(self) -> None:
        """Runs of several seeds must differ in the order of their samples."""
        orders = []
        for seed in (1, 2):
            context = self.bench(around={"run": {**TOY_CONFIG["run"], "seed": seed}})
            buffer, batch = self.make(context), self.batch(context)
            buffer.add(batch)
            orders.append([self.epoch(buffer, batch) for _ in range(2)])
        assert orders[0] != orders[1], "the order of the samples is the same whatever the run's seed"

    def test_leaves_the_batch(self) -> None:
        """Hooks, metrics and the next epoch look at the batch after the buffer has."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        before = batch.clone()
        buffer.add(batch)
        self.epoch(buffer, batch)
        changed = [key for key in before.keys(True, True) if not torch.equal(before[key], batch[key])]
        assert not changed, f"the buffer changed {', '.join(map(str, changed))} of the batch"

    def test_both_forms_of_a_batch_are_alike(self) -> None:
        """A buffer that takes tensors in place of a TensorDict does the same with them."""
        if not takes_columns(self.make(self.bench())):
            pytest.skip("it takes TensorDicts alone")
        epochs = []
        for light in (False, True):
            context = self.bench()
            buffer, batch = self.make(context), self.batch(context, masked=(3,))
            mask = batch.get(MASK)
            columns = {key: batch[key] for key in batch.keys(True, True) if key != MASK}
            given: Any = CollectedBatch(columns, mask) if light else batch
            for _ in range(2):
                buffer.add(given)
                epochs.append(self.epoch(buffer, given))
        assert epochs[:2] == epochs[2:], "other steps are sampled where the batch is a CollectedBatch"

    def test_takes_feedback(self) -> None:
        """The trainer hands over the result of every update, with the error of each sample where the loss has one."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        for found in buffer.minibatches(batch):
            error = torch.ones_like(found["next", "reward"])
            assert buffer.feedback(found, {"loss_critic": torch.tensor(1.0), "td_error": error}) is None

    def test_keeps_copies(self) -> None:
        """The tensors of a batch are overwritten by the next collection."""
        if not self.keeps_experience:
            pytest.skip("nothing is kept beyond the iteration")
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        batch["next", "reward"].fill_(-1.0)
        drawn = {number for rows in self.epoch(buffer, batch) for number in rows}
        assert drawn != {-1}, "the buffer keeps views of the batch; copy what is kept"

    def test_new_experience_is_drawn_too(self) -> None:
        """A buffer that is not full takes every batch in, and keeps those before."""
        if not self.keeps_experience:
            pytest.skip("nothing is kept beyond the iteration")
        context = self.bench()
        buffer, old = self.make(context), self.batch(context)
        new = old.clone()
        new["next", "reward"] += 1000
        for batch in (old, new):
            buffer.add(batch)
        drawn = [n for _ in range(_MANY) for rows in self.epoch(buffer, new) for n in rows]
        assert max(drawn) >= 1000, "a second batch is never sampled"
        assert min(drawn) < 1000, "an earlier batch is not sampled any more"


class RolloutBufferContract(BufferContract):
    """An on-policy buffer: each step of the batch once per epoch. Two times `steps` must be whole minibatches."""

    def test_every_step_is_drawn_once_per_epoch(self) -> None:
        """No experience is lost or counted twice."""
        context = self.bench()
        buffer, batch = self.make(context), self.batch(context)
        buffer.add(batch)
        for _ in range(3):
            counts = Counter(number for rows in self.epoch(buffer, batch) for number in rows)
            missing = sorted(set(range(2 * self.steps)) - set(counts))
            assert not missing, f"steps that were never sampled: {missing}"
            assert set(counts.values()) == {1}, f"sampled more than once: {[n for n, c in counts.items() if c > 1]}"

    def test_every_valid_step_is_drawn_where_some_are_masked(self) -> None:
        """The last minibatch may be filled up, no valid step may be left out."""
        context = self.bench()
        buffer = self.make(context)
        masked = (1, 5, 9)
        batch = self.batch(context, masked)
        buffer.add(batch)
        counts = Counter(number for rows in self.epoch(buffer, batch) for number in rows)
        missing = sorted(set(range(2 * self.steps)) - set(masked) - set(counts))
        assert not missing, f"valid steps that were never sampled: {missing}"
        assert max(counts.values()) <= 2, "a step was sampled more than twice"

    def test_takes_the_newest_batch_only(self) -> None:
        """Experience of an older policy is not sampled again."""
        context = self.bench()
        buffer = self.make(context)
        old, new = self.batch(context), self.batch(context)
        old["next", "reward"] += 1000
        for batch in (old, new):
            buffer.add(batch)
        drawn = {number for rows in self.epoch(buffer, new) for number in rows}
        assert max(drawn) < 1000, "the buffer samples from an older batch"
