"""An env that a script made, for a config, which can only name what makes one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from rlcore.errors import ConfigError

_ENV: Final[ContextVar[Any]] = ContextVar("env", default=None)
# as a runner of rsl_rl neither resets an env that it is given, nor seeds or closes it
_HIDDEN: Final = ("reset", "seed", "close")


class HandedOver:
    """The env of a script, of which a run calls what rsl_rl's runner would.

    Args:
        env: has rsl_rl's interface.
    """

    def __init__(self, env: Any) -> None:
        self._env = env

    def __getattr__(self, name: str) -> Any:
        if name in _HIDDEN or name == "_env":
            raise AttributeError(name)
        return getattr(self._env, name)


@contextmanager
def handing_over(env: Any) -> Iterator[None]:
    """Let `env` return an env while a run is built."""
    token = _ENV.set(env)
    try:
        yield
    finally:
        _ENV.reset(token)


def env(num_envs: int, device: str) -> HandedOver:
    """Return the env that was handed over.

    Raises:
        ConfigError: none was, since the run was built without the runner.
    """
    if (given := _ENV.get()) is None:
        raise ConfigError(
            "[env] make: the env of this run was given to OnPolicyRunner by a script, so that the config alone cannot "
            "make it; let the script go on with its runner, or name in `make` a function that returns such an env"
        )
    return HandedOver(given)
