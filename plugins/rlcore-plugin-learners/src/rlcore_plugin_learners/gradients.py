"""Gradients as RLlib's learners hand them on: computed, processed and applied by methods that may be overridden."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore_plugin_learners.batches import MultiBatch
from rlcore_plugin_learners.columns import ALL_MODULES
from rlcore_plugin_learners.learner import Learner

if TYPE_CHECKING:
    from rlcore_plugin_learners.config import AlgorithmConfig
    from rlcore_plugin_learners.steps import ModuleSteps

ParamDict = Mapping[Hashable, Tensor | None]


class Gradients(Learner):
    """Takes a step by methods that each do a part of it.

    A learner that overrides none of them takes its steps without them, which are the same and faster.
    """

    _steps: dict[str, ModuleSteps]
    _params: dict[Hashable, Tensor]

    def get_param_ref(self, param: Tensor) -> Hashable:
        """Return what stands for a parameter in mappings of gradients: itself."""
        return param

    def get_parameters(self, module: torch.nn.Module) -> list[Tensor]:
        """Return the parameters of a module that optimizers step."""
        return [parameter for parameter in module.parameters() if parameter.requires_grad]

    def compute_gradients(self, loss_per_module: Mapping[str, Tensor], **_: Any) -> dict[Hashable, Tensor | None]:
        """Return the gradients of the sum of losses, by what stands for each parameter.

        Args:
            loss_per_module: 0-d.
        """
        for parameter in self._params.values():
            parameter.grad = None
        total = sum(loss_per_module.values(), torch.zeros((), device=self.device))
        if total.requires_grad:
            total.backward()  # type: ignore[no-untyped-call]
        return {ref: parameter.grad for ref, parameter in self._params.items()}

    def filter_param_dict_for_optimizer(
        self, param_dict: ParamDict, optimizer: torch.optim.Optimizer
    ) -> dict[Hashable, Tensor]:
        """Return the entries of the parameters of one optimizer that have a gradient."""
        refs = [self.get_param_ref(parameter) for group in optimizer.param_groups for parameter in group["params"]]
        found = {ref: param_dict.get(ref) for ref in refs}
        return {ref: gradient for ref, gradient in found.items() if gradient is not None}

    def postprocess_gradients(self, gradients_dict: ParamDict) -> dict[Hashable, Tensor]:
        """Return what is applied in the place of gradients: those of each module, processed."""
        processed: dict[Hashable, Tensor] = {}
        for module_id in self._steps:
            own: dict[Hashable, Tensor] = {}
            for _, optimizer in self.get_optimizers_for_module(module_id):
                own |= self.filter_param_dict_for_optimizer(gradients_dict, optimizer)
            if own:
                config = self.config.get_config_for_module(module_id)
                processed |= self.postprocess_gradients_for_module(
                    module_id=module_id, config=config, module_gradients_dict=own
                )
        return processed

    def postprocess_gradients_for_module(
        self, *, module_id: str, config: AlgorithmConfig | None = None, module_gradients_dict: ParamDict
    ) -> dict[Hashable, Tensor]:
        """Return the gradients of a module, limited as the config says, and log their norm by optimizer."""
        config = config or self.config.get_config_for_module(module_id)
        processed: dict[Hashable, Tensor] = {}
        for name, optimizer in self.get_optimizers_for_module(module_id):
            own = self.filter_param_dict_for_optimizer(module_gradients_dict, optimizer)
            norms = torch.stack([torch.linalg.vector_norm(gradient) for gradient in own.values()])
            norm = torch.linalg.vector_norm(norms)
            self.metrics.log_value((module_id, f"gradients_{name}_global_norm"), norm)
            processed |= dict(zip(own, _limited(list(own.values()), norms, norm, config), strict=True))
        return processed

    def apply_gradients(self, gradients_dict: ParamDict) -> None:
        """Step all optimizers that have a gradient, with these; a step that is not finite changes nothing."""
        for ref, gradient in gradients_dict.items():
            self._params[ref].grad = gradient
        for steps in self._steps.values():
            steps.apply_as_is()

    def get_optimizers_for_module(self, module_id: str = ALL_MODULES) -> list[tuple[str, torch.optim.Optimizer]]:
        """Return names and optimizers of a module."""
        raise NotImplementedError

    def _step_openly(self, minibatch: MultiBatch, trained: Any) -> None:
        """Take a step of every module that any process has rows of, by the methods of this class."""
        losses: dict[str, Tensor] = {}
        gradients: ParamDict = {}
        if minibatch:
            losses = self._losses(minibatch)
            gradients = self.compute_gradients(losses)
        noted = {name: loss.detach() for name, loss in losses.items()}
        for name, steps in self._steps.items():
            if name in noted:
                steps.note(noted[name])
        if self.group.size > 1:
            gradients = self._averaged(gradients, minibatch, trained)
        self.apply_gradients(self.postprocess_gradients(gradients))
        for name, loss in noted.items():
            self.metrics.log_value((name, self.TOTAL_LOSS_KEY), loss)

    def _averaged(self, gradients: ParamDict, minibatch: MultiBatch, trained: Any) -> ParamDict:
        """Return the gradients over the rows of all processes."""
        for ref, gradient in gradients.items():
            self._params[ref].grad = gradient
        for name, steps in self._steps.items():
            if steps.joint is not None and (name in trained or name == ALL_MODULES):
                steps.joint.average(rows_of(name, minibatch))
        return {ref: parameter.grad for ref, parameter in self._params.items()}

    def _losses(self, minibatch: MultiBatch) -> dict[str, Tensor]:
        raise NotImplementedError


def rows_of(module_id: str, data: MultiBatch) -> int:
    """Return the rows of a module; where all are meant, those of the one with most."""
    if module_id == ALL_MODULES:
        return max((columns.rows for columns in data.values()), default=0)
    return data[module_id].rows if module_id in data else 0


def _limited(gradients: list[Tensor], norms: Tensor, norm: Tensor, config: AlgorithmConfig) -> list[Tensor]:
    limit = config.grad_clip
    if limit is None:
        return gradients
    if config.grad_clip_by == "value":
        return [gradient.clamp(-limit, limit) for gradient in gradients]
    scales = (limit / (norms if config.grad_clip_by == "norm" else norm)).clamp(max=1.0).expand(len(gradients))
    return [gradient * scale for gradient, scale in zip(gradients, scales, strict=True)]
