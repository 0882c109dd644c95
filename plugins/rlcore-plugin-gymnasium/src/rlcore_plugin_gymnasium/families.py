"""The libraries that ids come from: what registers their envs, and what is installed for each."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from dataclasses import dataclass
from typing import Final

import gymnasium
from packaging.requirements import Requirement

OWN: Final = "rlcore-plugin-gymnasium"


@dataclass(frozen=True)
class Family:
    """Envs of one library.

    Attributes:
        package: what pip installs for them: an extra of this plugin, or another package.
        modules: that are imported for them, the one that registers them first; none where Gymnasium itself does.
        ids: how their ids begin.
        place: how the module of their code begins, where ids do not tell.
    """

    package: str
    modules: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    place: str = ""

    @property
    def install(self) -> str:
        """What to type."""
        return f"pip install {self.package!r}" if "[" in self.package else f"pip install {self.package}"

    @property
    def is_here(self) -> bool:
        """Whether its modules were imported."""
        return all(sys.modules.get(module) is not None for module in self.modules)

    def unmet(self) -> list[str]:
        """Return what is installed in another version than the extra asks for, such as `mujoco 4.0.0, not <4`."""
        extra = self.package.removeprefix(OWN).strip("[]") if self.package.startswith(OWN) else ""
        unmet = []
        for text in importlib.metadata.requires(OWN) or () if extra else ():
            requirement = Requirement(text)
            if requirement.marker is None or not requirement.marker.evaluate({"extra": extra}):
                continue
            try:
                version = importlib.metadata.version(requirement.name)
            except importlib.metadata.PackageNotFoundError:
                continue
            if not requirement.specifier.contains(version, prereleases=True):
                unmet.append(f"{requirement.name} {version}, not {requirement.specifier}")
        return unmet


_HIGHWAY: Final = "exit highway intersection lane-keeping merge parking racetrack roundabout two-way u-turn"

FAMILIES: Final = (
    Family(f"{OWN}[box2d]", place="gymnasium.envs.box2d"),
    Family(f"{OWN}[classic-control]", place="gymnasium.envs.classic_control"),
    Family(f"{OWN}[mujoco]", place="gymnasium.envs.mujoco"),
    Family(f"{OWN}[toy-text]", place="gymnasium.envs.toy_text"),
    Family("gymnasium[jax]", place="gymnasium.envs.phys2d"),
    Family("gymnasium[jax]", place="gymnasium.envs.tabular"),
    Family(f"{OWN}[atari]", ("ale_py",), ("ALE/",)),
    Family(f"{OWN}[minatar]", ("minatar",), ("MinAtar/",)),
    Family(f"{OWN}[minigrid]", ("minigrid",), ("MiniGrid-", "BabyAI-")),
    Family(f"{OWN}[highway]", ("highway_env",), tuple(f"{name}-" for name in _HIGHWAY.split())),
    Family(
        f"{OWN}[robotics]",
        ("gymnasium_robotics",),
        ("AdroitHand", "AntMaze_", "Fetch", "FrankaKitchen-", "HandManipulate", "HandReach", "PointMaze_"),
    ),
    Family(f"{OWN}[dm-control]", ("shimmy", "dm_control"), ("dm_control/",)),
    Family("shimmy[bsuite]", ("shimmy", "bsuite"), ("bsuite/",)),
    Family("procgen", ("procgen",), ("procgen-",)),
)


def family_of(env_id: str) -> Family | None:
    """Return the family of an id, which its beginning tells, or where its code is; None of an unknown one."""
    name = env_id.rpartition(":")[2]
    for family in FAMILIES:
        if name.startswith(family.ids or "\0"):
            return family
    try:
        entry_point = gymnasium.spec(name).entry_point
    except gymnasium.error.Error:
        return None
    place = entry_point if isinstance(entry_point, str) else getattr(entry_point, "__module__", "")
    return next((family for family in FAMILIES if family.place and place.startswith(family.place)), None)
