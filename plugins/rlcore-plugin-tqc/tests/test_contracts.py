"""The contracts of the plugin and of the loss."""

from rlcore_plugin_testing.contracts import LossContract, PluginContract

from .sections import AROUND, SEQUENCES, around


class TestPlugin(PluginContract):
    plugin = "tqc"


class TestTQC(LossContract):
    use = "tqc"
    around = AROUND


class TestTQCOfSomeCritics(LossContract):
    use = "tqc"
    around = around(model={"norm": "layer", "dropout": 0.25})
    config = {"dropped": 0, "target_subset": 2, "temperature": 0.1}


class TestTQCOverSequences(LossContract):
    use = "tqc"
    around = SEQUENCES
