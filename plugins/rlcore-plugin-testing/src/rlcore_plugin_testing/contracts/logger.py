"""What a logger must keep: all that it shows can be read back, and a resume repeats nothing and leaves nothing out."""

from __future__ import annotations

import contextlib
import errno
import math
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from rlcore.loggers.plain import as_logger
from rlcore.state.tree import through_checkpoint
from rlcore_plugin_testing.contracts.base import ComponentContract
from rlcore_plugin_testing.faults.disk import FailingDisk

Row = tuple[int, Mapping[str, float]]

ROWS: list[Row] = [
    (10, {"train/loss_critic": 0.1, "train/lr": 3e-4, "episode/return": -12.5}),
    (20, {"train/loss_critic": 1e-30, "train/lr": 2e-4, "time/frames_per_second": 1234.5}),
    (30, {"episode/return": 123456789.0, "progress/updates": 7.0}),
    (1_000_000_000, {"train/loss_critic": 0.0, "episode/return/std": 1 / 3}),
]


_PIXELS = np.random.default_rng(0)
IMAGE = _PIXELS.integers(0, 256, (3, 5, 7), dtype=np.uint8)
# of few colours, which every format keeps
VIDEO = 85 * _PIXELS.integers(0, 4, (2, 6, 3, 8, 12), dtype=np.uint8)
NUMBERS = np.array([0.0, 1.0, 1.0, 3.0, math.nan, math.inf, 10.0])
TEXT = "two lines,\nand a comma"
HPARAMS = {"run": {"name": "toy", "seed": 1}, "hook": [{"use": "a:b", "on": True}], "versions": {}}

# (kind, name, step)
Shown = tuple[str, str, int]


class LoggerContract(ComponentContract):
    """Base of the tests of a logger.

    Attributes:
        tolerance: allowed relative error of a value that was read back, for formats with fewer digits.
        shows: which of `histogram`, `image`, `video` and `text` the logger shows.
        cuts: whether a resume removes what was written after the checkpoint; else that stays, once.
    """

    kind = "logger"
    tolerance: ClassVar[float] = 0.0
    shows: ClassVar[frozenset[str]] = frozenset()
    cuts: ClassVar[bool] = True

    def read_back(self, folder: Path) -> list[Row]:
        """Return what was written into a run folder: (step, metrics) in order of the steps. Written by the subclass."""
        raise NotImplementedError(f"{type(self).__name__} must define read_back(folder)")

    def read_runs(self, folder: Path) -> list[list[Row]]:
        """Return the rows of every run of the logger, the first run first; each must be linked to the one before.

        Written by the subclass for a logger that does not cut.
        """
        return [self.read_back(folder)]

    def read_media(self, folder: Path) -> Mapping[Shown, Any]:
        """Return the media by (kind, name, step); written by a subclass that `shows` something.

        A histogram is (counts, edges), an image an array `[H, W, 3]`, a video an array `[T, H, W, 3]`, a text a string.
        """
        raise NotImplementedError(f"{type(self).__name__} must define read_media(folder)")

    def read_hparams(self, folder: Path) -> Mapping[str, Any] | None:
        """Return the config that was written, as a nested table, or None for a logger without one."""
        return None

    def settle(self, folder: Path) -> None:
        """Return when what was written has arrived."""

    def read_stored(self, folder: Path) -> list[Row]:
        """Return the rows that are safe on disk while the logger is open."""
        return self.read_back(folder)

    def logger(self, folder: Path) -> Any:
        """Build the logger of a run in `folder`."""
        return as_logger(self.make(self.bench(folder=folder)))

    def test_rows_can_be_read_back(self, tmp_path: Path) -> None:
        """The same keys, steps and values."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS)
        logger.close()
        self._compare(tmp_path, ROWS)

    def test_flush_stores_everything(self, tmp_path: Path) -> None:
        """A checkpoint is taken after a flush; what was logged before must survive a crash."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:2])
        logger.flush()
        _compare(self.read_stored(tmp_path), ROWS[:2], self.tolerance)
        logger.close()

    def test_works_in_a_thread_of_its_own(self, tmp_path: Path) -> None:
        """It may be built in one thread, and called from another."""
        logger = self.logger(tmp_path)
        failures: list[BaseException] = []
        thread = threading.Thread(target=_guarded, args=(lambda: _write(logger, ROWS), failures))
        thread.start()
        thread.join()
        assert not failures, f"called from a thread, the logger raised {failures[0]!r}"
        logger.close()
        self._compare(tmp_path, ROWS)

    def test_values_that_are_not_finite_do_no_harm(self, tmp_path: Path) -> None:
        """A diverging run is just the one whose other metrics are wanted."""
        logger = self.logger(tmp_path)
        values = {"a/nan": math.nan, "a/inf": math.inf, "a/minus": -math.inf, "a/good": 2.0}
        _write(logger, [(1, values), (2, {"a/good": 3.0})])
        logger.close()
        self.settle(tmp_path)
        good = [(step, row["a/good"]) for step, row in self.read_back(tmp_path) if "a/good" in row]
        assert good == [(1, 2.0), (2, 3.0)], f"beside values that are not finite, these were lost: {good}"

    def test_one_scalar_is_a_row(self, tmp_path: Path) -> None:
        """`log_scalar` is `log_metrics` with one number."""
        logger = self.logger(tmp_path)
        logger.log_scalar("train/lr", 0.25, 10)
        logger.close()
        self._compare(tmp_path, [(10, {"train/lr": 0.25})])

    def test_media_can_be_read_back(self, tmp_path: Path) -> None:
        """What the logger shows has its name and its step; what it cannot show does no harm."""
        logger = self.logger(tmp_path)
        _show_all(logger, 10)
        logger.log_metrics({"train/lr": 0.5}, 20)
        logger.close()
        self._compare(tmp_path, [(20, {"train/lr": 0.5})])
        if not self.shows:
            return
        media = self.read_media(tmp_path)
        assert set(media) == {(kind, f"a/{kind}", 10) for kind in self.shows}, f"read back: {sorted(media)}"
        for (kind, _, _), found in media.items():
            _check_shown(kind, found, self.tolerance)

    def test_the_config_is_no_metric(self, tmp_path: Path) -> None:
        """`log_hparams` takes the resolved config, nested and with lists, before the first row."""
        logger = self.logger(tmp_path)
        logger.log_hparams(HPARAMS)
        _write(logger, ROWS[:1])
        logger.close()
        self._compare(tmp_path, ROWS[:1])
        found = self.read_hparams(tmp_path)
        if found is not None:
            assert str(found["run"]["seed"]) == "1", f"read back was the config {found}"

    def test_a_resume_repeats_nothing(self, tmp_path: Path) -> None:
        """Rows after the checkpoint come again; they stand there once."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:2])
        logger.flush()
        state = through_checkpoint(logger.state_dict())
        _write(logger, ROWS[2:3])
        _show_all(logger, 30)
        logger.close()
        self.settle(tmp_path)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        _write(resumed, ROWS[2:3])
        _show_all(resumed, 30)
        _write(resumed, ROWS[3:])
        resumed.close()
        self._compare(tmp_path, ROWS)
        if self.shows:
            assert set(self.read_media(tmp_path)) == {(kind, f"a/{kind}", 30) for kind in self.shows}

    def test_a_resume_cuts_back(self, tmp_path: Path) -> None:
        """Rows after the checkpoint that do not come again are gone, where the logger can do that."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:2])
        logger.flush()
        state = through_checkpoint(logger.state_dict())
        gone = (25, {"train/loss_critic": 99.0})
        _write(logger, [gone])
        _show_all(logger, 25)
        logger.close()
        self.settle(tmp_path)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        _write(resumed, ROWS[2:])
        resumed.close()
        self._compare(tmp_path, ROWS if self.cuts else [*ROWS[:2], gone, *ROWS[2:]])
        if self.shows and self.cuts:
            assert not self.read_media(tmp_path), "media after the checkpoint are still there"

    def test_a_resume_that_trains_otherwise_has_its_own_curve(self, tmp_path: Path) -> None:
        """Rows of another training after the checkpoint do not end up among the new ones."""
        before, after = (25, {"train/loss_critic": 99.0}), [(25, {"train/loss_critic": 1.0}), *ROWS[2:]]
        state = self._state_after_two_rows(tmp_path, before)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.branch()
        _write(resumed, after)
        resumed.close()
        self.settle(tmp_path)
        expected = [[*ROWS[:2], *after]] if self.cuts else [[*ROWS[:2], before], after]
        found = self.read_runs(tmp_path)
        assert len(found) == len(expected), f"there are {len(found)} runs, not {len(expected)}"
        for rows, wanted in zip(found, expected, strict=True):
            _compare(rows, wanted, self.tolerance)

    def test_a_resume_that_trains_otherwise_goes_on_where_nothing_was_written_since(self, tmp_path: Path) -> None:
        """Then the rows fit behind each other, in one run."""
        state = self._state_after_two_rows(tmp_path)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.branch()
        _write(resumed, ROWS[2:])
        resumed.close()
        self._compare(tmp_path, ROWS)

    def test_a_resume_can_go_back_to_the_beginning(self, tmp_path: Path) -> None:
        """A checkpoint may be older than the first row."""
        logger = self.logger(tmp_path)
        state = through_checkpoint(logger.state_dict())
        _write(logger, ROWS[:2])
        logger.close()
        self.settle(tmp_path)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        _write(resumed, ROWS[1:3])
        resumed.close()
        self._compare(tmp_path, ROWS[1:3] if self.cuts else ROWS[:3])

    def test_a_resume_without_new_rows_keeps_the_old(self, tmp_path: Path) -> None:
        """Resuming a finished run must not empty its files."""
        state = self._state_after_two_rows(tmp_path)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.flush()
        resumed.close()
        self._compare(tmp_path, ROWS[:2])

    def test_a_run_that_starts_over_repeats_nothing(self, tmp_path: Path) -> None:
        """Checkpoints may be lost or removed; rows of before do not stand among those of the run that begins again."""
        self._state_after_two_rows(tmp_path, ROWS[2])
        again = self.logger(tmp_path)
        again.begin_anew()
        _write(again, ROWS)
        again.close()
        self._compare(tmp_path, ROWS)

    def test_files_that_were_cut_since_are_no_obstacle(self, tmp_path: Path) -> None:
        """A disk or a person may have taken a part of them: that is said, nothing is filled up, and rows go on."""
        state = self._state_after_two_rows(tmp_path)
        logger = self.logger(tmp_path)
        files = [Path(file) for file in logger.files() if Path(file).exists()]
        logger.close()
        for file in files:
            os.truncate(file, file.stat().st_size // 2)
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        for file in files:
            assert not file.exists() or not file.read_bytes().endswith(b"\0\0\0\0"), f"{file} was filled up"
        assert not files or resumed.differences, f"nothing was said of {', '.join(file.name for file in files)}"
        _write(resumed, ROWS[2:])
        resumed.close()
        self.settle(tmp_path)
        steps = {step for step, _ in self.read_back(tmp_path)}
        assert {step for step, _ in ROWS[2:]} <= steps, f"of the rows after the resume there are only those of {steps}"

    def test_goes_on_after_a_disk_that_was_full(self, tmp_path: Path) -> None:
        """What comes after a full disk is there, once; what came meanwhile may be lost, and that raises `OSError`."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:1])
        logger.flush()
        with FailingDisk(tmp_path, errno.ENOSPC, at=1, lasting=True), contextlib.suppress(OSError):
            _write(logger, ROWS[1:2])
            logger.flush()
        with contextlib.suppress(OSError):
            logger.flush()
        _write(logger, ROWS[2:])
        logger.close()
        self.settle(tmp_path)
        found, meanwhile = self.read_back(tmp_path), ROWS[1]
        _compare([row for row in found if row[0] != meanwhile[0]], [*ROWS[:1], *ROWS[2:]], self.tolerance)
        keys = [key for step, row in found if step == meanwhile[0] for key in row]
        assert len(keys) == len(set(keys)), f"of the full disk, rows stand there twice: {keys}"

    def test_closes_twice_and_unused(self, tmp_path: Path) -> None:
        """A run may fail before its first row."""
        unused = self.logger(tmp_path)
        unused.flush()
        unused.close()
        unused.close()

    def _state_after_two_rows(self, folder: Path, *later: Row) -> Any:
        """Write two rows and perhaps later ones, and return the state of a checkpoint in between."""
        logger = self.logger(folder)
        _write(logger, ROWS[:2])
        logger.flush()
        state = through_checkpoint(logger.state_dict())
        _write(logger, list(later))
        logger.close()
        self.settle(folder)
        return state

    def _compare(self, folder: Path, expected: list[Row]) -> None:
        self.settle(folder)
        _compare(self.read_back(folder), expected, self.tolerance)


def _compare(rows: list[Row], expected: list[Row], tolerance: float) -> None:
    found = [(step, key, value) for step, row in rows for key, value in row.items()]
    wanted = [(step, key, value) for step, row in expected for key, value in row.items()]
    assert sorted(x[:2] for x in found) == sorted(x[:2] for x in wanted), (
        f"written were {[x[:2] for x in wanted]}, read back {[x[:2] for x in found]}"
    )
    values = {(step, key): value for step, key, value in found}
    for step, key, value in wanted:
        back = values[step, key]
        assert math.isclose(back, value, rel_tol=tolerance), f"{key} at {step}: {value!r} became {back!r}"


def _show_all(logger: Any, step: int) -> None:
    logger.log_histogram("a/histogram", NUMBERS, step)
    logger.log_image("a/image", IMAGE, step)
    logger.log_video("a/video", VIDEO, step, 10)
    logger.log_text("a/text", TEXT, step)


def _check_shown(kind: str, found: Any, tolerance: float) -> None:
    if kind == "histogram":
        counts, edges = (np.asarray(values, dtype=float) for values in found)
        filled = {round(float(edge)): int(count) for count, edge in zip(counts, edges[1:], strict=True) if count}
        assert counts.sum() == 5, f"five of the numbers are finite; the histogram counts {counts.sum()}"
        assert np.allclose([edges[0], edges[-1]], [0, 10], rtol=tolerance), (
            f"the bins go from {edges[0]} to {edges[-1]}"
        )
        assert filled[1] == 2, f"two of the numbers are 1; in bins there are {filled}"
    elif kind == "image":
        assert np.array_equal(found, IMAGE.transpose(1, 2, 0)), "the image is another one"
    elif kind == "video":
        expected = np.concatenate(list(VIDEO.transpose(0, 1, 3, 4, 2)), axis=2)
        assert found.shape == expected.shape, f"the video is {found.shape}, not {expected.shape}"
        assert np.array_equal(found, expected), "the frames are others"
    else:
        assert found == TEXT, f"the text is {found!r}"


def frames_of(file: Any) -> Any:
    """Return the frames of a GIF, a path or a stream, as an array `[T, H, W, 3]`, uint8."""
    from PIL import Image, ImageSequence

    with Image.open(file) as opened:
        return np.stack([np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(opened)])


def _write(logger: Any, rows: list[Row]) -> None:
    for step, row in rows:
        logger.log_metrics(row, step)


def _guarded(call: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        call()
    except BaseException as error:
        failures.append(error)
