"""What a component may ask for while it is built: the run, the device, a generator, and the parts built before it.

Nothing here builds anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from rlcore.errors import NotBuiltError
from rlcore.types.data import Buffer, Collector, Evaluator
from rlcore.types.envs import Env, Transform
from rlcore.types.group import Alone, Group
from rlcore.types.heart import Heart
from rlcore.types.learning import Estimator, Learner
from rlcore.types.loss import Loss
from rlcore.types.models import Model
from rlcore.types.progress import Progress
from rlcore.types.records import EnvSpec, RunInfo

# the kinds whose parts draw other numbers on each of several ranks; what is the same on all begins alike, and a
# collector draws for the envs of all, so that an env has the same noise wherever it runs
_OF_A_RANK: Final = ("buffer", "hook")

if TYPE_CHECKING:
    import numpy as np
    import torch

    from rlcore.types.trainer import TrainerHooks


@dataclass(frozen=True)
class Context:
    """Handed to the constructor of every component, as its second argument; may be kept.

    A run is built in the process that trains, in this order: env, transform, model, loss, estimator, optimizer,
    scheduler, collector, buffer, hook, learner, evaluator, logger. A component finds those before it.

    Attributes:
        run: name, seed, folder and horizon.
        device: where the model and the batches are.
        progress: the clocks, live: the trainer's own object, to be read only.
        kind: kind of the component being built.
        name: name of the component instance being built, unique within the run.
        parts: what was built before, by kind (`env`, `model`, …): the name of `built` in the constructor.
        heart: to count on whatever takes long without a step of the loop: `context.heart.beats += 1`.
        group: the processes that train together.
        plugin_files: module name and path of the run's plugins that are one file; processes that the run starts import
            them too.

    Called in `rlcore/plugins/registry.py`:

        return target(config, context)
    """

    run: RunInfo
    device: torch.device
    progress: Progress
    kind: str = ""
    name: str = ""
    parts: dict[str, Any] = field(default_factory=dict)
    heart: Heart = field(default_factory=Heart)
    group: Group = field(default_factory=Alone)
    plugin_files: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def alone(cls, name: str, seed: int = 0, total_frames: int = 1, device: str | torch.device = "cpu") -> Context:
        """Return a context for building outside of a run, as tests do.

        Args:
            name: stands where the run's name would.
            seed: that of the run; every generator follows from it.
            total_frames: the horizon.
            device: where the model and the batches are.
        """
        import torch

        return cls(RunInfo(name, seed, total_frames), torch.device(device), Progress(total_frames))

    def for_component(self, kind: str, name: str) -> Context:
        """Return the same context seen from another component."""
        return replace(self, kind=kind, name=name)

    def seed(self, purpose: str = "") -> int:
        """Return a 63-bit seed derived from (run seed, kind, name, purpose); the same whenever it is asked for.

        Of several ranks each has other seeds for its buffer and its hooks, and the same for everything else.

        Args:
            purpose: tells several seeds of one component apart.
        """
        text = f"{self.run.seed}/{self.kind}/{self.name}/{purpose}"
        if self.group.rank and self.kind in _OF_A_RANK:
            text += f"/rank {self.group.rank}"
        return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1

    def generator(self, purpose: str = "") -> torch.Generator:
        """Return a generator of this component's own, on the run's device, with `seed(purpose)`.

        Each call returns a new one that begins at the same place: call it once, and save its state.
        """
        import torch

        return torch.Generator(self.device).manual_seed(self.seed(purpose))

    def numpy_generator(self, purpose: str = "") -> np.random.Generator:
        """Return a NumPy generator of this component's own, as `generator` does."""
        import numpy as np

        return np.random.default_rng(self.seed(purpose))

    @property
    def built(self) -> dict[str, Any]:
        """What was built before, by kind (`env`, `model`, …); each has a property of its name besides."""
        return self.parts

    def part(self, kind: str) -> Any:
        """Return what was built before under `kind`.

        Raises:
            NotBuiltError: nothing of that kind exists (yet); names who asked and what there is.
        """
        try:
            return self.built[kind]
        except KeyError:
            built = ", ".join(self.built) or "nothing"
            raise NotBuiltError(
                f"{self.kind} {self.name!r} asks for the {kind}, which is not built; there is: {built}. "
                f"Add a section [{kind}] to the config, or leave {self.name!r} out."
            ) from None

    @property
    def env(self) -> Env:
        """The training envs."""
        return cast(Env, self.part("env"))

    @property
    def first_env(self) -> int:
        """Number of the first of these envs among all of the run, where several processes have some of them each."""
        return cast(int, self.built.get("first_env", 0))

    @property
    def make_env(self) -> Callable[..., Env]:
        """Makes envs for evaluation, of the config of the training envs: called with `num_envs` and other keys."""
        return cast("Callable[..., Env]", self.part("make_env"))

    @property
    def make_env_for(self) -> Callable[..., Env]:
        """Makes envs for a purpose, from which their seeds follow: called with it, the first number, and keys."""
        return cast("Callable[..., Env]", self.part("make_env_for"))

    @property
    def make_fitting_env(self) -> Callable[[Transform, str], Env]:
        """Makes one env as the transforms before a given one leave it, to fit that one: called with it and a name."""
        return cast("Callable[[Transform, str], Env]", self.part("make_fitting_env"))

    @property
    def env_spec(self) -> EnvSpec:
        """Spaces and counts, as the policy sees them: after the transforms."""
        return cast(EnvSpec, self.part("env_spec"))

    @property
    def transforms(self) -> list[Transform]:
        """The transforms, in the order of the config."""
        return cast("list[Transform]", self.part("transforms"))

    @property
    def model(self) -> Model:
        """The model."""
        return cast(Model, self.part("model"))

    @property
    def loss(self) -> Loss:
        """The loss."""
        return cast(Loss, self.part("loss"))

    @property
    def estimator(self) -> Estimator | None:
        """The estimator, if the config names one."""
        return cast("Estimator | None", self.built.get("estimator"))

    @property
    def optimizers(self) -> dict[str, torch.optim.Optimizer]:
        """The optimizers by name."""
        return cast("dict[str, torch.optim.Optimizer]", self.part("optimizers"))

    @property
    def schedulers(self) -> list[Any]:
        """The schedules of learning rates, in the order of the config."""
        return cast("list[Any]", self.built.get("schedulers", []))

    @property
    def collector(self) -> Collector:
        """The collector."""
        return cast(Collector, self.part("collector"))

    @property
    def buffer(self) -> Buffer:
        """The buffer."""
        return cast(Buffer, self.part("buffer"))

    @property
    def hooks(self) -> TrainerHooks:
        """The resolved loop points."""
        return cast("TrainerHooks", self.part("hooks"))

    @property
    def learner(self) -> Learner:
        """The learner."""
        return cast(Learner, self.part("learner"))

    @property
    def evaluator(self) -> Evaluator | None:
        """The evaluator, if there is one and it is built."""
        return cast("Evaluator | None", self.built.get("evaluator"))
