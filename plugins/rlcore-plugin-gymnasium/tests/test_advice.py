"""What the error of an env that cannot be made advises, which is another thing for each family."""

import importlib.metadata
import sys

import gymnasium
import pytest
from rlcore_plugin_gymnasium import advice
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make
from rlcore_plugin_gymnasium.families import FAMILIES, OWN, family_of

from rlcore.errors import ConfigError
from rlcore.types import Context


@pytest.mark.parametrize(
    ("id", "package"),
    [
        ("LunarLander-v3", "rlcore-plugin-gymnasium[box2d]"),
        ("Ant-v5", "rlcore-plugin-gymnasium[mujoco]"),
        ("CartPole-v1", "rlcore-plugin-gymnasium[classic-control]"),
        ("FrozenLake-v1", "rlcore-plugin-gymnasium[toy-text]"),
        ("phys2d/CartPole-v1", "gymnasium[jax]"),
    ],
)
def test_a_missing_package_is_that_of_the_family(monkeypatch, id, package):
    def missing(*args, **kwargs):
        raise gymnasium.error.DependencyNotInstalled("not here")

    monkeypatch.setattr(gymnasium, "make", missing)
    with pytest.raises(ConfigError) as error:
        make(Config(id=id), Context.alone("tests"))
    told = str(error.value)
    assert f"pip install '{package}'" in told
    assert ("mujoco" in told) == ("mujoco" in package)


@pytest.mark.parametrize(
    ("id", "told"),
    [
        ("ALE/Pong-v5", r"pip install 'rlcore-plugin-gymnasium\[atari\]'$"),
        ("MiniGrid-Empty-5x5-v0", r"pip install 'rlcore-plugin-gymnasium\[minigrid\]'$"),
        ("BabyAI-GoToObj-v0", r"pip install 'rlcore-plugin-gymnasium\[minigrid\]'$"),
        ("MinAtar/Breakout-v1", r"pip install 'rlcore-plugin-gymnasium\[minatar\]'$"),
        ("highway-fast-v0", r"pip install 'rlcore-plugin-gymnasium\[highway\]'$"),
        ("parking-v0", r"pip install 'rlcore-plugin-gymnasium\[highway\]'$"),
        ("FetchReach-v4", r"pip install 'rlcore-plugin-gymnasium\[robotics\]'$"),
        ("PointMaze_UMaze-v3", r"pip install 'rlcore-plugin-gymnasium\[robotics\]'$"),
        ("dm_control/cartpole-swingup-v0", r"pip install 'rlcore-plugin-gymnasium\[dm-control\]'$"),
        ("bsuite/catch-v0", r"pip install 'shimmy\[bsuite\]'$"),
        ("procgen-coinrun-v0", r"pip install procgen$"),
        ("mine/Grid-v0", r'names the module that registers it: "module:Id-v0"'),
        ("ale_py:ALE/Pong-v5", r"pip install 'rlcore-plugin-gymnasium\[atari\]'$"),
        ("minigrid:MiniGrid-Empty-5x5-v0", r"pip install 'rlcore-plugin-gymnasium\[minigrid\]'$"),
        ("minatar:MinAtar/Breakout-v1", r"pip install 'rlcore-plugin-gymnasium\[minatar\]'$"),
        ("my_envs:Grid-v0", r"own, my_envs.py, lies beside the config or in a folder of \[plugins\] path"),
    ],
)
def test_an_unknown_id_says_where_it_may_come_from(monkeypatch, id, told):
    for family in FAMILIES:
        for module in family.modules:
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(gymnasium.registry, id.rpartition(":")[2], raising=False)  # a library may have been imported
    with pytest.raises(ConfigError, match=told):
        make(Config(id=id), Context.alone("tests"))


def test_nothing_is_advised_where_nothing_is_known():
    assert advice.on_an_unknown_id("CartPole-v99") == ""
    assert advice.on_a_missing_package("CartPole-v99") == ""
    assert advice.on_a_missing_module("CartPole-v1", "numpy") == ""


def test_every_extra_that_is_named_exists():
    named = {family.package.removeprefix(OWN).strip("[]") for family in FAMILIES if family.package.startswith(OWN)}
    assert named <= set(importlib.metadata.metadata(OWN).get_all("Provides-Extra"))


def test_an_unknown_id_of_a_library_that_is_here_is_no_reason_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "minigrid", sys)
    assert advice.on_an_unknown_id("MiniGrid-Nowhere-v0") == ""


@pytest.mark.parametrize(
    ("id", "version", "told"),
    [
        ("FetchReach-v4", "4.0.0", "with mujoco 4.0.0, not <3.12: pip install 'rlcore-plugin-gymnasium[robotics]'"),
        ("dm_control/cartpole-swingup-v0", "4.0.0", "with mujoco 4.0.0, not <4: pip install"),
        ("FetchReach-v4", "3.11.0", ""),
        ("CartPole-v99", "4.0.0", ""),
    ],
)
def test_a_library_that_fails_beside_another_version_is_told_so(monkeypatch, id, version, told):
    def of(name):
        if name == "mujoco":
            return version
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", of)
    assert told in advice.on_other_versions(id)
    assert bool(told) == bool(advice.on_other_versions(id))


def test_ids_of_gymnasium_belong_to_the_family_of_their_code():
    assert family_of("LunarLander-v3").package == f"{OWN}[box2d]"
    assert family_of("CartPole-v99") is None


@pytest.mark.parametrize("num_envs", [1, 64])
def test_an_id_without_a_version_is_refused_with_the_newest(num_envs):
    with pytest.raises(ConfigError, match=r"id = 'CartPole' says no version; the newest is 'CartPole-v1'") as error:
        make(Config(id="CartPole", num_envs=num_envs), Context.alone("tests"))
    assert error.value.remedy == {"env": {"id": "CartPole-v1"}}
