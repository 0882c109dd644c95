"""Which classes of RLlib the classes here stand for, and what of them is not called; a file beside has their names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache, partial
from importlib.resources import files
from typing import Any, Final

from rlcore.types import Original
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


@cache
def table() -> Mapping[str, Any]:
    """Return the names of RLlib's classes, and the version that they are of."""
    content: dict[str, Any] = json.loads(files(__package__).joinpath("originals.json").read_text())
    return content


def _names(kind: str) -> frozenset[str]:
    return frozenset(table()["names"][kind])


def of(kind: str, instead: Mapping[str, str]) -> Original:
    """Return the class of RLlib of this name."""
    return Original("RLlib", partial(_names, kind), instead)


LEARNER: Final = of("PPOTorchLearner", _LEARNER)
SAC_LEARNER: Final = of("SACTorchLearner", _LEARNER)
LEARNER_GROUP: Final = of("LearnerGroup", {**_FILES, **_PARTS, **_UPDATES})
RL_MODULE: Final = of("RLModule", _MODULE)
MULTI_RL_MODULE: Final = of(
    "MultiRLModule",
    {
        **_MODULE,
        **dict.fromkeys(
            [f"get_{use}_action_dist_cls" for use in ("exploration", "inference", "train")],
            "override it in each module",
        ),
        "_forward": "override _forward_train, _forward_exploration and _forward_inference",
    },
)
CONFIG: Final = of(
    "AlgorithmConfig",
    {
        **REFUSED,
        **{name: f"it is {now}" for name, now in RENAMED.items()},
        "is_atari": "environment(is_atari=...) says it",
        "is_multi_agent": "multi_agent(policies=...) says it",
        "total_train_batch_size": "training(train_batch_size_per_learner=...) says it",
        "train_batch_size_per_learner": "training(train_batch_size_per_learner=...) says it",
    },
)
