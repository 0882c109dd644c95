"""The folder of a study: what the study is, for a resume to compare, and Optuna's database of its trials."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import optuna

import rlcore
from rlcore.errors import ConfigError
from rlcore.files import replacing
from rlcore_plugin_optuna.by_name import pruner, sampler
from rlcore_plugin_optuna.study_file import StudyFile

STUDY: Final = "study.json"
DATABASE: Final = "study.db"
RUNS: Final = "runs"
# what may differ at a resume: more trials change none of those that there are
_FREE: Final = ("study.trials", "study.folder", "study.config", "study.name", "study.set", "run.name", "run.folder")
# seconds that a process waits for another one that writes into the database
_PATIENCE: Final = 120


def begin(file: StudyFile) -> optuna.Study:
    """Make the folder of a new study.

    Raises:
        ConfigError: it is there already, or cannot be made.
    """
    if file.place.exists():
        raise ConfigError(
            f"study folder {str(file.place)!r} exists already; go on with it with --resume, or give the study another "
            "name in its file"
        )
    try:
        (file.place / RUNS).mkdir(parents=True)
        with replacing(file.place / STUDY) as place:
            place.write_text(json.dumps(_identity(file), indent=1) + "\n")
    except OSError as error:
        raise ConfigError(f"study folder {str(file.place)!r} cannot be made: {error}") from error
    return opened(file.place, file)


def go_on(file: StudyFile) -> optuna.Study:
    """Open the folder of a study that is to go on.

    Raises:
        ConfigError: there is none, or it is of another study; names what differs.
    """
    check_same(file)
    return opened(file.place, file)


def check_same(file: StudyFile) -> None:
    """See that a study is the one that its folder was made for; its base config may have been edited since.

    Raises:
        ConfigError: it is not; names what differs.
    """
    differences = list(_differences(_read(file.place), _identity(file)))
    if differences:
        raise ConfigError(
            "\n  ".join([f"{str(file.place)!r} is of another study:", *differences])
            + "\nGive the study another name in its file, or put back what differs and go on with --resume"
        )


def opened(folder: Path, file: StudyFile) -> optuna.Study:
    """Return the study in a folder; the database is made where there is none.

    Args:
        folder: of the study.
        file: names its sampler and pruner.
    """
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    url = f"sqlite:///{(folder / DATABASE).absolute()}"
    storage = optuna.storages.RDBStorage(url, engine_kwargs={"connect_args": {"timeout": _PATIENCE}})
    return optuna.create_study(
        storage=storage,
        study_name="study",
        direction=file.study.direction,
        sampler=sampler(file, 0),
        pruner=pruner(file),
        load_if_exists=True,
    )


def file_of(folder: Path) -> StudyFile | None:
    """Return the study file that a folder was made from, or None where it is no folder of a study."""
    if not (folder / STUDY).is_file():
        return None
    return StudyFile.model_validate(_read(folder)["file"])


def _read(folder: Path) -> dict[str, Any]:
    try:
        return dict(json.loads((folder / STUDY).read_text()))
    except FileNotFoundError:
        raise ConfigError(f"--resume: no study in {str(folder)!r}; leave --resume out to begin it") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{folder / STUDY} cannot be read: {error}") from error


def _identity(file: StudyFile) -> dict[str, Any]:
    base = rlcore.load_config(file.study.config, file.study.set).resolved()
    return {"file": file.model_dump(mode="json"), "base": {k: v for k, v in base.items() if k != "versions"}}


def _differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for part, label in (("file", ""), ("base", "config: ")):
        old, new = (dict(_leaves(json.loads(json.dumps(identity[part])))) for identity in (before, now))
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key) and key not in _FREE:
                yield f"{label}{key} = {new.get(key)!r} here, {old.get(key)!r} in the study"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _leaves(entry, f"{path}.{key}".lstrip("."))
    else:
        yield path, value
