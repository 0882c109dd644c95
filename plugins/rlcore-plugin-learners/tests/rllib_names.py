"""Writes down the names of RLlib's classes that a subclass may override: `python rllib_names.py > originals.json`."""

import inspect
import json
import sys
import warnings

import torch

METHODS = """
    api_stack callbacks checkpointing debugging env_runners environment evaluation experimental fault_tolerance
    framework learners multi_agent offline_data python_environment reporting resources rl_module training
"""


def classes():
    """Return RLlib's classes by the name that they have here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
        from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
        from ray.rllib.core.learner.learner_group import LearnerGroup
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
        from ray.rllib.core.rl_module.rl_module import RLModule
    kinds = {kind.__name__: kind for kind in (AlgorithmConfig, LearnerGroup, MultiRLModule, RLModule)}
    return {**kinds, "Learner": PPOTorchLearner}


def names_of(kind):
    """Return public names, and the private ones that are methods."""
    names = [name for name in dir(kind) if not hasattr(object, name) and not name.startswith("__")]
    return [n for n in names if n[0] != "_" or (callable(getattr(kind, n)) and not hasattr(torch.nn.Module, n))]


def is_plain(value):
    """Return whether a default is a value of JSON."""
    try:
        return value != "DEPRECATED_VALUE" and json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        return False


def table():
    """Return what the file says."""
    import ray

    kinds = classes()
    config = kinds["AlgorithmConfig"]
    values = config().to_dict().items()
    return {
        "version": ray.__version__,
        "names": {name: names_of(kind) for name, kind in sorted(kinds.items())},
        "settings": {
            method: [
                name
                for name in inspect.signature(getattr(config, method)).parameters
                if name != "self" and name[0] != "_"
            ]
            for method in METHODS.split()
        },
        "defaults": {name: value for name, value in values if is_plain(value)},
    }


if __name__ == "__main__":
    json.dump(table(), sys.stdout, indent=1)
    print()
