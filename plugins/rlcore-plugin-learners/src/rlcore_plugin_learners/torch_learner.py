"""A learner whose steps are those of the core: gradients, clipping, optimizers, and skipping what is not finite."""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import torch
from torch import Tensor

from rlcore.errors import ConfigError, NumericalError, did_you_mean
from rlcore_plugin_learners.batches import MultiBatch, minibatches
from rlcore_plugin_learners.columns import ALL_MODULES, DEFAULT_MODULE_ID, DEFAULT_OPTIMIZER, LIFETIME_STEPS
from rlcore_plugin_learners.gradients import Gradients, rows_of
from rlcore_plugin_learners.learner import Learner
from rlcore_plugin_learners.multi import MultiRLModule, MultiRLModuleSpec
from rlcore_plugin_learners.states import as_arrays, as_tensors
from rlcore_plugin_learners.steps import ModuleSteps, Scheduled

if TYPE_CHECKING:
    from rlcore_plugin_learners.compiled import CompiledModule
    from rlcore_plugin_learners.config import AlgorithmConfig, Schedule

log = logging.getLogger(__name__)

_TRAINED: Final = "num_module_steps_trained"
# a subclass that has one of these as its own takes its steps by all of them
_OF_A_STEP: Final = (
    "apply_gradients",
    "compute_gradients",
    "filter_param_dict_for_optimizer",
    "get_optimizers_for_module",
    "get_param_ref",
    "postprocess_gradients",
    "postprocess_gradients_for_module",
)


class TorchLearner(Gradients):
    """Takes gradient steps with optimizers of torch. A subclass says what the loss is, in `compute_loss_for_module`.

    One step that is not finite changes nothing. In a group, gradients are averaged over the rows of all processes, for
    each module by itself: one that has no rows of a module joins with nothing.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._steps: dict[str, ModuleSteps] = {}
        self._compiled: dict[str, CompiledModule] = {}
        self._compiles = False
        self._params: dict[Hashable, Tensor] = {}
        own = any(getattr(type(self), name) is not getattr(TorchLearner, name) for name in _OF_A_STEP)
        self._is_open = own or self.config.grad_clip_by == "norm"

    def build(self) -> None:
        """Build modules and optimizers, and see whether updates can be compiled."""
        super().build()
        self._compiles = self.config.torch_compile_learner and self._can_compile()

    def configure_optimizers_for_module(self, module_id: str, config: AlgorithmConfig) -> None:
        """Register Adam over all weights of a module, with the learning rate of its settings."""
        parameters = self.get_parameters(self.module[module_id])
        if parameters:
            optimizer = torch.optim.Adam(parameters)
            self.register_optimizer(
                module_id=module_id, optimizer=optimizer, params=parameters, lr_or_lr_schedule=config.lr
            )

    def register_optimizer(
        self,
        *,
        module_id: str = DEFAULT_MODULE_ID,
        optimizer_name: str = DEFAULT_OPTIMIZER,
        optimizer: torch.optim.Optimizer,
        params: Sequence[Tensor],
        lr_or_lr_schedule: Schedule | None = None,
    ) -> None:
        """Let an optimizer step for a module.

        Args:
            module_id: whose loss it minimises; `ALL_MODULES` for the sum of those of all.
            optimizer_name: its name among those of the module.
            optimizer: of torch.
            params: those that it steps.
            lr_or_lr_schedule: its learning rate, or `[[0, first], [steps, last], ...]`; None for the one it has.

        Raises:
            ConfigError: no such module, the name is taken, or a parameter is another optimizer's already.
        """
        if module_id == ALL_MODULES:
            self._is_open = True
        else:
            self.module[module_id]  # refuses an id that is not here
        taken = {id(p) for several in self._steps.values() for p in several.parameters()}
        own = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
        if own & taken:
            raise ConfigError(f"{module_id}/{optimizer_name}: another optimizer steps some of its parameters already")
        if {id(parameter) for parameter in params} != own:
            raise ConfigError(f"{module_id}/{optimizer_name}: params are others than the optimizer has")
        schedule = None if lr_or_lr_schedule is None else Scheduled(lr_or_lr_schedule)
        steps = self._steps.get(module_id) or ModuleSteps(self.group, self.config.get_config_for_module(module_id))
        steps.add(optimizer_name, optimizer, self._device, schedule)
        self._steps[module_id] = steps
        self._params |= {self.get_param_ref(parameter): parameter for parameter in params}
        steps.follow(self.timesteps.get(LIFETIME_STEPS, 0))
        self._compiled.pop(module_id, None)

    def get_optimizer(
        self, module_id: str = DEFAULT_MODULE_ID, optimizer_name: str = DEFAULT_OPTIMIZER
    ) -> torch.optim.Optimizer:
        """Return an optimizer.

        Raises:
            ConfigError: there is none of that name.
        """
        optimizers = dict(self.get_optimizers_for_module(module_id))
        if optimizer_name not in optimizers:
            raise ConfigError(
                f"module {module_id!r} has no optimizer {optimizer_name!r}{did_you_mean(optimizer_name, optimizers)}"
            )
        return optimizers[optimizer_name]

    def get_optimizers_for_module(self, module_id: str = ALL_MODULES) -> list[tuple[str, torch.optim.Optimizer]]:
        """Return names and optimizers of a module, or of all."""
        if module_id == ALL_MODULES and ALL_MODULES not in self._steps:
            return [pair for name in self.module for pair in self.get_optimizers_for_module(name)]
        if module_id != ALL_MODULES:
            self.module[module_id]
        steps = self._steps.get(module_id)
        return [] if steps is None else [(name, step.optimizer) for name, step in steps.named.items()]

    def get_optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """Return all optimizers by module and name, joined by an underscore as in the state."""
        return {
            f"{module_id}_{name}": step.optimizer
            for module_id, steps in self._steps.items()
            for name, step in steps.named.items()
        }

    def remove_module(self, module_id: str, **kwargs: Any) -> MultiRLModuleSpec:
        """Take a module out, and its optimizers with it, and return how to build what is left."""
        left = super().remove_module(module_id, **kwargs)
        steps = self._steps.pop(module_id, None)
        gone = set() if steps is None else {id(parameter) for parameter in steps.parameters()}
        self._params = {ref: parameter for ref, parameter in self._params.items() if id(parameter) not in gone}
        self._compiled.pop(module_id, None)
        return left

    def after_gradient_based_update(self, *, timesteps: dict[str, int]) -> None:
        """Let learning rates follow their schedules, and log them."""
        for module_id, steps in self._steps.items():
            steps.follow(timesteps.get(LIFETIME_STEPS, 0))
            for name, step in steps.named.items():
                rate = step.optimizer.param_groups[0]["lr"]
                self.metrics.log_value((module_id, f"{name}_learning_rate"), rate, window=1)

    def mean_over_group(self, key: tuple[str, ...]) -> float | None:
        """Return the mean of what was logged in this update, weighted by the rows of each process; None for nothing.

        All processes call this alike. What decides something about modules has to come from here, as each process logs
        its own.

        Args:
            key: begins with the id of a module.
        """
        here = self.metrics.has(key)
        rows = self.metrics.peek((key[0], _TRAINED)) if here else 0.0
        weighted = torch.tensor([self.metrics.peek(key) * rows if here else 0.0, rows], device=self._device)
        self.group.sum_(weighted)
        total, rows = weighted.tolist()
        return total / rows if rows else None

    def _train(
        self, data: MultiBatch, size: int | None, epochs: int, most: int, shuffler: torch.Generator | None
    ) -> None:
        if ALL_MODULES not in self._steps:
            data = {module_id: columns for module_id, columns in data.items() if module_id in self._steps}
        table = self._rows_of_all(data)
        rows = [count for counts in table for count in counts]
        steps = 1 if size is None else -(-max(rows) // size)
        batches: Iterator[MultiBatch] = minibatches(data, steps, size, epochs, shuffler)
        try:
            for number, minibatch in enumerate(islice(batches, most or None)):
                if self.group.size == 1:
                    self._step(minibatch, minibatch)
                else:
                    begun = (number % steps) * (size or 0)
                    trained = [name for name, *counts in zip(self._steps, *table, strict=True) if max(counts) > begun]
                    self._step(minibatch, trained)
        except BaseException:
            for several in self._steps.values():
                several.forget()
            raise
        self._log_rows({name: columns.rows for name, columns in data.items()}, size, steps * epochs, steps, most)
        self._check_finite()

    def _log_rows(self, rows: Mapping[str, int], size: int | None, taken: int, steps: int, most: int) -> None:
        """Log how many rows were trained on, steps of envs, and the number of the update."""
        epochs, rest = divmod(min(taken, most) if most else taken, steps)
        counts = {name: epochs * count + min(count, rest * (size or count)) for name, count in rows.items()}
        for module_id, count in counts.items():
            self._log_count((module_id, _TRAINED), count)
            self.metrics.log_value((module_id, "module_train_batch_size_mean"), min(rows[module_id], size or count))
            self.metrics.log_value((module_id, "weights_seq_no"), self.weights_seq_no + 1, reduce="item")
        if counts:
            self._log_count((ALL_MODULES, _TRAINED), sum(counts.values()))
            steps_of_envs = round(self._env_steps * sum(counts.values()) / sum(rows.values())) or max(counts.values())
            self._log_count((ALL_MODULES, "num_env_steps_trained"), steps_of_envs)

    def _log_count(self, key: tuple[str, str], count: int) -> None:
        self.metrics.log_value(key, count, reduce="sum")
        self.metrics.log_value((key[0], f"{key[1]}_lifetime"), count, reduce="lifetime_sum")

    def _rows_of_all(self, data: MultiBatch) -> Sequence[Sequence[int]]:
        """Return how many rows of each module every process has; all processes call this."""
        own = [rows_of(name, data) for name in self._steps]
        return self.group.share(own)

    def _step(self, minibatch: MultiBatch, trained: Any) -> None:
        """Take a step of every module that any process has rows of."""
        if self._is_open:
            self._step_openly(minibatch, trained)
            return
        eagerly = [name for name in trained if not self._step_compiled(name, minibatch)]
        here = {name: minibatch[name] for name in eagerly if name in minibatch}
        losses = self._backward(here) if here else {}
        for module_id in eagerly:
            columns = here.get(module_id)
            norms = self._steps[module_id].apply(losses.get(module_id), 0 if columns is None else columns.rows)
            self._log(module_id, losses.get(module_id), norms)

    def _backward(self, minibatch: MultiBatch) -> dict[str, Tensor]:
        """Leave the gradients of all losses in the parameters, and return the losses."""
        losses = self._losses(minibatch)
        if set(losses) != set(minibatch):
            raise ConfigError(f"compute_losses returned losses of {', '.join(losses)}, for {', '.join(minibatch)}")
        sum(losses.values(), torch.zeros((), device=self._device)).backward()  # type: ignore[no-untyped-call]
        return {module_id: loss.detach() for module_id, loss in losses.items()}

    def _losses(self, minibatch: MultiBatch) -> dict[str, Tensor]:
        returned = self.module.forward_train(minibatch)
        return self.compute_losses(fwd_out=returned, batch=minibatch)

    def _log(self, module_id: str, loss: Tensor | None, norms: Mapping[str, Tensor]) -> None:
        if loss is not None:
            self.metrics.log_value((module_id, self.TOTAL_LOSS_KEY), loss)
        for name, norm in norms.items():
            self.metrics.log_value((module_id, f"gradients_{name}_global_norm"), norm)

    def _check_finite(self) -> None:
        """Read the counts of skipped steps.

        Raises:
            NumericalError: there are some, and the config does not skip them.
        """
        for module_id, steps in self._steps.items():
            skipped = steps.skipped()
            if not skipped:
                continue
            told = f"{skipped} steps of module {module_id!r} had a loss or gradient that is not finite"
            if self.config.on_nonfinite == "stop":
                raise NumericalError(
                    f"{told}; they changed nothing. Look for the cause in the batch, or set on_nonfinite to skip"
                )
            log.warning("%s; they changed nothing", told)
            self.metrics.log_value((module_id, "num_skipped_steps"), skipped, reduce="lifetime_sum")

    def _can_compile(self) -> bool:
        kinds = (type(self), Learner, "compute_losses"), (type(self.module), MultiRLModule, "_forward_train")
        own = next((name for kind, base, name in kinds if getattr(kind, name) is not getattr(base, name)), None)
        if own is not None or self._is_open:
            told = own or "parts of a step, or limits of its own,"
            log.warning("torch_compile_learner: %s has %s of its own and runs eagerly", type(self).__name__, told)
            return False
        from rlcore_plugin_compile.compiling import check_compiler

        check_compiler(self._device, "torch_compile_learner")
        return True

    def _step_compiled(self, module_id: str, minibatch: MultiBatch) -> bool:
        """Take the step of a module as a compiled graph, and return whether it could."""
        if not self._compiles:
            return False
        compiled = self._compiled.get(module_id)
        if compiled is None:
            from rlcore_plugin_learners.compiled import CompiledModule

            compiled = self._compiled[module_id] = CompiledModule(self, module_id, self._steps[module_id])
        return compiled.step(minibatch.get(module_id))

    def _get_optimizer_state(self) -> dict[str, Any]:
        return {name: as_arrays(optimizer.state_dict()) for name, optimizer in self.get_optimizers().items()}

    def _set_optimizer_state(self, state: Mapping[str, Any]) -> None:
        optimizers = self.get_optimizers()
        for name in state:
            if name not in optimizers:
                raise ConfigError(f"there is no optimizer {name!r}{did_you_mean(name, optimizers)}")
        for name, value in state.items():
            try:
                optimizers[name].load_state_dict(as_tensors(value))
            except (ValueError, KeyError) as error:
                raise ConfigError(f"the state does not fit the optimizer {name!r}: {error}") from None
        for compiled in self._compiled.values():
            compiled.reload()
