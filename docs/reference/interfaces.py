"""The page of the interfaces: each protocol of `rlcore.types` with its rules, its members and who calls them."""

from __future__ import annotations

import inspect
from typing import Any, Final

from docstrings import markdown
from rlcore_plugin_testing.new_plugin import SUMMARIES

from rlcore import types
from rlcore.types import exports, optional, optional_learning, optional_transforms

# by kind of component, in the order in which a run is built; what several kinds have comes last
INTERFACES: Final[dict[str, tuple[type, ...]]] = {
    "env": (types.Env, types.RenderableEnv, types.InfoTeller),
    "transform": (types.Transform, types.ActionTransform),
    "model": (types.Model, types.Policy, types.StatefulPolicy, types.Distribution),
    "loss": (types.Loss,),
    "estimator": (types.Estimator,),
    "scheduler": (types.Scheduler,),
    "collector": (types.Collector, types.BackgroundCollector),
    "buffer": (types.Buffer,),
    "learner": (types.Learner,),
    "evaluator": (types.Evaluator,),
    "logger": (types.Logger,),
    "checkpointer": (types.Checkpointer, types.InPlaceCheckpointer),
    "launcher": (types.Launcher,),
    "all": (types.Context, types.Stateful, types.Group),
}
_TITLES: Final = {"all": "What all kinds share"}


def sections() -> str:
    """Return a section per kind, with its interfaces."""
    return "\n".join(_kind(kind, interfaces) for kind, interfaces in INTERFACES.items())


def optional_members() -> str:
    """Return what a part may have besides its interface."""
    modules = (optional, optional_transforms, optional_learning, exports)
    found = [
        value for one in modules for value in vars(one).values() if getattr(value, "__module__", "") == one.__name__
    ]
    return "\n".join(_interface(value) for value in found if inspect.isclass(value))


def documented() -> dict[str, str]:
    """Return the docstring of every interface of a kind by its name."""
    return {found.__name__: inspect.getdoc(found) or "" for group in INTERFACES.values() for found in group}


def _kind(kind: str, interfaces: tuple[type, ...]) -> str:
    title = _TITLES.get(kind, f"The kind `{kind}`")
    example = f"A whole {kind}: [the template](templates.md#{kind}).\n\n" if kind in SUMMARIES else ""
    return f"## {title}\n\n{example}" + "\n".join(map(_interface, interfaces))


def _interface(interface: type) -> str:
    members = [_member(name, value) for name, value in vars(interface).items() if _shown(name, value)]
    return f"### {interface.__name__}\n\n" + "\n".join([markdown(inspect.getdoc(interface) or ""), *members])


def _shown(name: str, value: Any) -> bool:
    """Return whether a member is a part of the interface, and no helper of protocols or dataclasses."""
    described = inspect.isfunction(value) or isinstance(value, property | classmethod)
    return described and (name == "__call__" or not name.startswith("_"))


def _member(name: str, value: Any) -> str:
    """Return the signature of a member, and its text as a quotation, so that its lists stand under its name."""
    lines = markdown(inspect.getdoc(value) or "").rstrip().splitlines()
    quoted = "\n".join(f"> {line}".rstrip() for line in lines)
    return f"`{_signature(name, value)}`\n\n{quoted}\n"


def _signature(name: str, value: Any) -> str:
    if isinstance(value, property):
        assert value.fget is not None
        return f"{name}: {inspect.signature(value.fget).return_annotation}"
    signature = inspect.signature(value.__func__ if isinstance(value, classmethod) else value)
    parameters = ", ".join(map(_parameter, list(signature.parameters.values())[1:]))
    return f"{name}({parameters}) -> {signature.return_annotation}"


def _parameter(parameter: inspect.Parameter) -> str:
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{parameter.name}: {parameter.annotation}{default}"
