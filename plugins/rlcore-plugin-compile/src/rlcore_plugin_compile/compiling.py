"""The compiled update of a learner, or why it has none: an error for what can be changed, a warning for the rest."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rlcore.errors import ConfigError
from rlcore.learners import Scheduled, TargetUpdater, WatchedStep
from rlcore.types import Loss, offers, with_defaults
from rlcore_plugin_compile.compiled import CompiledUpdate
from rlcore_plugin_compile.parts import CompiledParts, HasParts

if TYPE_CHECKING:
    from rlcore.learners import GradientStep, JointGradients, ScheduledOfPart
    from rlcore.types import Context

log = logging.getLogger(__name__)


def check_compiler(device: torch.device, key: str = "[learner] compile") -> None:
    """Point the compiler's cache to a lasting place, and see that there is a C++ compiler where one is needed.

    Args:
        device: of the run.
        key: what asks for the compiler, for the error.

    Raises:
        ConfigError: there is none; says what to install.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rlcore" / "inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    wanted = os.environ.get("CXX") or "g++"
    if device.type == "cpu" and shutil.which(wanted) is None and shutil.which("clang++") is None:
        raise ConfigError(
            f"{key} = true needs a C++ compiler, and {wanted!r} is not on the PATH; install one "
            "(Debian: apt-get install g++; macOS: xcode-select --install) or set it to false"
        )


def compiled_update(
    loss: Any,
    steps: Mapping[str, GradientStep],
    schedules: Sequence[Scheduled | ScheduledOfPart],
    joint: JointGradients | None,
    context: Context,
    hooked: bool,
) -> CompiledUpdate | CompiledParts | None:
    """Return the compiled update of a learner, or that of the parts which its loss names.

    None, with a warning, where it runs eagerly all the same.

    Args:
        loss: of the learner.
        steps: by the name of the optimizer.
        schedules: those of parts are held as tensors from here on.
        joint: sums gradients over several ranks.
        context: of the learner.
        hooked: whether a hook comes between loss and step.

    Raises:
        ConfigError: there is no compiler, or the config asks for what cannot be compiled.
    """
    check_compiler(context.device)
    if offers(loss, HasParts):
        return CompiledParts(loss, context.device, context.heart)
    if hooked:
        log.warning(
            "[learner] compile: a hook between loss and step splits the update, which then runs eagerly "
            "(a compiled update takes a third to two thirds of the time)"
        )
        return None
    if not all(WatchedStep(step.optimizer).seen for step in steps.values()):
        log.warning(
            "[learner] compile: this version of torch does not show who watches the steps of an optimizer; the "
            "update runs eagerly, so that they are called (a compiled update takes a third to two thirds of the "
            "time)"
        )
        return None
    for entry in schedules:
        if isinstance(entry, Scheduled):
            _check_is_read(entry)
        else:
            _hold_as_tensor(entry, context.device)
    targets = with_defaults(loss, Loss).target_updater
    return CompiledUpdate(loss, steps, context.heart, joint, targets if isinstance(targets, TargetUpdater) else None)


def _check_is_read(entry: Scheduled) -> None:
    """Refuse a schedule of a number that the graph holds constant: of an optimizer it is given the rate alone."""
    if entry.number != "lr":
        raise ConfigError(
            f"[scheduler] target: with [learner] compile = true {entry.scheduler.target!r} would stay what "
            "it is, a constant of the compiled update; schedule lr or a number of the loss, or set compile = false"
        )


def _hold_as_tensor(entry: ScheduledOfPart, device: torch.device) -> None:
    """Let the loss find a tensor that stays the same and is filled: to a compiled graph a float is a constant."""
    # a mapping of the model's own, such as that of an exploration, is read by the policy, not by the loss
    kind = entry.scheduler.target.partition(".")[0]
    if kind == "loss" or (kind == "model" and type(entry.numbers) is dict):
        entry.numbers[entry.number] = torch.tensor(entry.initial, device=device)
