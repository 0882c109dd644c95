"""Parts that all loggers share: the base, the media, what metrics hand over, and the key `required`."""

from __future__ import annotations

import logging

import numpy as np
import pytest
import torch

from rlcore import ConfigError
from rlcore.config.schema import config_schema
from rlcore.errors import RlcoreError
from rlcore.loggers import media
from rlcore.loggers import values as log_values
from rlcore.loggers.base import LoggerBase
from rlcore.loggers.metrics import Metrics
from rlcore.loggers.writer import LogWriter
from rlcore.testing import make_config, make_run
from rlcore.types.progress import Every


class Rows(LoggerBase):
    """Keeps what it is given."""

    def __init__(self):
        super().__init__("rows", "memory")
        self.rows = []

    def log_metrics(self, metrics, step=None):
        self.rows.append((dict(metrics), step))


class Shows(Rows):
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


def test_a_logger_of_metrics_has_everything_else_and_says_once_what_it_cannot_show(caplog):
    logger = Rows()
    for _ in range(2):
        logger.log_video("a", None, 1)
        logger.log_image("a", None, 1)
        logger.log_histogram("a", None, 1)
        logger.log_text("a", "b", 1)
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        f"Rows cannot show {kind}; they are left out there" for kind in ("videos", "images", "histograms", "texts")
    ]
    logger.log_scalar("x", 1.0)
    logger.log_scalar("x", 2.0)
    logger.log_scalar("y", 3.0)
    logger.log_scalar("x", 4.0, 9)
    assert logger.rows == [({"x": 1.0}, 0), ({"x": 2.0}, 1), ({"y": 3.0}, 0), ({"x": 4.0}, 9)]
    assert (logger.exp_name, logger.log_dir, logger.experiment) == ("rows", "memory", logger)


def test_a_base_without_metrics_says_what_is_missing():
    with pytest.raises(NotImplementedError, match="must define log_metrics"):
        LoggerBase().log_scalar("a", 1.0, 1)


# what metrics hand over


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


# media


def test_a_grey_image_becomes_a_png_of_three_channels():
    from io import BytesIO

    from PIL import Image

    pixels = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    with Image.open(BytesIO(media.png(pixels))) as opened:
        assert (opened.format, opened.size) == ("PNG", (3, 2))
        assert np.array_equal(np.asarray(opened), np.repeat(pixels.transpose(1, 2, 0), 3, axis=2))


@pytest.mark.parametrize(("fps", "duration"), [(10, 100), (25, 40), (1000, 20)])
def test_a_gif_lasts_as_long_as_its_frames(fps, duration):
    from io import BytesIO

    from PIL import Image

    with Image.open(BytesIO(media.gif(85 * np.arange(2, dtype=np.uint8).reshape(1, 2, 1, 1, 1), fps))) as opened:
        assert (opened.n_frames, opened.info["duration"], opened.info["loop"]) == (2, duration, 0)


def test_without_pillow_the_command_is_said(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ConfigError, match="pip install pillow"):
        media.png(np.zeros((1, 1, 1), np.uint8))


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/b c", "a/b c"),
        ("../../up", "_/_/up"),
        ("/root", "_/root"),
        (".hidden", "hidden"),
        ('a:"b', "a__b"),
        ("", "_"),
    ],
)
def test_names_become_paths_that_stay_inside(name, path):
    assert media.file_name(name) == path


@pytest.mark.parametrize(
    ("bins", "edges"),
    [
        (None, 65),
        ("tensorflow", 65),
        (4, [0.0, 1.0, 2.0, 3.0, 4.0]),
        ([0, 1, 4], [0.0, 1.0, 4.0]),
        (torch.tensor([0.0, 4.0]), [0.0, 4.0]),
        ("sturges", [0.0, 1.0, 2.0, 3.0, 4.0]),
    ],
)
def test_the_bins_of_a_histogram(bins, edges):
    found = log_values.histogram([0.0, 1.0, 2.0, 3.0, 4.0], bins)
    assert found.edges.tolist() == edges if isinstance(edges, list) else len(found.edges) == edges
    assert found.counts.sum() == 5


def test_a_rule_that_wants_too_many_bins_gets_512():
    data = np.concatenate([np.linspace(0, 1e-6, 1000), [1e9]])
    assert len(log_values.histogram(data, "fd").counts) == 512


@pytest.mark.parametrize("bins", [0, 513, [1.0], [2.0, 1.0], "nosuch", 1.5])
def test_bins_that_cannot_be(bins):
    with pytest.raises(RlcoreError, match="bins = "):
        log_values.histogram([1.0, 2.0], bins)


class Scalars(LoggerBase):
    """Defines `log_scalar` alone, as loggers of other libraries do, and has an object behind it."""

    def _create_experiment(self):
        return []

    def log_scalar(self, name, value, step=None):
        self.experiment.append((name, value, step))

    def log_text(self, name, text, step=None):
        self.experiment.append((name, text, step))


def test_a_logger_may_define_scalars_alone():
    logger = Scalars("exp", "dir")
    assert logger.log_metrics({"a": 1, "b": {"c": torch.tensor(2.0)}}, 3) == {"a": 1.0, "b/c": 2.0}
    logger.log_str("said", "hello", step=4)
    assert logger.experiment == [("a", 1.0, 3), ("b/c", 2.0, 3), ("said", "hello", 4)]
    assert (logger.exp_name, logger.log_dir) == ("exp", "dir")


def test_a_logger_that_defines_neither_says_so():
    with pytest.raises(NotImplementedError, match=r"must define log_metrics\(metrics, step\) or log_scalar"):
        LoggerBase().log_metrics({"a": 1})
    with pytest.raises(NotImplementedError):
        LoggerBase().log_scalar("a", 1)


def test_a_histogram_counts_what_is_finite():
    found = log_values.histogram(torch.tensor([[0.0, 1.0], [1.0, float("nan")]]), bins=2)
    assert (found.counts.tolist(), found.edges.tolist(), found.not_finite) == ([1, 2], [0.0, 0.5, 1.0], 1)
    assert (found.total, found.squares) == (2.0, 2.0)
    assert log_values.histogram([], bins=2).counts.sum() == 0
    with pytest.raises(RlcoreError, match="made of numbers"):
        log_values.histogram(["a"])


def test_a_nested_config_is_flat_by_dotted_names():
    config = {"run": {"seed": 1}, "hook": [{"name": "clip", "limit": 2}, {"on": True}], "layers": [64, 64]}
    assert dict(log_values.flat(config)) == {
        **{"run.seed": 1, "hook.clip.name": "clip", "hook.clip.limit": 2, "hook.1.on": True},
        "layers": [64, 64],
    }


# going back, and the key `required`


class Stuck(Rows):
    def load_state_dict(self, state):
        raise OSError(30, "Read-only file system")


def test_a_logger_that_cannot_go_back_is_switched_off_unless_it_is_required(caplog):
    logger = Stuck()
    writer = LogWriter("stuck", logger)
    writer.load_state_dict({"position": {}})
    writer.write({"a": 1.0}, 1)
    writer.close()
    assert logger.rows == [], "its rows after the checkpoint would stand there twice"
    assert (writer.failures, writer.left_out) == (3, 1)
    assert "Read-only file system; it is switched off" in caplog.text
    writer = LogWriter("stuck", Stuck(), required=True)
    with pytest.raises(ConfigError, match="logger 'stuck' says required = true"):
        writer.load_state_dict({"position": {}})
    writer.close()


def test_required_is_a_key_of_every_logger_and_no_other_section():
    config = make_config(sections={"logger": [{"use": "testing:toy", "required": True}, {"use": "csv"}]})
    assert [section.required for section in config.sections["logger"]] == [True, False]
    assert [table.get("required") for table in config.resolved()["logger"]] == [True, None]
    with pytest.raises(ConfigError, match="required: must be true or false, not 1"):
        make_config(sections={"logger": [{"use": "csv", "required": 1}]})
    with pytest.raises(ConfigError, match="required"):
        make_config("env.required=true")


def test_the_schema_for_editors_knows_required():
    for choice in config_schema()["properties"]["logger"]["items"]["anyOf"]:
        assert choice["properties"]["required"]["type"] == "boolean"


def test_a_run_with_a_required_logger_that_starts_is_as_any_other(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        run = make_run(folder=tmp_path, sections={"logger": [{"use": "csv", "required": True}]})
        run.trainer.train()
    assert run.trainer.metrics.writers[0].failures == 0
    assert (tmp_path / "toy" / "metrics.csv").exists()
