"""Metrics in long form, `frames,key,value`, and media as files beside them."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, Field

from rlcore.errors import ConfigError, PluginError, StorageError
from rlcore.files import GrowingFile, Table, inside
from rlcore.loggers import Logger, media
from rlcore.loggers import values as log_values
from rlcore.types import Clock, Context

if TYPE_CHECKING:
    from rlcore.types import Array

log = logging.getLogger(__name__)

WALL_CLOCK: Final = "time/"
VideoFormat = Literal["gif", "mp4", "pt", "memmap"]
_HEADERS: Final = {
    "metrics": ("key", "value"),
    "timings": ("key", "value"),
    "histograms": ("key", "low", "high", "count"),
    "media": ("key", "kind", "file"),
}


class Config(BaseModel, extra="forbid"):
    """The keys of the config section."""

    video_format: VideoFormat = Field(
        "gif",
        description="GIF, mp4 (which rlcore-plugin-video writes), pt for torch.load, or memmap: the bytes",
    )


class CSVLogger(Logger):
    """Writes `metrics.csv`, and wall-clock figures (`time/…`) to `timings.csv`, into the folder `log_dir/exp_name`.

    The first file is the same for two equal runs. Histograms are rows of `histograms.csv`; images, videos and texts are
    files, listed in `media.csv`. On resume everything is cut back to the checkpoint.

    Args:
        exp_name: name of the experiment, and of its folder.
        log_dir: the folder around it.
        video_format: `gif`, `mp4` (which rlcore-plugin-video writes), `pt` or `memmap`.
        video_fps: frames per second of videos that come without.
        clock: what steps count; the first column of every table is called so.
    """

    def __init__(
        self,
        exp_name: str,
        log_dir: str | Path = "csv_logs",
        video_format: VideoFormat = "gif",
        video_fps: int = 30,
        clock: Clock = "frames",
    ) -> None:
        if video_format not in get_args(VideoFormat):
            raise ConfigError(f"video_format is {video_format!r}; it must be one of {', '.join(get_args(VideoFormat))}")
        if video_format == "mp4" and importlib.util.find_spec("rlcore_plugin_video") is None:
            raise PluginError("video_format = 'mp4' needs rlcore-plugin-video: pip install rlcore-plugin-video")
        super().__init__(exp_name, str(log_dir))
        self.folder = Path(log_dir) / exp_name
        self.video_format = video_format
        self.video_fps = video_fps
        self._tables = {name: Table(self.folder / f"{name}.csv", (clock, *header)) for name, header in _HEADERS.items()}

    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None, keys_sep: str = "/") -> dict[str, float]:
        """Append a row per metric; the shortest form that reads back as the same number."""
        step = self.step_of("", step)
        row = log_values.row(metrics, keys_sep)
        rows = {"metrics": [], "timings": []}  # type: dict[str, list[tuple[object, ...]]]
        for key, value in row.items():
            rows["timings" if key.startswith(WALL_CLOCK) else "metrics"].append((step, key, repr(value)))
        for name, new_rows in rows.items():
            self._tables[name].append(new_rows)
        return row

    def log_histogram(self, name: str, data: Any, step: int | None = None, bins: log_values.Bins = None) -> None:
        """Append a row per bin; the number of values that are not finite stands between `nan` and `nan`."""
        step, histogram = self.step_of(name, step), log_values.histogram(data, bins)
        in_bins = zip(
            histogram.edges[:-1].tolist(), histogram.edges[1:].tolist(), histogram.counts.tolist(), strict=True
        )
        rows = [(step, name, low, high, count) for low, high, count in in_bins]
        self._tables["histograms"].append([*rows, (step, name, "nan", "nan", histogram.not_finite)])

    def log_image(self, name: str, image: Any, step: int | None = None) -> None:
        """Write a PNG file."""
        self._file("image", name, step, ".png").write_bytes(media.png(image))

    def log_video(self, name: str, video: Any, step: int | None = None, fps: int | None = None) -> None:
        """Write the videos in the format of this logger."""
        if self.video_format == "gif":
            content = media.gif(video, fps or self.video_fps)
        elif self.video_format == "memmap":
            content = np.ascontiguousarray(log_values.video(video)).tobytes()
        elif self.video_format == "pt":
            content = _saved(log_values.video(video))
        else:
            frames = media.side_by_side(video)
            _write_mp4(self._file("video", name, step, ".mp4"), frames, fps or self.video_fps)
            return
        self._file("video", name, step, f".{self.video_format}").write_bytes(content)

    def log_text(self, name: str, text: str, step: int | None = None) -> None:
        """Write a text file."""
        self._file("text", name, step, ".txt").write_bytes(text.encode())

    def log_hparams(self, config: Mapping[str, Any]) -> None:
        """Write `hparams.json`; in a run folder the resolved config is there already."""
        if not (self.folder / "config.toml").exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "hparams.json").write_text(json.dumps(config, indent=1, default=str))

    def flush(self) -> None:
        """Hand what was written to the system.

        Raises:
            OSError: the disk refuses it; rows are kept and tried again, as long as they fit into 16 MiB.
        """
        self._for_all(GrowingFile.flush)

    def files(self) -> list[Path]:
        """Return the tables."""
        return [table.file.path for table in self._tables.values()]

    def close(self) -> None:
        """Flush and close.

        Raises:
            OSError: the disk refuses what was written last; it is lost.
        """
        self._for_all(GrowingFile.close)

    def state_dict(self) -> dict[str, Any]:
        """Return the lengths of the tables in bytes, and the checksums of what they hold."""
        with contextlib.suppress(OSError):  # a row that waits for room counts; a resume would say that it is missing
            self.flush()
        positions = {name: table.file.position() for name, table in self._tables.items()}
        sizes = {name: position["size"] for name, position in positions.items()}
        return {**sizes, "xxh3": {name: position["xxh3"] for name, position in positions.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Cut the tables back, remove the files that came after, and say what else is not as it was."""
        self._remove_media_after(state.get("media", 0))
        for name, table in self._tables.items():
            position = {"size": state.get(name, 0), "xxh3": state.get("xxh3", {}).get(name)}
            if difference := table.file.go_back(position):
                self._differs(difference)

    def begin_anew(self) -> None:
        """Begin with empty tables; those that are there get other names."""
        for table in self._tables.values():
            if aside := table.file.set_aside():
                log.warning("the run starts over; what was in %s is now %s", table.file.path, aside.name)

    def _for_all(self, call: Callable[[GrowingFile], None]) -> None:
        """Do the same with every table, also where one of them fails."""
        failed: list[OSError] = []
        for table in self._tables.values():
            try:
                call(table.file)
            except OSError as error:
                failed.append(error)
        if failed:
            raise failed[0]

    def _remove_media_after(self, size: int) -> None:
        """Remove the files that are listed after a place in `media.csv`; what is not inside of the folder stays."""
        for row in self._tables["media"].rows_after(size):
            if len(row) != 1 + len(_HEADERS["media"]):  # the last one may be incomplete
                continue
            try:
                inside(self.folder, row[3]).unlink(missing_ok=True)
            except (StorageError, OSError) as error:
                self._differs(f"{self._tables['media'].file.path} lists {row[3]!r:.200}, which is left alone: {error}")

    def _file(self, kind: str, name: str, step: int | None, suffix: str) -> Path:
        """Return the place of a file, which is noted in `media.csv` first, so that a resume finds it."""
        step = self.step_of(name, step)
        place = Path(f"{kind}s") / media.file_name(name) / f"{step:012d}{suffix}"
        file = self.folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        self._tables["media"].append([(step, name, kind, place.as_posix())])
        self._tables["media"].file.flush()
        return file


def _saved(pixels: Array) -> bytes:
    """Return pixels as a file for `torch.load`."""
    import torch

    stream = io.BytesIO()
    torch.save(torch.from_numpy(np.ascontiguousarray(pixels)), stream)
    return stream.getvalue()


def _write_mp4(file: Path, frames: Array, fps: int) -> None:
    import torch
    from rlcore_plugin_video.mp4 import write_mp4

    write_mp4(file, torch.from_numpy(np.ascontiguousarray(frames)).permute(0, 3, 1, 2), fps)


def build(config: Config, context: Context) -> CSVLogger:
    """Return the logger of a run, which writes into the run folder itself."""
    folder = context.run.folder
    if folder is None:
        raise ConfigError("the csv logger needs a run folder")
    return CSVLogger(folder.name, folder.parent, video_format=config.video_format, clock=context.progress.clock)
