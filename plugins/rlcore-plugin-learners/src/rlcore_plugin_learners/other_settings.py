"""The part of a config that learners do not read: methods that keep settings, and those of a mapping."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from typing import Any, NoReturn, Self

from rlcore.errors import ConfigError, NoSuchAttributeError, NotSupportedError, did_you_mean
from rlcore_plugin_learners.originals import table


class OtherSettings:
    """Methods of RLlib's configs that say how envs are sampled, evaluated and reported.

    A learner reads none of it, in RLlib as here. What they set is kept in `others`, so that a script need not change.

    Attributes:
        others: what such methods set, by the name of the method.
    """

    others: dict[str, dict[str, Any]]

    def __getattr__(self, name: str) -> Any:
        settings = table()["settings"]
        if name in settings:
            return partial(self._keep, name)
        is_known = name in table()["names"]["AlgorithmConfig"]
        told = f"RLlib's AlgorithmConfig.{name} is not here; " if is_known else ""
        raise NoSuchAttributeError(f"{told}{type(self).__name__} has no {name!r}{did_you_mean(name, dir(self))}")

    def _keep(self, method: str, **settings: Any) -> Self:
        known = table()["settings"][method]
        for name in settings:
            if name not in known:
                raise ConfigError(f"{type(self).__name__}.{method} has no {name!r}{did_you_mean(name, known)}")
        self.others.setdefault(method, {}).update(settings)
        return self

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

    def to_dict(self) -> dict[str, Any]:
        """Return all settings by name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}  # type: ignore[arg-type]

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

    def __getitem__(self, name: str) -> Any:
        return self.to_dict()[name]

    def __contains__(self, name: object) -> bool:
        return name in self.to_dict()

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def update_from_dict(self, settings: Mapping[str, Any]) -> Self:
        """Set settings by name."""
        for name, value in settings.items():
            if name not in self:
                raise ConfigError(f"{type(self).__name__} has no {name!r}{did_you_mean(name, self)}")
            setattr(self, name, value)
        self.validate()
        return self

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """Return a config with settings by name."""
        return cls().update_from_dict(settings)

    def validate(self) -> None:
        """Refuse settings that fit nothing."""

    def copy(self, copy_frozen: bool | None = None) -> Self:
        """Return a copy that can be changed by itself; env, spaces and classes are shared."""
        copied = copy.copy(self)
        for name, value in self.to_dict().items():
            if isinstance(value, dict):
                setattr(copied, name, dict(value))
        return copied
