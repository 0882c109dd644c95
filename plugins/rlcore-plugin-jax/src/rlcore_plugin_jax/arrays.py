"""Arrays of JAX and tensors of torch that share memory, and the device on which both of them are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import jax
import numpy as np
import torch
from torch import Tensor

from rlcore.errors import ConfigError, StorageError

# checkpoints have tensors of every dtype but these
_SIGNED: Final = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}


def device_of(device: torch.device) -> Any:
    """Return JAX's name for a device of torch.

    Raises:
        ConfigError: JAX has no access to it.
    """
    if device.type == "cpu":
        return jax.local_devices(backend="cpu")[0]
    if device.type != "cuda":
        raise ConfigError(
            f"[env] use = 'jax': the run is on {device}, and JAX shares tensors with torch on the CPU and on CUDA; set "
            "[run] device = 'cpu'"
        )
    try:
        devices = jax.local_devices(backend="gpu")
    except RuntimeError as error:
        major = (torch.version.cuda or "12").partition(".")[0]
        raise ConfigError(
            f"[env] use = 'jax': the run is on {device}, and this JAX cannot use a GPU ({error}); pip install "
            f"'jax[cuda{major}]', or set [run] device = 'cpu'"
        ) from error
    index = torch.cuda.current_device() if device.index is None else device.index
    same = [known for known in devices if known.local_hardware_id == index]
    if not same:
        raise ConfigError(
            f"[env] use = 'jax': the run is on {device}, and JAX has only {', '.join(map(str, devices))}; let both see "
            "the same GPUs by CUDA_VISIBLE_DEVICES"
        )
    return same[0]


def to_tensor(array: Any) -> Tensor:
    """Return a tensor that shares the memory of an array; not to be written to.

    It can be read at once: on the CPU the array is waited for, on CUDA torch's stream waits.
    """
    return torch.utils.dlpack.from_dlpack(array)


def to_array(tensor: Tensor) -> Any:
    """Return an array that shares the memory of a tensor.

    JAX reads it later than the call of what takes it returns. So the tensor may be written to only after something
    that was computed from the array became a tensor.
    """
    return jax.dlpack.from_dlpack(tensor.detach().contiguous())


def keys_of(seed: int, num_envs: int) -> np.ndarray[Any, Any]:
    """Return the keys `[env, 2]`, uint32; that of env `i` is `jax.random.PRNGKey(seed + i)`."""
    seeds = np.arange(num_envs, dtype=np.uint64) + np.uint64(seed % 2**64)
    return np.stack([seeds >> np.uint64(32), seeds & np.uint64(2**32 - 1)], axis=-1).astype(np.uint32)


def saved_tree(tree: Any) -> dict[str, Any]:
    """Return a copy of each array of a pytree as a tensor, by its path."""
    return {_name(path): _saved(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}


def restored_tree(tree: Any, saved: Mapping[str, Tensor], device: torch.device) -> Any:
    """Return a pytree of the same form with the arrays that `saved_tree` returned.

    Raises:
        StorageError: they are of another form.
    """
    names = {_name(path): leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)}
    differing = set(names) ^ set(saved)
    differing |= {name for name in set(names) & set(saved) if saved[name].shape != _saved(names[name]).shape}
    if differing:
        raise StorageError(
            f"the saved state of the env has another form than this env: {', '.join(sorted(differing))}; resume with "
            "the version of the env that it was saved with"
        )
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: _restored(leaf, saved[_name(path)].to(device).clone()), tree
    )


def is_key(array: Any) -> bool:
    """Return whether an array is one of random keys, which have a dtype of their own."""
    return bool(jax.numpy.issubdtype(array.dtype, jax.dtypes.prng_key))


def _name(path: Any) -> str:
    name: str = jax.tree_util.keystr(path, simple=True, separator=".")
    return name


def _saved(leaf: Any) -> Tensor:
    tensor = to_tensor(jax.random.key_data(leaf) if is_key(leaf) else leaf)
    return tensor.view(_SIGNED.get(tensor.dtype, tensor.dtype)).clone()


def _restored(leaf: Any, tensor: Tensor) -> Any:
    data = jax.random.key_data(leaf) if is_key(leaf) else leaf
    array = to_array(tensor)
    if array.dtype != data.dtype:
        array = jax.lax.bitcast_convert_type(array, data.dtype)
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(leaf)) if is_key(leaf) else array
