"""Metrics as TensorBoard event files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter

from rlcore.context import Context
from rlcore.errors import ConfigError


class TensorBoardLogger:
    """Writes event files into `tensorboard/` of the run folder; look with `tensorboard --logdir runs`."""

    class Config(BaseModel, extra="forbid"):
        """Nothing to configure."""

    def __init__(self, config: Config, context: Context) -> None:
        if context.run.folder is None:
            raise ConfigError("the tensorboard logger needs a run folder")
        self._folder = context.run.folder / "tensorboard"
        self._writer: Any = None
        self._last_step = 0

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Write one event with a scalar per metric; an event for each costs several times as much."""
        row = Summary(value=[Summary.Value(tag=key, simple_value=value) for key, value in metrics.items()])
        self._open().file_writer.add_summary(row, step)
        self._last_step = step

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write the config as text."""
        self._open().add_text("config", "```\n" + json.dumps(config, indent=1, default=str) + "\n```", self._last_step)

    def flush(self) -> None:
        """Wait until the events are in the file."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def state_dict(self) -> dict[str, Any]:
        """Return the last step that was written, and the lengths of the event files in bytes."""
        self.flush()
        return {"last_step": self._last_step, "files": {file.name: file.stat().st_size for file in self._files()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the files back, and begin one that makes a running TensorBoard drop the events after the last step."""
        self.close()
        for file in self._files():
            if file.name in state["files"]:
                os.truncate(file, state["files"][file.name])
            else:
                file.unlink()
        self._last_step = state["last_step"]
        self._writer = SummaryWriter(str(self._folder), purge_step=self._last_step + 1)

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob("events.out.tfevents.*"))

    def _open(self) -> Any:
        if self._writer is None:
            self._writer = SummaryWriter(str(self._folder))
        return self._writer
