"""What a logger must keep: every row can be read back, and a resume cuts off what was written after the checkpoint."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from rlcore.testing.compare import through_checkpoint
from rlcore.testing.contracts.base import ComponentContract

Row = tuple[int, Mapping[str, float]]

ROWS: list[Row] = [
    (10, {"train/loss_critic": 0.1, "train/lr": 3e-4, "episode/return": -12.5}),
    (20, {"train/loss_critic": 1e-30, "train/lr": 2e-4, "time/frames_per_second": 1234.5}),
    (30, {"episode/return": 123456789.0, "progress/updates": 7.0}),
    (1_000_000_000, {"train/loss_critic": 0.0, "episode/return/std": 1 / 3}),
]


class LoggerContract(ComponentContract):
    """Base of the tests of a logger.

    Attributes:
        tolerance: allowed relative error of a value that was read back, for formats with fewer digits.
    """

    kind = "logger"
    tolerance: ClassVar[float] = 0.0

    def read_back(self, folder: Path) -> list[Row]:
        """Return what was written into a run folder: (step, metrics) in order of the steps. Written by the subclass."""
        raise NotImplementedError(f"{type(self).__name__} must define read_back(folder)")

    def logger(self, folder: Path) -> Any:
        """Build the logger of a run in `folder`."""
        return self.make(self.bench(folder=folder))

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
        self._compare(tmp_path, ROWS[:2])
        logger.close()

    def test_works_in_a_thread_of_its_own(self, tmp_path: Path) -> None:
        """It is built in the main thread, and called from another."""
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
        good = [(step, row["a/good"]) for step, row in self.read_back(tmp_path) if "a/good" in row]
        assert good == [(1, 2.0), (2, 3.0)], f"beside values that are not finite, these were lost: {good}"

    def test_the_config_is_no_metric(self, tmp_path: Path) -> None:
        """`log_hparams` takes the resolved config, nested and with lists, before the first row."""
        logger = self.logger(tmp_path)
        logger.log_hparams({"run": {"name": "toy", "seed": 1}, "hook": [{"use": "a:b", "on": True}], "versions": {}})
        _write(logger, ROWS[:1])
        logger.close()
        self._compare(tmp_path, ROWS[:1])

    def test_a_resume_cuts_back(self, tmp_path: Path) -> None:
        """Rows after the checkpoint would otherwise stand there twice."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:2])
        logger.flush()
        state = through_checkpoint(logger.state_dict())
        _write(logger, [(25, {"train/loss_critic": 99.0})])
        logger.close()
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        _write(resumed, ROWS[2:])
        resumed.close()
        self._compare(tmp_path, ROWS)

    def test_a_resume_can_go_back_to_the_beginning(self, tmp_path: Path) -> None:
        """A checkpoint may be older than the first row."""
        logger = self.logger(tmp_path)
        state = through_checkpoint(logger.state_dict())
        _write(logger, ROWS[:2])
        logger.close()
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        _write(resumed, ROWS[1:3])
        resumed.close()
        self._compare(tmp_path, ROWS[1:3])

    def test_a_resume_without_new_rows_keeps_the_old(self, tmp_path: Path) -> None:
        """Resuming a finished run must not empty its files."""
        logger = self.logger(tmp_path)
        _write(logger, ROWS[:2])
        logger.flush()
        state = through_checkpoint(logger.state_dict())
        logger.close()
        resumed = self.logger(tmp_path)
        resumed.load_state_dict(state)
        resumed.flush()
        resumed.close()
        self._compare(tmp_path, ROWS[:2])

    def test_closes_twice_and_unused(self, tmp_path: Path) -> None:
        """A run may fail before its first row."""
        unused = self.logger(tmp_path)
        unused.flush()
        unused.close()
        unused.close()

    def _compare(self, folder: Path, expected: list[Row]) -> None:
        found = [(step, key, value) for step, row in self.read_back(folder) for key, value in row.items()]
        wanted = [(step, key, value) for step, row in expected for key, value in row.items()]
        assert sorted(x[:2] for x in found) == sorted(x[:2] for x in wanted), (
            f"written were {[x[:2] for x in wanted]}, read back {[x[:2] for x in found]}"
        )
        values = {(step, key): value for step, key, value in found}
        for step, key, value in wanted:
            back = values[step, key]
            assert math.isclose(back, value, rel_tol=self.tolerance), f"{key} at {step}: {value!r} became {back!r}"


def _write(logger: Any, rows: list[Row]) -> None:
    for step, row in rows:
        logger.log_metrics(row, step)


def _guarded(call: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        call()
    except BaseException as error:
        failures.append(error)
