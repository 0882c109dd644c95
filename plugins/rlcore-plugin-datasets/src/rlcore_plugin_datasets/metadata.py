"""What a dataset says of itself: `metadata.json`, as Minari writes it, with the checksum of the data beside it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.envs import Packed
from rlcore.errors import StorageError
from rlcore_plugin_datasets.checksums import checksum_of, read_own
from rlcore_plugin_datasets.formats import FORMATS
from rlcore_plugin_datasets.spaces import space_text, spaces_of

if TYPE_CHECKING:
    import gymnasium

METADATA: Final = "metadata.json"
# of the format that is written, and the first that is too new to be read
WRITTEN: Final = "0.5.3"
_OLDEST, _TOO_NEW = (0, 4), (0, 6)
# what Minari knows nothing of, and leaves as it is
OWN: Final = "rlcore"
_MOST_BYTES: Final = 64 << 20


@dataclass(frozen=True)
class Metadata:
    """What a dataset says of itself.

    Attributes:
        observation_space: of one observation.
        action_space: of one action.
        episodes: how many.
        steps: of all episodes.
        dataset_id: its name, `NAME-v0`.
        env_id: of the env that it was recorded in; empty where it does not say.
        file: `{"size": …, "xxh3": …}` of the data; empty in a dataset of others.
        data_format: a key of `FORMATS`.
        raw: all that it says.
        is_whole: whether it says what was written; true of a dataset of others, which has no checksum of it.
    """

    observation_space: gymnasium.Space[Any]
    action_space: gymnasium.Space[Any]
    episodes: int
    steps: int
    dataset_id: str
    env_id: str = ""
    file: dict[str, Any] = field(default_factory=dict)
    data_format: str = "hdf5"
    raw: dict[str, Any] = field(default_factory=dict, repr=False)
    is_whole: bool = True


def read_metadata(folder: Path) -> Metadata:
    """Return what a dataset says of itself.

    Raises:
        StorageError: it is none, is damaged, of a newer format, or without what is needed; names the file.
    """
    file = folder / METADATA
    try:
        raw = json.loads(read_own(folder, METADATA, _MOST_BYTES))
        if not isinstance(raw, dict):
            raise ValueError("it holds no table")
        _check_version(str(raw.get("minari_version", "")))
        data_format = raw.get("data_format", "hdf5")
        if data_format not in FORMATS:
            raise ValueError(f"its data are {data_format!r}; what is read here is {', '.join(FORMATS)}")
        own = _own(raw)
        spaces = spaces_of(raw["observation_space"], raw["action_space"])
        _check_images(raw, spaces[0])
        return Metadata(
            *spaces,
            int(raw["total_episodes"]),
            int(raw["total_steps"]),
            str(raw.get("dataset_id", folder.name)),
            _env_id(raw, own),
            dict(own.get("file", {})),
            data_format,
            raw,
            "metadata" not in own or own["metadata"] == _checksum(raw),
        )
    except FileNotFoundError:
        what = f"it has no {METADATA}" if folder.exists() else "there is no such folder"
        raise StorageError(
            f"{str(folder)!r} is no dataset: {what}; rlcore data record RUN --episodes 100 --out {folder} writes one"
        ) from None
    except KeyError as error:
        raise StorageError(f"{file} does not say {error}; it is damaged, or of another format") from None
    except (OSError, ValueError, TypeError, RecursionError, OverflowError) as error:
        raise StorageError(f"{file} cannot be read: {error}") from None


def metadata_text(
    spaces: tuple[gymnasium.Space[Any], gymnasium.Space[Any]],
    episodes: int,
    steps: int,
    name: str,
    file: dict[str, Any],
    more: dict[str, Any],
    data_format: str,
) -> str:
    """Return the text of `metadata.json`.

    Args:
        spaces: of one observation and of one action.
        episodes: how many.
        steps: of all of them.
        name: of the folder, from which the id follows.
        file: size and checksum of the data.
        more: keys of Minari's besides, such as `env_spec`; under `rlcore` ours.
        data_format: a key of `FORMATS`.

    Raises:
        ConfigError: a dataset has no place for a space.
    """
    own = {**more.get(OWN, {}), "file": file}
    content = {
        "total_episodes": episodes,
        "total_steps": steps,
        "data_format": data_format,
        "jpeg_encoding": False,
        "observation_space": space_text(spaces[0]),
        "action_space": space_text(spaces[1]),
        "dataset_id": dataset_id(name),
        "minari_version": WRITTEN,
        "dataset_size": round(file["size"] / 1e6, 1),
        **{key: value for key, value in more.items() if key != OWN},
        OWN: own,
    }
    content[OWN] = {**own, "metadata": _checksum(content)}
    return json.dumps(content, indent=1) + "\n"


def dataset_id(name: str) -> str:
    """Return the id of a dataset whose folder has that name: with a version, as Minari wants it."""
    plain = re.sub(r"[^-\w]", "-", name)
    return plain if re.search(r"-v\d+$", plain) else f"{plain}-v0"


def _own(raw: dict[str, Any]) -> dict[str, Any]:
    own = raw.get(OWN)
    return own if isinstance(own, dict) else {}


def _checksum(raw: dict[str, Any]) -> str:
    """Return the checksum of everything that metadata say, but for that checksum."""
    own = {key: value for key, value in _own(raw).items() if key != "metadata"}
    return checksum_of({**raw, OWN: own})


def _check_version(text: str) -> None:
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"minari_version is {text!r}, which is no version")
    version = (int(found[1]), int(found[2]))
    if not _OLDEST <= version < _TOO_NEW:
        raise ValueError(
            f"it is of Minari {text}, and what is read here is 0.4 and 0.5; update rlcore-plugin-datasets, or write it "
            "again with a Minari in between"
        )


def _check_images(raw: dict[str, Any], space: gymnasium.Space[Any]) -> None:
    leaves = [*space.leaves.values()] if isinstance(space, Packed) else [space]
    if raw.get("jpeg_encoding") and any(map(_is_image, leaves)):
        raise ValueError(
            "its images are compressed as JPEG, which is not read here; have Minari write it with jpeg_encoding=False"
        )


def _is_image(space: gymnasium.Space[Any]) -> bool:
    """Return whether Minari takes what lies in a space for images."""
    from gymnasium.spaces import Box

    if not isinstance(space, Box) or len(space.shape) not in (2, 3) or min(space.shape[:2]) < 32:
        return False
    return space.dtype == np.uint8 and not space.low.any() and bool((space.high == 255).all())


def _env_id(raw: dict[str, Any], own: dict[str, Any]) -> str:
    if own.get("env"):
        return str(own["env"])
    try:
        return str(json.loads(raw.get("env_spec", ""))["id"])
    except (ValueError, KeyError, TypeError):
        return ""
