"""The collector `each-step`: the envs in this process, and a call of the user's own after each of their steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import Field

from rlcore.collectors import LocalCollector
from rlcore.config import import_named
from rlcore.errors import ConfigError, EndOfData, PluginError, RlcoreError, describe
from rlcore.types import Context, Env, Stateful, Step, offers

if TYPE_CHECKING:
    from rlcore.types import Array, CollectedBatch


class OnStep(Protocol):
    """What the config names: a function, or a class of which one object is made."""

    def __call__(self, action: Array, step: Step) -> bool | None:
        """See a step of the envs, and return False to stop the run after the batch.

        Args:
            action: `[env, *shape]`, as the envs got it.
            step: what they returned, before any transform. The next step may overwrite its arrays.
        """
        ...


class _Measuring(Protocol):
    """What has figures of its own."""

    def metrics(self) -> Mapping[str, float]:
        """Return those of the last batch by name."""
        ...


class _Told:
    """Envs that hand each step over, and are otherwise those that they wrap."""

    def __init__(self, env: Env, listener: Callable[[Array, Step], None]) -> None:
        self._env = env
        self._tell = listener

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy, before it has its own
            raise AttributeError(name)
        return getattr(self._env, name)

    def step(self, action: Array) -> Step:
        """Step the envs, and tell of it."""
        step = self._env.step(action)
        self._tell(action, step)
        return step


class EachStepCollector(LocalCollector):
    """Collects as `local` does, and calls a function after each step of the envs.

    Nothing else pays for it. Where it returns False, the run stops after the batch, as if it had been asked to.
    """

    class Config(LocalCollector.Config):
        """Size of a batch, and what is called."""

        call: str = Field(description="'module:name' of what is called with the action and the Step after each step")

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config, context.for_component("collector", "local"))  # whose noise it has
        key = "[collector] call"
        call = import_named(config.call, key)
        try:
            self._call: OnStep = call() if isinstance(call, type) else call
        except Exception as error:
            raise ConfigError(f"{key} = {config.call!r}, called without arguments, raised {describe(error)}") from error
        if not callable(self._call):
            raise ConfigError(f"{key} = {config.call!r} is a {type(self._call).__name__}, which cannot be called")
        self._place = config.call
        self._stopped = False
        telling_env: Any = _Told(self._env, self._tell)
        self._env = self._stepper.env = telling_env

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EndOfData: the call returned False in the batch before.
        """
        if self._stopped:
            raise EndOfData
        return super().collect_columns()

    def metrics(self) -> Mapping[str, float]:
        """Return the figures of an object that has a method `metrics`."""
        return self._call.metrics() if offers(self._call, _Measuring) else {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the envs and the noise, and that of an object that has one."""
        state = super().state_dict()
        return {**state, "call": self._call.state_dict()} if offers(self._call, Stateful) else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set them."""
        super().load_state_dict(state)
        if offers(self._call, Stateful) and "call" in state:
            self._call.load_state_dict(state["call"])

    def _tell(self, action: Array, step: Step) -> None:
        try:
            answer = self._call(action, step)
        except RlcoreError:
            raise
        except Exception as error:
            raise PluginError(f"[collector] call = {self._place!r} raised {describe(error)}") from error
        if answer is False:
            self._stopped = True
