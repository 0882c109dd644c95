"""Building components in a script, by the names that a config would use, each seeing those built before it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rlcore.config.common_keys import with_discount_of
from rlcore.config.core import DEFAULT_USE
from rlcore.config.reading import Section
from rlcore.plugins.host import PluginHost
from rlcore.run.assembly import Assembly, hooks_of, section_of
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
        self._assembly.env(self._section("env", use, keys))
        return ScriptEnv(self.context)

    def transform(self, use: str, *, leaf: str | None = None, **keys: Any) -> Any:
        """Build a transform behind those there are, and fit it on an env of its own.

        `leaf` names that of the observations which it changes, where they are dicts.
        """
        return self._assembly.transform(self._section("transform", use, keys, leaf))

    def model(self, use: str, **keys: Any) -> Any:
        """Build the model for the spaces of the env, as the transforms leave them."""
        return self._single_part("model", use, keys)

    def estimator(self, use: str, **keys: Any) -> Any:
        """Build the estimator of advantages; the trainer calls it."""
        return self._single_part("estimator", use, keys)

    def loss(self, use: str, **keys: Any) -> Any:
        """Build the loss over the model."""
        return self._single_part("loss", use, keys)

    def optimizer(self, use: str, **keys: Any) -> torch.optim.Optimizer:
        """Build an optimizer over the model; the trainer registers it."""
        return self._assembly.build(self._section("optimizer", use, keys))  # type: ignore[no-any-return]

    def scheduler(self, use: str, **keys: Any) -> Any:
        """Build a schedule, for an `LRSchedulerHook`."""
        return self._assembly.build(self._section("scheduler", use, keys))

    def collector(self, use: str = DEFAULT_USE["collector"], **keys: Any) -> Any:
        """Build the collector over env, transforms and model."""
        return self._single_part("collector", use, keys)

    def buffer(self, use: str = DEFAULT_USE["buffer"], **keys: Any) -> Any:
        """Build the buffer that makes minibatches of batches.

        One that joins rewards takes the `gamma` of the loss that was built before, unless it is given.
        """
        return self._single_part("buffer", use, keys)

    def evaluator(self, use: str = "episodes", **keys: Any) -> Any:
        """Build the evaluator."""
        return self._single_part("evaluator", use, keys)

    def hook(self, use: str, **keys: Any) -> Any:
        """Build a hook, for the argument `hooks` of the trainer."""
        return self._assembly.build(self._section("hook", use, keys))

    def logger(self, use: str, **keys: Any) -> Any:
        """Build a logger, for the argument `logger` of the trainer."""
        return self._assembly.build(self._section("logger", use, keys))

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
        keywords = {**defaults, **arguments}
        if brought := [*hooks_of(keywords["loss_module"]), *hooks_of(keywords["replay_buffer"])]:
            keywords["hooks"] = [*keywords.get("hooks", ()), *brought]
        return Trainer(**keywords, assembly=self._assembly)

    def _single_part(self, kind: str, use: str, keys: dict[str, Any]) -> Any:
        section = self._section(kind, use, keys)
        if kind == "loss":
            self._loss_keys = section.config
        if kind == "buffer":
            section = replace(section, config=with_discount_of(section.config, self._loss_keys))
        self.context.built[kind] = built = self._assembly.part(section, single=True)
        return built

    def _section(self, kind: str, use: str, keys: dict[str, Any], leaf: str | None = None) -> Section:
        """Return what a config would say, under a name that no part of the kind has."""
        section = section_of(self._host, kind, use, keys, leaf=leaf)
        number, free = 1, section.name
        while f"{kind}.{free}" in self._assembly.stateful:
            number += 1
            free = f"{section.name}-{number}"
        return replace(section, name=free)
