"""The contracts of the plugin, of envs for both ways of stepping, and of the transform."""

from importlib.util import find_spec

import pytest
from rlcore_plugin_testing.contracts import EnvContract, PluginContract, TransformContract


class TestPlugin(PluginContract):
    plugin = "gymnasium"


class TestSerialCartPole(EnvContract):
    use = "gymnasium"
    config = {"id": "CartPole-v1", "num_envs": 2}
    truncates = {"max_episode_steps": 5}


class TestNativeCartPole(EnvContract):
    use = "gymnasium"
    config = {"id": "CartPole-v1", "num_envs": 4, "vectorization": "native"}
    truncates = {"max_episode_steps": 5}
    seeds_each_env = False


class TestPendulum(EnvContract):
    """Continuous actions; an episode is only ever cut off."""

    use = "gymnasium"
    config = {"id": "Pendulum-v1"}
    terminates = None
    truncates = {"max_episode_steps": 7}


@pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo is not installed")
class TestMuJoCo(EnvContract):
    """Observations in double precision."""

    use = "gymnasium"
    config = {"id": "InvertedDoublePendulum-v5", "num_envs": 2}
    truncates = {"max_episode_steps": 2}


class TestWrappedCartPole(EnvContract):
    """A stack that grows in an episode: the saved state has it."""

    use = "gymnasium"
    config = {
        "id": "CartPole-v1",
        "num_envs": 2,
        "wrappers": [{"use": "FrameStackObservation", "stack_size": 3}, "FlattenObservation"],
    }
    truncates = {"max_episode_steps": 5}


class TestLimitedByAWrapper(EnvContract):
    use = "gymnasium"
    config = {"id": "Pendulum-v1", "wrappers": [{"use": "TimeLimit", "max_episode_steps": 6}]}
    terminates = None
    truncates = {"num_envs": 1}


class TestBlackjack(EnvContract):
    """Observes a tuple of numbers."""

    use = "gymnasium"
    config = {"id": "Blackjack-v1", "num_envs": 2}
    around = {"model": {"use": "mlp", "hidden": [8]}}


class TestRepeatedActions(EnvContract):
    use = "gymnasium"
    config = {"id": "CartPole-v1", "num_envs": 2, "frame_skip": 4}
    around = {"collector": {"frames_per_batch": 64}}


class TestObservationNorm(TransformContract):
    use = "gymnasium:observation-norm"
    config = {"frames": 50}


@pytest.mark.skipif(find_spec("mujoco") is None, reason="MuJoCo is not installed")
class TestObservationNormOfDoubles(TransformContract):
    """MuJoCo observes in double precision; the policy sees single precision."""

    use = "gymnasium:observation-norm"
    config = {"frames": 20}
    around = {"env": {"use": "gymnasium", "id": "InvertedDoublePendulum-v5"}}
