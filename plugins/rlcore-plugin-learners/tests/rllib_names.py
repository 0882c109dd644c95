"""Writes down the names of RLlib's classes that a subclass may override: `python rllib_names.py > originals.json`."""

import inspect
import json
import sys
import warnings

import torch

METHODS = "api_stack callbacks checkpointing env_runners evaluation experimental fault_tolerance offline_data reporting"


def classes():
    """Return RLlib's classes by the name that they have here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.rllib.algorithms.algorithm_config import AlgorithmConfig
        from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
        from ray.rllib.core.learner.learner_group import LearnerGroup
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
        from ray.rllib.core.rl_module.rl_module import RLModule
    kinds = (AlgorithmConfig, LearnerGroup, MultiRLModule, PPOTorchLearner, RLModule)
    return {kind.__name__: kind for kind in kinds}


def names_of(kind):
    """Return public names, and the private ones that are methods."""
    names = [name for name in dir(kind) if not hasattr(object, name) and not name.startswith("__")]
    return [n for n in names if n[0] != "_" or (callable(getattr(kind, n)) and not hasattr(torch.nn.Module, n))]


def table():
    """Return what the file says."""
    import ray

    kinds = classes()
    config = kinds["AlgorithmConfig"]
    return {
        "ray": ray.__version__,
        "names": {name: names_of(kind) for name, kind in sorted(kinds.items())},
        "settings": {
            method: [
                name
                for name in inspect.signature(getattr(config, method)).parameters
                if name != "self" and name[0] != "_"
            ]
            for method in METHODS.split()
        },
    }


if __name__ == "__main__":
    json.dump(table(), sys.stdout, indent=1)
    print()
