"""A contract suite for every kind of component.

A plugin's test is a subclass that names the component:

    from rlcore_plugin_testing.contracts import LoggerContract

    class TestCSV(LoggerContract):
        use = "csv"
        config = {}

Needs pytest (`pip install "rlcore-plugin-testing[test]"`).
"""

from rlcore_plugin_testing.contracts.base import ComponentContract
from rlcore_plugin_testing.contracts.buffer import BufferContract, RolloutBufferContract
from rlcore_plugin_testing.contracts.checkpointer import CheckpointerContract
from rlcore_plugin_testing.contracts.collector import CollectorContract
from rlcore_plugin_testing.contracts.data_buffer import DataBufferContract
from rlcore_plugin_testing.contracts.distribution import DistributionContract
from rlcore_plugin_testing.contracts.env import EnvContract
from rlcore_plugin_testing.contracts.estimator import EstimatorContract, GAEContract
from rlcore_plugin_testing.contracts.evaluator import EvaluatorContract
from rlcore_plugin_testing.contracts.group import GroupContract
from rlcore_plugin_testing.contracts.hook import HookContract
from rlcore_plugin_testing.contracts.launcher import LauncherContract
from rlcore_plugin_testing.contracts.learner import LearnerContract
from rlcore_plugin_testing.contracts.logger import LoggerContract
from rlcore_plugin_testing.contracts.loss import LossContract
from rlcore_plugin_testing.contracts.model import ModelContract
from rlcore_plugin_testing.contracts.optimizer import OptimizerContract
from rlcore_plugin_testing.contracts.plugin import PluginContract
from rlcore_plugin_testing.contracts.scheduler import SchedulerContract
from rlcore_plugin_testing.contracts.sequences import RolloutSequencesContract
from rlcore_plugin_testing.contracts.transform import TransformContract
from rlcore_plugin_testing.contracts.world_model import WorldModelContract

__all__ = [
    "BufferContract",
    "CheckpointerContract",
    "CollectorContract",
    "ComponentContract",
    "DataBufferContract",
    "DistributionContract",
    "EnvContract",
    "EstimatorContract",
    "EvaluatorContract",
    "GAEContract",
    "GroupContract",
    "HookContract",
    "LauncherContract",
    "LearnerContract",
    "LoggerContract",
    "LossContract",
    "ModelContract",
    "OptimizerContract",
    "PluginContract",
    "RolloutBufferContract",
    "RolloutSequencesContract",
    "SchedulerContract",
    "TransformContract",
    "WorldModelContract",
]
