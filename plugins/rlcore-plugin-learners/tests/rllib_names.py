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
        from ray.rllib.algorithms.sac.torch.sac_torch_learner import SACTorchLearner
        from ray.rllib.core.learner.learner_group import LearnerGroup
        from ray.rllib.core.rl_module.multi_rl_module import MultiRLModule
        from ray.rllib.core.rl_module.rl_module import RLModule
    kinds = {kind.__name__: kind for kind in (AlgorithmConfig, LearnerGroup, MultiRLModule, RLModule, SACTorchLearner)}
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


def algorithms():
    """Return the configs of algorithms by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.rllib.algorithms import appo, bc, dqn, impala, ppo, sac
    kinds = (appo.APPOConfig, bc.BCConfig, dqn.DQNConfig, impala.IMPALAConfig, ppo.PPOConfig, sac.SACConfig)
    return {kind.__name__: kind for kind in kinds}


def settings_of(kind, base):
    """Return the keywords of `training` that a config has besides those of all, and defaults that are its own."""
    from ray._common.deprecation import DEPRECATED_VALUE

    owners = [
        owner for owner in kind.__mro__ if "training" in vars(owner) and issubclass(owner, base) and owner != base
    ]
    known = {name: one for owner in owners for name, one in inspect.signature(owner.training).parameters.items()}
    own = [name for name, one in known.items() if name[0] != "_" and one.default is not DEPRECATED_VALUE]
    names = sorted(set(own) - {"self", "kwargs"} - set(inspect.signature(base.training).parameters))
    config, of_all = kind(), base()
    values = {name: getattr(config, name) for name in [*names, *of_all.to_dict()] if hasattr(config, name)}
    if config._train_batch_size_per_learner:  # else it follows from the number of learners
        values["train_batch_size_per_learner"] = config.train_batch_size_per_learner
    changed = {name: value for name, value in values.items() if getattr(of_all, name, "none there") != value}
    plain = {name: value for name, value in changed.items() if name[0] != "_" and is_plain(as_lists(value))}
    plain.pop("model", None)  # of the older API, a hundred lines
    return {"training": names, "defaults": {name: as_lists(value) for name, value in sorted(plain.items())}}


def as_lists(value):
    """Return a value with lists in the place of tuples."""
    return [as_lists(item) for item in value] if isinstance(value, list | tuple) else value


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
        "algorithms": {name: settings_of(kind, config) for name, kind in algorithms().items()},
    }


if __name__ == "__main__":
    json.dump(table(), sys.stdout, indent=1)
    print()
