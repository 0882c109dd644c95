"""Which library wrote a file, and the run folder that is made of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rlcore.config import SAFE_NAME
from rlcore.errors import ConfigError
from rlcore_plugin_import.cleanrl import translate_cleanrl
from rlcore_plugin_import.layout import Translation
from rlcore_plugin_import.run_writing import Imported, write_run
from rlcore_plugin_import.sb3_models import translate_sb3
from rlcore_plugin_import.vec_normalize import read_normalisation

_NO_STATISTICS = "none"


def import_model(
    path: Path,
    env: str,
    *,
    normalize: str | None = None,
    name: str | None = None,
    further: int | None = None,
    algorithm: str | None = None,
    overrides: Sequence[str] = (),
) -> Imported:
    """Make a run folder of a model that another library trained.

    Args:
        path: a `.zip` of Stable-Baselines3 or a `.cleanrl_model` of CleanRL.
        env: Gymnasium id of the env that it was trained in.
        normalize: file of the statistics of observations; `none` says that there are none.
        name: of the run; default: that of the file.
        further: frames to train; None for as many as the last time.
        algorithm: of a file of CleanRL that several could have written.
        overrides: `"section.key=value"`, as after `--set`.

    Raises:
        ConfigError: the file, the env or the folder cannot be used; says why.
        StorageError: the file is damaged, or has something that is not read.
    """
    called = name or path.stem
    if not SAFE_NAME.fullmatch(called):
        raise ConfigError(f"a run cannot be called {called!r}: use letters, digits and hyphens, with --name")
    if path.suffix == ".cleanrl_model":
        translation = translate_cleanrl(path, called, further, algorithm, normalize is not None)
    elif algorithm is not None:
        raise ConfigError(f"--algorithm {algorithm}: a model of Stable-Baselines3 says itself of which one it is")
    else:
        translation = translate_sb3(path, called, further)
    _add_env(translation, env)
    if normalize not in (None, _NO_STATISTICS):
        _add_normalisation(translation, Path(str(normalize)))
    _add_evaluator(translation)
    return write_run(translation, overrides)


def _add_env(translation: Translation, env: str) -> None:
    translation.config["env"] = {"use": "gymnasium", "id": env, "num_envs": translation.num_envs}


def _add_normalisation(translation: Translation, path: Path) -> None:
    normalisation = read_normalisation(path)
    sections, translation.transforms = normalisation.sections()
    translation.config["transform"] = [*sections, *translation.config.get("transform", [])]
    if not normalisation.training:
        translation.notes.append("the statistics stood still when they were saved: further training moves them on")


def _add_evaluator(translation: Translation) -> None:
    if not translation.trains:
        translation.notes.append(
            f"rlcore has no {translation.algorithm} to go on with: the policy acts and is exported, and is not trained"
        )
        return
    run = translation.config["run"]
    further = max(1, run["total_frames"] - translation.clocks["frames"])
    translation.config["evaluator"] = {"use": "episodes", "every": max(1, further // 10)}
    translation.config["checkpoint"] = {"every": max(1, further // 10)}
