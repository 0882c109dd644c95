"""Faults against TorchRL's `PPOTrainer`, saved in three documented ways.

* `torchrl`: `save_trainer_file`, `CKPT_BACKEND=torch`, one file that each save replaces.
* `torchrl-archive`: `Checkpoint(format="archive")` with `CheckpointRotation(keep_last=2)` and `GlobalRNGState`.
* `torchrl-directory`: the same with the default format.

All are loaded with `trainer.load_from_file`.
"""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["CKPT_BACKEND"] = "torch"  # read when torchrl is imported

import torch
from common import LOGGER_FAILS, Job, describe
from rows import main
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.checkpoint import Checkpoint, CheckpointRotation, GlobalRNGState
from torchrl.collectors import Collector
from torchrl.data.replay_buffers import ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.data.replay_buffers.storages import LazyTensorStorage
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from torchrl.record.loggers import Logger
from torchrl.trainers.algorithms import PPOTrainer


class Raising(Logger):
    """Raises from a frame on."""

    def __init__(self) -> None:
        super().__init__("raising", "")

    def _create_experiment(self) -> None:
        return None

    def log_scalar(self, name: str, value: float, step: int | None = None) -> None:
        """Raise."""
        if (step or 0) >= LOGGER_FAILS:
            raise RuntimeError("the logger has failed")

    def log_video(self, name: str, video: Any, step: int | None = None, **kwargs: Any) -> None:
        """Do nothing; no video comes."""

    def log_histogram(self, name: str, data: Any, **kwargs: Any) -> None:
        """Do nothing; no histogram comes."""

    def log_hparams(self, cfg: Any) -> None:
        """Do nothing."""

    def __repr__(self) -> str:
        return "Raising()"


def mlp(inputs: int, outputs: int, hidden: tuple[int, ...]) -> nn.Sequential:
    """Make a network with tanh."""
    layers: list[nn.Module] = []
    for width in hidden:
        layers += [nn.Linear(inputs, width), nn.Tanh()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, outputs))


class TorchRL:
    """`PPOTrainer`.

    Args:
        name: see the module.
        form: format of `Checkpoint`, or None for `save_trainer_file`.
    """

    script = __file__

    def __init__(self, name: str, form: str | None) -> None:
        self.name = name
        self._form = form

    def versions(self) -> dict[str, str]:
        """Return the versions."""
        torch.set_num_threads(1)
        warnings.simplefilter("ignore")
        return {name: version(name) for name in ("torchrl", "tensordict", "torch", "gymnasium")}

    def train(self, job: Job) -> int:
        """Train; the trainer saves at the end by itself."""
        Path(job.folder).mkdir(parents=True, exist_ok=True)
        trainer = self._trainer(job)
        if job.resume:
            trainer.load_from_file(self.checkpoints(Path(job.folder))[-1])
        trainer.register_op("post_steps", lambda: job.note(trainer.collected_frames))
        trainer.train()
        return 0

    def _trainer(self, job: Job) -> PPOTrainer:
        torch.manual_seed(job.seed)
        env = GymEnv(job.env, categorical_action_encoding=True)
        env.set_seed(job.seed)  # the collector resets it before the trainer gives its seed on
        inputs = env.observation_spec["observation"].shape[-1]
        actor = ProbabilisticActor(
            TensorDictModule(mlp(inputs, 2, job.hidden), in_keys=["observation"], out_keys=["logits"]),
            spec=env.action_spec,
            in_keys=["logits"],
            distribution_class=torch.distributions.Categorical,
            return_log_prob=True,
        )
        critic = ValueOperator(mlp(inputs, 1, job.hidden), in_keys=["observation"])
        loss = ClipPPOLoss(actor_network=actor, critic_network=critic, normalize_advantage=True)
        collector = Collector(env, actor, frames_per_batch=job.batch, total_frames=job.end, device="cpu")
        buffer = ReplayBuffer(
            storage=LazyTensorStorage(max_size=job.batch),
            sampler=SamplerWithoutReplacement(),
            batch_size=job.minibatch,
        )
        return PPOTrainer(
            collector=collector,
            total_frames=job.end,
            frame_skip=1,
            optim_steps_per_batch=None,
            num_epochs=job.epochs,
            loss_module=loss,
            optimizer=torch.optim.Adam(loss.parameters(), job.learning_rate),
            clip_grad_norm=True,
            clip_norm=0.5,
            replay_buffer=buffer,
            gae=GAE(gamma=0.99, lmbda=0.95, value_network=critic),
            logger=Raising() if job.raising_logger else None,
            log_interval=job.batch - 1,
            progress_bar=False,
            seed=job.seed,
            save_trainer_interval=job.save_every - 1,  # saves when more than this many frames have come
            **self._saving(job),
        )

    def _saving(self, job: Job) -> dict[str, Any]:
        if self._form is None:
            return {"save_trainer_file": str(Path(job.folder) / "trainer.pt")}
        return {
            "checkpoint": Checkpoint(format=self._form, rng=GlobalRNGState()),
            "checkpoint_rotation": CheckpointRotation(job.folder, keep_last=2),
        }

    def checkpoints(self, folder: Path) -> list[Path]:
        """Return the one file, or what the rotation recognises."""
        if self._form is None:
            return list(folder.glob("trainer.pt"))
        return list(CheckpointRotation(folder, keep_last=2).checkpoints())

    def load(self, job: Job) -> dict[str, Any]:
        """Load the latest checkpoint into a new trainer, which begins with other weights."""
        paths = self.checkpoints(Path(job.folder))
        if not paths:
            raise FileNotFoundError("there is no checkpoint")
        trainer = self._trainer(replace(job, seed=job.seed + 1000))
        trainer.load_from_file(paths[-1])
        everything: dict[str, Any] = trainer.state_dict()
        if trainer.checkpoint is not None:
            for name, component in trainer.checkpoint.components.items():
                everything[f"component {name}"] = component.state_dict()
        return describe(trainer.collected_frames, trainer.loss_module.state_dict(), everything)

    def unfinished(self, folder: Path) -> bool:
        """Return whether the temporary file or folder of a save is there."""
        names = [path.name for path in folder.iterdir()]
        return any(name.endswith(".tmp") or ".stage-" in name or ".archive-" in name for name in names)


if __name__ == "__main__":
    main([TorchRL("torchrl", None), TorchRL("torchrl-archive", "archive"), TorchRL("torchrl-directory", "directory")])
