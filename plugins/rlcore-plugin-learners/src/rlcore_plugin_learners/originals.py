"""Which classes of RLlib the classes here stand for, and what of them is not called; a file beside has their names."""

from __future__ import annotations

from functools import partial
from typing import Final

from rlcore.types import Original, originals
from rlcore_plugin_learners.config_names import REFUSED, RENAMED

_FILES: Final = dict.fromkeys(
    ("CLASS_AND_CTOR_ARGS_FILE_NAME", "METADATA_FILE_NAME", "STATE_FILE_NAME"), "the files of a state have their names"
)
_PARTS: Final = {
    "get_checkpointable_components": "override get_state and set_state",
}
_UPDATES: Final = {
    "update_from_batch": "override update",
    "update_from_episodes": "override update",
}
_LOSS: Final = "override compute_losses, compute_gradients, postprocess_gradients or apply_gradients"
_LEARNER: Final = {
    **_FILES,
    **_PARTS,
    **_UPDATES,
    "_uncompiled_update": _LOSS,
    "_update": _LOSS,
    "_make_module": "hand module= or module_spec= to the constructor",
    "compute_loss": "override compute_loss_for_module",
    "device": "num_gpus_per_learner says it",
    "distributed": "num_learners says it",
    "framework": "it is torch",
    "module": "hand module= to the constructor",
    "node": "it is the name of the machine",
}
_MODULE: Final = {
    **_FILES,
    **_PARTS,
    "framework": "it is torch",
    "get_initial_state": "modules here have no memory; a [model] such as recurrent has",
    "is_stateful": "modules here have no memory; a [model] such as recurrent has",
    "unwrapped": "nothing is wrapped around modules",
}


TABLE: Final = originals(__package__)
_OF_RLLIB: Final = partial(Original, "RLlib", TABLE["names"])
LEARNER: Final = _OF_RLLIB(_LEARNER)
LEARNER_GROUP: Final = _OF_RLLIB({**_FILES, **_PARTS, **_UPDATES})
RL_MODULE: Final = _OF_RLLIB(_MODULE)
MULTI_RL_MODULE: Final = _OF_RLLIB(
    {
        **_MODULE,
        **dict.fromkeys(
            [f"get_{use}_action_dist_cls" for use in ("exploration", "inference", "train")],
            "override it in each module",
        ),
        "_forward": "override _forward_train, _forward_exploration and _forward_inference",
    },
)
CONFIG: Final = _OF_RLLIB(
    {
        **REFUSED,
        **{name: f"it is {now}" for name, now in RENAMED.items()},
        "is_atari": "environment(is_atari=...) says it",
        "is_multi_agent": "multi_agent(policies=...) says it",
        "total_train_batch_size": "training(train_batch_size_per_learner=...) says it",
        "train_batch_size_per_learner": "training(train_batch_size_per_learner=...) says it",
    },
)
