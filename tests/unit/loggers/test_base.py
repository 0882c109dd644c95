"""The base of loggers: what it adds to one that writes metrics or scalars alone."""

import pytest
import torch

from rlcore.loggers.base import LoggerBase


class Rows(LoggerBase):
    """Keeps what it is given."""

    def __init__(self):
        super().__init__("rows", "memory")
        self.rows = []

    def log_metrics(self, metrics, step=None):
        self.rows.append((dict(metrics), step))


class Scalars(LoggerBase):
    """Defines `log_scalar` alone, as loggers of other libraries do, and has an object behind it."""

    def _create_experiment(self):
        return []

    def log_scalar(self, name, value, step=None):
        self.experiment.append((name, value, step))

    def log_text(self, name, text, step=None):
        self.experiment.append((name, text, step))


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
