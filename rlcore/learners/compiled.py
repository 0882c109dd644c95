"""The optimisation step as one compiled graph: forward, backward, clipping and Adam.

The graph has fixed shapes, one per minibatch size; what does not fit it runs eagerly in `gradient.py`.
"""

from __future__ import annotations

import logging
import os
import shutil
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from rlcore.errors import ConfigError
from rlcore.learners.adam import AdamState
from rlcore.learners.gradient_step import total_loss
from rlcore.learners.joint import JointGradients, rows_of
from rlcore.learners.torch_private import look_up
from rlcore.types import Key
from rlcore.types.heart import Heart

log = logging.getLogger(__name__)

# the place, among the sizes of minibatches, of the graph after the sum over ranks
_STEP: Final = 0


def check_compiler(device: torch.device) -> None:
    """Point the compiler's cache to a lasting place, and see that there is a C++ compiler where one is needed.

    Raises:
        ConfigError: there is none; says what to install.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "rlcore" / "inductor"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache))
    wanted = os.environ.get("CXX") or "g++"
    if device.type == "cpu" and shutil.which(wanted) is None and shutil.which("clang++") is None:
        raise ConfigError(
            f"[learner] compile = true needs a C++ compiler, and {wanted!r} is not on the PATH; install one "
            "(Debian: apt-get install g++; macOS: xcode-select --install) or set compile = false"
        )


class CompiledUpdate:
    """Takes optimisation steps through one compiled function.

    Args:
        loss: a module that contains the model's parts.
        optimizers: Adam optimizers with the names of the losses that each minimises (empty for all).
        max_norm: clip the gradient norm of each optimizer.
        heart: paused while compiling.
        joint: sums gradients over several ranks; the update is then one graph before the sum and one after it.

    Attributes:
        skipped: per optimizer, how many steps were not finite and changed nothing; 0-d tensors.

    Raises:
        ConfigError: not one optimizer, or one other than Adam or AdamW; or parts of the model share weights.
    """

    def __init__(
        self,
        loss: nn.Module,
        optimizers: list[tuple[torch.optim.Optimizer, tuple[str, ...]]],
        max_norm: float | None,
        heart: Heart,
        joint: JointGradients | None = None,
    ) -> None:
        if len(optimizers) != 1 or not AdamState.fits(optimizers[0][0]):
            raise ConfigError("[learner] compile = true works with one [[optimizer]], adam or adamw without amsgrad")
        if len(list(loss.named_parameters())) < len(list(loss.named_parameters(remove_duplicate=False))):
            raise ConfigError(
                "[learner] compile = true: parts of the model share weights, as with share_encoder, which a compiled "
                "update cannot; set compile = false, or give each part its own"
            )
        self._loss = loss
        self._optimizer, self._names = optimizers[0]
        self._max_norm = max_norm
        self._heart = heart
        self._joint = joint
        self._functions: dict[int, Callable[..., Any]] = {}
        self._keys: tuple[Key, ...] = ()
        self._metric_names: tuple[str, ...] = ()
        self.reload()

    def reload(self) -> None:
        """Bind to the optimizer's state tensors, after building or loading."""
        self._adam = AdamState(self._optimizer)
        names = {id(parameter): name for name, parameter in self._loss.named_parameters()}
        self._parameter_names = [names[id(parameter)] for parameter in self._adam.parameters]
        device = self._adam.step.device
        self._lr_value = float(self._adam.group["lr"])
        self._lr = torch.tensor(self._lr_value, device=device)
        self.skipped = [torch.zeros((), device=device)]
        self._functions.clear()

    def fits(self) -> bool:
        """Return whether its step is all there is to do: nobody watches the optimizer or left a gradient for it."""
        return self._adam.is_current() and all(parameter.grad is None for parameter in self._adam.parameters)

    def __call__(self, minibatch: Mapping[Key, Tensor], *noise: Tensor) -> dict[str, Tensor]:
        """Take one step; compiles at the first minibatch of each size.

        Args:
            minibatch: entries `[sample, ...]` by key.
            noise: of the loss, where it has any.
        """
        if not self._keys:
            self._keys = self._keys_read(minibatch, noise)
        self._follow_lr()
        tensors = [minibatch[key] for key in self._keys]
        tensors.extend(noise)
        size = tensors[0].shape[0]
        function = self._functions.get(size)
        with torch.no_grad():
            values = self._first_call(size, tensors) if function is None else function(tensors)
            if self._joint is not None:
                metrics, total, gradients = values
                self._joint.write(0, gradients, total)
                values = (*metrics, self._step_jointly(self._joint, rows_of(minibatch)))
        return dict(zip(self._metric_names, values, strict=True))

    def without_rows(self) -> dict[str, Tensor]:
        """Take the step of the other ranks, where this one has no rows."""
        assert self._joint is not None
        self._follow_lr()
        with torch.no_grad():
            return {"grad_norm": self._step_jointly(self._joint, 0)}

    def _follow_lr(self) -> None:
        """Hand the learning rate to the graph, for which a Python number would be a constant."""
        lr = self._adam.group["lr"]
        if lr != self._lr_value:
            self._lr_value = lr
            self._lr.fill_(lr)

    def _step_jointly(self, joint: JointGradients, rows: int) -> Any:
        """Sum the gradients over the ranks, take the step by a graph of its own, and return the norm."""
        joint.sum(rows)
        arguments = (joint.gradients[0], joint.totals[0])
        function = self._functions.get(_STEP)
        return function(*arguments) if function is not None else self._first_call(_STEP, *arguments)

    def _first_call(self, size: int, *arguments: Any) -> Any:
        """Compile, which happens inside the first call."""
        function = self._functions[size] = self._compile(size)
        with self._heart.pause():
            return function(*arguments)

    def _keys_read(self, minibatch: Mapping[Key, Tensor], noise: tuple[Tensor, ...]) -> tuple[Key, ...]:
        """Run the loss once to learn which entries it reads and what it returns.

        Raises:
            ConfigError: it returns nothing to minimise.
        """
        read: dict[Key, None] = {}

        class Recorder(dict[Key, Tensor]):
            def __missing__(self, key: Key) -> Tensor:
                read[key] = None
                return minibatch[key]

            def __contains__(self, key: object) -> bool:
                return key in minibatch

            def get(self, key: Key, default: Any = None) -> Any:
                return self[key] if key in minibatch else default

        with torch.no_grad():
            losses = self._loss(Recorder(), *noise)
        total_loss(losses, self._names)  # for its errors; a graph has none
        self._metric_names = (*losses, "grad_norm")
        return tuple(read)

    def _compile(self, size: int) -> Callable[..., Any]:
        if size != _STEP:  # that graph follows one of which this was said
            log.info(
                "compiling the update for minibatches of %d: up to a minute, a few seconds once it is cached", size
            )
        options: dict[str, Any] = {}
        if self._lr.device.type == "cpu":
            options["cpp_wrapper"] = True  # calls the kernels from C++: Python would cost more than they do
        no_guards = look_up(torch.compiler, "skip_all_guards_unsafe")
        if no_guards is not None:
            # The guards compare what this class fixes: one function per size, and tensors that are never exchanged.
            options["guard_filter_fn"] = no_guards
        whole = self._whole_step if self._joint is None else self._before_sum if size != _STEP else self._after_sum
        return torch.compile(_own_copy(whole), fullgraph=True, dynamic=False, options=options)

    def _whole_step(self, tensors: list[Tensor]) -> tuple[Tensor, ...]:
        """One process: everything is one graph."""
        gradients, _, losses = self._gradients(tensors)
        norm = _norm(gradients)
        finite = (norm + sum(value.sum() for value in losses.values())).isfinite()
        self.skipped[0].add_((~finite).to(norm.dtype))
        self._adam_step(gradients, norm, finite)
        return (*losses.values(), norm)

    def _before_sum(self, tensors: list[Tensor]) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
        """Several ranks: return the losses and metrics, the total loss, and the gradients of this one."""
        gradients, total, losses = self._gradients(tensors)
        return tuple(losses.values()), total, gradients

    def _after_sum(self, gradients: list[Tensor], total: Tensor) -> Tensor:
        """Take the step with the gradients and the total loss of all ranks, and return the norm."""
        norm = _norm(gradients)
        finite = (norm + total).isfinite()
        self.skipped[0].add_((~finite).to(norm.dtype))
        self._adam_step(gradients, norm, finite)
        return norm

    def _gradients(self, tensors: list[Tensor]) -> tuple[tuple[Tensor, ...], Tensor, dict[str, Tensor]]:
        """Return the gradient of each parameter, the total loss, and all that the loss returned."""
        count = len(self._keys)
        minibatch, noise = dict(zip(self._keys, tensors[:count], strict=True)), tensors[count:]

        def total(parameters: list[Tensor]) -> tuple[Tensor, tuple[Tensor, dict[str, Tensor]]]:
            named = dict(zip(self._parameter_names, parameters, strict=True))
            losses = torch.func.functional_call(self._loss, named, (minibatch, *noise))
            minimised = [losses[n] for n in losses if (n in self._names if self._names else n.startswith("loss"))]
            value = torch.stack(minimised).sum()
            return value, (value, losses)

        gradients, (value, losses) = torch.func.grad(total, has_aux=True)(self._adam.values)
        return tuple(gradients), value, losses

    def _adam_step(self, gradients: Sequence[Tensor], norm: Tensor, finite: Tensor) -> None:
        """Update in place, as torch.optim.Adam and AdamW do; nothing changes where `finite` is False."""
        adam = self._adam
        beta1, beta2 = adam.group["betas"]
        decay, eps = adam.group["weight_decay"], adam.group["eps"]
        # as torch's clip_grad_norm_, which divides by a little more than the norm
        scale = 1.0 if self._max_norm is None else (self._max_norm / (norm + 1e-6)).clamp(max=1.0)
        adam.step.add_(finite.to(adam.step.dtype))
        steps = adam.step.clamp(min=1.0)  # a first step that is skipped would divide by zero below
        size = torch.where(finite, self._lr / (1 - beta1**steps), 0.0)
        correction = (1 - beta2**steps).sqrt()
        rate1, rate2 = (torch.where(finite, 1 - beta, 0.0) for beta in (beta1, beta2))
        shrink = torch.where(finite, self._lr * decay, 0.0)
        for value, gradient, first, second in zip(adam.values, gradients, adam.first, adam.second, strict=True):
            gradient = torch.where(finite, gradient * scale, 0.0)
            if decay and adam.decoupled:
                value.sub_(shrink * value)
            elif decay:
                gradient = gradient + decay * value
            first.add_(rate1 * (gradient - first))
            second.add_(rate2 * (gradient * gradient - second))
            value.sub_(size * first / (second.sqrt() / correction + eps))


def _norm(gradients: Sequence[Tensor]) -> Tensor:
    return torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()


def _own_copy(method: Any) -> Callable[..., Any]:
    """Return a method with a code object of its own.

    The compiler keeps graphs by code object; without guards, a second learner or size would get the first one.
    """
    function = method.__func__
    copy = types.FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return types.MethodType(copy, method.__self__)
