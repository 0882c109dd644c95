"""The update of one module as a compiled graph: forward, loss, backward, clipping and Adam.

The loss is first written down as a graph of tensor operations, by running it once, so that it may be any Python: it
is not run again. Numbers that it reads from elsewhere are constants of the graph, unless they are tensors.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from rlcore_plugin_compile.compiled import CompiledUpdate
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from rlcore.errors import ConfigError, describe
from rlcore.learners import Due
from rlcore.types import Heart
from rlcore_plugin_learners.batches import ModuleBatch
from rlcore_plugin_learners.metrics import Key, MetricsLogger, Reduce

if TYPE_CHECKING:
    from rlcore_plugin_learners.steps import ModuleSteps
    from rlcore_plugin_learners.torch_learner import TorchLearner

log = logging.getLogger(__name__)

_LOSS = "loss"


class CompiledModule:
    """Steps of one module, compiled for minibatches of the size that comes first; others run eagerly.

    Args:
        learner: whose loss it is.
        module_id: of the module.
        steps: of the module.
    """

    def __init__(self, learner: TorchLearner, module_id: str, steps: ModuleSteps) -> None:
        self._learner = learner
        self._module_id = module_id
        self._steps = steps
        self._due = Due(tuple(range(len(steps.named))), None)
        self._loss: _WrittenLoss | None = None
        self._update: CompiledUpdate | None = None
        self._rows = 0
        self._failed = False

    def reload(self) -> None:
        """Follow a state that was loaded."""
        if self._update is not None:
            self._update.reload()

    def step(self, batch: ModuleBatch | None) -> bool:
        """Take a step and log what the loss logs; return False where it is to be taken eagerly."""
        if self._failed or (batch is None and self._update is None):
            return False
        if self._update is None:
            assert batch is not None
            self._begin(batch)
            if self._update is None:
                return False
        assert self._loss is not None
        if not self._update.fits():
            return False
        if batch is None:
            values = self._update(None, self._due, False)
        elif batch.rows == self._rows:
            entries: Any = batch
            values = self._update(entries, self._due, False)
        else:
            return False
        self._log(values)
        return True

    def _begin(self, batch: ModuleBatch) -> None:
        module_id, steps = self._module_id, self._steps
        try:
            self._loss = _WrittenLoss(self._learner, module_id, batch)
            self._update = CompiledUpdate(self._loss, steps.named, Heart(), steps.joint)
            self._rows = batch.rows
        except ConfigError:
            raise
        except Exception as error:  # of a loss that is any Python
            self._failed = True
            log.warning(
                "torch_compile_learner: module %r runs eagerly, as its loss cannot be written down as a graph: %s",
                module_id,
                describe(error),
            )

    def _log(self, values: Mapping[str, Tensor]) -> None:
        assert self._loss is not None
        metrics, names = self._learner.metrics, list(self._steps.named)
        for key, value in values.items():
            if key == _LOSS:
                metrics.log_value((self._module_id, self._learner.TOTAL_LOSS_KEY), value)
            elif key.startswith("grad_norm"):
                name = key.partition("/")[2] or names[0]
                metrics.log_value((self._module_id, f"gradients_{name}_global_norm"), value)
            else:
                place, options = self._loss.logged[key]
                metrics.log_value(place, value, **options)


class _WrittenLoss(nn.Module):
    """The loss of a module as a graph of its weights and columns; the module is in it, whose weights it takes.

    Attributes:
        logged: what the loss logs: the key and how it is reduced, by the name under which it is returned.
    """

    def __init__(self, learner: TorchLearner, module_id: str, batch: ModuleBatch) -> None:
        super().__init__()
        self.module = learner.module[module_id]
        self.logged: dict[str, tuple[Key, dict[str, Any]]] = {}
        self._columns = tuple(batch)
        self._graph = [self._written(learner, module_id, batch)]  # in a list: its weights are those of the module

    def forward(self, entries: Mapping[Any, Tensor]) -> dict[str, Tensor]:
        values = self._graph[0](self._weights(), [entries[name] for name in self._columns])
        return dict(zip((_LOSS, *self.logged), values, strict=True))

    def _weights(self) -> list[Tensor]:
        return [*self.module.parameters(), *self.module.buffers()]

    def _written(self, learner: TorchLearner, module_id: str, batch: ModuleBatch) -> torch.fx.GraphModule:
        module, columns = self.module, self._columns
        names = [name for name, _ in (*module.named_parameters(), *module.named_buffers())]
        config = learner.config.get_config_for_module(module_id)
        asked = _Entries(module, learner, module_id, config)

        def loss(weights: list[Tensor], entries: list[Tensor]) -> list[Tensor]:
            found = ModuleBatch(zip(columns, entries, strict=True))
            collected = _Collected()
            kept, learner.metrics = learner.metrics, collected
            taken = {f"module.{name}": weight for name, weight in zip(names, weights, strict=True)}
            try:
                value = torch.func.functional_call(asked, taken, (found,))
            finally:
                learner.metrics = kept
            self.logged = {f"logged/{number}": options for number, (options, _) in enumerate(collected.entries)}
            return [value, *(torch.as_tensor(logged) for _, logged in collected.entries)]

        with torch.enable_grad():
            return make_fx(loss)([weight.detach() for weight in self._weights()], list(batch.values()))


class _Entries(nn.Module):
    """Forward pass and loss of a module."""

    def __init__(self, module: nn.Module, learner: TorchLearner, module_id: str, config: Any) -> None:
        super().__init__()
        self.module = module
        self._loss = partial(learner.compute_loss_for_module, module_id=module_id, config=config)

    def forward(self, batch: ModuleBatch) -> Tensor:
        return self._loss(batch=batch, fwd_out=self.module.forward_train(batch))  # type: ignore[operator]


class _Collected(MetricsLogger):
    """Keeps what is logged while a loss is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[tuple[tuple[Key, dict[str, Any]], Any]] = []

    def log_value(self, key: str | Key, value: Any, *, reduce: Reduce = "mean", window: int | None = None) -> None:
        """Keep a value, and how it is reduced."""
        value = value.detach() if isinstance(value, Tensor) else value
        self.entries.append((((key,) if isinstance(key, str) else key, {"reduce": reduce, "window": window}), value))
