"""Faults against rlcore, run by its command line: `rlcore train CONFIG`, `rlcore train --resume RUN`.

Checkpoints are the defaults but for the interval: the latest two are kept, a damaged one is skipped aloud. Loading is
`rlcore.build(config, resume=True)` from the run's own config, which is what `--resume` does.
"""

from __future__ import annotations

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w
import torch
from common import Job, describe
from rows import main

import rlcore
from rlcore.cli import command_line as cli

PARTS = Path(__file__).resolve().with_name("rlcore_parts.py")


class Rlcore:
    """The command line."""

    name = "rlcore"
    script = __file__

    def versions(self) -> dict[str, str]:
        """Return the versions."""
        torch.set_num_threads(1)
        names = ("rlcore", "rlcore-plugin-torch", "torch", "gymnasium")
        return {name: version(name) for name in names}

    def train(self, job: Job) -> int:
        """Run the command line in this process."""
        os.environ["PROGRESS"] = job.progress
        if job.resume:
            return cli.main(["train", "--resume", job.folder, "--quiet"])
        config = Path(f"{job.folder}.toml")
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(tomli_w.dumps(self._config(job)))
        until = ["--until", str(job.until)] if job.until else []
        return cli.main(["train", str(config), "--quiet", *until])

    def _config(self, job: Job) -> dict[str, Any]:
        folder = Path(job.folder)
        return {
            "run": {
                "name": folder.name,
                "folder": str(folder.parent),
                "seed": job.seed,
                "total_frames": job.frames,
                "device": "cpu",
                "hang_after": job.hang_after,
            },
            "plugins": {"files": [str(PARTS)]},
            "env": {"use": "gymnasium", "id": job.env},
            "model": {"use": "mlp", "hidden": list(job.hidden)},
            "loss": {"use": "ppo"},
            "estimator": {"use": "gae"},
            "optimizer": [{"use": "adam", "lr": job.learning_rate}],
            "collector": {"frames_per_batch": job.batch},
            "buffer": {"epochs": job.epochs, "minibatch_size": job.minibatch},
            "metrics": {"every": job.batch},
            "checkpoint": {"every": job.save_every},
            "logger": [{"use": "raising" if job.raising_logger else "csv"}],
            "hook": [{"use": "note"}],
        }

    def checkpoints(self, folder: Path) -> list[Path]:
        """Return the committed checkpoints."""
        return sorted(path for path in (folder / "checkpoints").glob("[0-9]*") if path.is_dir())

    def load(self, job: Job) -> dict[str, Any]:
        """Resume the run of the folder, without training."""
        folder = Path(job.folder)
        os.environ.setdefault("PROGRESS", os.devnull)
        config = rlcore.load_config(
            folder / "config.toml", [f"run.folder='{folder.parent}'", f"run.name='{folder.name}'"]
        )
        trainer = rlcore.build(config, resume=True).trainer
        state = trainer.state_dict()
        return describe(trainer.progress.frames, state["model"], state)

    def unfinished(self, folder: Path) -> bool:
        """Return whether the folder of an unfinished save is there."""
        return any((folder / "checkpoints").glob(".partial-*"))


if __name__ == "__main__":
    main([Rlcore()])
