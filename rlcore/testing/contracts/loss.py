"""What a loss must keep: named scalars, gradients to what it requires, no weights of its own, nothing changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from rlcore.learners.joint import rows_of
from rlcore.testing.compare import difference
from rlcore.testing.contracts.base import StateContract
from rlcore.testing.contracts.data import minibatch
from rlcore.types import Key
from rlcore.types.context import Context
from rlcore.types.models import part_of
from rlcore.types.optional import EntryReader, NoiseSampler, offers


class LossContract(StateContract):
    """Base of the tests of a loss. The minibatches are collected on the bench: see `around`."""

    kind = "loss"

    def exercise(self, component: Any, context: Context) -> None:
        """Compute the loss of some minibatches."""
        for _ in range(3):
            computed(component, minibatch(context))

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return the losses of a minibatch that does not depend on what was collected before."""
        return {name: value.detach() for name, value in computed(component, minibatch(self.bench())).items()}

    def losses(self) -> tuple[Any, dict[str, Tensor], Context]:
        """Return a loss, what it returns for a minibatch, and the bench."""
        context = self.bench()
        loss = self.make(context)
        returned = computed(loss, minibatch(context))
        assert isinstance(returned, dict), f"a loss returns a dict of tensors, not a {type(returned).__name__}"
        return loss, returned, context

    def test_returns_named_scalars(self) -> None:
        """What is called `loss_*` is minimised; everything else is logged, `td_error` of each sample too."""
        _, losses, context = self.losses()
        minimised = [name for name in losses if name.startswith("loss_")]
        assert minimised, f"nothing to minimise: none of {', '.join(losses)} is called loss_*"
        for name, value in losses.items():
            assert isinstance(value, Tensor), f"{name} is a {type(value).__name__}; keep values on their device"
            if name == "td_error":
                shape = minibatch(context)["next", "reward"].shape
                assert value.shape == shape, f"td_error has shape {list(value.shape)}, not [sample, 1]: {list(shape)}"
            else:
                assert value.ndim == 0, f"{name} has shape {list(value.shape)}; reduce it to one number"
            assert value.isfinite().all(), f"{name} is {value.tolist()}"
            if name in minimised:
                assert value.requires_grad, f"{name} has no gradient"
            else:
                assert not value.requires_grad, (
                    f"{name} is a metric: detach it, or the graph is kept until it is written"
                )

    def test_gradients_reach_every_required_part(self) -> None:
        """A part that the loss requires and does not train is a mistake of one of the two."""
        loss, losses, context = self.losses()
        assert loss.requires, "say which parts of the model the loss requires: requires = ('actor', ...)"
        sum(value for name, value in losses.items() if name.startswith("loss_")).backward()  # type: ignore[union-attr]
        for part in loss.requires:
            module = part_of(context.model, part)
            trained = {name: parameter for name, parameter in module.named_parameters() if parameter.requires_grad}
            bare = [name for name, parameter in trained.items() if parameter.grad is None]
            assert not bare, f"no gradient reaches {', '.join(f'{part}.{name}' for name in bare)}"

    def test_reads_what_it_says(self) -> None:
        """A run in which nothing writes an entry of `reads` is refused; others may be there or not."""
        context = self.bench()
        loss, entries = self.make(context), minibatch(context)
        if not offers(loss, EntryReader) or loss.reads is None:
            pytest.skip("does not say which entries it reads")
        read = _Recorder({key: entries[key] for key in loss.reads})
        try:
            computed(loss, read)
        except KeyError as error:
            raise AssertionError(f"the loss needs {error}, which is not among its `reads`") from error
        unread = [key for key in loss.reads if key not in read.read]
        assert not unread, f"`reads` names {unread}, which the loss does not read"

    def test_has_no_weights_of_its_own(self) -> None:
        """Checkpoints and optimizers know the model only; what is learned belongs there."""
        loss, _, context = self.losses()
        model: Any = context.model
        known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        own = [n for n, t in (*loss.named_parameters(), *loss.named_buffers()) if id(t) not in known]
        assert not own, f"the loss holds {', '.join(own)}, which no checkpoint saves; make them parts of the model"

    def test_contains_the_parts_that_it_uses(self) -> None:
        """A compiled update calls the loss with other tensors in the place of its parameters."""
        loss, expected, _ = self.losses()
        tensors = {name: parameter.detach().clone() for name, parameter in loss.named_parameters()}
        assert tensors, "keep the model's parts as attributes of the loss, a torch.nn.Module"
        for parameter in loss.parameters():
            parameter.data.zero_()
        entries = minibatch(self.bench())
        found = torch.func.functional_call(loss, tensors, (entries, *noise(loss, entries)))
        for name in expected:
            assert torch.equal(found[name].detach(), expected[name].detach()), (
                f"{name} uses weights that are no parameters of the loss: keep the modules themselves as attributes"
            )

    def test_takes_a_plain_dict(self) -> None:
        """The compiled update passes one; so no methods of a TensorDict."""
        loss, expected, _ = self.losses()
        entries = minibatch(self.bench())
        found = computed(loss, {key: entries[key] for key in entries})
        assert all(torch.equal(found[name].detach(), expected[name].detach()) for name in expected)

    def test_leaves_the_minibatch_as_it_is(self) -> None:
        """Hooks and the buffer read it afterwards."""
        context = self.bench()
        loss, entries = self.make(context), minibatch(context)
        before = {key: entries[key].clone() for key in entries}
        computed(loss, entries)
        assert set(entries) == set(before), f"the loss added {set(entries) - set(before)} to the minibatch"
        changed = [str(key) for key in before if not torch.equal(before[key], entries[key])]
        assert not changed, f"the loss changed {', '.join(changed)} in place"

    def test_keeps_terminated_and_truncated_apart(self) -> None:
        """A loss that bootstraps itself must do so after a cut, and not after an end."""
        context = self.bench()
        loss, entries = self.make(context), minibatch(context)
        recorder = _Recorder(entries)
        computed(loss, recorder)
        assert ("next", "done") not in recorder.read, (
            'the loss reads ("next", "done"), which does not say whether a value follows; read ("next", "terminated")'
        )
        if ("next", "terminated") not in recorder.read:
            pytest.skip("the loss reads no ends: the estimator has dealt with them")
        totals = []
        for flag in (False, True):
            flags = torch.full_like(entries["next", "terminated"], flag)
            losses = computed(loss, {**recorder.all(), ("next", "terminated"): flags})
            totals.append(sum(float(value.detach().sum()) for value in losses.values()))
        assert totals[0] != totals[1], 'the loss reads ("next", "terminated") and does not use it'

    def test_samples_its_noise_from_the_generator(self) -> None:
        """All that is random in a loss is in its noise, from the generator that it is given, and for each sample."""
        context = self.bench()
        loss, entries = self.make(context), minibatch(context)
        if not noise(loss, entries):
            pytest.skip("nothing is random in it")
        first, again, other = (noise(loss, entries, seed)[0] for seed in (0, 0, 1))
        rows = rows_of(entries)
        assert first.shape[:1] == (rows,), f"the noise of {rows} samples has shape {list(first.shape)}"
        assert torch.equal(first, again), "sample_noise samples from another generator than the one it is given"
        assert not torch.equal(first, other), "the noise does not depend on the generator"
        losses, same, differing = (loss(entries, found) for found in (first, first.clone(), other))
        assert difference(_detached(losses), _detached(same)) is None, (
            "with equal noise the losses differ: sample in sample_noise alone"
        )
        assert difference(_detached(losses), _detached(differing)) is not None, "the loss does not use its noise"


def noise(loss: Any, entries: Mapping[Key, Tensor], seed: int = 0) -> tuple[Tensor, ...]:
    """Return the noise of a loss for a minibatch, for one that has any: `loss(minibatch, *noise)`."""
    if not offers(loss, NoiseSampler):
        return ()
    return (loss.sample_noise(rows_of(entries), torch.Generator().manual_seed(seed)),)


def computed(loss: Any, entries: Mapping[Key, Tensor]) -> dict[str, Tensor]:
    """Return what a loss makes of a minibatch, with the same noise each time."""
    return loss(entries, *noise(loss, entries))  # type: ignore[no-any-return]


def _detached(losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in losses.items()}


class _Recorder(dict[Key, Tensor]):
    """Entries that note which of them were read."""

    def __init__(self, entries: Mapping[Key, Tensor]) -> None:
        super().__init__()
        self._entries = entries
        self.batch_size = (rows_of(entries),)
        self.read: set[Key] = set()

    def __missing__(self, key: Key) -> Tensor:
        self.read.add(key)
        return self._entries[key]

    def all(self) -> dict[Key, Tensor]:
        """Return every entry, read or not."""
        return {key: self._entries[key] for key in self._entries}
