"""The functions of an env, tried out once before its first episode: their form, and that they are functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlcore.errors import EnvError
from rlcore_plugin_device.form import Form, writes_to
from rlcore_plugin_device.random import Random, keys_of
from rlcore_plugin_device.tensor_env import torch_dtype

if TYPE_CHECKING:
    from rlcore_plugin_device.functional import FunctionalEnv


@torch.inference_mode(False)  # tensors of inference do not count how often they were written to
@torch.no_grad()
def check_functions(env: FunctionalEnv) -> None:
    """Take a step on the side, each method twice, and hold what they give against the spaces and each other.

    Raises:
        EnvError: something has another form; a method changes what it was given, or gives something else the second
            time.
    """
    form, envs = Form(env.spec, env.device, type(env).__name__), env.num_envs
    keys, zero = keys_of(0, envs, env.device), torch.zeros((), device=env.device).long()

    def random() -> Random:
        return Random(keys, zero)

    state = {**_again(env, "initial", lambda: env.initial(random()), dict)}
    for name, value in state.items():
        form.check(value, (envs, *getattr(value, "shape", ())[1:]), None, "initial", f"[{name!r}]")
    space = env.action_space
    action = torch.zeros((envs, *(space.shape or ())), dtype=torch_dtype(space.dtype), device=env.device)
    following: Mapping[str, Tensor] = {}

    def given() -> dict[str, Tensor]:
        return {**_named("state", state), "action": action, **_named("next_state", following)}

    following = _again(env, "transition", lambda: env.transition(state, action, random()), given)
    if set(following) != set(state):
        raise form.error(f"the names {sorted(following)}", f"those of initial: {sorted(state)}", "transition")
    for name, value in state.items():
        form.check(following[name], tuple(value.shape), value.dtype, "transition", f"[{name!r}]")
    form.check_observation(_again(env, "observation", lambda: env.observation(state), given), "observation")
    reward = _again(env, "reward", lambda: env.reward(state, action, following), given)
    form.check_reward(reward, "reward")
    form.check_ends(_again(env, "terminal", lambda: env.terminal(following), given), "terminal")


def _named(owner: str, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{owner}[{name!r}]": value for name, value in state.items()}


def _again(env: FunctionalEnv, method: str, call: Callable[[], Any], given: Callable[[], dict[str, Tensor]]) -> Any:
    """Return what a method gives, called twice.

    Args:
        env: of the method.
        method: its name.
        call: calls it.
        given: returns what it is given, by name.
    """
    before = {name: (tensor, writes_to(tensor)) for name, tensor in given().items()}
    first, second = call(), call()
    after = given()
    for name, (tensor, writes) in before.items():
        if after.get(name) is not tensor or writes_to(tensor) != writes:
            raise EnvError(
                f"env {env.spec.id!r}: {type(env).__name__}.{method} changes {name} in place; return a new tensor"
            )
    if not _alike(first, second):
        raise EnvError(
            f"env {env.spec.id!r}: {type(env).__name__}.{method} gives something else when it is called again with the "
            "same arguments; keep all that a step depends on in the state, and draw numbers from the argument random"
        )
    return first


def _alike(first: Any, second: Any) -> bool:
    if isinstance(first, Mapping):
        return isinstance(second, Mapping) and all(
            name in second and _alike(first[name], second[name]) for name in first
        )
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)) or first.shape != second.shape:
        return type(first) is type(second)
    if first.is_floating_point():  # sums on a GPU may differ in their last digits
        return torch.allclose(first, second, rtol=1e-4, atol=1e-6, equal_nan=True)
    return torch.equal(first, second)
