"""Ranks that were started one by one train the same: the same config and code, in a folder that all of them see."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rlcore.errors import ConfigError
from rlcore.run_folder import ID_FILE, leaves, read_id

if TYPE_CHECKING:
    from rlcore.run import Config
    from rlcore.types import Group

# whose values are paths of a host
_OF_A_HOST: Final = ("plugins.files", "plugins.path")
# seconds until a file that one host wrote is seen on another
_SEEN: Final = 10.0
_LOOK: Final = 0.2
_MISSING: Final = "nothing"


class OtherRankError(ConfigError):
    """Another rank cannot begin, and has said why.

    Args:
        rank: that one.
        code: its exit code.
    """

    def __init__(self, rank: int, code: int) -> None:
        super().__init__(f"rank {rank} cannot begin")
        self.exit_code = code


def check_same_config(config: Config, group: Group) -> None:
    """See that all ranks have the same config and the same versions; each calls this.

    Raises:
        ConfigError: on rank 0: names what differs, which rank, and both values.
        OtherRankError: on the others.
    """
    flat = {key: value for key, value in leaves(config.resolved()).items() if not key.startswith(_OF_A_HOST)}
    text = json.dumps(flat, sort_keys=True, default=str)
    if len({digest for (digest,) in group.share((_number(text.encode()),))}) == 1:
        return
    every = [json.loads(theirs) for theirs, _ in group.gather(text)]
    if not every:
        raise OtherRankError(0, ConfigError.exit_code)
    differences = [_differences(every[0], other) for other in every]
    rank = next(rank for rank, lines in enumerate(differences) if lines)
    listed = "".join(f"\n  {line}" for line in differences[rank])
    raise ConfigError(f"rank {rank} has another config, or other code, than rank 0:{listed}")


def check_all_can(group: Group, code: int = 0) -> None:
    """See that all ranks can do what they have just tried; each calls this.

    Args:
        group: the ranks.
        code: 0, or the exit code of the error for which this one cannot.

    Raises:
        OtherRankError: another cannot.
    """
    codes = [code for (code,) in group.share((code,))]
    for rank, theirs in enumerate(codes):
        if theirs and not code:
            raise OtherRankError(rank, theirs)


def check_same_folder(folder: Path, group: Group) -> None:
    """See that a run folder is the same on all hosts, as the ranks go on from what the first has saved there.

    Raises:
        ConfigError: this rank sees another one, or none.
    """
    expected = int(group.share((int(read_id(folder) or "0", 16) >> 1,))[0][0])
    until = time.monotonic() + _SEEN
    while (number := int(read_id(folder) or "0", 16) >> 1) != expected:
        if time.monotonic() > until:
            what = f"its {ID_FILE} is another" if number else "it is not there"
            raise ConfigError(
                f"the run folder {str(folder)!r} of rank {group.rank} is not that of rank 0: {what}; every host must "
                "see the same folder, so put it on a file system that they share: --set run.folder=PATH"
            )
        time.sleep(_LOOK)


def _number(content: bytes) -> int:
    return int.from_bytes(blake2b(content, digest_size=8).digest(), "big") >> 1


def _differences(first: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [
        f"{key} = {other.get(key, _MISSING)!r} there, {first.get(key, _MISSING)!r} on rank 0"
        for key in sorted({*first, *other})
        if first.get(key, _MISSING) != other.get(key, _MISSING)
    ]
