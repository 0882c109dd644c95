"""A small run of toy parts in memory: milliseconds to build, a fraction of a second to train."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import tomli_w

from rlcore.config.file import read
from rlcore.config.sections import Config, validate
from rlcore.run.asked import ResumeOptions
from rlcore.run.build import build
from rlcore.run.ready import Run
from rlcore.training.loop import Loop

TOY_CONFIG: Final[Mapping[str, Any]] = {
    "run": {"name": "toy", "seed": 1, "total_frames": 64, "device": "cpu"},
    "env": {"use": "testing:toy"},
    "model": {"use": "testing:toy"},
    "loss": {"use": "testing:toy"},
    "estimator": {"use": "testing:toy"},
    "optimizer": [{"use": "adam", "lr": 1e-2}],
    "collector": {"use": "local", "frames_per_batch": 16},
    "buffer": {"use": "rollout", "epochs": 2, "minibatch_size": 8},
    "learner": {"use": "gradient"},
    "evaluator": {"use": "episodes", "episodes": 3, "every": 32},
    "metrics": {"every": 16},
    "logger": [{"use": "testing:toy"}],
    "checkpoint": {"use": "testing:toy", "every": 32},
}


def make_config(*overrides: str, sections: Mapping[str, Any] | None = None, folder: str | Path | None = None) -> Config:
    """Return the validated config of a small run of toy parts.

    Args:
        overrides: `"section.key=value"`, as after `--set`.
        sections: replace whole sections; a table, or a list of tables where a section can be repeated. An empty list
            leaves a section out.
        folder: where the run folder is made.

    Raises:
        ConfigError: something in it does not fit.
    """
    values = {name: value for name, value in {**TOY_CONFIG, **(sections or {})}.items() if value not in ([], None)}
    if folder is not None:
        values["run"] = {**values["run"], "folder": str(folder)}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "toy.toml"
        path.write_text(tomli_w.dumps(values), encoding="utf-8")
        # no environment, so that CKPT_BACKEND of the shell does not change what a test builds
        return validate(read(path, overrides, environment={}))


def make_run(
    *overrides: str,
    hooks: Iterable[Any] = (),
    folder: str | Path | None = None,
    sections: Mapping[str, Any] | None = None,
    resume: bool | ResumeOptions = False,
) -> Run:
    """Build a small run of toy parts.

    Args:
        overrides: `"section.key=value"`, as after `--set`.
        hooks: hook instances, after those of the config.
        folder: where the run folder `toy` is made; None for a run that writes nothing, without loggers.
        sections: replace whole sections, see `make_config`.
        resume: continue the run in that folder, perhaps with options.
    """
    config = make_config(*overrides, sections=sections, folder=folder)
    return build(config, write=folder is not None, resume=resume, hooks=hooks)


def make_trainer(
    *overrides: str,
    hooks: Iterable[Any] = (),
    folder: str | Path | None = None,
    sections: Mapping[str, Any] | None = None,
    resume: bool | ResumeOptions = False,
) -> Loop:
    """Return a trainer of toy parts that is ready to train; the arguments are those of `make_run`.

    Example:
        trainer = make_trainer("loss.use=ppo", "run.total_frames=32", hooks=[MyHook()])
        trainer.train()
    """
    return make_run(*overrides, hooks=hooks, folder=folder, sections=sections, resume=resume).trainer
