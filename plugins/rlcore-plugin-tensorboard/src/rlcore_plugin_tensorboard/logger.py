"""Metrics and media as TensorBoard event files."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from tensorboard.compat.proto.summary_pb2 import Summary
from torch.utils.tensorboard import SummaryWriter

from rlcore.errors import ConfigError
from rlcore.files import cut_back, inside
from rlcore.loggers import Logger, media
from rlcore.loggers import values as log_values
from rlcore.types import Context

log = logging.getLogger(__name__)

_LARGEST = 3.4028234663852886e38


class Config(BaseModel, extra="forbid"):
    """Nothing to configure."""


class TensorboardLogger(Logger):
    """Writes event files into the folder `log_dir/exp_name`; look with `tensorboard --logdir LOG_DIR`.

    Args:
        exp_name: name of the experiment, and of its folder.
        log_dir: the folder around it.
    """

    def __init__(self, exp_name: str, log_dir: str | Path = "tb_logs") -> None:
        super().__init__(exp_name, str(log_dir))
        self._folder = Path(log_dir) / exp_name
        self._writer: Any = None
        self._last_step = 0

    @property
    def experiment(self) -> Any:
        """The `SummaryWriter`; the event file is made when it is first used."""
        if self._writer is None:
            self._writer = SummaryWriter(str(self._folder))
        return self._writer

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None, keys_sep: str = "/") -> dict[str, float]:
        """Write one event with a scalar per metric; an event for each costs several times as much."""
        row = log_values.row(metrics, keys_sep)
        self._add([Summary.Value(tag=key, simple_value=_single(value)) for key, value in row.items()], "", step)
        return row

    def log_histogram(self, name: str, data: Any, step: int | None = None, bins: log_values.Bins = None) -> None:
        """Write a histogram of the finite values."""
        histogram = log_values.histogram(data, bins)
        self._last_step = step = self.step_of(name, step)
        self.experiment.add_histogram_raw(
            name,
            min=float(histogram.edges[0]),
            max=float(histogram.edges[-1]),
            num=int(histogram.counts.sum()),
            sum=histogram.total,
            sum_squares=histogram.squares,
            bucket_limits=histogram.edges[1:].tolist(),
            bucket_counts=histogram.counts.tolist(),
            global_step=step,
        )

    def log_image(self, name: str, image: Any, step: int | None = None) -> None:
        """Write an image."""
        _, height, width = log_values.image(image).shape
        self._add_picture(name, step, media.png(image), height, width)

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int = 30) -> None:
        """Write the videos as an image that moves."""
        _, height, width, _ = media.side_by_side(video).shape
        self._add_picture(name, step, media.gif(video, fps), height, width)

    def log_text(self, name: str, text: str, step: int | None = None) -> None:
        """Write a text, which TensorBoard shows as Markdown."""
        self._last_step = step = self.step_of(name, step)
        self.experiment.add_text(name, text, step)

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write the config as text."""
        text = "```\n" + json.dumps(config, indent=1, default=str) + "\n```"
        self.experiment.add_text("config", text, self._last_step)

    def flush(self) -> None:
        """Wait until the events are in the file."""
        if self._writer is not None:
            with self._writing():
                self._writer.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def state_dict(self) -> dict[str, Any]:
        """Return the last step that was written, and the lengths of the event files in bytes."""
        self.flush()
        return {"last_step": self._last_step, "files": {file.name: file.stat().st_size for file in self.files()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the files back, and begin one that makes a running TensorBoard drop the events after the last step."""
        self.close()
        lengths = state["files"]
        for file in self.files():
            if file.name not in lengths:
                file.unlink()
        for name, length in lengths.items():
            if difference := cut_back(inside(self._folder, name), length):
                self._differs(difference)
        self._last_step = state["last_step"]
        self._writer = SummaryWriter(str(self._folder), purge_step=self._last_step + 1)

    def begin_anew(self) -> None:
        """Begin with no events; files that are there go into a folder of their own, which TensorBoard shows apart."""
        self.close()
        if files := self.files():
            aside = self._folder / f"before-{secrets.token_hex(3)}"
            aside.mkdir()
            for file in files:
                file.rename(aside / file.name)
            log.warning("the run starts over; its events of before are now in %s", aside)

    def files(self) -> list[Path]:
        """Return the event files."""
        return sorted(file for file in self._folder.glob("events.out.tfevents.*") if not file.is_symlink())

    def _add_picture(self, name: str, step: int | None, content: bytes, height: int, width: int) -> None:
        picture = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=content)
        self._add([Summary.Value(tag=name, image=picture)], name, step)

    def _add(self, values: list[Any], name: str, step: int | None) -> None:
        self._last_step = self.step_of(name, step)
        with self._writing():
            self.experiment.file_writer.add_summary(Summary(value=values), self._last_step)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Go on in a new file after the disk refused something: the thread that writes the old one has ended then."""
        try:
            yield
        except OSError:
            broken, self._writer = self._writer, None
            with suppress(Exception):
                broken.close()
            raise


def _single(value: float) -> float:
    """Return a number that single precision can hold; beyond its range it is infinite."""
    if abs(value) > _LARGEST:
        return float("inf") if value > 0 else float("-inf")
    return value


def build(config: Config, context: Context) -> TensorboardLogger:
    """Return the logger of a run, which writes into `tensorboard/` of the run folder."""
    if context.run.folder is None:
        raise ConfigError("the tensorboard logger needs a run folder")
    return TensorboardLogger("tensorboard", context.run.folder)
