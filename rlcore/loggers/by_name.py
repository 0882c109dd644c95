"""The loggers by their class names, for use without a config; each comes from its plugin when it is first named."""

from __future__ import annotations

import datetime
import importlib
import secrets
from pathlib import Path
from typing import Any, Final

from rlcore.errors import MissingPluginError, NotProvidedError, did_you_mean
from rlcore.loggers.base import LoggerBase as Logger
from rlcore.plugins.host import WELL_KNOWN

# class name to the name of its component
CLASSES: Final = {
    "CSVLogger": "csv",
    "MLFlowLogger": "mlflow",
    "TensorboardLogger": "tensorboard",
    "WandbLogger": "wandb",
}
_OF_TYPE: Final = {name: cls for cls, name in CLASSES.items()}


def logger_class(name: str) -> Any:
    """Return a logger class.

    Raises:
        PluginError: its plugin is not installed; names the command.
    """
    component = CLASSES[name]
    distribution = WELL_KNOWN[component]
    try:
        module = importlib.import_module(f"{distribution.replace('-', '_')}.logger")
    except ModuleNotFoundError as error:
        raise MissingPluginError(
            f"{name} is provided by {distribution}, which is not installed or lacks {error.name!r}: "
            f"pip install {distribution}"
        ) from error
    return getattr(module, name)


def generate_exp_name(model_name: str, experiment_name: str) -> str:
    """Return `MODEL_EXPERIMENT_xxxxxxxx_yy_mm_dd-HH_MM_SS`, with eight random hexadecimal digits and the local time."""
    now = datetime.datetime.now().strftime("%y_%m_%d-%H_%M_%S")
    return f"{model_name}_{experiment_name}_{secrets.token_hex(4)}_{now}"


def get_logger(logger_type: str | None, logger_name: str, experiment_name: str, **kwargs: Any) -> Logger | None:
    """Return a logger by the name of its type.

    Args:
        logger_type: `csv`, `tensorboard`, `wandb` or `mlflow`; nothing gives no logger.
        logger_name: folder for its files; for `mlflow` the database `mlflow.db` is made there, unless `mlflow_kwargs`
            has a `tracking_uri`.
        experiment_name: name of the experiment.
        kwargs: `wandb_kwargs` and `mlflow_kwargs` are further arguments of those two loggers.

    Raises:
        PluginError: there is no such type, or its plugin is not installed.
    """
    if not logger_type:
        return None
    if logger_type not in _OF_TYPE:
        known = ", ".join(_OF_TYPE)
        raise NotProvidedError(
            f"unknown logger type {logger_type!r}{did_you_mean(logger_type, _OF_TYPE)}; known are {known}"
        )
    cls = logger_class(_OF_TYPE[logger_type])
    if logger_type == "mlflow":
        folder = Path(logger_name).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        arguments = {"tracking_uri": f"sqlite:///{folder / 'mlflow.db'}", "save_dir": folder}
        return cls(experiment_name, **{**arguments, **kwargs.get("mlflow_kwargs", {})})  # type: ignore[no-any-return]
    return cls(experiment_name, log_dir=logger_name, **kwargs.get(f"{logger_type}_kwargs", {}))  # type: ignore[no-any-return]
