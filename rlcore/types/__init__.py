"""What the parts of a run are called, and what they hand each other; nothing here runs.

The interfaces are protocols, so an implementation inherits from nothing. One that inherits from the interface of its
kind need only define what is abstract there, and goes on working when a later rlcore asks for more.

Key conventions of a batch, a `tensordict.TensorDict` of batch size `[env, time]`:

    observation, action, sample_log_prob, state_value, advantage, value_target
    next: observation, reward, done, terminated, truncated
    collector: mask          False marks a step that must be neither counted nor trained on

Rewards, flags, values and log-probabilities end in a dimension of size 1. `done = terminated | truncated`;
the two are kept apart down to the value target.

A policy with a state (`StatefulPolicy`) adds

    policy_state             the state before the step, as the step before left it, also where an episode begins
    first                    whether the observation is the first of an episode: there the state begins again
    next: policy_state       the state after the step; goes with the next observation, also at the end of an episode

The parts of its model are called `part(observation, state, first)`. With one leading dimension `[sample, ...]` each row
is a step of its own, from its own state. Two leading dimensions are `[time, sequence, ...]`: observations
`[time, sequence, *shape]` and `first` `[time, sequence, 1]` are gone through in the order of time, from one state per
sequence, `[sequence, *state]`; where `first` is True the state begins again, and no gradient goes further back.

A minibatch of sequences has entries `[time, sequence, ...]`, but `policy_state` `[sequence, *state]`: that before the
first of its steps. Its rows that nobody trains on (padding, burn-in, steps that only reset) are those whose mask is
False; where all count there is no mask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.lazy import lazy

if TYPE_CHECKING:
    from rlcore.types.collected import CollectedBatch as CollectedBatch
    from rlcore.types.context import Context as Context
    from rlcore.types.data import Buffer as Buffer
    from rlcore.types.data import Collector as Collector
    from rlcore.types.data import Evaluator as Evaluator
    from rlcore.types.envs import Env as Env
    from rlcore.types.envs import InfoListener as InfoListener
    from rlcore.types.envs import Transform as Transform
    from rlcore.types.exports import ModuleWithMemory as ModuleWithMemory
    from rlcore.types.foreign import Stepping as Stepping
    from rlcore.types.group import Alone as Alone
    from rlcore.types.group import Group as Group
    from rlcore.types.heart import Heart as Heart
    from rlcore.types.hook_parts import Hook as Hook
    from rlcore.types.hook_parts import HookObject as HookObject
    from rlcore.types.launcher import Launcher as Launcher
    from rlcore.types.learning import Estimator as Estimator
    from rlcore.types.learning import Learner as Learner
    from rlcore.types.learning import PacedOptimizer as PacedOptimizer
    from rlcore.types.learning import Scheduler as Scheduler
    from rlcore.types.loss import Loss as Loss
    from rlcore.types.mappings import FoundEntries as FoundEntries
    from rlcore.types.mappings import Rows as Rows
    from rlcore.types.mappings import is_mapping as is_mapping
    from rlcore.types.models import Distribution as Distribution
    from rlcore.types.models import Foretelling as Foretelling
    from rlcore.types.models import Model as Model
    from rlcore.types.models import Policy as Policy
    from rlcore.types.models import StatefulPolicy as StatefulPolicy
    from rlcore.types.models import has_memory as has_memory
    from rlcore.types.models import part_of as part_of
    from rlcore.types.models import policy_of as policy_of
    from rlcore.types.optional import missing as missing
    from rlcore.types.optional import offers as offers
    from rlcore.types.outputs import Checkpointer as Checkpointer
    from rlcore.types.outputs import Logger as Logger
    from rlcore.types.outputs import Stateful as Stateful
    from rlcore.types.overrides import Carries as Carries
    from rlcore.types.overrides import Original as Original
    from rlcore.types.overrides import is_overridden as is_overridden
    from rlcore.types.overrides import names_of_originals as names_of_originals
    from rlcore.types.overrides import originals as originals
    from rlcore.types.part import Part as Part
    from rlcore.types.part import defines as defines
    from rlcore.types.part import with_defaults as with_defaults
    from rlcore.types.progress import ENDLESS as ENDLESS
    from rlcore.types.progress import Clock as Clock
    from rlcore.types.progress import Every as Every
    from rlcore.types.progress import Progress as Progress
    from rlcore.types.progress import unit_of as unit_of
    from rlcore.types.records import COLLECTED as COLLECTED
    from rlcore.types.records import ESTIMATED as ESTIMATED
    from rlcore.types.records import FIRST as FIRST
    from rlcore.types.records import MASK as MASK
    from rlcore.types.records import NEXT_POLICY_STATE as NEXT_POLICY_STATE
    from rlcore.types.records import POLICY_STATE as POLICY_STATE
    from rlcore.types.records import REMEMBERED as REMEMBERED
    from rlcore.types.records import AgentSpec as AgentSpec
    from rlcore.types.records import Array as Array
    from rlcore.types.records import BoolArray as BoolArray
    from rlcore.types.records import EnvSpec as EnvSpec
    from rlcore.types.records import Episode as Episode
    from rlcore.types.records import EvaluationResult as EvaluationResult
    from rlcore.types.records import Key as Key
    from rlcore.types.records import RunInfo as RunInfo
    from rlcore.types.records import State as State
    from rlcore.types.records import Step as Step
    from rlcore.types.settings import FREE_AT_RESUME as FREE_AT_RESUME
    from rlcore.types.settings import Interval as Interval
    from rlcore.types.settings import Secret as Secret
    from rlcore.types.settings import done_by as done_by
    from rlcore.types.trainer import ScriptTrainer as ScriptTrainer
    from rlcore.types.trainer import Trainer as Trainer

__all__, __getattr__, __dir__ = lazy(
    __name__,
    {
        "rlcore.types.collected": "CollectedBatch",
        "rlcore.types.context": "Context",
        "rlcore.types.data": "Buffer Collector Evaluator",
        "rlcore.types.envs": "Env InfoListener Transform",
        "rlcore.types.exports": "ModuleWithMemory",
        "rlcore.types.foreign": "Stepping",
        "rlcore.types.group": "Alone Group",
        "rlcore.types.heart": "Heart",
        "rlcore.types.hook_parts": "Hook HookObject",
        "rlcore.types.launcher": "Launcher",
        "rlcore.types.learning": "Estimator Learner PacedOptimizer Scheduler",
        "rlcore.types.loss": "Loss",
        "rlcore.types.mappings": "FoundEntries Rows is_mapping",
        "rlcore.types.models": "Distribution Foretelling Model Policy StatefulPolicy has_memory part_of policy_of",
        "rlcore.types.optional": "missing offers",
        "rlcore.types.outputs": "Checkpointer Logger Stateful",
        "rlcore.types.overrides": "Carries Original is_overridden names_of_originals originals",
        "rlcore.types.part": "Part defines with_defaults",
        "rlcore.types.progress": "Clock ENDLESS Every Progress unit_of",
        "rlcore.types.records": (
            "COLLECTED ESTIMATED FIRST MASK NEXT_POLICY_STATE POLICY_STATE REMEMBERED AgentSpec EnvSpec Episode "
            "EvaluationResult Key RunInfo State Step"
        ),
        "rlcore.types.settings": "FREE_AT_RESUME Interval Secret done_by",
        "rlcore.types.trainer": "ScriptTrainer Trainer",
    },
)
