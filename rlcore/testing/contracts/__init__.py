"""A contract suite for every kind of component.

A plugin's test is a subclass that names the component:

    from rlcore.testing.contracts import LoggerContract

    class TestCSV(LoggerContract):
        use = "csv"
        config = {}

Needs pytest (`pip install "rlcore[test]"`).
"""

from rlcore.testing.contracts.base import ComponentContract
from rlcore.testing.contracts.buffer import BufferContract, RolloutBufferContract
from rlcore.testing.contracts.checkpointer import CheckpointerContract
from rlcore.testing.contracts.collector import CollectorContract
from rlcore.testing.contracts.data_buffer import DataBufferContract
from rlcore.testing.contracts.distribution import DistributionContract
from rlcore.testing.contracts.env import EnvContract
from rlcore.testing.contracts.estimator import EstimatorContract, GAEContract
from rlcore.testing.contracts.evaluator import EvaluatorContract
from rlcore.testing.contracts.group import GroupContract
from rlcore.testing.contracts.hook import HookContract
from rlcore.testing.contracts.launcher import LauncherContract
from rlcore.testing.contracts.learner import LearnerContract
from rlcore.testing.contracts.logger import LoggerContract
from rlcore.testing.contracts.loss import LossContract
from rlcore.testing.contracts.model import ModelContract
from rlcore.testing.contracts.optimizer import OptimizerContract
from rlcore.testing.contracts.plugin import PluginContract
from rlcore.testing.contracts.scheduler import SchedulerContract
from rlcore.testing.contracts.sequences import RolloutSequencesContract
from rlcore.testing.contracts.spooling_logger import SpoolingLoggerContract
from rlcore.testing.contracts.transform import TransformContract

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
    "SpoolingLoggerContract",
    "TransformContract",
]
