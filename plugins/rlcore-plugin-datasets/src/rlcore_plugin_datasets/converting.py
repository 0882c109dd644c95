"""From other files to a dataset: a journal of a run, a file of d3rlpy, or a dataset of another format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlcore.envs import Packed, packed_space
from rlcore.errors import ConfigError
from rlcore_plugin_datasets.d3rlpy_files import fitted, read_d3rlpy, spaces_of
from rlcore_plugin_datasets.dataset import Dataset, write_dataset
from rlcore_plugin_datasets.journal import SUFFIX, read_journal

if TYPE_CHECKING:
    from rlcore_plugin_datasets.dataset import Spaces
    from rlcore_plugin_datasets.episode import Episode


def converted(
    source: Path, out: Path, env_id: str | None, compression: int | None, data_format: str = "hdf5"
) -> Dataset:
    """Write what is in a file or dataset as a dataset, and return it.

    Args:
        source: a dataset, a file `.episodes` of the hook `record`, or a file of d3rlpy.
        out: folder of the new dataset; must not exist.
        env_id: of Gymnasium, whose spaces the data have; needed where these do not say them as the env has them.
        compression: level of gzip, 1 to 9; None for none.
        data_format: of the new dataset: `hdf5`, `arrow` or `parquet`.

    Raises:
        ConfigError: the folder exists, data do not fit the env, or a format lacks its library or gzip.
        StorageError: something cannot be read or written.
    """
    spaces, episodes, more = _read(source, env_id)
    return write_dataset(out, spaces, episodes, more, compression, data_format)


def _read(source: Path, env_id: str | None) -> tuple[Spaces, Iterable[Episode], dict[str, Any]]:
    if source.is_dir():
        dataset = Dataset(source)
        dataset.verified()
        return _of_env(dataset.spaces, dataset.episodes(infos=True), env_id, dataset.kept)
    if source.suffix == SUFFIX:
        return _of_env(*read_journal(source), env_id, {})
    episodes = read_d3rlpy(source)
    if not episodes:
        raise ConfigError(f"{source} has no episode of two steps")
    return _of_env(spaces_of(episodes), episodes, env_id, {})


def _of_env(
    spaces: Spaces, episodes: Iterable[Episode], env_id: str | None, more: dict[str, Any]
) -> tuple[Spaces, Iterable[Episode], dict[str, Any]]:
    """Return the same with the spaces of an env, where one is named."""
    if env_id is None:
        return spaces, episodes, more
    import gymnasium

    try:
        with gymnasium.make(env_id) as env:
            own: Spaces = (packed_space(env.observation_space, env.action_space), env.action_space)
    except (gymnasium.error.Error, ImportError) as error:
        raise ConfigError(f"--env {env_id}: {error}") from None
    for name, found, wanted in zip(("observations", "actions"), spaces, own, strict=True):
        same = found == wanted if isinstance(wanted, Packed) else found.shape == wanted.shape
        if type(found) is not type(wanted) or not same:
            raise ConfigError(f"--env {env_id} has the {name} {wanted}, and those of the data are {found}")
    return own, (fitted(episode, own) for episode in episodes), {**more, "rlcore": {"env": env_id}}
