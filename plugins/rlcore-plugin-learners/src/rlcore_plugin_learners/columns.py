"""The names of columns, of the parts of a learner's state, and of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from rlcore.types import names_of_originals

Method = TypeVar("Method", bound=Callable[..., Any])

ALL_MODULES: Final = "__all_modules__"
COMPONENT_LEARNER: Final = "learner"
COMPONENT_METRICS_LOGGER: Final = "metrics_logger"
COMPONENT_OPTIMIZER: Final = "optimizer"
COMPONENT_RL_MODULE: Final = "rl_module"
DEFAULT_MODULE_ID: Final = "default_policy"
DEFAULT_OPTIMIZER: Final = "default_optimizer"
# the clock of schedules, in the argument `timesteps` of an update
LIFETIME_STEPS: Final = "num_env_steps_sampled_lifetime"


class Columns:
    """Names of the columns of a batch, each `[row, ...]`, and of what a module returns."""

    OBS = "obs"
    INFOS = "infos"
    ACTIONS = "actions"
    ACTIONS_FOR_ENV = "actions_for_env"
    REWARDS = "rewards"
    TERMINATEDS = "terminateds"
    TRUNCATEDS = "truncateds"
    NEXT_OBS = "new_obs"
    EPS_ID = "eps_id"
    AGENT_ID = "agent_id"
    MODULE_ID = "module_id"
    SEQ_LENS = "seq_lens"
    T = "t"
    STATE_IN = "state_in"
    NEXT_STATE_IN = "next_state_in"
    STATE_OUT = "state_out"
    NEXT_STATE_OUT = "next_state_out"
    EMBEDDINGS = "embeddings"
    ACTION_DIST_INPUTS = "action_dist_inputs"
    ACTION_PROB = "action_prob"
    ACTION_LOGP = "action_logp"
    VF_PREDS = "vf_preds"
    VALUES_BOOTSTRAPPED = "values_bootstrapped"
    ADVANTAGES = "advantages"
    VALUE_TARGETS = "value_targets"
    INTRINSIC_REWARDS = "intrinsic_rewards"
    RETURNS_TO_GO = "returns_to_go"
    LOSS_MASK = "loss_mask"


def override(of: type) -> Callable[[Method], Method]:
    """Return a decorator for methods that replace one of a class.

    Raises:
        NameError: the class has no method of that name.
    """

    def check(method: Method) -> Method:
        # a name that is the original's alone is refused when the class is constructed, which says what to override
        if method.__name__ not in {*dir(of), *names_of_originals(of)}:
            raise NameError(f"{method.__qualname__} replaces nothing: {of.__name__} has no {method.__name__}")
        return method

    return check
