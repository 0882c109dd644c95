"""What the parts of a run are called, and what they hand each other; nothing here runs.

The interfaces are protocols, so an implementation inherits from nothing.

Key conventions of a batch, a `tensordict.TensorDict` of batch size `[env, time]`:

    observation, action, sample_log_prob, state_value, advantage, value_target
    next: observation, reward, done, terminated, truncated
    collector: mask          False marks a step that must be neither counted nor trained on

Rewards, flags, values and log-probabilities end in a dimension of size 1. `done = terminated | truncated`;
the two are kept apart down to the value target.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy
from rlcore.types.context import Context
from rlcore.types.data import BackgroundCollector, Buffer, Collector, Evaluator
from rlcore.types.envs import ActionTransform, Env, RenderableEnv, Transform
from rlcore.types.group import Alone, Group
from rlcore.types.heart import Heart
from rlcore.types.learning import Estimator, Learner, Loss, Scheduler
from rlcore.types.models import Distribution, Model, Policy
from rlcore.types.optional import offers
from rlcore.types.outputs import Checkpointer, InPlaceCheckpointer, Logger, Stateful
from rlcore.types.progress import ENDLESS, Every, Progress
from rlcore.types.records import MASK, EnvSpec, Episode, EvaluationResult, Key, RunInfo, State, Step

if TYPE_CHECKING:
    from rlcore.types.records import Array as Array
    from rlcore.types.records import BoolArray as BoolArray
    from rlcore.types.settings import FREE_AT_RESUME as FREE_AT_RESUME
    from rlcore.types.settings import Interval as Interval
    from rlcore.types.settings import Secret as Secret
    from rlcore.types.trainer import Trainer as Trainer

__all__ = [
    "ENDLESS",
    "FREE_AT_RESUME",
    "MASK",
    "ActionTransform",
    "Alone",
    "BackgroundCollector",
    "Buffer",
    "Checkpointer",
    "Collector",
    "Context",
    "Distribution",
    "Env",
    "EnvSpec",
    "Episode",
    "Estimator",
    "EvaluationResult",
    "Evaluator",
    "Every",
    "Group",
    "Heart",
    "InPlaceCheckpointer",
    "Interval",
    "Key",
    "Learner",
    "Logger",
    "Loss",
    "Model",
    "Policy",
    "Progress",
    "RenderableEnv",
    "RunInfo",
    "Scheduler",
    "Secret",
    "State",
    "Stateful",
    "Step",
    "Trainer",
    "Transform",
    "offers",
]

_later, __getattr__, __dir__ = lazy(
    __name__,
    {
        # with pydantic, which listing plugins does without
        "rlcore.types.settings": "FREE_AT_RESUME Interval Secret",
        "rlcore.types.trainer": "Trainer",
    },
)
