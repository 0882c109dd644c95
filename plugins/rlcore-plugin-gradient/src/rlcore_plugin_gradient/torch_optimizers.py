"""The other optimizers of `torch.optim` by name, each with the keyword arguments of its constructor as keys.

Adam, AdamW and SGD, which have keys of their own, are in `optimizers.py`.
"""

from __future__ import annotations

import inspect
import types
import typing
from functools import cached_property
from typing import Any, Final, Union

import torch
from pydantic import BaseModel, ConfigDict, Field, create_model

from rlcore.types import Context
from rlcore_plugin_gradient.optimizers import KEYS_OF_LEARNER, OptimizerConfig, build_optimizer

# how a step is computed, which is not the config's to say; and `maximize`, as losses are minimised
_LEFT_OUT: Final = ("self", "params", "maximize", "foreach", "fused", "capturable", "differentiable")
_DESCRIPTIONS: Final = {
    "lr": "learning rate",
    "weight_decay": "weight decay",
    "eps": "added to a divisor",
    "momentum": "momentum",
    "betas": "decay of the two moments",
}


class TorchOptimizer:
    """An optimizer of torch as the target of a component: called with a section and a context, it builds one.

    Args:
        kind: its class.
    """

    def __init__(self, kind: type[torch.optim.Optimizer]) -> None:
        self._kind = kind
        self._name = kind.__name__
        self.__module__ = __name__
        self.__doc__ = f"`torch.optim.{self._name}`; its keys mean what they mean there."

    @cached_property
    def Config(self) -> type[BaseModel]:  # noqa: N802 - the name under which every component has its schema
        """The schema of its section: what its constructor takes, what `OptimizerConfig` says beside numbers."""
        fields: dict[str, Any] = {
            name: (_allowed(annotation, parameter.default), _field(self._name, name, parameter.default))
            for name, annotation, parameter in _arguments(self._kind)
        }
        common = OptimizerConfig.model_fields
        fields |= {name: (common[name].annotation, common[name]) for name in KEYS_OF_LEARNER}
        rules = ConfigDict(extra="forbid", allow_inf_nan=False, validate_default=True)
        return create_model(f"{self._name}Config", __config__=rules, __module__=__name__, **fields)

    def __call__(self, config: BaseModel, context: Context) -> torch.optim.Optimizer:
        """Build it.

        Raises:
            ConfigError: the model has no such part, or torch refuses a value.
        """
        # a key without a value keeps torch's own default, which TOML may have no word for
        return build_optimizer(self._kind, config, context, config.model_dump(exclude_none=True))


def _arguments(kind: type) -> list[tuple[str, Any, inspect.Parameter]]:
    """Return name, annotation and parameter of each key."""
    hints = typing.get_type_hints(kind.__init__)  # type: ignore[misc]
    parameters = inspect.signature(kind).parameters
    return [(name, hints[name], parameters[name]) for name in parameters if name not in _LEFT_OUT]


def _allowed(annotation: Any, default: Any) -> Any:
    """Return what a config may say for an argument: a number where torch takes a tensor too, a default of None."""
    if typing.get_origin(annotation) in (Union, types.UnionType):
        numbers = tuple(option for option in typing.get_args(annotation) if option is not torch.Tensor)
        annotation = Union[numbers]  # noqa: UP007 - of options that are known at run time
    return annotation if _has_words(default) else annotation | None


def _field(optimizer: str, name: str, default: Any) -> Any:
    description = _DESCRIPTIONS.get(name, f"see torch.optim.{optimizer}")
    return Field(default if _has_words(default) else None, description=description)


def _has_words(default: Any) -> bool:
    """Return whether TOML can say it."""
    return default is not None and not (isinstance(default, tuple) and None in default)


Adadelta: Final = TorchOptimizer(torch.optim.Adadelta)
Adafactor: Final = TorchOptimizer(torch.optim.Adafactor)
Adagrad: Final = TorchOptimizer(torch.optim.Adagrad)
Adamax: Final = TorchOptimizer(torch.optim.Adamax)
ASGD: Final = TorchOptimizer(torch.optim.ASGD)
NAdam: Final = TorchOptimizer(torch.optim.NAdam)
RAdam: Final = TorchOptimizer(torch.optim.RAdam)
RMSprop: Final = TorchOptimizer(torch.optim.RMSprop)
Rprop: Final = TorchOptimizer(torch.optim.Rprop)
