"""A step of policy and env as one compiled graph; an env that is written as functions can be seen by the compiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import torch
from torch import Tensor

from rlcore.errors import ConfigError
from rlcore.plugins import lend
from rlcore_plugin_device.functional import FunctionalEnv, Moment

if TYPE_CHECKING:
    from rlcore import Context
    from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep

Act: TypeAlias = Callable[..., tuple[Tensor, ...]]
Step: TypeAlias = "Callable[..., tuple[tuple[Tensor, ...], TensorStep]]"

_PLACE: Final = re.compile(r'File "([^"]+)", line (\d+), in (\w+)')


def compiled_step(env: TensorEnv, change: Callable[[Tensor], Tensor], context: Context) -> Step:
    """Return what acts and steps the env: called with `act` of the policy and what that takes.

    Args:
        env: to step.
        change: from the actions of the policy to those of the env.
        context: of the run.

    Raises:
        ConfigError: the env steps by itself, or there is no compiler.
        MissingPluginError: rlcore-plugin-compile is not installed.

    What is returned raises a ConfigError where the compiler cannot take a step as one graph.
    """
    if not isinstance(env, FunctionalEnv):
        raise ConfigError(
            f"[collector] compile: {type(env).__name__} steps by itself, out of the sight of the compiler; set "
            "compile = false, or derive it from FunctionalEnv"
        )
    lend("rlcore.learners", "check_compiler")(context.device, "[collector] compile")
    from torch._dynamo.exc import TorchDynamoException  # as long to import as torch: here it is needed

    stepped = env.stepped

    def both(act: Act, moment: Moment, *inputs: Tensor) -> tuple[tuple[Tensor, ...], Moment, TensorStep]:
        acted = act(*inputs)
        return acted, *stepped(moment, change(acted[0]))

    graph = torch.compile(both, dynamic=False, fullgraph=True)

    def step(act: Act, *inputs: Tensor) -> tuple[tuple[Tensor, ...], TensorStep]:
        assert env.moment is not None, "reset comes first"
        try:
            acted, env.moment, last = graph(act, env.moment, *inputs)
        except TorchDynamoException as error:
            raise _not_compiled(env, error) from error
        return acted, last

    return step


def _not_compiled(env: TensorEnv, error: Exception) -> ConfigError:
    """Return the error for a step that the compiler does not take as one graph."""
    why, *_ = str(error).strip().splitlines()
    places = _PLACE.findall(str(error))
    where = f" ({Path(places[-1][0]).name}, line {places[-1][1]}, in {places[-1][2]})" if places else ""
    return ConfigError(
        f"[collector] compile: a step of policy and env {env.spec.id!r} is no one graph{where}: {why}. Take "
        "conditions on tensors and .item() out of it (torch.where), or set compile = false"
    )
