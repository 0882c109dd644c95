"""A loop with which a script registers operations and modules, before training or while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rlcore.assembly.assembly import Assembly
from rlcore.errors import HookError, MissingStateError
from rlcore.hooks.operations import Operations, source_of
from rlcore.restore.components import Restored, restore
from rlcore.scripts.arguments import Arguments
from rlcore.state.exactness import unrestored_parts
from rlcore.state.torchrl import complete
from rlcore.training.loop import Loop
from rlcore.training.parts import TrainerParts
from rlcore.training.stateful import in_order, observers
from rlcore.types import Stateful
from rlcore.types.foreign import UpdatesPolicyWeights
from rlcore.types.hook_parts import HookObject
from rlcore.types.optional import offers
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    from tensordict import TensorDict

log = logging.getLogger(__name__)

# whose the state of a module is that a script registered
SCRIPT: Final = "script"


class RegisteringTrainer(Arguments, Loop):
    """A loop with which operations, hook objects and modules are registered."""

    # scripts read these back as what they are, not only as what the constructor asks for
    loss_module: Any
    optimizer: Any

    # whether the parts are there, so that an argument that is set takes effect
    _built = False

    def _become_loop(self, parts: TrainerParts, assembly: Assembly) -> None:
        """Become the loop of these parts, which are registered in the assembly."""
        Loop.__init__(self, parts)
        self._assembly = assembly
        arguments = vars(self)  # asked for every sub-batch, so not through the attributes
        self._operations = Operations(self.hooks, lambda: (arguments["clip_grad_norm"], arguments["clip_norm"]))
        # states of a checkpoint whose modules are yet to be registered
        self._waiting: dict[str, Any] = {}
        # hook objects that were told of this trainer
        self._attached: list[Any] = []
        self._built = True

    @property
    def app_state(self) -> dict[str, Any]:
        """Everything that takes part in checkpoints, by name."""
        return dict(self.parts.stateful)

    def register_op(self, dest: str, op: Callable[..., Any], **kwargs: Any) -> None:
        """Call `op` at a destination, after what is registered there, from the next iteration on.

        A hook object is told of this trainer, as its `register` does.

        Args:
            dest: one of `rlcore.hooks.operations.DESTINATIONS`, which says what `op` is called with and returns.
            op: a function, bound method or callable object.
            kwargs: further arguments of every call.

        Raises:
            HookError: there is no such destination, or `op` cannot be called.
        """
        self._operations.add(dest, op, kwargs)
        source = source_of(op)
        self._registered(source)
        if offers(source, HookObject) and not any(source is hook for hook in self._attached):
            self._attached.append(source)
            source.attach(self)

    register_hook = register_op

    def unregister_op(self, op: Any, dest: str | None = None) -> None:
        """Call `op` no more, at one destination or at all; a hook object takes all of its methods away.

        Raises:
            HookError: it is not registered there.
        """
        self._operations.remove(op, dest)

    def register_module(self, module_name: Any, module: Any) -> None:
        """Make an object with `state_dict` and `load_state_dict` part of every checkpoint.

        The two arguments may come in either order. An object that is registered after a resume gets its state then.

        Raises:
            HookError: the name is taken, or the object has no state.
        """
        if not isinstance(module_name, str) and isinstance(module, str):
            module_name, module = module, module_name
        if module_name in self.parts.stateful:
            taken = type(self.parts.stateful[module_name]).__name__
            raise HookError(f"register_module: the name {module_name!r} is taken by a {taken}; choose another one")
        if not offers(complete(module), Stateful):
            raise HookError(
                f"register_module({module_name!r}): a {type(module).__name__} has no state_dict and load_state_dict"
            )
        self._assembly.register(module_name, module, SCRIPT)
        self._save_what_is_registered()
        self._operations.name(module, module_name)
        if module_name in self._waiting:
            restore({module_name: module}, {module_name: self._waiting.pop(module_name)}, {})
            self._tell_collector()

    def compute_loss(self, sub_batch: TensorDict, method: str | None = None) -> Any:
        """Return the losses of a sub-batch, of the loss module or of one of its methods."""
        if self.loss_module is None:
            raise HookError("compute_loss: there is no loss_module")
        # any method that the caller names
        return (self.loss_module if method is None else getattr(self.loss_module, method))(sub_batch)

    def load_state_dict(
        self, states: Mapping[str, Any], notes: Mapping[str, str] | None = None, **options: Any
    ) -> list[Restored]:
        """Restore everything that has state. What a script has yet to register as a module waits for that."""
        owners = options.get("owners") or {}
        self._waiting |= {
            name: state
            for name, state in states.items()
            if owners.get(name) == SCRIPT and name not in self.parts.stateful and name not in options.get("drop", ())
        }
        present = {name: state for name, state in states.items() if name not in self._waiting}
        report = super().load_state_dict(present, notes, **options)
        self._tell_collector()
        self._say_inexact(unrestored_parts(self.parts.stateful))
        return report

    def __iter__(self) -> Iterator[Progress]:
        """Train; yield the clocks after each iteration.

        Raises:
            StorageError: the checkpoint has state of a module that was not registered since.
        """
        if self._waiting:
            raise MissingStateError(
                f"the checkpoint has state of {', '.join(self._waiting)}, which a script registered as a module; "
                "register it before training, or leave the state out with drop"
            )
        return super().__iter__()

    def _registered(self, source: Any) -> None:
        """Hear of an object of which an operation was registered."""

    def _replace_part(self, name: str, old: Any, new: Any) -> None:
        """Let `new` take part in checkpoints where `old` did, or under `name`; None for what is not there."""
        stateful = self._assembly.stateful
        name = next((taken for taken, part in stateful.items() if old is not None and part is old), name)
        if new is None:
            stateful.pop(name, None)
            self._assembly.owners.pop(name, None)
        else:
            self._assembly.register(name, new)
        self._save_what_is_registered()

    def _save_what_is_registered(self) -> None:
        """Let the checkpoints from here on hold what is registered now."""
        self.parts.stateful = in_order(self._assembly.stateful)
        provenance = replace(self.parts.provenance, owners=self._assembly.owners)
        self.parts.provenance = provenance.with_observers(observers(self.parts.stateful))

    def _say_inexact(self, reasons: list[str]) -> None:
        """Log, and let every checkpoint from here on say, why a resume is not exact."""
        for reason in reasons:
            log.warning("exact = false: %s", reason)
        self.parts.provenance = self.parts.provenance.with_reasons(reasons)

    def _tell_collector(self) -> None:
        """Let a collector that acts with copies of the weights have the restored ones."""
        if offers(self.collector, UpdatesPolicyWeights):
            self.collector.update_policy_weights_()
