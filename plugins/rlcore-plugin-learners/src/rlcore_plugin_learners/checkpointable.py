"""What can be saved in a folder and restored from one: learners, groups of them, and modules."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from rlcore.errors import ConfigError, NotSupportedError
from rlcore_plugin_learners.columns import COMPONENT_LEARNER
from rlcore_plugin_learners.recorded import Named, import_name, imported, record, restored
from rlcore_plugin_learners.states import STATE_FILE, chosen_of, has, nested, read_constructors, read_state, write_state


class Checkpointable(Named):
    """Saves its state and what it is constructed with, as JSON and tensors; nothing is pickled."""

    def get_state(self) -> dict[str, Any]:
        """Return copies of the state, its tensors as arrays of NumPy."""
        raise NotImplementedError

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set what a state has."""
        raise NotImplementedError

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the constructor takes for another one like this: positional arguments, and those by name."""
        raise NotImplementedError

    def get_checkpointable_components(self) -> list[tuple[str, Checkpointable]]:
        """Return names and objects of the parts of the state that could be saved by themselves."""
        return []

    def save_to_path(self, path: str | Path | None = None, *, state: Mapping[str, Any] | None = None) -> str:
        """Write a state into a folder; a crash leaves the one that was there, or this one.

        Args:
            path: the folder; default: a new one for temporary files.
            state: default: the whole state.

        Returns:
            The folder.
        """
        path = Path(tempfile.mkdtemp() if path is None else path)
        state = self.get_state() if state is None else state
        write_state(path, state, self.get_metadata(), self.get_constructors())
        return str(path)

    def restore_from_path(self, path: str | Path, *, component: str | None = None) -> None:
        """Set the state from a folder.

        Args:
            path: of `save_to_path`, of this or of a part of it; `folder/rl_module/p0` is that part of a folder.
            component: path of the one part to set, such as `rl_module/p0`; default: everything that is there.
        """
        state = _state_at(*_folder_of(path))
        if component is not None:
            state = chosen_of(state, component) if has(state, component) else nested(component, state)
        self.set_state(state)

    def get_metadata(self) -> dict[str, Any]:
        """Return what a folder says about its state, besides it: values of JSON."""
        return {
            "class": import_name(type(self)),
            "class_and_ctor_args_file": STATE_FILE,
            "state_file": STATE_FILE,
            "rlcore_version": version("rlcore"),
        }

    def get_constructors(self) -> dict[str, Any]:
        """Return the class and what it is constructed with, and those of its parts, as values of JSON."""
        arguments, keywords = self.get_ctor_args_and_kwargs()
        named = _signature(type(self)).bind_partial(*arguments).arguments | keywords
        return {
            "class": import_name(type(self)),
            "arguments": {name: record(value, name) for name, value in named.items()},
            "components": {name: part.get_constructors() for name, part in self.get_checkpointable_components()},
        }

    @classmethod
    def from_checkpoint(cls, path: str | Path, *args: Any, **kwargs: Any) -> Self:
        """Return one as a folder has it: of the class that was saved, with its arguments and its state.

        Args:
            path: of `save_to_path`; `folder/rl_module/p0` is that part of it.
            args: of the constructor, in the place of those that were saved.
            kwargs: likewise.

        Raises:
            ConfigError: an argument has no readable form, or a class cannot be imported or is another one; says what
                to hand over.
        """
        folder, names = _folder_of(path)
        constructors = cls._chosen(_constructors_at(read_constructors(folder), names))
        kind: type[Self] = imported(constructors["class"], cls, cls) if constructors else cls
        arguments = kind._arguments(constructors.get("arguments", {}), args, kwargs)
        made = kind(**arguments)
        made.restore_from_path(path)
        return made

    @classmethod
    def _chosen(cls, constructors: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the part of a folder's constructors that this class is one of: all of it."""
        return constructors

    @classmethod
    def _arguments(cls, saved: Mapping[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of the constructor: those handed over, and the others as they were saved."""
        signature = _signature(cls)
        try:
            named = dict(signature.bind_partial(*args, **kwargs).arguments)
        except TypeError as error:
            raise ConfigError(f"{cls.__name__}.from_checkpoint hands arguments to the constructor: {error}") from None
        for name, written in saved.items():
            if name in named:
                continue
            try:
                named[name] = restored(written)
            except ConfigError as error:
                raise ConfigError(f"{error}; hand it over: {cls.__name__}.from_checkpoint(path, {name}=...)") from None
        try:
            signature.bind(**named)
        except (TypeError, NotSupportedError) as error:
            raise ConfigError(
                f"{cls.__name__}.from_checkpoint takes what the constructor needs and the folder does not have: "
                f"{error}; hand it over after the path, or override get_ctor_args_and_kwargs before you save"
            ) from None
        return named


def _signature(kind: type) -> inspect.Signature:
    """Return all arguments of a constructor, with those that it hands on as `*args` and `**kwargs`."""
    parameters: dict[str, inspect.Parameter] = {}
    for owner in kind.__mro__:
        if "__init__" not in vars(owner):
            continue
        own = list(inspect.signature(vars(owner)["__init__"]).parameters.values())[1:]
        for parameter in own:
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                parameters.setdefault(parameter.name, parameter)
        if not any(parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) for parameter in own):
            break
    by_kind = sorted(parameters.values(), key=lambda one: (one.kind, one.default is not one.empty))
    return inspect.Signature(by_kind)


def _folder_of(path: str | Path) -> tuple[Path, tuple[str, ...]]:
    """Return the folder of a state that a path lies in, and the names of the part that it means."""
    path = Path(path)
    for folder in (path, *path.parents):
        if (folder / STATE_FILE).exists():
            return folder, path.relative_to(folder).parts
    return path, ()


def _constructors_at(constructors: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the class of a part, and what it is constructed with; the folder of a group is that of its learner."""
    of_learner = constructors.get("components", {}).get(COMPONENT_LEARNER)
    if names and of_learner is not None:
        constructors = of_learner
    for name in names[1:] if names[:1] == (COMPONENT_LEARNER,) else names:
        constructors = constructors.get("components", {}).get(name, {})
    return constructors


def _state_at(folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Return a part of the state in a folder; that of a group is that of its learner."""
    state: Any = read_state(folder)
    names = names[1:] if names[:1] == (COMPONENT_LEARNER,) else names
    if names:
        place = "/".join(names)
        state = chosen_of(state, place)
        for name in names:
            state = state[name]
    return state  # type: ignore[no-any-return]
