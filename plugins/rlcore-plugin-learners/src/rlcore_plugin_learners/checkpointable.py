"""What can be saved in a folder and restored from one: learners, groups of them, and modules."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from rlcore.errors import ConfigError
from rlcore_plugin_learners.states import chosen_of, has, nested, read_state, write_state


class Checkpointable:
    """Saves its state, as JSON and tensors; nothing is pickled."""

    def get_state(self) -> dict[str, Any]:
        """Return copies of the state, its tensors as arrays of NumPy."""
        raise NotImplementedError

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set what a state has."""
        raise NotImplementedError

    def save_to_path(self, path: str | Path | None = None, *, state: Mapping[str, Any] | None = None) -> str:
        """Write a state into a folder; a crash leaves the one that was there, or this one.

        Args:
            path: the folder; default: a new one for temporary files.
            state: default: the whole state.

        Returns:
            The folder.
        """
        path = Path(tempfile.mkdtemp() if path is None else path)
        write_state(path, self.get_state() if state is None else state, self.get_metadata())
        return str(path)

    def restore_from_path(self, path: str | Path, *, component: str | None = None) -> None:
        """Set the state from a folder.

        Args:
            path: of `save_to_path`, of this or of a part of it.
            component: path of the one part to set, such as `rl_module/p0`; default: everything that is there.
        """
        state = read_state(Path(path))
        if component is not None:
            state = chosen_of(state, component) if has(state, component) else nested(component, state)
        self.set_state(state)

    def get_metadata(self) -> dict[str, Any]:
        """Return what a folder says about its state, besides it: values of JSON."""
        return {"class": f"{type(self).__module__}:{type(self).__qualname__}"}

    @classmethod
    def from_checkpoint(cls, path: str | Path, *args: Any, **kwargs: Any) -> Self:
        """Return one with the state of a folder.

        Args:
            path: of `save_to_path`.
            args: those of the constructor, which no file keeps.
            kwargs: likewise.
        """
        try:
            inspect.signature(cls).bind(*args, **kwargs)
        except TypeError as error:
            raise ConfigError(
                f"{cls.__name__}.from_checkpoint takes the constructor's arguments after the path, as no file keeps "
                f"them: {error}"
            ) from None
        made = cls(*args, **kwargs)
        made.restore_from_path(path)
        return made
