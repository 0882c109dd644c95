"""What all algorithms of rlpyt have: settings, and the methods that a runner calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from rlcore.errors import ConfigError
from rlcore_plugin_runners.originals import CarriesRlpyt
from rlcore_plugin_runners.samples import BatchSpec

Sections = dict[str, Any]


@dataclass(kw_only=True)
class Algorithm(CarriesRlpyt):
    """What all of them have.

    Attributes:
        family: of agents that it trains.
        agent, n_itr, batch_spec, mid_batch_reset, rank: as `initialize` was told.
        trainer: rlcore's, once a runner has built it.
        take_steps: takes the optimisation steps of an iteration; the runner sets it.
    """

    discount: float = 0.99
    learning_rate: float = 1e-3
    OptimCls: type[torch.optim.Optimizer] = torch.optim.Adam
    optim_kwargs: dict[str, Any] | None = None
    clip_grad_norm: float = 1.0
    initial_optim_state_dict: dict[str, Any] | None = None

    family: ClassVar[str] = ""
    # arguments that have no effect here, with the only value for which that is the same
    fixed: ClassVar[Mapping[str, Any]] = {}

    def __post_init__(self) -> None:
        for name, value in self.fixed.items():
            if getattr(self, name) != value:
                raise ConfigError(f"{name} = {getattr(self, name)!r}: it has no counterpart here; leave it out")
        self.trainer: Any = None
        self.take_steps: Callable[[], Any] = self._not_begun

    def sections(self, itr_steps: int) -> Sections:
        """Return the sections of the config.

        Args:
            itr_steps: env steps of one iteration, over all envs.
        """
        raise NotImplementedError

    def initialize(
        self,
        agent: Any,
        n_itr: int,
        batch_spec: BatchSpec,
        mid_batch_reset: bool = True,
        examples: Any = None,
        world_size: int = 1,
        rank: int = 0,
    ) -> None:
        """Take in what is trained; called once the run is built.

        Args:
            agent: of the run.
            n_itr: iterations of the run.
            batch_spec: size of a batch.
            mid_batch_reset: True.
            examples: None.
            world_size: processes that train together.
            rank: of this process.
        """
        self.agent, self.n_itr, self.batch_spec, self.mid_batch_reset = agent, n_itr, batch_spec, mid_batch_reset
        self.optim_initialize(rank)

    def optim_initialize(self, rank: int = 0) -> None:
        """Take in the state of the optimizers that the script gave."""
        self.rank = rank
        if self.initial_optim_state_dict is not None:
            self.load_optim_state_dict(self.initial_optim_state_dict)

    def optimize_agent(self, itr: int, samples: Any = None, sampler_itr: int | None = None) -> Any:
        """Take the optimisation steps of an iteration; none before the replay buffer is warm.

        Args:
            itr: iteration, from 0.
            samples: the batch, a `Samples`; the buffer has it already.
            sampler_itr: None.

        Returns:
            An `OptInfo`: what each step returned.
        """
        return self.take_steps()

    def _not_begun(self) -> Any:
        raise ConfigError(f"{type(self).__name__}: a runner calls it in training; startup() and train() begin it")

    @property
    def update_counter(self) -> int:
        """Optimisation steps so far."""
        return 0 if self.trainer is None else int(self.trainer.progress.updates)

    def optim_state_dict(self) -> dict[str, Any]:
        """Return the states of the optimizers by name, as snapshots have them."""
        return {name: part.state_dict() for name, part in optimizers_of(self.trainer).items()}

    def load_optim_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Set them."""
        optimizers = optimizers_of(self.trainer)
        if set(state_dict) != set(optimizers):
            raise ConfigError(
                f"initial_optim_state_dict is of {', '.join(state_dict)}, and this run has {', '.join(optimizers)}; "
                "take the optimizer_state_dict of a snapshot of the same algorithm"
            )
        for name, part in optimizers.items():
            part.load_state_dict(state_dict[name])

    def samples_per_update(self, itr_steps: int) -> int:
        """Return how many samples an optimisation step takes."""
        raise NotImplementedError

    def schedulers(self, steps: int) -> list[Sections]:
        """Return the sections of what changes with time.

        Args:
            steps: env steps of the run.
        """
        return []

    def _optimizer(self, lr: float | None = None, **more: Any) -> Sections:
        use = self.OptimCls.__name__.lower()
        return {"use": use, "lr": lr or self.learning_rate, **(self.optim_kwargs or {}), **more}


def optimizers_of(trainer: Any) -> dict[str, Any]:
    """Return the optimizers of a run by name."""
    parts = trainer.parts.stateful.items()
    return {name: part for name, part in parts if name.startswith("optimizer.")}
