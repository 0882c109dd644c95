"""Faults against Stable-Baselines3's PPO.

Checkpoints come from `CheckpointCallback`, plus `model.save` after `learn` has returned. A user takes the latest
zip file and calls `PPO.load(path, env=env)`, then `learn(..., reset_num_timesteps=False)`.
"""

from __future__ import annotations

import zipfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gymnasium
import torch
from common import LOGGER_FAILS, Job, describe
from rows import main
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, CheckpointCallback
from stable_baselines3.common.logger import KVWriter, Logger
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn


class Note(BaseCallback):
    """Notes the frames, after each rollout and after each checkpoint."""

    def __init__(self, job: Job) -> None:
        super().__init__()
        self._job = job

    def _on_step(self) -> bool:
        if self.num_timesteps % self._job.batch == 0:
            self._job.note(self.num_timesteps)
        return True


class Raising(KVWriter):
    """Raises from a frame on."""

    def write(self, key_values: dict[str, Any], key_excluded: dict[str, Any], step: int = 0) -> None:
        """Raise."""
        if step >= LOGGER_FAILS:
            raise RuntimeError("the logger has failed")

    def close(self) -> None:
        """Do nothing."""


class StableBaselines3:
    """PPO with `CheckpointCallback`."""

    name = "sb3"
    script = __file__

    def versions(self) -> dict[str, str]:
        """Return the versions."""
        torch.set_num_threads(1)
        return {name: version(name) for name in ("stable-baselines3", "torch", "gymnasium")}

    def train(self, job: Job) -> int:
        """Train and save at the end."""
        folder = Path(job.folder)
        model = self._model(job)
        if job.raising_logger:
            model.set_logger(Logger(folder=None, output_formats=[Raising()]))
        saving = CheckpointCallback(job.save_every, str(folder))
        model.learn(
            job.end - model.num_timesteps,
            callback=CallbackList([saving, Note(job)]),
            log_interval=1,
            reset_num_timesteps=not job.resume,
        )
        model.save(folder / f"final_{model.num_timesteps}_steps.zip")
        return 0

    def _model(self, job: Job) -> PPO:
        envs = DummyVecEnv([lambda: Monitor(gymnasium.make(job.env))])
        if job.resume:
            return PPO.load(self.checkpoints(Path(job.folder))[-1], env=envs, device="cpu")
        hidden = list(job.hidden)
        return PPO(
            "MlpPolicy",
            envs,
            n_steps=job.batch,
            batch_size=job.minibatch,
            n_epochs=job.epochs,
            learning_rate=job.learning_rate,
            policy_kwargs={"net_arch": {"pi": hidden, "vf": hidden}, "activation_fn": nn.Tanh},
            device="cpu",
            seed=job.seed,
            verbose=0,
        )

    def checkpoints(self, folder: Path) -> list[Path]:
        """Return the zip files in the order of writing."""
        return sorted(folder.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)

    def load(self, job: Job) -> dict[str, Any]:
        """Load the latest zip file."""
        model = PPO.load(self.checkpoints(Path(job.folder))[-1], device="cpu")
        return describe(model.num_timesteps, model.policy.state_dict(), [model.get_parameters(), model.num_timesteps])

    def unfinished(self, folder: Path) -> bool:
        """Return whether the latest file is not whole; the last member is written last."""
        newest = self.checkpoints(folder)[-1]
        return not zipfile.is_zipfile(newest) or "system_info.txt" not in zipfile.ZipFile(newest).namelist()


if __name__ == "__main__":
    main([StableBaselines3()])
