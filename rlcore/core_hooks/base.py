"""The base of hook objects for `Trainer`: state, default destinations, and their way into configs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from rlcore.errors import HookError
from rlcore.hooks.operations import DESTINATIONS
from rlcore.hooks.specs import hookimpl
from rlcore.types.hook_parts import HookObject

if TYPE_CHECKING:
    from rlcore.types.trainer import ScriptTrainer


class TrainerHookBase(HookObject):
    """A hook object with state, that registers itself.

    A subclass says in `destinations` where its methods belong, or overrides `register`. One that has state overrides
    `state_dict` (or has `save_dict`) and `load_state_dict`.

    Attributes:
        destinations: destination to the name of a method.
        default_name: name of the module in checkpoints, when none is given.
    """

    destinations: ClassVar[Mapping[str, str]] = MappingProxyType({})
    default_name: ClassVar[str] = ""

    def attach(self, trainer: ScriptTrainer) -> None:
        """Take note of the trainer of which this is a part.

        Called when the first of its methods is registered, and before a config's run.
        """

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint must carry; by default what `save_dict` returns, or nothing."""
        return dict(self.save_dict())

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take back what `state_dict` returned.

        Raises:
            HookError: there is state, and the class does not say what becomes of it.
        """
        if state_dict:
            raise HookError(
                f"{type(self).__name__} has the state {', '.join(state_dict)} in the checkpoint and no load_state_dict"
            )

    def register(self, trainer: ScriptTrainer, name: str | None = None) -> None:
        """Register the methods at their default destinations, and the object for checkpoints.

        Args:
            trainer: of which to be a part.
            name: of the module in checkpoints; default: `default_name`.

        Raises:
            HookError: the class names no destinations, or the name is taken.
        """
        if not self.destinations:
            raise HookError(
                f"{type(self).__name__}.register: the class has no default destinations; register its methods with "
                "trainer.register_op"
            )
        # first, so that nothing is registered under a name that is taken
        trainer.register_module(name or self.default_name or type(self).__name__, self)
        for destination, method in self._methods(self.destinations).items():
            trainer.register_op(destination, method)

    def as_component(self, destinations: Mapping[str, str] | None = None) -> Self:
        """Return this object as the hook of a config: with a function for each point of its destinations.

        Args:
            destinations: destination to the name of a method; default: those of the class.

        Raises:
            HookError: a destination whose operations are called together.
        """
        functions = {}
        for name, method in self._methods(destinations or self.destinations).items():
            destination = DESTINATIONS[name]
            if destination.adapt is None:
                raise HookError(f"{type(self).__name__}: {name!r} cannot be reached from a config; use register_op")
            functions[destination.point] = destination.adapt(method)
        own_setup = functions.pop("setup", None)

        def setup(trainer: ScriptTrainer) -> None:
            self.attach(trainer)
            if own_setup is not None:
                own_setup()

        for point, function in {"setup": setup, **functions}.items():
            setattr(self, point, hookimpl(function))
        return self

    def _methods(self, destinations: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
        """Return the methods that these destinations name."""
        return {destination: getattr(self, name) for destination, name in destinations.items()}
