"""The contracts of the plugin, of the model and of the buffers."""

import pytest
import torch
from rlcore_plugin_testing.contracts import BufferContract, DataBufferContract, ModelContract, PluginContract
from rlcore_plugin_testing.contracts.data import observations
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING

from .sections import AROUND, DATASET, MODEL, REPLAY, write_toy


class TestPlugin(PluginContract):
    plugin = "mbpo"


class TestModel(ModelContract):
    use = "mbpo"
    config = {key: value for key, value in MODEL.items() if key != "use"}
    around = AROUND

    def behaviour(self, component, context):
        seen, actions = observations(context.env_spec, 5), component.box.from_unit(torch.linspace(-1, 1, 10).view(5, 2))
        with torch.no_grad():
            inputs = component.dynamics.inputs_of(seen, actions)
            return {
                "actor": component.actor(seen),
                "critics": component.critics(seen, actions),
                "dynamics": component.dynamics(inputs)._asdict(),
                "ends": component.dynamics.ends(inputs, component.dynamics.following_of(seen)),
            }


class TestModelThatIsDeterministic(TestModel):
    config = {**TestModel.config, "actor": "deterministic", "termination": "never"}
    around = {**AROUND, "loss": {"use": "sac:td3"}}

    def behaviour(self, component, context):
        found = super().behaviour(component, context)
        assert found.pop("ends") is None
        return found


class ImaginedContract(BufferContract):
    use = "mbpo:imagined-replay"
    around = AROUND
    keeps_experience = True

    @pytest.mark.skip(reason="the dynamics predict no dicts")
    def test_leaves_keep_their_bits(self):
        """`test_bad_input.py` says that they are refused."""


class TestReplayThatImaginesNothing(ImaginedContract):
    config = {**{key: value for key, value in REPLAY.items() if key != "use"}, "real_share": 1.0}


class TestImaginedReplay(ImaginedContract):
    """The contract numbers steps by their rewards, which imagined ones have not."""

    config = {key: value for key, value in REPLAY.items() if key != "use"}

    @pytest.mark.skip(reason="the rewards of the contract's batches name their steps, and imagined ones have none")
    def test_rows_belong_together(self):
        """`test_imagination.py` says what belongs together."""

    @pytest.mark.skip(reason="the rewards of the contract's batches name their steps, and imagined ones have none")
    def test_masked_steps_are_never_drawn(self):
        """The real rows are those of the replay buffer, which leaves them out."""


class TestImaginedDataset(DataBufferContract):
    use = "mbpo:imagined-dataset"
    around = {**AROUND, **COLLECTS_NOTHING, "buffer": []}

    @pytest.fixture(autouse=True)
    def _data(self, tmp_path_factory, monkeypatch):
        keys = {**DATASET, "path": str(write_toy(tmp_path_factory.mktemp("data") / "toy"))}
        monkeypatch.setattr(type(self), "config", {key: value for key, value in keys.items() if key != "use"})
