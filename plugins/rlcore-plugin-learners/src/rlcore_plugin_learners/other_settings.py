"""The part of a config that learners do not read: methods that keep settings, and those of a mapping."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, Final, NoReturn, Self

from rlcore.errors import ConfigError, NoSuchAttributeError, NotSupportedError, did_you_mean
from rlcore_plugin_learners.config_names import DEFAULTS, REFUSED, RENAMED
from rlcore_plugin_learners.originals import TABLE
from rlcore_plugin_learners.recorded import Recorded, record

_OF_NONE: Final[Mapping[str, Any]] = {"training": [], "defaults": {}}


class OtherSettings(Recorded):
    """Methods of RLlib's configs that say how envs are sampled, evaluated and reported.

    A learner reads none of it, in RLlib as here. What they set is kept in `others`, so that a script need not change,
    and is read as an attribute, with RLlib's default where nothing was set.

    Attributes:
        others: what such methods set, by the name of the method.
    """

    env: Any
    num_learners: int
    others: dict[str, dict[str, Any]]
    _is_frozen: bool

    def __getattr__(self, name: str) -> Any:
        settings = TABLE["settings"]
        kept = {key: value for several in vars(self).get("others", {}).values() for key, value in several.items()}
        if name in settings and name not in RENAMED:
            return partial(self._keep, name)
        if name in kept:
            return kept[name]
        if name == "is_atari":
            return str(self.env).startswith("ALE/")
        defaults = TABLE["defaults"] | DEFAULTS | self._of_algorithm()["defaults"]
        if name == "train_batch_size_per_learner" and name not in defaults:
            return self.train_batch_size // (self.num_learners or 1)
        if name in defaults:
            return copy.deepcopy(defaults[name])
        told = _instead(name)
        if told is not None:
            raise NoSuchAttributeError(f"RLlib's AlgorithmConfig.{name} is not here; {told}")
        raise NoSuchAttributeError(f"{type(self).__name__} has no {name!r}{did_you_mean(name, dir(self))}")

    def __setattr__(self, name: str, value: Any) -> None:
        if vars(self).get("_is_frozen", False):
            raise ConfigError(f"the config is frozen; change a copy: config.copy(copy_frozen=False).{name} = ...")
        _refuse(name, type(self).__name__)
        super().__setattr__(name, value)

    def _keep(self, method: str, **settings: Any) -> Self:
        """Keep settings that no learner reads, as a method of that name takes them."""
        known = self._keywords(method)
        for name in settings:
            _refuse(name, f"{type(self).__name__}.{method}")
            if name not in known:
                raise ConfigError(f"{type(self).__name__}.{method} has no {name!r}{did_you_mean(name, known)}")
        own = {entry.name for entry in fields(self)} & set(settings)  # type: ignore[arg-type]
        for name in own:
            setattr(self, name, settings[name])
        self.others.setdefault(method, {}).update({name: settings[name] for name in settings if name not in own})
        return self

    @classmethod
    def _of_algorithm(cls) -> Mapping[str, Any]:
        """Return what RLlib's config of the same algorithm has besides that of all."""
        named: Mapping[str, Any] = TABLE["algorithms"]
        return next((named[kind.__name__] for kind in cls.__mro__ if kind.__name__ in named), _OF_NONE)

    @classmethod
    def _keywords(cls, method: str) -> list[str]:
        """Return the keywords that RLlib's method has."""
        return [*TABLE["settings"][method], *(cls._of_algorithm()["training"] if method == "training" else ())]

    @classmethod
    def _method_of(cls, name: str) -> str | None:
        """Return the method that keeps a setting; None for none."""
        return next((method for method in TABLE["settings"] if name in cls._keywords(method)), None)

    @property
    def total_train_batch_size(self) -> int:
        """How many rows a script that follows RLlib brings for an update of all learners."""
        return int(self.train_batch_size_per_learner) * (self.num_learners or 1)

    def build_algo(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: a learner trains on batches that a script brings.

        Raises:
            NotSupportedError: always; says what trains with envs.
        """
        raise NotSupportedError(
            "a config of learners builds no algorithm: build_learner and build_learner_group train on batches that a "
            "script brings. What also samples is rlcore.PPO and its like, or a config for `rlcore train`"
        )

    build = build_algo

    def freeze(self) -> None:
        """Refuse changes from now on; `copy(copy_frozen=False)` can be changed again."""
        vars(self)["_is_frozen"] = True

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name, and the attributes that a subclass has besides."""
        names = [entry.name for entry in fields(self)]  # type: ignore[arg-type]
        return {name: getattr(self, name) for name in dict.fromkeys([*names, *vars(self)]) if name[0] != "_"}

    def recorded(self) -> dict[str, Any]:
        """Return all settings by name."""
        return self.to_dict()

    def get_state(self) -> dict[str, Any]:
        """Return all settings by name, and the class as `class`."""
        return {"class": type(self), **self.to_dict()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the config that `get_state` was asked of."""
        settings = dict(state)
        return settings.pop("class", cls).from_record(settings)  # type: ignore[no-any-return]

    def serialize(self) -> dict[str, Any]:
        """Return all settings by name, as values of JSON; see `recorded.record`."""
        return {name: record(value, name) for name, value in self.to_dict().items()}

    def keys(self) -> list[str]:
        """Return the names of all settings."""
        return list(self.to_dict())

    def values(self) -> list[Any]:
        """Return all settings."""
        return list(self.to_dict().values())

    def items(self) -> list[tuple[str, Any]]:
        """Return all settings by name."""
        return list(self.to_dict().items())

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, or the default where there is none of that name."""
        return self.to_dict().get(name, default)

    def pop(self, name: str, default: Any = None) -> Any:
        """Do what `get` does; the setting stays."""
        return self.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def update_from_dict(self, settings: Mapping[str, Any]) -> Self:
        """Set settings by name; those that no learner reads are kept."""
        for name, value in settings.items():
            method = self._method_of(name)
            if name in self:
                setattr(self, name, value)
            elif method is not None:
                self._keep(method, **{name: value})
            else:
                _refuse(name, type(self).__name__)
                raise ConfigError(f"{type(self).__name__} has no {name!r}{did_you_mean(name, self)}")
        self.validate()
        return self

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Return a config with settings by name."""
        return cls().update_from_dict(settings)

    @classmethod
    def overrides(cls, **settings: Any) -> dict[str, Any]:
        """Return settings, checked as `update_from_dict` does, for `update_from_dict` and for single modules."""
        cls().update_from_dict(settings)
        return settings

    def validate(self) -> None:
        """Refuse settings that fit nothing."""

    def copy(self, copy_frozen: bool | None = None) -> Self:
        """Return a copy that can be changed by itself; env, spaces and classes are shared.

        Args:
            copy_frozen: whether it refuses changes; default: as this one.
        """
        copied = copy.copy(self)
        vars(copied)["_is_frozen"] = vars(self).get("_is_frozen", False) if copy_frozen is None else copy_frozen
        for name, value in self.to_dict().items():
            if isinstance(value, dict):
                vars(copied)[name] = dict(value)
        return copied


def _instead(name: str) -> str | None:
    return f"it is {RENAMED[name]}" if name in RENAMED else REFUSED.get(name)


def _refuse(name: str, place: str) -> None:
    told = _instead(name)
    if told is not None:
        raise NotSupportedError(f"{place} has no {name!r}: {told}")
