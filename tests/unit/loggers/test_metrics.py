from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rlcore import Every, Progress
from rlcore.errors import RlcoreError
from rlcore.loggers import metrics as module
from rlcore.loggers.base import LoggerBase
from rlcore.loggers.metrics import Last, Metrics
from rlcore.loggers.writer import LogWriter
from rlcore.state.tree import flatten, unflatten
from rlcore.types.hook_parts import HookMetrics


class Rows:
    """Takes rows as a writer does."""

    def __init__(self):
        self.rows = []

    def write(self, row, step):
        self.rows.append((step, dict(row)))


def written(*values, key="x"):
    rows = Rows()
    metrics = Metrics(Every(10), [rows])
    for value in values:
        metrics.add({key: value})
    metrics.write(Progress(100, frames=7))
    return rows.rows[0][1] if rows.rows else {}


def test_one_value_is_written_as_it_is():
    assert written(2.5) == {"x": 2.5}


def test_several_values_become_their_statistics():
    row = written(1.0, 2.0, 6.0)
    assert row == {"x": 3.0, "x/std": pytest.approx(np.std([1, 2, 6])), "x/min": 1.0, "x/max": 6.0, "x/count": 3.0}


@pytest.mark.parametrize(
    "value",
    [
        3,
        3.0,
        np.float32(3),
        np.int64(3),
        np.array(3.0),
        torch.tensor(3.0),
        torch.tensor(3),
        torch.tensor(3.0, dtype=torch.bfloat16),
        torch.tensor([3.0], requires_grad=True),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_every_kind_of_number_counts_as_one_value(value):
    assert written(value) == {"x": 3.0}


@pytest.mark.parametrize("value", [True, np.bool_(True), torch.tensor(True), np.array([True])])
def test_truth_values_count_as_one_and_zero(value):
    assert written(value, False)["x"] == 0.5


def test_kinds_of_numbers_can_be_mixed():
    row = written(1, 2.0, torch.tensor(3.0), np.array([4.0, 5.0]), torch.tensor([6, 7]), torch.tensor(8.0).double())
    assert (row["x"], row["x/count"], row["x/min"], row["x/max"]) == (4.5, 8.0, 1.0, 8.0)


def test_a_vector_counts_as_its_elements():
    row = written(torch.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert (row["x"], row["x/count"], row["x/max"]) == (3.0, 4.0, 6.0)


@pytest.mark.parametrize("empty", [torch.empty(0), np.empty((0, 3)), torch.empty(2, 0)])
def test_no_value_no_key(empty):
    assert written(empty) == {}
    assert written(empty, 2.0) == {"x": 2.0}


def test_a_key_without_a_value_in_this_interval_is_left_out():
    rows = Rows()
    metrics = Metrics(Every(10), [rows])
    metrics.add({"a": 1.0, "b": 2.0})
    metrics.write(Progress(100, frames=10))
    metrics.add({"b": 3.0})
    metrics.write(Progress(100, frames=20))
    metrics.write(Progress(100, frames=30))
    assert rows.rows == [(10, {"a": 1.0, "b": 2.0}), (20, {"b": 3.0})]
    assert metrics.latest == {"a": 1.0, "b": 3.0}


@pytest.mark.parametrize("values", [(1.0, math.nan), (math.nan, 1.0), (math.nan,), (math.nan, math.nan)])
def test_nan_is_neither_dropped_nor_dressed_up(values):
    row = written(*values)
    assert all(math.isnan(value) for key, value in row.items() if not key.endswith("/count")), row


def test_nan_in_a_vector_is_neither_dropped_nor_dressed_up():
    row = written(torch.tensor([1.0, math.nan, 2.0]))
    assert math.isnan(row["x"])
    assert math.isnan(row["x/min"])
    assert math.isnan(row["x/max"])
    assert math.isnan(row["x/std"])
    assert row["x/count"] == 3


def test_infinities_are_kept():
    row = written(1.0, math.inf)
    assert (row["x"], row["x/min"], row["x/max"]) == (math.inf, 1.0, math.inf)


def test_the_deviation_is_right_far_from_zero():
    assert written(1e8, 1e8 + 1, 1e8 + 2)["x/std"] == pytest.approx(np.std([0, 1, 2]), rel=1e-3)


def test_equal_values_have_no_deviation():
    assert written(*[0.1] * 1000)["x/std"] == pytest.approx(0, abs=1e-7)


def test_many_values_are_reduced_without_being_kept():
    values = np.random.default_rng(0).normal(size=10_000)
    row = written(*map(float, values))
    assert row["x"] == pytest.approx(values.mean())
    assert row["x/std"] == pytest.approx(values.std())
    assert (row["x/min"], row["x/max"], row["x/count"]) == (values.min(), values.max(), 10_000)


@pytest.mark.parametrize("value", ["text", None, [1.0], {"a": 1.0}, 1j, object()])
def test_what_is_no_number_is_left_out_with_one_warning(caplog, value):
    assert written(value, value) == {}
    assert written(value, 2.0) == {"x": 2.0}
    caplog.clear()
    metrics = Metrics(Every(10))
    for _ in range(3):
        metrics.add({"mine": value})
        metrics.write(Progress(100, frames=1))
    assert len(caplog.records) == 1
    assert "'mine'" in caplog.text
    assert type(value).__name__ in caplog.text


def test_prefixes_go_before_every_key():
    metrics = Metrics(Every(10))
    metrics.add({"a": 1.0, "log_pbar": {"a"}}, "train/")
    metrics.write(Progress(100, frames=1))
    assert metrics.latest == {"train/a": 1.0}
    assert metrics.on_bar == {"train/a"}


def test_nothing_is_written_before_it_is_due():
    rows = Rows()
    metrics, progress = Metrics(Every(10), [rows]), Progress(100)
    for progress.frames in (4, 8, 12, 16, 20):
        metrics.add({"x": progress.frames})
        if metrics.every.due(progress):
            metrics.write(progress)
    assert [(step, row["x"]) for step, row in rows.rows] == [(12, 8.0), (20, 18.0)]


def test_values_of_a_device_are_not_asked_for_before_a_write():
    """That would wait for it; a device without values raises where it is asked."""
    metrics = Metrics(Every(10))
    for _ in range(100):
        metrics.add({"x": torch.zeros((), device="meta"), "several": torch.zeros(3, device="meta")})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_tensor_counts_as_it_was_when_it_came_in(dtype):
    """Weights and what shares their memory change at the next update; and kept tensors would pin memory."""
    rows, one, several = Rows(), torch.ones((), dtype=dtype), torch.ones(2, dtype=dtype, requires_grad=True)
    metrics = Metrics(Every(10), [rows])
    metrics.add({"one": one, "several": several})
    with torch.no_grad():
        one += 1
        several += 1
    metrics.write(Progress(100, frames=7))
    assert [rows.rows[0][1][key] for key in ("one", "several", "several/count")] == [1.0, 1.0, 2.0]


def test_every_writer_gets_every_row():
    writers = [Rows(), Rows()]
    metrics = Metrics(Every(10), writers)
    metrics.add({"x": 1.0})
    metrics.write(Progress(100, frames=3))
    assert writers[0].rows == writers[1].rows == [(3, {"x": 1.0})]


# a stop between two writes


def through_a_checkpoint(metrics, rows):
    """Return new metrics with the state of others, as a resumed process has them."""
    tensors = {}
    tree = flatten(metrics.state_dict(), "metrics", tensors)
    resumed = Metrics(Every(10), [rows])
    resumed.load_state_dict(unflatten(tree, tensors))
    return resumed


def values(count):
    """Return values of every kind whose sums depend on their order in the last bits."""
    generator = np.random.default_rng(3)
    for number in range(count):
        value = generator.standard_normal() * 10.0 ** generator.integers(-8, 8)
        kinds = (value, torch.tensor(value, dtype=torch.float32), generator.standard_normal(3), torch.randn(2))
        yield kinds[number % 4]


@pytest.mark.parametrize("fold", [4096, 5])
@pytest.mark.parametrize("stop", [0, 1, 4, 5, 6, 17, 40])
def test_a_stop_between_two_writes_gives_the_same_row_to_the_last_bit(monkeypatch, stop, fold):
    monkeypatch.setattr(module, "_FOLD", fold)
    torch.manual_seed(1)
    taken = list(values(40))
    rows, resumed_rows = Rows(), Rows()
    whole, resumed = Metrics(Every(10), [rows]), Metrics(Every(10), [resumed_rows])
    for number, value in enumerate([*taken, None]):
        if number == stop:
            resumed = through_a_checkpoint(resumed, resumed_rows)
        if value is not None:
            for metrics in (whole, resumed):
                metrics.add({"x": value, "second": number})
                metrics.extend("several", [float(number), 0.1 * number])
    whole.write(Progress(100, frames=30))
    resumed.write(Progress(100, frames=30))
    assert repr(resumed_rows.rows) == repr(rows.rows)
    assert len(rows.rows[0][1]) == 15


def test_the_state_of_metrics_is_not_changed_by_what_comes_in_later():
    metrics = Metrics(Every(10))
    metrics.add({"x": 1.0})
    state = metrics.state_dict()
    metrics.add({"x": 2.0})
    values, count = state["pending"]["x"]
    assert (values.tolist(), count) == ([1.0], 1)


def test_after_a_write_nothing_is_pending():
    metrics = Metrics(Every(10), [Rows()])
    metrics.add({"x": 1.0})
    metrics.write(Progress(100, frames=10))
    state = metrics.state_dict()
    assert (state["pending"], state["reduced"], state["last"], state["written_at"]) == ({}, {}, {}, 10)


@pytest.mark.parametrize("stop", [16, 48, 80])
def test_the_metrics_of_a_stopped_and_resumed_run_have_the_bytes_of_an_uninterrupted_one(tmp_path, stop):
    from rlcore_plugin_testing import make_run

    def run(name, **options):
        sections = {"logger": [{"use": "csv"}], "evaluator": {"use": "episodes", "episodes": 2, "every": 64}}
        settings = ("run.total_frames=96", "metrics.every=40")
        return make_run(*settings, folder=tmp_path / name, sections=sections, **options).trainer

    run("whole").train()
    parts = run("parts")
    parts.stop_at = stop
    parts.train()
    run("parts", resume=True).train()
    whole, parts = ((tmp_path / name / "toy" / "metrics.csv").read_bytes() for name in ("whole", "parts"))
    assert parts == whole
    assert len(whole.splitlines()) > 20


def test_the_newest_value_outlives_a_write_a_fold_and_a_checkpoint(monkeypatch):
    monkeypatch.setattr(module, "_FOLD", 2)
    metrics = Metrics(Every(10))
    metrics.add({"x": 1.0, "count": Last(3)})
    assert metrics.newest("x") == 1.0
    assert metrics.newest("count") == 3.0
    metrics.add({"x": torch.tensor([2.0, 4.0])})
    assert metrics.newest("x") == 3.0, "the mean of the latest entry; the fold took it in"
    metrics.extend("x", [7.0, 9.0])
    metrics.add({"frames_per_second": 1.0}, "time/")
    metrics.write(Progress(100, frames=10))
    assert metrics.newest("x") == 9.0
    assert metrics.newest("x/min") == 1.0, "known only since the write"
    resumed = through_a_checkpoint(metrics, Rows())
    assert [resumed.newest(key) for key in ("x", "count", "x/min", "y")] == [9.0, 3.0, 1.0, None]
    assert metrics.newest("time/frames_per_second") == 1.0
    assert resumed.newest("time/frames_per_second") is None, "two equal runs have equal states, and not equal times"


# media


class Shows(LoggerBase):
    """Keeps the media that it is given."""

    def __init__(self):
        super().__init__()
        self.shown = []

    def log_video(self, name, video, step=None, fps=30):
        self.shown.append((name, video, step, fps))

    def log_image(self, name, image, step=None):
        self.shown.append((name, image, step))

    def log_histogram(self, name, data, step=None):
        self.shown.append((name, data, step))

    def log_text(self, name, text, step=None):
        self.shown.append((name, text, step))


def test_metrics_hand_copies_to_every_logger():
    loggers = [Shows(), Shows()]
    metrics = Metrics(Every(1), [LogWriter(str(number), logger) for number, logger in enumerate(loggers)])
    video, image, data = torch.zeros(1, 2, 3, 4, 4, dtype=torch.uint8), np.zeros((1, 2, 2), np.uint8), torch.zeros(3)
    metrics.log_video("v", video, 10, 5)
    metrics.log_image("i", image, 20)
    metrics.log_histogram("h", data.requires_grad_(), 30)
    metrics.log_text("t", "words", 40)
    video += 1
    image += 1
    with torch.no_grad():
        data += 1
    metrics.close()
    for logger in loggers:
        (v, i, h, t) = logger.shown
        assert (v[0], v[2:], i[0], i[2], h[0], h[2], t) == ("v", (10, 5), "i", 20, "h", 30, ("t", "words", 40))
        assert not any(array.any() for array in (v[1], i[1], h[1])), "what came in was changed afterwards"


def test_without_loggers_nothing_is_copied():
    metrics = Metrics(Every(1))
    metrics.log_video("v", object(), 1)
    metrics.log_image("v", object(), 1)
    metrics.log_histogram("v", object(), 1)
    metrics.log_text("v", "text", 1)


@pytest.mark.parametrize("image", [np.zeros((2, 4, 4), np.uint8), np.zeros((3, 4, 4)), np.zeros((4, 4), np.uint8)])
def test_what_is_no_image_is_refused_where_it_is_given(image):
    metrics = Metrics(Every(1), [LogWriter("shows", Shows())])
    with pytest.raises(RlcoreError, match=r"an image is uint8 \[C, H, W\] with C 1 or 3"):
        metrics.log_image("i", image, 1)
    metrics.close()


def test_a_metric_that_a_hook_and_the_core_gave_stays_apart_after_a_resume():
    of_hook = HookMetrics()
    of_hook["lr"], of_hook.hooks["lr"] = 5.0, "mine"
    whole, resumed = Metrics(Every(10)), Metrics(Every(10))
    whole.add(of_hook)  # before the core's first
    whole.add({"lr": 1.0})
    resumed.load_state_dict(whole.state_dict())
    for metrics in (whole, resumed):
        metrics.add(of_hook)
        metrics.write(Progress(100, frames=7))
        assert metrics.latest["lr"] == 1.0
        assert metrics.latest["mine/lr"] == 5.0
