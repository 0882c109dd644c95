"""The replay buffers keep the contract of buffers, in every place where rows can lie."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from rlcore_plugin_testing.contracts import BufferContract, ComponentContract, PluginContract

AROUND = {
    "plugins": {"files": [str(Path(__file__).with_name("loose_parts.py"))]},
    "loss": {"use": "loose-parts:td"},
    "estimator": None,
}


class TestPlugin(PluginContract):
    plugin = "replay"


class TestReplay(BufferContract):
    use = "replay"
    config = {"capacity": 40, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 16}
    around = AROUND
    keeps_experience = True


class TestRatio(TestReplay):
    config = {"capacity": 40, "minibatch_size": 8, "replay_ratio": 1.1, "warmup_frames": 16}


class TestNSteps(TestReplay):
    """The contract numbers steps by their rewards, which n-step returns change; so only what else it says."""

    config = {**TestReplay.config, "n_steps": 3}

    @pytest.mark.skip(reason="the rewards of the contract's batches name their steps, which sums do not")
    def test_rows_belong_together(self):
        """`test_n_step.py` says what belongs together."""

    @pytest.mark.skip(reason="the rewards of the contract's batches name their steps, which sums do not")
    def test_masked_steps_are_never_drawn(self):
        """`test_n_step.py` says which are left out."""

    @pytest.mark.skip(reason="the rewards of the contract's batches name their steps, which sums do not")
    def test_every_step_can_be_drawn(self):
        """`test_n_step.py` says which can be sampled."""


@pytest.mark.skipif(find_spec("rlcore_plugin_cnn") is None, reason="rlcore-plugin-cnn is not installed")
class TestFrames(ComponentContract):
    """The batches of the contract of buffers show no stacks; so only that a run goes on as it should."""

    kind = "buffer"
    use = "replay"
    config = {**TestReplay.config, "stack": 4, "n_steps": 2}
    around = {
        "env": {"use": "testing:toy-pixels", "actions": "discrete"},
        "model": {
            "use": "dqn:q-network",
            "encoder": "rlcore_plugin_cnn.bodies:NatureCNN",
            "encoder_kwargs": {"channels": [4], "kernels": [3], "strides": [2], "features": 8},
            "hidden": [8],
        },
        "loss": {"use": "dqn"},
        "estimator": [],
    }


class TestPrioritizedFrames(TestFrames):
    use = "replay:prioritized"
    config = {**TestFrames.config, "n_steps": 1}


@pytest.mark.skipif(find_spec("rlcore_plugin_cnn") is None, reason="rlcore-plugin-cnn is not installed")
class TestSequencesOfFrames(ComponentContract):
    """For a policy with memory."""

    kind = "buffer"
    use = "replay:sequences"
    config = {
        **{"capacity": 200, "minibatch_size": 3, "updates_per_batch": 2, "warmup_frames": 32, "stack": 4},
        **{"sequence_length": 4, "burn_in": 2, "n_steps": 2},
    }
    around = {
        "env": {"use": "testing:toy-pixels", "actions": "discrete"},
        "model": {
            "use": "dqn:recurrent-q-network",
            "size": 4,
            "encoder_hidden": [],
            "encoder": TestFrames.around["model"]["encoder"],
            "encoder_kwargs": TestFrames.around["model"]["encoder_kwargs"],
        },
        "loss": {"use": "dqn:r2d2"},
        "estimator": [],
    }


@pytest.mark.skipif(
    find_spec("rlcore_plugin_gymnasium") is None or find_spec("rlcore_plugin_dqn") is None,
    reason="rlcore-plugin-gymnasium or rlcore-plugin-dqn is not installed",
)
class TestHindsight(ComponentContract):
    """The batches of the contract of buffers have no goals; so only that a run goes on as it should."""

    kind = "buffer"
    use = "replay:hindsight"
    config = TestReplay.config
    around = {
        "plugins": {"path": [str(Path(__file__).parents[3] / "examples")]},
        "env": {"use": "gymnasium", "id": "bit_flip:BitFlip-v0", "num_envs": 2, "kwargs": {"bits": 3}},
        "model": {"use": "dqn:q-network", "hidden": [8]},
        "loss": {"use": "dqn"},
        "estimator": [],
    }


class TestPrioritizedHindsight(TestHindsight):
    use = "replay:prioritized-hindsight"
    config = {**TestReplay.config, "n_steps": 2}


class TestMappedFile(TestReplay):
    config = {**TestReplay.config, "storage": "memmap"}


class TestHostMemory(TestReplay):
    config = {**TestReplay.config, "storage": "memory"}


class TestNotSaved(TestReplay):
    """Without its transitions a buffer does not go on as before, and a run with it says so."""

    config = {**TestReplay.config, "save": "none"}

    @pytest.mark.skip(reason="the transitions are left out of the state")
    def test_state_is_restored(self):
        """`test_state.py` says what comes back."""


class TestPrioritized(TestReplay):
    use = "replay:prioritized"


class TestPrioritizedNSteps(TestNSteps):
    use = "replay:prioritized"


class TestSequences(BufferContract):
    use = "replay:sequences"
    config = {
        "capacity": 200,
        "minibatch_size": 3,
        "updates_per_batch": 4,
        "warmup_frames": 32,
        "sequence_length": 4,
        "burn_in": 2,
        "overlap": 1,
        "n_steps": 1,
    }
    around = {**AROUND, "loss": {"use": "loose-parts:sequence-td"}}
    keeps_experience = True


class TestMappedSequences(TestSequences):
    config = {**TestSequences.config, "storage": "memmap"}
