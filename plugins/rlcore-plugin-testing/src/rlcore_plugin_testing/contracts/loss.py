"""What a loss must keep: named scalars, gradients to what it requires, no weights of its own, nothing changed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from rlcore_plugin_gradient.noise import NoisyMinibatch
from torch import Tensor

from rlcore.buffers.minibatch import Minibatch
from rlcore.envs.action_masks import first_numbers, masks_actions
from rlcore.envs.packed import ACTION_MASK
from rlcore.learners.joint import rows_of
from rlcore.types import MASK, Key
from rlcore.types.context import Context
from rlcore.types.loss import Loss
from rlcore.types.models import part_of
from rlcore.types.part import defines, with_defaults
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import StateContract
from rlcore_plugin_testing.contracts.data import minibatch


class LossContract(StateContract):
    """Base of the tests of a loss. The minibatches are collected on the bench: see `around`."""

    kind = "loss"
    # of a test, which asks for the behaviour several times
    _minibatch: Minibatch | None = None

    def exercise(self, component: Any, context: Context) -> None:
        """Compute the loss of some minibatches."""
        for _ in range(3):
            computed(component, minibatch(context))

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return the losses of a minibatch that does not depend on what was collected before."""
        if self._minibatch is None:
            self._minibatch = minibatch(self.bench())
        return _detached(computed(component, self._minibatch))

    def losses(self) -> tuple[Any, dict[str, Tensor], Context]:
        """Return a loss, what it returns for a minibatch, and the bench."""
        context = self.bench()
        loss = self.make(context)
        returned = computed(loss, minibatch(context))
        assert isinstance(returned, dict), f"a loss returns a dict of tensors, not a {type(returned).__name__}"
        return loss, returned, context

    def test_returns_named_scalars(self) -> None:
        """What is called `loss_*` is minimised; everything else is logged, `td_error` of each sample too."""
        loss, losses, context = self.losses()
        says = with_defaults(loss, Loss).gives_td_error
        assert says in (None, "td_error" in losses), f"gives_td_error = {says} is wrong"
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
        reads = with_defaults(loss, Loss).reads
        if reads is None:
            pytest.skip("does not say which entries it reads")
        read = _Recorder({key: entries[key] for key in reads})
        try:
            computed(loss, read)
        except KeyError as error:
            raise AssertionError(f"the loss needs {error}, which is not among its `reads`") from error
        unread = [key for key in reads if key not in read.read]
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
        found = torch.func.functional_call(loss, tensors, (with_noise(loss, entries),))
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

    def test_takes_no_rows(self) -> None:
        """A minibatch without samples gives the same losses and metrics, in the same form."""
        loss, expected, context = self.losses()
        entries = minibatch(context)
        found = computed(loss, _some_of(entries, slice(0)))
        forms = [{name: value.ndim for name, value in values.items()} for values in (expected, found)]
        assert forms[0] == forms[1], f"for no rows the loss returns {forms[1]}, otherwise {forms[0]}"

    def test_learns_from_one_sample(self) -> None:
        """What is normalised over a minibatch has no deviation where there is one sample, and is no zero either."""
        context = self.bench()
        loss, entries = self.make(context), minibatch(context)
        parameters = {name: value for name, value in loss.named_parameters() if value.requires_grad}
        samples = entries["next", "reward"].shape[-2]
        alone = [computed(loss, _some_of(entries, slice(index, index + 1))) for index in range(samples)]
        for name, value in computed(loss, entries).items():
            assert all(losses[name].isfinite().all() for losses in alone), f"of one sample, {name} is not finite"
            if name.startswith("loss_") and _moves(value, parameters):
                assert any(_moves(losses[name], parameters) for losses in alone), (
                    f"{name} trains nothing where a minibatch has one sample; leave what cannot be normalised as it is"
                )

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

    def test_follows_the_mask(self) -> None:
        """Which actions are allowed says what is likely, and what the next observation is worth."""
        context = self.bench()
        space: Any = context.env_spec.observation_space
        if not masks_actions(context.env_spec):
            pytest.skip("all actions are allowed")
        loss, found = self.make(context), minibatch(context)
        entries = {key: found[key].clone() for key in found}
        seen = [entries[key] for key in ("observation", ("next", "observation")) if key in entries]
        choice, size = first_numbers(context.env_spec.action_space)[0], space.choices[0]
        leading = space.tensor(seen[0], ACTION_MASK).shape[:-1]  # [sample], or [time, sequence]
        taken = entries["action"].reshape(*leading, -1)[..., 0].long() - int(choice)
        outcomes = []
        for step in range(size):
            for rows in seen:
                mask = space.tensor(rows, ACTION_MASK)
                mask.fill_(1)
                if step:
                    mask.scatter_(-1, ((taken + step) % size).unsqueeze(-1), 0)
            outcomes.append(_detached(computed(loss, entries)))
        assert any(difference(outcomes[0], other) for other in outcomes[1:]), (
            "the losses are the same whatever the masks forbid; compute them with parts of the model that keep to them"
        )

    def test_samples_its_noise_from_the_generator(self) -> None:
        """All that is random in a loss is in its noise, from the generator that it is given."""
        context = self.bench()
        loss: Any = self.make(context)
        if not defines(loss, Loss.sample_noise):
            pytest.skip("nothing is random in it")
        self._check_noise(loss, minibatch(context))

    def _check_noise(self, loss: Any, entries: Mapping[Key, Tensor]) -> None:
        first, again, other = (noise(loss, entries, seed) for seed in (0, 0, 1))
        assert difference(first, again) is None, "sample_noise samples from another generator than the one it is given"
        assert difference(first, other) is not None, "the noise does not depend on the generator"
        taken = [key for key in first if key in entries]
        assert not taken, f"sample_noise returns {taken}, which are entries of the minibatch; give them other names"
        losses, same, differing = (_detached(loss({**entries, **found})) for found in (first, again, other))
        assert difference(losses, same) is None, "with equal noise the losses differ: sample in sample_noise alone"
        assert difference(losses, differing) is not None, "the loss does not use its noise"
        assert set(noise(loss, {"x": torch.zeros(0, 1)})) == set(first), "without samples, the noise has other entries"

    def test_samples_nothing_itself(self) -> None:
        """What a loss draws from a global generator, no compiled update and no resume would draw again."""
        context = self.bench()
        loss = self.make(context)
        entries = with_noise(loss, minibatch(context))
        before = _generators()
        loss(entries)
        assert _generators() == before, (
            "the loss draws from a global random generator; return what is random in it from sample_noise"
        )

    def test_computes_each_of_its_losses_alone(self) -> None:
        """A loss with `loss_names` returns what is asked for, and the same as when all is asked for."""
        loss, entries = self._separable()
        everything = _detached(loss(entries))
        returned = [name for name in everything if name.startswith("loss_")]
        assert list(loss.loss_names) == returned, f"loss_names is {loss.loss_names}, and the loss returns {returned}"
        where = difference(everything, _detached(loss(entries, loss.loss_names)))
        assert where is None, f"asked for all of its loss_names, the loss returns another {where}"
        for names in _subsets(loss.loss_names):
            returned = loss(entries, names)
            kept = [name for name, value in returned.items() if value.requires_grad and not name.startswith("loss_")]
            assert not kept, f"asked for {names}, {', '.join(kept)} are metrics with a graph: detach them"
            found = _detached(returned)
            losses = {name for name in found if name.startswith("loss_")}
            assert losses == set(names), f"asked for {names}, the loss returns {sorted(losses)}"
            assert set(found) == set(_detached(loss(entries, names[::-1]))), f"the keys depend on the order of {names}"
            for name, value in found.items():
                assert torch.equal(value, everything[name]), (
                    f"asked for {names}, {name} has another value than with all"
                )
        alone = {key for name in loss.loss_names for key in loss(entries, (name,))}
        assert alone == set(everything), f"{sorted(set(everything) - alone)} come with no loss that is asked for alone"

    def test_gradients_of_a_loss_asked_for_alone_are_those_with_all(self) -> None:
        """An optimizer takes the same step whoever else steps in the same update."""
        loss, entries = self._separable()
        parameters = {name: value for name, value in loss.named_parameters() if value.requires_grad}
        together = loss(entries)
        for name in loss.loss_names:
            for parameter, value, other in zip(
                parameters,
                _gradients(together[name], parameters),
                _gradients(loss(entries, (name,))[name], parameters),
                strict=True,
            ):
                torch.testing.assert_close(
                    other, value, msg=f"{name} asked for alone has another gradient to {parameter} than with all"
                )

    def test_trains_the_parts_that_it_says(self) -> None:
        """An optimizer that minimises a loss and moves none of the parts that it trains is refused by this."""
        loss, losses, context = self.losses()
        every = [parameter for parameter in loss.parameters() if parameter.requires_grad]
        trains = with_defaults(loss, Loss).trains
        if not trains:
            pytest.skip("does not say which parts its losses train: it has no `trains`")
        for name in (name for name in losses if name.startswith("loss_")):
            assert name in trains, f"`trains` does not say which parts {name} trains"
            found = torch.autograd.grad(losses[name], every, retain_graph=True, allow_unused=True)
            reached = {id(value) for value, gradient in zip(every, found, strict=True) if gradient is not None}
            parts = [{id(value) for value in part_of(context.model, part).parameters()} for part in trains[name]]
            assert all(part & reached for part in parts), f"{name} has no gradient to one of {trains[name]}"
            assert reached <= set().union(*parts), f"{name} has gradients to other parts than {trains[name]}"

    def _separable(self) -> tuple[Any, Mapping[Key, Tensor]]:
        """Return a loss that can be asked for some of its losses, and a minibatch with its noise."""
        context = self.bench()
        loss: Any = self.make(context)
        if not with_defaults(loss, Loss).loss_names:
            pytest.skip("it computes all of its losses: it has no loss_names")
        return loss, with_noise(loss, minibatch(context))


def _some_of(entries: Minibatch, some: slice) -> Minibatch:
    """Return some samples, or sequences, of a minibatch."""
    steps = entries["next", "reward"].shape[:-1]  # [sample], or [time, sequence]
    of_time = {key for key, entry in entries.items() if len(steps) == 2 and entry.shape[:2] == steps}
    found = Minibatch.of({key: entry[:, some] if key in of_time else entry[some] for key, entry in entries.items()})
    found.size = found["next", "reward"].numel()
    return found


def _moves(loss: Tensor, parameters: Mapping[str, Tensor]) -> bool:
    return any(bool(gradient.any()) for gradient in _gradients(loss, parameters))


def _subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for count in range(1, len(names)):
        yield from combinations(names, count)


def _gradients(loss: Tensor, parameters: Mapping[str, Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(loss, list(parameters.values()), retain_graph=True, materialize_grads=True)
    return list(found)


def _generators() -> tuple[Any, ...]:
    """Return the states of the global generators."""
    return torch.get_rng_state().tolist(), random.getstate(), str(np.random.get_state())


def noise(loss: Any, entries: Mapping[Key, Tensor], seed: int = 0) -> dict[Key, Tensor]:
    """Return the noise of a loss for a minibatch; nothing for one without."""
    if not defines(loss, Loss.sample_noise):
        return {}
    found: Any = loss.sample_noise(_samples(entries), torch.Generator().manual_seed(seed))
    assert isinstance(found, Mapping), (
        f"sample_noise returns a {type(found).__name__}; return a dict of entries, which the loss reads from its "
        "minibatch"
    )
    return dict(found)


def _samples(entries: Mapping[Key, Tensor]) -> int:
    """Return how many samples entries have, also of sequences `[time, sequence, ...]` in a plain mapping."""
    sequences = type(entries) is dict and MASK in entries
    return entries[MASK].numel() if sequences else rows_of(entries)


def with_noise(loss: Any, entries: Mapping[Key, Tensor]) -> Mapping[Key, Tensor]:
    """Return a minibatch with the noise of the loss, the same each time."""
    found = noise(loss, entries)
    return NoisyMinibatch(entries, found) if found else entries


def computed(loss: Any, entries: Mapping[Key, Tensor]) -> dict[str, Tensor]:
    """Return what a loss makes of a minibatch, with the same noise each time."""
    return loss(with_noise(loss, entries))  # type: ignore[no-any-return]


def _detached(losses: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach() for name, value in losses.items()}


class _Recorder(dict[Key, Tensor]):
    """Entries that note which of them were read."""

    def __init__(self, entries: Mapping[Key, Tensor]) -> None:
        super().__init__()
        self._entries = entries
        self.batch_size = (_samples(entries),)
        self.read: set[Key] = set()

    def __missing__(self, key: Key) -> Tensor:
        self.read.add(key)
        return self._entries[key]

    def all(self) -> dict[Key, Tensor]:
        """Return every entry, read or not."""
        return {key: self._entries[key] for key in self._entries}
