"""Statistics of observations and rewards: of a pickled `VecNormalize`, or of arrays in an `.npz` file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_import.archive import read_file
from rlcore_plugin_import.pickle_records import Record, read_records
from rlcore_plugin_import.pickled_arrays import NUMPY_NAMES, SPACE_NAMES, array_of

if TYPE_CHECKING:
    from rlcore.types import Array


_NORMALIZE: Final = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
_MOMENTS: Final = "stable_baselines3.common.running_mean_std.RunningMeanStd"
_NAMES: Final = (
    *NUMPY_NAMES,
    *SPACE_NAMES,
    _NORMALIZE,
    _MOMENTS,
)
_ARRAYS: Final = ("mean", "var", "count")


@dataclass(frozen=True)
class Moments:
    """What was seen of some numbers.

    Attributes:
        mean: `[*shape]`, float64.
        variance: `[*shape]`, float64.
        count: how many; not whole where it began with a small number.
    """

    mean: Array
    variance: Array
    count: float

    def state(self) -> dict[str, Any]:
        """Return the state of a transform here."""
        return {"count": self.count, "mean": self.mean, "squares": self.variance * self.count}


@dataclass(frozen=True)
class Normalisation:
    """How observations and rewards were normalised.

    Attributes:
        observations: their moments; None where they were not normalised.
        returns: moments of the discounted returns; None where rewards were not normalised.
        clip_observation: largest absolute value.
        clip_reward: largest absolute value.
        gamma: discount of the returns.
        epsilon: added to the variance.
        training: whether the statistics were still learning.
    """

    observations: Moments | None
    returns: Moments | None
    clip_observation: float = 10.0
    clip_reward: float = 10.0
    gamma: float = 0.99
    epsilon: float = 1e-8
    training: bool = True

    def sections(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Return the `[[transform]]` sections that normalise likewise, and their states by name."""
        sections: list[dict[str, Any]] = []
        states: dict[str, Any] = {}
        if self.observations is not None:
            use = {"use": "transforms:running-observation-norm"}
            sections.append({**use, "clip": self.clip_observation, "epsilon": self.epsilon})
            states["transform.running-observation-norm"] = self.observations.state()
        if self.returns is not None:
            use = {"use": "transforms:reward-norm"}
            sections.append({**use, "clip": self.clip_reward, "epsilon": self.epsilon, "gamma": self.gamma})
            states["transform.reward-norm"] = {"moments": self.returns.state(), "carried": None}
        return sections, states


def read_normalisation(path: Path) -> Normalisation:
    """Read statistics; no byte is unpickled.

    Args:
        path: what `VecNormalize.save` wrote; or an `.npz` file with arrays `mean`, `var` and `count` of observations.

    Raises:
        ConfigError: there is no such file, or it is of observations that are dicts.
        StorageError: it is neither, or has anything else in it.
    """
    data, what = read_file(path), repr(str(path))
    return _of_arrays(data, what) if data[:2] == b"PK" else _of_pickle(data, what)


def _of_arrays(data: bytes, what: str) -> Normalisation:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            mean, variance, count = (np.asarray(arrays[name], dtype=np.float64) for name in _ARRAYS)
    except Exception as error:  # bytes that were made to harm raise anything
        raise StorageError(f"{what} has no arrays mean, var and count of numbers: {error}") from None
    return Normalisation(_checked(mean, variance, count, what), None)


def _of_pickle(data: bytes, what: str) -> Normalisation:
    record = read_records(data, _NAMES, what)
    if not isinstance(record, Record) or record.made_by.text != _NORMALIZE:
        raise StorageError(f"{what} is not what VecNormalize.save wrote")
    fields = record.fields
    normalises = {name: fields.get(name) is True for name in ("norm_obs", "norm_reward")}
    moments = fields.get("obs_rms")
    if normalises["norm_obs"] and isinstance(moments, dict):
        raise ConfigError(f"{what} normalises observations that are dicts, leaf by leaf, which cannot be taken along")
    return Normalisation(
        _moments(moments, what) if normalises["norm_obs"] else None,
        _moments(fields.get("ret_rms"), what) if normalises["norm_reward"] else None,
        clip_observation=_number(fields, "clip_obs", what),
        clip_reward=_number(fields, "clip_reward", what),
        gamma=_number(fields, "gamma", what),
        epsilon=_number(fields, "epsilon", what),
        training=fields.get("training") is not False,
    )


def _number(fields: Mapping[str, Any], name: str, what: str) -> float:
    """Return a setting that is one number.

    Raises:
        StorageError: it is none.
    """
    array = array_of(fields.get(name), f"{what}: {name}")
    if array.size != 1:
        raise StorageError(f"{what}: {name} is no number")
    return float(array.item())


def _moments(record: Any, what: str) -> Moments:
    if not isinstance(record, Record) or record.made_by.text != _MOMENTS:
        raise StorageError(f"{what} has no statistics of the kind RunningMeanStd")
    mean, variance, count = (array_of(record.fields.get(name), f"{what}: {name}") for name in _ARRAYS)
    return _checked(mean, variance, count, what)


def _checked(mean: Array, variance: Array, count: Array, what: str) -> Moments:
    """Return moments that make sense.

    Raises:
        StorageError: these do not.
    """
    finite = all(np.isfinite(array).all() for array in (mean, variance, count))
    if not finite or mean.shape != variance.shape or count.size != 1 or (variance < 0).any() or count.item() < 0:
        raise StorageError(f"{what}: its mean, variance and count are no statistics of the same numbers")
    return Moments(mean.astype(np.float64), variance.astype(np.float64), float(count.item()))
