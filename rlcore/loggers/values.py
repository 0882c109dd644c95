"""What loggers accept: the rules that turn numbers, tensors, images and videos into what is written, for all alike."""

from __future__ import annotations

import hashlib
import logging
import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from rlcore.errors import RlcoreError
from rlcore.types.foreign import TensorLike
from rlcore.types.optional import offers

if TYPE_CHECKING:
    from rlcore.types.records import Array

log = logging.getLogger(__name__)

LONGEST_NAME: Final = 250
BINS: Final = 64
MOST_BINS: Final = 512
Bins: TypeAlias = "int | str | Sequence[float] | Array | None"


@dataclass(frozen=True)
class Histogram:
    """How often numbers fell between the edges.

    Attributes:
        counts: `[bin]`, int64.
        edges: `[bin + 1]`, float64, increasing.
        not_finite: how many were NaN or infinite, and are not counted.
        total: sum of the finite numbers.
        squares: sum of their squares.
    """

    counts: Array
    edges: Array
    not_finite: int
    total: float
    squares: float


def row(metrics: Mapping[str, Any], keys_sep: str = "/", prefix: str = "") -> dict[str, float]:
    """Return the numbers of `metrics` as floats by name, the same in every logger.

    Numbers, booleans, NumPy scalars and tensors or arrays of one element become a float; NaN, infinities and `-0.0`
    stay as they are; a table inside becomes `outer/inner`. Everything else is left out with a warning that names it.
    Tensors on a CUDA device are fetched together, in one copy for each table.

    Args:
        metrics: values by name, or a TensorDict.
        keys_sep: what stands between the names of tables inside.
        prefix: of all names.
    """
    floats: dict[str, float] = {}
    for key, value in _fetched(metrics).items():
        full = prefix + str(key)
        if isinstance(value, Mapping):
            floats |= row(value, keys_sep, f"{full}{keys_sep}")
        elif (number := _number(value)) is not None:
            floats[name(full)] = number
        else:
            log.warning("metric %r is a %s and not a number; it is left out", full[:80], type(value).__name__)
    return floats


def _fetched(metrics: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the table with its single numbers on CUDA devices as floats."""
    on_cuda = {key: value for key, value in metrics.items() if _is_number_on_cuda(value)}
    if not on_cuda:
        return metrics
    import torch

    numbers = torch.stack([value.detach().reshape(()).to(torch.float64) for value in on_cuda.values()])
    return {**metrics, **dict(zip(on_cuda, numbers.tolist(), strict=True))}


def _is_number_on_cuda(value: Any) -> bool:
    # most are plain numbers, which are known at once; a TensorDict counts its elements too, and is a mapping
    if isinstance(value, float | int | Mapping) or not offers(value, TensorLike):
        return False
    tensor: Any = value
    return bool(tensor.is_cuda and tensor.numel() == 1 and not tensor.is_complex())


def _number(value: Any) -> float | None:
    if isinstance(value, numbers.Real | np.bool_):
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            return math.inf if cast(Any, value) > 0 else -math.inf
    if isinstance(value, np.ndarray) or offers(value, TensorLike):
        values = to_numpy(value)
        if values.size == 1 and values.dtype.kind in "biuf":
            return float(values.reshape(()))
    return None


@lru_cache(maxsize=20_000)
def name(text: str) -> str:
    """Return a metric name in one line of at most 250 characters; a longer one keeps its beginning and a hash."""
    clean = re.sub(r"[\s\x00-\x1f\x7f]", " ", text)
    if len(clean) <= LONGEST_NAME:
        return clean
    return f"{clean[: LONGEST_NAME - 9]}-{hashlib.blake2b(text.encode(), digest_size=4).hexdigest()}"


def flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested config by dotted key; those of a list of tables by their `name` or number."""
    for key, value in config.items():
        if isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            value = {str(entry.get("name", number)): entry for number, entry in enumerate(value)}
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def to_numpy(data: Any) -> Array:
    """Return a tensor, array or sequence as a NumPy array on the CPU."""
    if offers(data, TensorLike):
        data = data.detach().cpu()
        data = data.float() if str(data.dtype) == "torch.bfloat16" else data
        return data.numpy()  # type: ignore[no-any-return]
    return np.asarray(data)


def histogram(data: Any, bins: Bins = None) -> Histogram:
    """Count numbers of any shape in bins.

    Args:
        data: numbers of any shape.
        bins: how many of equal width; the edges; or a rule of NumPy by its name, such as `auto` or `fd`. Default: 64,
            for which the name `tensorflow` stands too. At most 512; a rule that wants more gets 512 of equal width.

    Raises:
        RlcoreError: `data` does not hold numbers, or `bins` cannot be.
    """
    values = to_numpy(data)
    if values.dtype.kind not in "biuf":
        raise RlcoreError(f"a histogram is made of numbers, not of {values.dtype}")
    values = values.astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        spread = float(finite.max() - finite.min()) if finite.size else 0.0
        if not np.isfinite(spread):  # of numbers near the largest there are
            finite = np.clip(finite, -1e300, 1e300)
        counts, edges = np.histogram(finite, _bins(finite, bins))
        total, squares = float(finite.sum()), float(np.square(finite).sum())
    return Histogram(counts.astype(np.int64), edges, int(values.size - finite.size), total, squares)


def _bins(finite: Array, bins: Bins) -> Any:
    """Return what `numpy.histogram` takes."""
    if bins is None or (isinstance(bins, str) and bins == "tensorflow"):
        return BINS
    try:
        if isinstance(bins, str):
            edges = np.histogram_bin_edges(finite, bins)
            return edges if len(edges) <= MOST_BINS + 1 else MOST_BINS
        numbers = np.asarray(to_numpy(bins))
        if numbers.ndim == 0 and 1 <= numbers <= MOST_BINS and numbers.dtype.kind in "iu":
            return int(numbers)
        if numbers.ndim == 1 and 2 <= numbers.size <= MOST_BINS + 1 and (np.diff(numbers) > 0).all():
            return numbers.astype(np.float64)
    except (ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, MemoryError) or _is_rule(bins):  # a rule that asks for more bins than there can be
            return MOST_BINS
        raise RlcoreError(f"bins = {bins!r}: {error}") from error
    raise RlcoreError(f"bins = {bins!r}: expected up to {MOST_BINS}, edges that increase, or a rule such as 'auto'")


def _is_rule(bins: Bins) -> bool:
    """Return whether `bins` is the name of a rule of NumPy, found out on numbers that no rule has trouble with."""
    try:
        return isinstance(bins, str) and np.histogram_bin_edges([0.0, 1.0], bins) is not None
    except ValueError:
        return False


def image(data: Any) -> Array:
    """Check an image and return it as an array `[C, H, W]`, uint8.

    Raises:
        RlcoreError: another shape or type.
    """
    return _pictures(data, 3, "an image", "[C, H, W]")


def video(data: Any) -> Array:
    """Check videos and return them as an array `[N, T, C, H, W]`, uint8.

    Raises:
        RlcoreError: another shape or type.
    """
    return _pictures(data, 5, "a video", "[N, T, C, H, W]")


def _pictures(data: Any, ndim: int, what: str, shape: str) -> Array:
    array = to_numpy(data)
    if array.ndim != ndim or array.dtype != np.uint8 or array.shape[-3] not in (1, 3) or not array.size:
        raise RlcoreError(
            f"{what} is uint8 {shape} with C 1 or 3 and at least one pixel; this one is {array.dtype} "
            f"{list(array.shape)}"
        )
    return array
