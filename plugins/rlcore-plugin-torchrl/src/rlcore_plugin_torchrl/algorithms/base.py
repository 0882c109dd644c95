"""The base of the named trainers: `Trainer` with the hooks of a recipe."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Final

from rlcore import Trainer
from rlcore.errors import ConfigError
from rlcore.types import Original, offers, originals
from rlcore_plugin_torchrl.algorithms.recipes import Recipe
from rlcore_plugin_torchrl.hooks.log_scalar import LogScalar
from rlcore_plugin_torchrl.hooks.replay_buffer import ReplayBufferTrainer
from rlcore_plugin_torchrl.hooks.update_weights import UpdateWeights
from rlcore_plugin_torchrl.hooks.utd_ratio import UTDRHook
from rlcore_plugin_torchrl.protocols import OnDevice, TakesKeys, WithStorage

# what a subclass of a trainer of TorchRL may override and one of a trainer here may not
_INSTEAD: Final = {
    "_aggregate_agent_rewards": "register_op('batch_process', operation) has it called",
    "_algo_name": "leave it out; log messages have the name of the class",
    "_default_num_epochs": "hand num_epochs to the constructor",
    "_pass_action_spec_from_collector_to_loss": "hand action_spec to the loss module",
    **dict.fromkeys(
        (
            "_setup_cql_logging",
            "_setup_ddpg_logging",
            "_setup_dqn_logging",
            "_setup_iql_logging",
            "_setup_logging",
            "_setup_sac_logging",
            "_setup_td3_logging",
        ),
        "override register_logging",
    ),
    "_step_greedy": "register_op('post_steps', operation) has it called, or hand greedy_module to the constructor",
}


class NamedTrainer(Trainer):
    """Registers what an algorithm needs, in the order in which TorchRL's trainer of that name does.

    Args:
        arguments: those of `Trainer`, and the options of the recipe. `replay_buffer` is one of TorchRL, which is
            extended with each batch before its first epoch, and iterated over by the optimisation steps.

    Raises:
        ConfigError: something that the algorithm needs is missing.
        NotSupportedError: a subclass overrides what would never be called.
        TypeError: there is no such argument.

    Attributes:
        recipe: what the algorithm takes and registers.
        options: of the recipe, with the values that were handed over.
    """

    original = Original(
        "TorchRL", originals("rlcore_plugin_torchrl")["names"], {**Trainer.original.instead, **_INSTEAD}
    )
    recipe: ClassVar[Recipe]

    def __init_subclass__(cls) -> None:
        """Let `help` and `inspect.signature` show every argument, of the class and of its constructor."""
        super().__init_subclass__()
        if "__init__" not in vars(cls):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]

    def __init__(self, *, collector: Any, total_frames: int | None, **arguments: Any) -> None:
        recipe = self.recipe
        self.options = {name: arguments.pop(name, default) for name, default in recipe.options.items()}
        buffer = arguments.pop("replay_buffer", None)
        if recipe.targets and arguments.get("target_net_updater") is None:
            raise ConfigError(
                f"{type(self).__name__} requires a target_net_updater: it moves the target networks of the loss module"
            )
        if arguments.get("num_epochs") is None:
            arguments["num_epochs"] = recipe.epochs
        self.prepare(collector, arguments)
        super().__init__(collector=collector, total_frames=total_frames, **arguments)
        # kept alone: a hook of its own saves it and samples from it, so that no part follows
        vars(self)["replay_buffer"] = buffer
        self.replay: Any = None
        self.before_replay()
        if buffer is not None:
            self.replay = self.register_replay(buffer)
        self.register_sending()
        self.tell_keys()
        if self.options["enable_logging"]:
            self.register_logging()

    def __getattr__(self, name: str) -> Any:
        """Return an option as an attribute."""
        options = self.__dict__.get("options", {})
        if name not in options:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return options[name]

    def prepare(self, collector: Any, arguments: dict[str, Any]) -> None:
        """Change the arguments, or the loss module, before the trainer is built."""

    def before_replay(self) -> None:
        """Register what comes before the replay buffer."""

    def register_replay(self, buffer: Any) -> Any:
        """Extend and draw from the buffer, and save it."""
        hook = ReplayBufferTrainer(buffer, flatten_tensordicts=True, device=storage_device(buffer), iterate=True)
        self.register_module("replay_buffer", hook)
        if not self.async_collection:  # else the collector extends it
            self.register_op("pre_epoch", hook.extend)
        self.register_op("process_optim_batch", hook.sample)
        if self.recipe.priorities:
            self.register_op("post_loss", hook.update_priority)
        return hook

    def register_sending(self) -> None:
        """Send the weights of the policy to the collector after each batch."""
        self.send(policy_weights_getter=self.weights_getter(self.policy()))

    def send(self, **how: Any) -> None:
        """Register an `UpdateWeights`."""
        hook = UpdateWeights(self.collector, 1, **how)
        self.register_module("update_weights", hook)
        self.register_op("post_steps", hook)

    def policy(self) -> Any:
        """Return the module that the collector acts with.

        Raises:
            ConfigError: the loss module has none of the names that it could have.
        """
        names = self.recipe.policy
        modules = (getattr(self.loss_module, name, None) for name in names)  # names are of the recipe
        module = next((module for module in modules if module is not None), None)
        if module is None:
            raise ConfigError(
                f"{type(self).__name__}: a {type(self.loss_module).__name__} has no {' or '.join(names)}, whose "
                "weights the collector acts with"
            )
        return module

    def weights_getter(self, module: Any) -> Callable[[], Any]:
        """Return a function that returns the weights of a module."""
        from tensordict import TensorDict

        return lambda: TensorDict.from_module(module)

    def key(self, name: str) -> Any:
        """Return the entry of a name: `reward`, `episode_reward`, `done`, `terminated`, `action`, `observation`."""
        fixed = self.recipe.episode_reward if name == "episode_reward" else name
        return self.options.get(f"{name}_key", fixed)

    def tell_keys(self) -> None:
        """Tell the loss module the names of its entries."""
        if self.recipe.keys and offers(self.loss_module, TakesKeys):
            self.loss_module.set_keys(**{name: self.key(name) for name in self.recipe.keys})

    def register_logging(self) -> None:
        """Log statistics of batches; of sub-batches, where the collector runs in the background."""
        place = "post_optim_log" if self.async_collection else "pre_steps_log"
        for hook in self.logged():
            self.register_op(place, hook)
        if self.recipe.ratio:
            self.register_op("pre_steps_log", UTDRHook(self))

    def logged(self) -> list[LogScalar]:
        """Return what is logged."""
        hooks: list[LogScalar] = [
            LogScalar(("next", self.key("done")), "done_percentage", log_pbar=True, include_std=False)
        ]
        if self.options["log_rewards"]:
            reward, episode = ("next", self.key("reward")), ("next", self.key("episode_reward"))
            total = self.recipe.total
            hooks += [
                LogScalar(reward, "r_training", log_pbar=True),
                LogScalar(reward, "r_max", include_std=False, reduction="max"),
                LogScalar(episode, "r_total", include_std=False, reduction=total),
            ]
        if self.options.get("log_actions"):
            hooks.append(LogScalar(self.key("action"), "action_norm"))
        if self.options["log_observations"]:
            hooks.append(LogScalar(self.key("observation"), "obs_norm"))
        return hooks


def storage_device(buffer: Any) -> Any:
    """Return the device of what a replay buffer of TorchRL holds; the CPU for one that does not say."""
    return buffer.storage.device if offers(buffer, WithStorage) and offers(buffer.storage, OnDevice) else "cpu"


def _constructor(cls: type[NamedTrainer]) -> Callable[..., None]:
    """Return a constructor that calls that of the base, and shows the arguments of the recipe."""

    def construct(self: NamedTrainer, **arguments: Any) -> None:
        super(cls, self).__init__(**arguments)

    construct.__signature__ = signature_of(cls.recipe)  # type: ignore[attr-defined]
    construct.__name__, construct.__qualname__ = "__init__", f"{cls.__qualname__}.__init__"
    return construct


def signature_of(recipe: Recipe) -> inspect.Signature:
    """Return the arguments of a constructor: those of `Trainer`, and the options of a recipe with their defaults."""
    ours = inspect.signature(Trainer.__init__).parameters
    options = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default in recipe.options.items()
    }
    epochs = ours["num_epochs"].replace(default=recipe.epochs)
    return inspect.Signature([*{**ours, "num_epochs": epochs, **options}.values()])
