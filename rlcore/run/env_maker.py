"""The recipe of the envs of a run: making more of them, in this process or, as it can be pickled, in another one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from rlcore.envs.packing import packed_env
from rlcore.errors import ConfigError
from rlcore.plugins.registry import Provided
from rlcore.types import Env
from rlcore.types.context import Context
from rlcore.types.group import Alone
from rlcore.types.heart import Heart


@dataclass(frozen=True)
class EnvMaker:
    """Makes envs as a config says.

    Attributes:
        provided: the component.
        config: of its section.
        name: of its section.
        context: what it is built with; `context.first_env` is the number of its first env among those of the
            run, where several processes have a share of them.
    """

    provided: Provided
    config: BaseModel
    name: str
    context: Context

    def __call__(self, purpose: str = "", first_env: int = 0, **keys: Any) -> Env:
        """Return envs that differ from those of training in their purpose, and in what `keys` says.

        Args:
            purpose: what they are for, as generators that are derived from the seed differ by it; empty for training.
            first_env: number of the first of them among those of the run.
            keys: of the config, such as `num_envs`.

        Raises:
            ConfigError: a key that the env lacks, or observations without numbers.
        """
        self.context.heart.beats += 1
        unknown = [key for key in keys if key not in type(self.config).model_fields]
        if unknown:
            raise ConfigError(f"{self.provided} has no key {', '.join(map(repr, unknown))}, which is asked of it here")
        config = self.config.model_copy(update=keys)
        context = self.context.for_component("env", f"{self.name} {purpose}".strip())
        if first_env != context.first_env:
            context = replace(context, parts={**context.built, "first_env": first_env})
        env = packed_env(self.provided.build(config, context))
        space = env.spec.observation_space
        if 0 in (space.shape or ()):
            env.close()
            raise ConfigError(f"[env] {env.spec.id!r} observes {space}, which has no numbers: there is nothing to see")
        return env

    def counted_on(self, heart: Heart) -> EnvMaker:
        """Return the same recipe for envs that count what takes long on another heart."""
        return replace(self, context=replace(self.context, heart=heart))

    def __getstate__(self) -> dict[str, Any]:
        """Return what another process needs; other parts of the run do not go with it, nor do those it trains with."""
        return {**vars(self), "context": replace(self.context, parts={}, heart=Heart(), group=Alone())}
