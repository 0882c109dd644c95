"""A logger by the name of its type, and names of experiments, for use without a config."""

from __future__ import annotations

import datetime
import secrets
from pathlib import Path
from typing import Any, Final

from rlcore.errors import NotProvidedError, did_you_mean
from rlcore.loggers import Logger
from rlcore.plugins import lend

_OF_TYPE: Final = {
    "csv": "CSVLogger",
    "mlflow": "MLFlowLogger",
    "tensorboard": "TensorboardLogger",
    "trackio": "TrackioLogger",
    "wandb": "WandbLogger",
}


def generate_exp_name(model_name: str, experiment_name: str) -> str:
    """Return `MODEL_EXPERIMENT_xxxxxxxx_yy_mm_dd-HH_MM_SS`, with eight random hexadecimal digits and the local time."""
    now = datetime.datetime.now().strftime("%y_%m_%d-%H_%M_%S")
    return f"{model_name}_{experiment_name}_{secrets.token_hex(4)}_{now}"


def get_logger(logger_type: str | None, logger_name: str, experiment_name: str, **kwargs: Any) -> Logger | None:
    """Return a logger by the name of its type.

    Args:
        logger_type: `csv`, `tensorboard`, `wandb`, `mlflow` or `trackio`; None or an empty text for no logger.
        logger_name: folder for its files; for `mlflow` the database `mlflow.db` is made there, unless `mlflow_kwargs`
            has a `tracking_uri`.
        experiment_name: name of the experiment.
        kwargs: `wandb_kwargs`, `mlflow_kwargs` and `trackio_kwargs` are further arguments of those loggers.

    Raises:
        PluginError: there is no such type, or its plugin is not installed.
    """
    if not logger_type:
        return None
    if logger_type not in _OF_TYPE:
        raise NotProvidedError(
            f"unknown logger type {logger_type!r}{did_you_mean(logger_type, _OF_TYPE)}; known are {', '.join(_OF_TYPE)}"
        )
    cls = lend("rlcore.loggers", _OF_TYPE[logger_type])
    if logger_type == "mlflow":
        folder = Path(logger_name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        arguments = {"tracking_uri": f"sqlite:///{folder / 'mlflow.db'}", "save_dir": folder}
        return cls(experiment_name, **{**arguments, **kwargs.get("mlflow_kwargs", {})})  # type: ignore[no-any-return]
    return cls(experiment_name, log_dir=logger_name, **kwargs.get(f"{logger_type}_kwargs", {}))  # type: ignore[no-any-return]
