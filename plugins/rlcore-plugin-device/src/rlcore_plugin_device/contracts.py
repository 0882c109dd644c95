"""The contract suite of an env of tensors: that of every env, and its steps never ask the host.

    from rlcore_plugin_device.contracts import TensorEnvContract

    class TestReach(TensorEnvContract):
        use = "reach"

Needs rlcore-plugin-testing and pytest (`pip install "rlcore-plugin-device[test]"`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np
import pytest
import torch
from rlcore_plugin_testing.contracts import EnvContract
from rlcore_plugin_testing.contracts.data import actions
from torch.utils._python_dispatch import TorchDispatchMode

from rlcore_plugin_device.tensor_env import TensorEnv

__all__ = ["TensorEnvContract", "WithoutTheHost"]

_WAITING: Final = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


class WithoutTheHost(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode in which operations fail for which a program waits for its device.

    Numbers that are read, a condition on a tensor, results of a size that depends on the data: on a GPU each of them
    holds up whatever could be done meanwhile, and none can be captured in a graph.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do what the operation asks for, or refuse it."""
        masked = func is torch.ops.aten.index.Tensor and any(
            index is not None and index.dtype == torch.bool for index in args[1]
        )
        by_indices = func.name().startswith("aten::index") and not masked
        if not by_indices and any(tag in func.tags for tag in _WAITING):
            raise AssertionError(f"{func.name()} waits for the device; use torch.where, gather or masked_fill")
        return func(*args, **(kwargs or {}))


class TensorEnvContract(EnvContract):
    """Base of the tests of an env of tensors.

    Attributes:
        asks_the_host: whether a step waits for the device, which a simulator may do by itself.
    """

    asks_the_host: ClassVar[bool] = False

    def tensor_env(self, **changes: Any) -> TensorEnv:
        """Build the env."""
        env = self.make(self.bench(), **changes)
        assert isinstance(env, TensorEnv), f"{type(env).__name__} is no TensorEnv"
        return env

    def test_tensors_and_arrays_step_alike(self) -> None:
        """Evaluations and videos see the env through its arrays."""
        env, other = self.tensor_env(num_envs=3), self.tensor_env(num_envs=3)
        observation = env.reset_tensors(3)
        np.testing.assert_array_equal(observation.cpu().numpy(), other.reset(3))
        ended = 0
        for action in actions(other, self.steps):
            tensors = env.step_tensors(torch.from_numpy(action).to(env.device))
            step = other.step(action)
            for name in ("observation", "reward", "terminated", "truncated"):
                np.testing.assert_array_equal(getattr(tensors, name).cpu().numpy(), getattr(step, name), name)
            over = (tensors.terminated | tensors.truncated).cpu().numpy()
            assert set(step.final_observation) == set(np.flatnonzero(over).tolist())
            finals, last = tensors.final_observation.cpu().numpy(), step.observation.copy()
            for index, final in step.final_observation.items():
                np.testing.assert_array_equal(finals[index], final)
                last[index] = final
            np.testing.assert_array_equal(finals, last, "final_observation is observation where no episode ended")
            ended += int(over.sum())
        assert ended, f"no episode ended within {self.steps} random steps; set `steps` higher in this test"

    def test_tensors_are_on_the_device(self) -> None:
        """The collector writes them into storage there."""
        env = self.tensor_env()
        tensors = [env.reset_tensors(0), *env.step_tensors(self._action(env))]
        assert {tensor.device.type for tensor in tensors} == {env.device.type}

    def test_a_step_never_asks_the_host(self) -> None:
        """Thousands of envs are fast only as long as nobody waits for them."""
        if self.asks_the_host:
            pytest.skip("the simulator asks by itself")
        env = self.tensor_env(num_envs=4)
        env.reset_tensors(0)
        action = self._action(env)
        env.step_tensors(action)  # what a first step finds out
        with WithoutTheHost():  # type: ignore[no-untyped-call]
            env.step_tensors(action)

    def _action(self, env: TensorEnv) -> torch.Tensor:
        (action,) = actions(env, 1)
        return torch.from_numpy(action).to(env.device)

    def test_state_is_of_tensors_on_the_device(self) -> None:
        """A checkpoint takes them as they are."""
        env = self.tensor_env()
        env.reset_tensors(0)
        state = env.state_dict()
        if not state:
            pytest.skip("it has none")
        for tensor in _tensors(state):
            assert tensor.device.type == env.device.type, f"the state has a tensor on {tensor.device}"


def _tensors(state: Any) -> list[torch.Tensor]:
    if isinstance(state, torch.Tensor):
        return [state]
    values = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else ()
    return [tensor for value in values for tensor in _tensors(value)]
