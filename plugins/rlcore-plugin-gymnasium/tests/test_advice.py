"""What the error of an env that cannot be made advises, which is another thing for each family."""

import sys

import gymnasium
import pytest
from rlcore_plugin_gymnasium import advice
from rlcore_plugin_gymnasium.config import Config
from rlcore_plugin_gymnasium.env import make

from rlcore.errors import ConfigError
from rlcore.types import Context


@pytest.mark.parametrize(
    ("id", "package"),
    [
        ("LunarLander-v3", "rlcore-plugin-gymnasium[box2d]"),
        ("Ant-v5", "rlcore-plugin-gymnasium[mujoco]"),
        ("CartPole-v1", "rlcore-plugin-gymnasium[classic-control]"),
        ("FrozenLake-v1", "gymnasium[toy-text]"),
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
        ("ALE/Pong-v5", r"pip install 'rlcore-plugin-gymnasium\[atari\]'" r', and write id = "ale_py:ALE/Pong-v5"'),
        (
            "MiniGrid-Empty-5x5-v0",
            r"pip install 'rlcore-plugin-gymnasium\[minigrid\]', and write id = .minigrid:MiniGrid-Empty-5x5-v0",
        ),
        ("mine/Grid-v0", r'names the module that registers it: "module:Id-v0"'),
        ("ale_py:ALE/Pong-v5", r"pip install 'rlcore-plugin-gymnasium\[atari\]'$"),
        ("minigrid:MiniGrid-Empty-5x5-v0", r"pip install 'rlcore-plugin-gymnasium\[minigrid\]'$"),
        ("minatar:MinAtar/Breakout-v1", r"pip install 'rlcore-plugin-gymnasium\[minatar\]'$"),
        ("my_envs:Grid-v0", r"own, my_envs.py, lies beside the config or in a folder of \[plugins\] path"),
    ],
)
def test_an_unknown_id_says_where_it_may_come_from(monkeypatch, id, told):
    for package in ("ale_py", "minigrid", "minatar"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(gymnasium.registry, "ALE/Pong-v5", raising=False)  # another test may have imported ale_py
    with pytest.raises(ConfigError, match=told):
        make(Config(id=id), Context.alone("tests"))


def test_nothing_is_advised_where_nothing_is_known():
    assert advice.on_an_unknown_id("CartPole-v99") == ""
    assert advice.on_a_missing_package("CartPole-v99") == ""
    assert advice.on_a_missing_module("CartPole-v1", "numpy") == ""
