"""The record of a component, the kinds of components, and the point at which plugins provide them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import PluginError, did_you_mean
from rlcore.hooks.specs import hookspec

if TYPE_CHECKING:
    from pydantic import BaseModel

KINDS: Final = (
    "env",
    "transform",
    "model",
    "estimator",
    "loss",
    "optimizer",
    "scheduler",
    "collector",
    "buffer",
    "learner",
    "evaluator",
    "hook",
    "logger",
    "checkpointer",
    "launcher",
)
# section name to (kind, whether it can be repeated)
COMPONENT_SECTIONS: Final[dict[str, tuple[str, bool]]] = {
    "env": ("env", False),
    "transform": ("transform", True),
    "model": ("model", False),
    "loss": ("loss", False),
    "estimator": ("estimator", False),
    "optimizer": ("optimizer", True),
    "scheduler": ("scheduler", True),
    "collector": ("collector", False),
    "buffer": ("buffer", False),
    "learner": ("learner", False),
    "evaluator": ("evaluator", False),
    "checkpoint": ("checkpointer", False),
    "logger": ("logger", True),
    "hook": ("hook", True),
}
# keys whose numbers are those of the whole run, by the kinds that have them; a component may have others
_OF_WHOLE_RUN: Final = {
    "env": ("num_envs",),
    "collector": ("frames_per_batch",),
    "buffer": ("minibatch_size", "capacity"),
}
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def is_repeated(section: str) -> bool:
    """Return whether a config may have several sections of this name, as `[[hook]]`."""
    return COMPONENT_SECTIONS.get(section, ("", False))[1]


@dataclass(frozen=True)
class Component:
    """Something that a plugin provides and a config can name.

    Attributes:
        kind: one of `KINDS`.
        name: lower case, digits and hyphens; what `use` says.
        target: a callable `(config, context) -> component`, or where to import it from (`"package.module:Name"`).
        config: the schema of its section, a pydantic model, or where to import it from; default: `target.Config`.
        summary: one line for listings.
        shows: of a hook: whether it only shows how a run goes, so that `--quiet` leaves it out, and a resume may too.
        of_whole_run: keys of which each rank has a share, where several train together; default: those of its kind,
            `num_envs`, `frames_per_batch`, `minibatch_size` and `capacity`.
        part_key: of one that is called as its plugin and takes the parts of a library by name: the key that names the
            part, which `use = "plugin:PART"` sets too.
    """

    kind: str
    name: str
    target: str | Callable[..., Any]
    config: type[BaseModel] | str | None = None
    summary: str = ""
    shows: bool = False
    of_whole_run: tuple[str, ...] | None = None
    part_key: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise PluginError(
                f"component {self.name!r} has the unknown kind {self.kind!r}{did_you_mean(self.kind, KINDS)}; "
                f"kinds are {', '.join(KINDS)}"
            )
        if not _NAME.fullmatch(self.name):
            raise PluginError(f"component name {self.name!r} must be lower case letters, digits and single hyphens")

    @property
    def divided_keys(self) -> tuple[str, ...]:
        """The keys of which each rank has a share, whether its section has them or not."""
        return _OF_WHOLE_RUN.get(self.kind, ()) if self.of_whole_run is None else self.of_whole_run


class PluginSpecs:
    """Asked once, at startup, of every plugin that the config names."""

    @hookspec
    def provide_components(self) -> Iterable[Component]:
        """Return the components of the plugin. Nothing heavy may be imported here."""
        raise NotImplementedError
