"""Building components in a script, by the names that a config would use, each seeing those built before it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rlcore.config.common_keys import with_discount_of
from rlcore.config.core import DEFAULT_USE
from rlcore.config.sections import find_component
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Provided
from rlcore.run.assembly import Assembly, hooks_of, to_device
from rlcore.scripts.env import ScriptEnv
from rlcore.scripts.trainer import Trainer
from rlcore.state.generators import seed_all
from rlcore.types import RunInfo
from rlcore.types.context import Context
from rlcore.types.progress import Progress

if TYPE_CHECKING:
    from pydantic import BaseModel


class Factory:
    """Builds the parts of one run in the order of a script: env, transforms, model, loss, collector and so on.

    Every method takes what `use` is in a config, and the keys of that section as keyword arguments. Each generator is
    derived from the seed, so that a script repeats.

    Args:
        total_frames: environment frames to train for, and the horizon of every schedule.
        seed: of the run.
        device: of the model and the batches, for example `"cuda"`.
        name: of the run.
        folder: where parts that write files do so; it is made.
        threads: CPU threads of torch; one is fastest for small networks.

    Example:
        make = Factory(total_frames=50_000, seed=1)
        env = make.env("gymnasium", id="CartPole-v1")
        model = make.model("mlp")
    """

    def __init__(
        self,
        total_frames: int,
        seed: int = 1,
        device: str | torch.device = "cpu",
        name: str = "run",
        folder: str | Path | None = None,
        threads: int = 1,
    ) -> None:
        torch.set_num_threads(threads)
        seed_all(seed)
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        self._host = PluginHost()
        self._loss_keys: BaseModel | None = None
        self._assembly = Assembly(
            Context(
                run=RunInfo(name, seed, total_frames, None if folder is None else Path(folder)),
                device=torch.device(device),
                progress=Progress(total_frames),
            )
        )

    @property
    def context(self) -> Context:
        """What the parts see of each other."""
        return self._assembly.context

    def env(self, use: str, **keys: Any) -> ScriptEnv:
        """Build the training envs, and return what a script may do with envs of the same keys.

        `evaluator` and `transform` make further ones. What is returned follows every transform that is built later.
        """
        provided, config = self._find("env", use, keys)
        self._assembly.env(provided, config, provided.component.name)
        return ScriptEnv(self.context)

    def transform(self, use: str, *, leaf: str | None = None, **keys: Any) -> Any:
        """Build a transform behind those there are, and fit it on an env of its own.

        `leaf` names that of the observations which it changes, where they are dicts.
        """
        provided, config = self._find("transform", use, keys)
        return self._assembly.transform(provided, config, self._free_name("transform", provided), leaf)

    def model(self, use: str, **keys: Any) -> Any:
        """Build the model for the spaces of the env, as the transforms leave them."""
        return self._one("model", use, keys)

    def estimator(self, use: str, **keys: Any) -> Any:
        """Build the estimator of advantages; the trainer calls it."""
        self._check_model_parts("estimator", use, keys)
        return self._one("estimator", use, keys)

    def loss(self, use: str, **keys: Any) -> Any:
        """Build the loss over the model."""
        self._check_model_parts("loss", use, keys)
        provided, config = self._find("loss", use, keys)
        self._loss_keys = config
        built = self._assembly.build(provided, config, provided.component.name)
        self.context.built["loss"] = loss = to_device(built, self.context.device)  # its weights are the model's
        return loss

    def optimizer(self, use: str, **keys: Any) -> torch.optim.Optimizer:
        """Build an optimizer over the model; the trainer registers it."""
        provided, config = self._find("optimizer", use, keys)
        return self._assembly.build(provided, config, provided.component.name)  # type: ignore[no-any-return]

    def scheduler(self, use: str, **keys: Any) -> Any:
        """Build a schedule, for an `LRSchedulerHook`."""
        provided, config = self._find("scheduler", use, keys)
        return self._assembly.build(provided, config, provided.component.name)

    def collector(self, use: str = DEFAULT_USE["collector"], **keys: Any) -> Any:
        """Build the collector over env, transforms and model."""
        return self._one("collector", use, keys)

    def buffer(self, use: str = DEFAULT_USE["buffer"], **keys: Any) -> Any:
        """Build the buffer that makes minibatches of batches.

        One that joins rewards takes the `gamma` of the loss that was built before, unless it is given.
        """
        return self._one("buffer", use, keys)

    def evaluator(self, use: str = "episodes", **keys: Any) -> Any:
        """Build the evaluator."""
        return self._one("evaluator", use, keys)

    def hook(self, use: str, **keys: Any) -> Any:
        """Build a hook, for the argument `hooks` of the trainer."""
        provided, config = self._find("hook", use, keys)
        return self._assembly.build(provided, config, self._free_name("hook", provided))

    def logger(self, use: str, **keys: Any) -> Any:
        """Build a logger, for the argument `logger` of the trainer."""
        provided, config = self._find("logger", use, keys)
        return self._assembly.build(provided, config, self._free_name("logger", provided))

    def trainer(self, **arguments: Any) -> Trainer:
        """Return a trainer of the parts that were built; the arguments are those of `Trainer`.

        Collector, loss, buffer and evaluator are those that were built last, unless an argument says otherwise;
        `total_frames` and `frame_skip` are the run's. Hooks of loss and buffer come after those of the arguments.
        """
        parts = self.context.built
        defaults = {
            "collector": parts.get("collector"),
            "loss_module": parts.get("loss"),
            "replay_buffer": parts.get("buffer"),
            "evaluator": parts.get("evaluator"),
            "total_frames": self.context.run.total_frames,
            "frame_skip": parts["env_spec"].frame_skip if "env_spec" in parts else 1,
        }
        given = {**defaults, **arguments}
        if brought := [*hooks_of(given["loss_module"]), *hooks_of(given["replay_buffer"])]:
            given["hooks"] = [*given.get("hooks", ()), *brought]
        return Trainer(**given, assembly=self._assembly)

    def _one(self, kind: str, use: str, keys: dict[str, Any]) -> Any:
        provided, config = self._find(kind, use, keys)
        if kind == "buffer":
            config = with_discount_of(config, self._loss_keys)
        self.context.built[kind] = built = self._assembly.part(provided, config, provided.component.name, single=True)
        return built

    def _find(self, kind: str, use: str, keys: dict[str, Any]) -> tuple[Provided, BaseModel]:
        return find_component(self._host, kind, use, keys)

    def _check_model_parts(self, kind: str, use: str, keys: dict[str, Any]) -> None:
        provided, _ = self._find(kind, use, keys)
        self._assembly.check_model_parts(provided.target(), provided, "the model")

    def _free_name(self, kind: str, provided: Provided) -> str:
        name = provided.component.name
        number, free = 1, name
        while f"{kind}.{free}" in self._assembly.stateful:
            number += 1
            free = f"{name}-{number}"
        return free
