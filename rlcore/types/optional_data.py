"""What a buffer may have besides its interface where it has data of its own; see `optional.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rlcore.types.context import Context
    from rlcore.types.records import EnvSpec


class SpecGiver(Protocol):
    """The class of a buffer that knows the spaces of its data, so that a run with it may do without an env."""

    def spec_of(self, config: Any, context: Context) -> EnvSpec:
        """Return the spec of one env that such data come from; a class method, called before any part is built.

        Args:
            config: the validated section of the buffer.
            context: of the run.

        Raises:
            ConfigError: the data cannot be read, or do not say.
        """
        ...


class SelfFilled(Protocol):
    """A buffer that has data of its own, so that a run with it needs no collector.

    Attributes:
        has_data: whether it does.
    """

    has_data: bool
