"""The parts of a worker as bytes: a function that makes envs, their spec, the transforms and the model."""

from __future__ import annotations

import importlib.util
import io
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle
import numpy as np
import torch
from torch import Tensor

from rlcore import ConfigError
from rlcore.collectors import layout_of, remembering
from rlcore.types import Env, EnvSpec, Key, Policy, Transform


@dataclass(frozen=True)
class Bundle:
    """The parts of a worker.

    Attributes:
        make_env: returns a vector env for a purpose, the number of the first env and `num_envs`.
        spec: of the envs of all workers, after the transforms.
        transforms: of observations.
        model: a module with the policy that acts.
        plugin_files: module name to file of plugins that are single files. A worker imports them from there, as it may
            not find them by name.
    """

    make_env: Callable[..., Env]
    spec: EnvSpec
    transforms: list[Transform]
    model: Any
    plugin_files: Mapping[str, str] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Return the bundle as bytes, which hold copies of all parts.

        Raises:
            ConfigError: a part cannot be pickled; the message names it.
        """
        parts = {}
        for name in ("make_env", "spec", "transforms", "model"):
            stream = io.BytesIO()
            try:
                torch.save(getattr(self, name), stream, pickle_module=cloudpickle)
            except Exception as error:
                what = "env" if name == "make_env" else name
                raise ConfigError(
                    f"[collector] workers: the {what} cannot be sent to worker processes: {type(error).__name__}: "
                    f"{error}; use what can be pickled, or the collector 'local'"
                ) from error
            parts[name] = stream.getvalue()
        return pickle.dumps((dict(self.plugin_files), parts))

    @classmethod
    def unpack(cls, packed: bytes) -> Bundle:
        """Return the bundle of bytes from `pack`, with every tensor on the CPU."""
        plugin_files, parts = pickle.loads(packed)
        for name, path in plugin_files.items():
            if name not in sys.modules:
                _import_file(name, path)
        return cls(**{name: _load(content) for name, content in parts.items()}, plugin_files=plugin_files)

    def outputs(self, steps: int, num_envs: int | None = None) -> dict[Key, Tensor]:
        """Return the outputs of the policy in one step by name, `[env, ...]`.

        Args:
            steps: of a batch.
            num_envs: of a batch; default: all.
        """
        # by a step on zeros: nothing else says shapes and dtypes of a policy
        spec = self.spec if num_envs is None else replace(self.spec, num_envs=num_envs)
        policy: Policy = self.model.policy
        acting = remembering(policy, spec, torch.device("cpu")) or policy
        shape, dtype = layout_of(1, spec.num_envs, spec.observation_space)["next_observation"]
        observation = torch.from_numpy(np.zeros(shape, dtype))[0]
        with torch.inference_mode():
            policy.refresh()
            noise = policy.draw(steps, spec.num_envs, torch.Generator())[0]
            action, parameters = acting.act(observation, noise)
            described = acting.describe(parameters[None], action[None])
        return {"noise": noise, "action": action, **{name: value[0] for name, value in described.items()}}


def _load(content: bytes) -> Any:
    # pickled by this program itself and sent over a pipe, so unpickling any object is safe
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)


def _import_file(name: str, path: str) -> None:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
