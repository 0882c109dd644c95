"""Gives parts of TorchRL the states that they lack, or that lose something.

TorchRL's `state_dict` refuses `TensorDictMaxValueWriter` and storages of nested tuples and dicts, gives every element
of a list storage back as a TensorDict, and forgets the size that a storage of several dimensions settled on, the
batches that a sampler without replacement has left, and the folder of a memory-mapped storage. A loss makes its value
estimator and its target entropy in its first step, so a new one cannot take the state of one that has trained.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any, Final

import torch
import xxhash

from rlcore.errors import StorageError
from rlcore.state.snapshot import add_tensor
from rlcore.state.tree import flatten
from rlcore.types.foreign import Clonable, MapsFiles, NamesFields, RefusesFiles
from rlcore.types.optional import offers

State = dict[str, Any]
_CHILDREN: Final = (
    *("_storage", "_sampler", "_writer", "_storages", "_samplers", "_writers"),
    *("_rbs", "_offline_buffer", "_online_buffer"),
)
# what a loss makes when it is first read: name in its state to the attribute
_MADE_BY_READING: Final = {"_value_estimator": "value_estimator", "target_entropy_buffer": "target_entropy"}


def complete(part: Any) -> Any:
    """Make the state of a buffer or loss of TorchRL whole, in place, and return it; anything else stays as it is.

    So does a subclass of a storage, sampler or writer that has a `state_dict` of its own.

    What it was given is part of the object, so a copy of it and its way into another process keep it.
    """
    for inner in _parts(part):
        methods = next((methods for name, methods in _COMPLETED.items() if _is(inner, name)), None)
        if methods is not None and (methods[0] is _save_loss or not _saves_itself(inner)):
            inner.state_dict, inner.load_state_dict = (partial(method, inner) for method in methods)
    return part


def _parts(part: Any) -> Iterator[Any]:
    yield part
    if not _is(part, "Storage"):  # `_storage` of a storage is its data
        for name in _CHILDREN:
            held = vars(part).get(name) if hasattr(part, "__dict__") else None  # by name: one with slots has none
            for child in held if isinstance(held, list | tuple) else [held]:
                if child is not None:
                    yield from _parts(child)
    else:
        for child in vars(part).get("_storages") or ():
            yield from _parts(child)


def _is(part: Any, name: str) -> bool:
    """Return whether it is of a class of TorchRL, which is not imported for this."""
    return any(kind.__name__ == name and kind.__module__.startswith("torchrl.") for kind in type(part).__mro__)


def _saves_itself(part: Any) -> bool:
    """Return whether the class that says how a part is saved is a script's own."""
    kind = next((kind for kind in type(part).__mro__ if "state_dict" in vars(kind)), None)
    return kind is not None and not kind.__module__.startswith(("torchrl.", "torch."))


def _save_writer(writer: Any) -> State:
    ranks, places = [list(column) for column in zip(*writer._current_top_values, strict=True)] or ([], [])
    exact = all(type(rank) is float for rank in ranks)
    return {
        "cursor": writer._cursor,
        "write_count": writer._write_count,
        "ranks": torch.tensor(ranks, dtype=torch.float64) if exact else ranks,
        "places": torch.tensor([int(place) for place in places], dtype=torch.int64),
    }


def _load_writer(writer: Any, state: Mapping[str, Any]) -> None:
    ranks = state["ranks"].tolist() if isinstance(state["ranks"], torch.Tensor) else state["ranks"]
    writer._cursor = state["cursor"]
    writer._write_count = state["write_count"]
    writer._current_top_values = list(zip(ranks, state["places"].tolist(), strict=True))


def _save_list(storage: Any) -> State:
    """Return elements that are alike as one of them with a further dimension: a name of its own for each is costly."""
    items = list(storage._storage)
    _refuse_named_tuples(storage, items)
    return {"stacked": torch.stack(items)} if _are_alike(items) else {"items": items}


def _load_list(storage: Any, state: Mapping[str, Any]) -> None:
    if "_storage" in state:  # what TorchRL's own method returned
        type(storage).load_state_dict(storage, state)
        return
    items = state["stacked"].unbind(0) if "stacked" in state else state["items"]
    storage._storage = [_copied(item) for item in items]
    storage._bump_mutation_revision()


def _are_alike(items: list[Any]) -> bool:
    """Return whether `torch.stack` and `unbind` give the elements back as they are."""
    forms = {_form(item) for item in items}
    return len(forms) == 1 and None not in forms


def _form(item: Any) -> Any:
    """Return what all elements must have in common, or None for one that is not made of tensors alone."""
    if isinstance(item, torch.Tensor):
        return item.shape, item.dtype, item.device
    if type(item).__name__ != "TensorDict" or item._has_names():
        return None
    entries = [(key, _form(value)) for key, value in item.items()]
    return None if any(form is None for _, form in entries) else (item.batch_size, item.device, *entries)


def _save_compressed(storage: Any) -> State:
    """Return the elements' bytes one after the other, where each element is made of bytes alone."""
    items, notes = storage._storage, storage._metadata
    rows = [{"": item} if isinstance(item, torch.Tensor) else item for item in items]
    if not all(isinstance(row, dict) and row.keys() == rows[0].keys() and _is_bytes(row) for row in rows) or not rows:
        return dict(type(storage).state_dict(storage))
    forms: list[Any] = []
    for note in notes:
        if note not in forms:
            forms.append(note)
    return {
        "bytes": {key: torch.cat([row[key] for row in rows]) for key in rows[0]},
        "lengths": {key: torch.tensor([row[key].numel() for row in rows]) for key in rows[0]},
        "forms": forms,
        "form_of": torch.tensor([forms.index(note) for note in notes]),
    }


def _load_compressed(storage: Any, state: Mapping[str, Any]) -> None:
    if "bytes" not in state:
        type(storage).load_state_dict(storage, state)
        return
    parts = {key: data.split(state["lengths"][key].tolist()) for key, data in state["bytes"].items()}
    rows = [dict(zip(parts, row, strict=True)) for row in zip(*parts.values(), strict=True)]
    storage._storage = [_copied(row.get("", row)) for row in rows]
    storage._metadata = [deepcopy(state["forms"][number]) for number in state["form_of"].tolist()]
    storage._bump_mutation_revision()


def _is_bytes(row: dict[str, Any]) -> bool:
    return all(isinstance(data, torch.Tensor) and data.dtype == torch.uint8 and data.ndim == 1 for data in row.values())


def _save_tensors(storage: Any) -> State:
    data = storage._storage
    if _is_class(data):
        raise StorageError(
            f"a {type(storage).__name__} of {type(data).__name__} elements: a checkpoint gives tensor classes back as "
            "TensorDicts, so it cannot carry them; put batch.to_tensordict() into the buffer"
        )
    if not isinstance(data, dict | list | tuple):
        return {**type(storage).state_dict(storage), "max_size": storage.max_size}
    _refuse_named_tuples(storage, data)
    return {"tree": data, "initialized": storage.initialized, "_len": storage._len, "max_size": storage.max_size}


def _load_tensors(storage: Any, state: Mapping[str, Any]) -> None:
    if "tree" in state:
        _copy_into(storage, state, state["tree"])
    elif state["initialized"] and offers(storage, MapsFiles) and storage.scratch_dir:
        _copy_into(storage, state, _whole(state["_storage"]))
    else:
        type(storage).load_state_dict(storage, state)
    storage.max_size = state.get("max_size", storage.max_size)


def _copy_into(storage: Any, state: Mapping[str, Any], data: Any) -> None:
    """Copy into the memory that the storage has, or would make: files stay in its folder."""
    from torch.utils._pytree import tree_map

    nested = isinstance(data, dict | list | tuple)
    if not storage.initialized:
        _begin(storage, tree_map(lambda leaf: leaf[0], data) if nested else data[0])
    if nested:
        tree_map(lambda into, leaf: into.copy_(leaf), storage._storage, data)
    elif isinstance(data, torch.Tensor):
        storage._storage.copy_(data)
    else:
        storage._storage.update_(data)
    storage._len = state["_len"]
    storage._bump_mutation_revision()


def _begin(storage: Any, example: Any) -> None:
    """Make the memory of a storage from one element; files of a memory-mapped one are there from the run before."""
    refuses = offers(storage, RefusesFiles) and storage.existsok is False
    if refuses:
        storage.existsok = True
    storage._init(example)
    storage.initialized = True
    if refuses:
        storage.existsok = False


def _whole(data: Any) -> Any:
    """Return the tensor or TensorDict of a storage's state."""
    from tensordict import TensorDict

    return data if isinstance(data, torch.Tensor) else TensorDict().load_state_dict(data, strict=False)


def _save_sampler(sampler: Any) -> State:
    return {**type(sampler).state_dict(sampler), "remaining_batches": sampler._remaining_batches}


def _load_sampler(sampler: Any, state: Mapping[str, Any]) -> None:
    type(sampler).load_state_dict(sampler, state)
    if "remaining_batches" in state:
        sampler._remaining_batches = state["remaining_batches"]


def _save_two(buffer: Any) -> State:
    """Return the state of the online part; of the offline part only how it is sampled, since it does not change."""
    offline, generator = buffer.offline_buffer, buffer.offline_buffer._rng
    return {
        "online": buffer.online_buffer.state_dict(),
        "offline": offline.sampler.state_dict(),
        "offline_generator": None if generator is None else generator.get_state(),
        "offline_digest": _digest(offline),
        "offline_fraction": buffer.offline_fraction,
    }


def _digest(offline: Any) -> str:
    """Return a hash of the offline data, which are read once for it."""
    if "_digest" not in vars(offline):
        tensors: dict[str, torch.Tensor] = {}
        flatten(offline.storage.state_dict(), "", tensors)
        digest = xxhash.xxh3_128()
        for name, tensor in tensors.items():
            add_tensor(digest, name, tensor)
        offline._digest = digest.hexdigest()
    return str(offline._digest)


def _load_two(buffer: Any, state: Mapping[str, Any]) -> None:
    offline = buffer.offline_buffer
    if _digest(offline) != state["offline_digest"]:
        raise StorageError(
            f"the offline data, {len(offline)} steps here, are not those that the checkpoint was made with; they are "
            "no part of it, so build the buffer over the same data"
        )
    buffer.online_buffer.load_state_dict(state["online"])
    offline.sampler.load_state_dict(state["offline"])
    if state["offline_generator"] is not None:
        offline.set_rng(torch.Generator(device=offline._rng.device if offline._rng is not None else "cpu"))
        offline._rng.set_state(state["offline_generator"])
    buffer._offline_fraction = state["offline_fraction"]


def _save_loss(loss: Any, *args: Any, **options: Any) -> Any:
    return type(loss).state_dict(loss, *args, **options)


def _load_loss(loss: Any, state: Mapping[str, Any], *args: Any, **options: Any) -> Any:
    saved = {key.partition(".")[0] for key in state}
    for name, attribute in _MADE_BY_READING.items():
        if name in saved:
            getattr(loss, attribute, None)  # by name: reading makes the default one, unless the script made another
    return type(loss).load_state_dict(loss, state, *args, **options)


# a class to what saves and what loads its state; subclasses first
_COMPLETED: Final[dict[str, tuple[Callable[[Any], State], Callable[[Any, Mapping[str, Any]], None]] | None]] = {
    "TensorDictMaxValueWriter": (_save_writer, _load_writer),
    "CompressedListStorage": (_save_compressed, _load_compressed),
    "ListStorage": (_save_list, _load_list),
    "TensorStorage": (_save_tensors, _load_tensors),
    "SamplerWithoutReplacement": (_save_sampler, _load_sampler),
    "OfflineToOnlineReplayBuffer": (_save_two, _load_two),
    "LossModule": (_save_loss, _load_loss),
}


def _is_class(data: Any) -> bool:
    from tensordict import is_tensorclass

    return bool(is_tensorclass(data))


def _refuse_named_tuples(storage: Any, data: Any) -> None:
    if any(offers(part, NamesFields) for part in _inner(data)):
        raise StorageError(
            f"a {type(storage).__name__} of named tuples: a checkpoint gives them back as plain tuples, so it cannot "
            "carry them; put tuples, dicts or TensorDicts into the buffer"
        )


def _inner(data: Any) -> Iterator[Any]:
    """Yield every container of nested tuples, lists and dicts."""
    if isinstance(data, dict | list | tuple):
        yield data
        for child in data.values() if isinstance(data, dict) else data:
            yield from _inner(child)


def _copied(item: Any) -> Any:
    """Return an element that shares no memory with the checkpoint."""
    if isinstance(item, dict):
        return {key: _copied(value) for key, value in item.items()}
    if isinstance(item, list | tuple):
        return type(item)(_copied(value) for value in item)
    return item.clone() if offers(item, Clonable) else item
