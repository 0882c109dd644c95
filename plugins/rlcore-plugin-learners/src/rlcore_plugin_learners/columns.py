"""The names of columns, of the parts of a learner's state, and of modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

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
    NEXT_OBS = "new_obs"
    ACTIONS = "actions"
    REWARDS = "rewards"
    TERMINATEDS = "terminateds"
    TRUNCATEDS = "truncateds"
    ACTION_DIST_INPUTS = "action_dist_inputs"
    ACTION_LOGP = "action_logp"
    VF_PREDS = "vf_preds"
    ADVANTAGES = "advantages"
    VALUE_TARGETS = "value_targets"


def override(of: type) -> Callable[[Method], Method]:
    """Return a decorator for methods that replace one of a class.

    Raises:
        NameError: the class has no method of that name.
    """

    def check(method: Method) -> Method:
        if method.__name__ not in dir(of):
            raise NameError(f"{method.__qualname__} replaces nothing: {of.__name__} has no {method.__name__}")
        return method

    return check
