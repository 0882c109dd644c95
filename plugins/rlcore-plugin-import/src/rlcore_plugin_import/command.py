"""`rlcore import`: a model of Stable-Baselines3 or CleanRL as a run folder."""

from __future__ import annotations

import argparse
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlcore.cli import Answer, add_json, positive


@dataclass(frozen=True)
class ImportedModel:
    """A model of another library as a run folder.

    Attributes:
        folder: of the run.
        algorithm: its name there, such as `PPO`.
        library: that trained it.
        frames: for which it was trained.
        total: to which a resume goes on.
        trains: whether the run can go on; else its policy acts and is exported.
        notes: what was not taken, or is otherwise here.
    """

    folder: str
    algorithm: str
    library: str
    frames: int
    total: int
    trains: bool
    notes: list[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `rlcore import`."""
    parser.description = (
        "Make a run folder of a model that another library trained: evaluate it, export it, and train it further. "
        "Nothing of the file is unpickled."
    )
    parser.add_argument("file", metavar="FILE", help="a .zip of Stable-Baselines3 or a .cleanrl_model of CleanRL")
    parser.add_argument("--env", required=True, metavar="ID", help="Gymnasium id of the env that it was trained in")
    parser.add_argument(
        "--normalize", metavar="FILE", help="statistics of observations: of VecNormalize.save, or an .npz"
    )
    parser.add_argument("--name", metavar="NAME", help="of the run; default: that of the file")
    parser.add_argument(
        "--frames", type=positive, metavar="N", help="to train further; default: as many as the last time"
    )
    parser.add_argument("--algorithm", metavar="NAME", help="of a file of CleanRL that several could have written")
    parser.add_argument(
        "--set", action="append", default=[], metavar="K=V", help="override a key of the config, such as env.num_envs=1"
    )
    add_json(parser, ImportedModel)


def run(options: argparse.Namespace) -> Answer:
    """Import, and answer what was taken and what was not."""
    from rlcore_plugin_import.importing import import_model

    imported = import_model(
        Path(options.file),
        options.env,
        normalize=options.normalize,
        name=options.name,
        further=options.frames,
        algorithm=options.algorithm,
        overrides=options.set,
    )
    place, translation = shlex.quote(str(imported.folder)), imported.translation
    lines = [f"{imported.folder}: {translation.algorithm} of {translation.library} at frame {imported.frames:,}"]
    lines += [f"  {note}" for note in imported.notes]
    lines += ["next:", *(f"  {line}" for line in _next(place, imported))]
    model = ImportedModel(
        folder=str(imported.folder),
        algorithm=translation.algorithm,
        library=translation.library,
        frames=imported.frames,
        total=imported.total,
        trains=translation.trains,
        notes=[*imported.notes],
    )
    return Answer(model, "\n".join(lines) + "\n")


def _next(place: str, imported: Any) -> list[str]:
    lines = [f"rlcore evaluate {place}", f"rlcore export {place} --format torch-export"]
    if imported.translation.trains:
        return [*lines, f"rlcore train --resume {place}    (to frame {imported.total:,})"]
    return lines
