"""What looks like a secret in the files of a push: a place is named, the secret itself never."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

_SECRET_NAME: Final = re.compile(r"(?:^|_)(?:token|secret|password|passwd|api_?key|access_?key|credentials?)$", re.I)
# shorter values are words that are everywhere
_SHORTEST: Final = 8
_FORMS: Final[Mapping[str, re.Pattern[bytes]]] = {
    "a private key": re.compile(rb"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----"),
    "a password in an address": re.compile(rb"[a-z][a-z0-9+.-]{1,15}://[^\s/:@\"']{1,80}:[^\s/:@\"']{3,200}@"),
    "a token of a known form": re.compile(
        rb"\b(?:hf_[A-Za-z0-9]{30,}|gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{40,}|glpat-[\w-]{20,}|AKIA[0-9A-Z]{16}"
        rb"|sk-[A-Za-z0-9_-]{32,}|xox[abprs]-[\w-]{10,}|AIza[\w-]{35})\b"
    ),
}
# bytes of the longest text of a known form
_LONGEST_FORM: Final = 512


class Scan:
    """Looks for secrets in bytes: the values of environment variables with such names, and texts of known forms.

    Args:
        config: of the run; the variables that it refers to count too.

    Attributes:
        overlap: how many bytes of a piece are looked at with the next piece too, as a secret may lie across.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        referred = set(references(config))
        self._values = {
            value.encode(errors="surrogateescape"): name
            for name, value in os.environ.items()
            if len(value) >= _SHORTEST and (name in referred or _SECRET_NAME.search(name))
        }
        self.overlap = max(_LONGEST_FORM, *map(len, self._values), 0)

    def kinds_in(self, piece: bytes, is_text: bool) -> set[str]:
        """Return what is in a piece of a file; of known forms only where it is text, as noise looks like them."""
        inside = {
            f"the value of the environment variable {name}" for value, name in self._values.items() if value in piece
        }
        return inside | ({kind for kind, form in _FORMS.items() if form.search(piece)} if is_text else set())


def references(config: Any) -> Iterator[str]:
    """Yield the environment variables that a config refers to, by `{ env = "NAME" }`."""
    if isinstance(config, Mapping):
        if set(config) == {"env"} and isinstance(config["env"], str):
            yield config["env"]
        for value in config.values():
            yield from references(value)
    elif isinstance(config, Sequence) and not isinstance(config, str):
        for value in config:
            yield from references(value)


def written_out(config: Any, above: str = "") -> Iterator[str]:
    """Yield the keys of a config that are called like secrets and hold a text instead of a reference."""
    if isinstance(config, Mapping):
        for key, value in config.items():
            place = f"{above}.{key}" if above else str(key)
            if isinstance(value, str) and value and _SECRET_NAME.search(str(key)):
                yield place
            yield from written_out(value, place)
    elif isinstance(config, Sequence) and not isinstance(config, str):
        for number, value in enumerate(config):
            yield from written_out(value, f"{above}[{number}]")
