"""From TOML to validated sections."""

from rlcore.moved import names_of

__getattr__ = names_of(__name__)
