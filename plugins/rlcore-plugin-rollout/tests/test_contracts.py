"""The contracts of the plugin, and of what it collects, hands out and evaluates."""

from rlcore_plugin_testing.contracts import (
    CollectorContract,
    ComponentContract,
    EvaluatorContract,
    PluginContract,
    RolloutBufferContract,
    RolloutSequencesContract,
)
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING


class TestPlugin(PluginContract):
    plugin = "rollout"


class TestLocalCollector(CollectorContract):
    use = "local"
    config = {"frames_per_batch": 14}


class TestNoCollector(ComponentContract):
    kind = "collector"
    use = "none"
    around = {**COLLECTS_NOTHING, "buffer": {"use": "testing:toy-data"}}  # the buffer that it is for


class TestRolloutBuffer(RolloutBufferContract):
    use = "rollout"
    config = {"minibatch_size": 8}


class TestFillingRolloutBuffer(RolloutBufferContract):
    use = "rollout"
    config = {"minibatch_size": 8, "remainder": "fill"}


class TestRolloutSequences(RolloutSequencesContract):
    use = "rollout-sequences"
    config = {"minibatch_size": 8, "sequence_length": 4}
    around = {"model": {"use": "testing:toy-memory"}}


class TestEpisodeEvaluator(EvaluatorContract):
    use = "episodes"
    config = {"episodes": 4}
