"""Keys that several sections have: given once for all of them in `[defaults]`, and discounts that agree."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from rlcore.config.raw import RawConfig
from rlcore.errors import did_you_mean
from rlcore.types.part import with_defaults
from rlcore.types.settings import SectionKeys

log = logging.getLogger(__name__)

DEFAULTS: Final = "defaults"
_SOURCE: Final = f"[{DEFAULTS}]"
_GAMMA: Final = "gamma"


class Defaults:
    """The keys of `[defaults]`, for each section that has them and does not say them.

    Args:
        raw: the config; where a key comes from is noted there.
    """

    def __init__(self, raw: RawConfig) -> None:
        self._raw = raw
        self._defaults: Mapping[str, Any] = raw.values.get(DEFAULTS, {})
        self._schema_keys: set[str] = set()

    def fill(self, place: str, schema_keys: Collection[str], keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the keys of a section with those that it does not say.

        Args:
            place: of the section, such as `loss` or `hook.1`.
            schema_keys: the keys that its schema has.
            keys: those that it says.
        """
        self._schema_keys.update(schema_keys)
        added = {key: value for key, value in self._defaults.items() if key in schema_keys and key not in keys}
        for key in added:
            file = self._raw.sources.get(f"{DEFAULTS}.{key}", "")
            self._raw.sources[f"{place}.{key}"] = f"{_SOURCE} of {file}" if file else _SOURCE
        return {**keys, **added}

    def unused(self) -> list[str]:
        """Return a problem for each key that no section has."""
        return [
            f"{_SOURCE} {key}: no section of this config has such a key{did_you_mean(key, self._schema_keys)}"
            for key in self._defaults
            if key not in self._schema_keys
        ]


def with_discount_of(keys: BaseModel, loss: BaseModel | None) -> BaseModel:
    """Return the keys of a buffer that joins rewards, with the `gamma` of the loss where they do not say their own.

    Args:
        keys: validated.
        loss: the validated keys of the loss; None where there is none. One without `gamma` leaves the default.
    """
    fields = type(keys).model_fields
    if _GAMMA not in fields or _GAMMA in keys.model_fields_set or not _counts(keys):
        return keys
    if loss is None or _GAMMA not in type(loss).model_fields or not _counts(loss):
        return keys
    return keys.model_copy(update={_GAMMA: _gamma(loss)})


def check_discounts(sections: Iterable[tuple[str, BaseModel]]) -> list[str]:
    """Return a problem where the `gamma` of a section differs from another one, and one of them is not said.

    Where both are said, that may be meant, so it is only told.

    Args:
        sections: the label and the validated keys of each.
    """
    discounts = [(label, keys) for label, keys in sections if _GAMMA in type(keys).model_fields and _counts(keys)]
    values = {_gamma(keys) for _, keys in discounts}
    if len(values) < 2:
        return []
    shown = " and ".join(f"[{label}] gamma = {_shown(keys)}" for label, keys in discounts)
    if all(_GAMMA in keys.model_fields_set for _, keys in discounts):
        log.warning("discounts differ: %s", shown)
        return []
    return [f"{shown} differ; say it once as gamma in [{DEFAULTS}], or in each of these sections if that is meant"]


def _counts(keys: BaseModel) -> bool:
    return with_defaults(keys, SectionKeys).discounts


def _gamma(keys: BaseModel) -> Any:
    return dict(iter(keys))[_GAMMA]


def _shown(keys: BaseModel) -> str:
    value = _gamma(keys)
    return repr(value) if _GAMMA in keys.model_fields_set else f"{value!r} (its default)"
