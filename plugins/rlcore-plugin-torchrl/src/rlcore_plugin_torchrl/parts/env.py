"""The vector env over envs of TorchRL: each of its rows is an agent of a world, and most worlds have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

import gymnasium
import numpy as np
import torch
from pydantic import Field

from rlcore.errors import ConfigError
from rlcore.state import untouched_generators
from rlcore.types import Context, Env, EnvSpec, Step
from rlcore_plugin_torchrl.parts.sections import PartConfig, built, called, checked_table
from rlcore_plugin_torchrl.parts.signatures import keywords_of
from rlcore_plugin_torchrl.parts.spaces import space_of
from rlcore_plugin_torchrl.parts.worlds import World

if TYPE_CHECKING:
    from rlcore.types import Array

# what makes actions of a discrete space numbers, rather than rows with a one, by the library that is wrapped
_NUMBERED: Final = ("categorical_action_encoding", "categorical_actions")
_ONE_AT_A_TIME: Final = "num_envs of rlcore says how many there are; each is made alone"


class TorchRLEnv(Env):
    """An env of TorchRL by the name of its class, with transforms of TorchRL around it.

    Each world is an env of its own, which begins every episode with a seed that follows from the seed of the run. A
    resume begins the running episode of each world again and repeats its actions; where an observation then differs,
    it says so and begins a new episode.
    """

    class Config(PartConfig):
        """Which env, how many, and what is changed of it."""

        kind_of_part = "env"
        provided: ClassVar = {"batch_size": _ONE_AT_A_TIME, "num_envs": _ONE_AT_A_TIME}

        num_envs: int = Field(1, ge=1, description="envs that step together; of several agents, agents")
        transforms: list[dict[str, Any]] = Field(
            default_factory=list, description="transforms of TorchRL, each a table with `part` and keyword arguments"
        )
        observation: str | None = Field(
            None, description="entry that is observed, such as `pixels`; default: the only one there is"
        )
        frame_skip: int = Field(1, ge=1, description="frames that one step counts; passed on where the env takes it")
        most_repeated: int = Field(
            10_000,
            ge=0,
            description="steps of an episode that a resume repeats at most; 0: a resume begins new episodes",
        )

        def model_post_init(self, _: Any) -> None:
            """Check the tables of the transforms."""
            try:
                for number, table in enumerate(self.transforms):
                    checked_table("env transform", table, f"transforms.{number}", {})
            except ConfigError as error:
                raise ValueError(str(error)) from error

    def __init__(self, config: Config, context: Context) -> None:
        self._config = config
        first = World(self._made(), config.observation)
        agents = first.rows
        if config.num_envs % agents:
            raise ConfigError(
                f"[env] num_envs = {config.num_envs}: {config.part} has {agents} agents, and each is an env, so "
                f"num_envs is a multiple of {agents}",
                remedy={"env": {"num_envs": -(-config.num_envs // agents) * agents}},
            )
        self._worlds = [first, *(World(self._made(), config.observation) for _ in range(config.num_envs // agents - 1))]
        self._agents = agents
        self.spec = EnvSpec(
            id=self._id(),
            observation_space=space_of(first.observation_spec, "observation"),
            action_space=space_of(first.action_spec, "action"),
            num_envs=config.num_envs,
            frame_skip=config.frame_skip,
        )
        self._discrete = isinstance(self.spec.action_space, gymnasium.spaces.Discrete)
        shape = (config.num_envs, *(self.spec.observation_space.shape or ()))
        self._observation: Array = np.zeros(shape, self.spec.observation_space.dtype)
        self._reward = np.zeros(config.num_envs, np.float32)
        self._terminated, self._truncated = (np.zeros(config.num_envs, np.bool_) for _ in range(2))
        self._unrestored: list[int] = []

    def reset(self, seed: int | None = None) -> Array:
        """Begin an episode in every world."""
        for index, world in enumerate(self._worlds):
            world.begin(None if seed is None else seed + index * self._agents)
            self._write(index, world.observation())
        return self._observation

    def step(self, action: Array) -> Step:
        """Step every world, and begin the next episode where one ended."""
        actions = torch.as_tensor(action)
        finals: dict[int, Array] = {}
        infos: dict[int, Mapping[str, Any]] = {}
        for index, world in enumerate(self._worlds):
            rows = self._rows(index)
            observation, self._reward[rows], self._terminated[rows], self._truncated[rows] = world.step(actions[rows])
            if world.over:
                ended = observation.copy()
                finals.update(zip(range(rows.start, rows.stop), ended, strict=True))
                infos.update({row: {} for row in range(rows.start, rows.stop)})
                world.begin()
                observation = world.observation()
            self._write(index, observation)
        return Step(self._observation, self._reward, self._terminated, self._truncated, finals, infos)

    def state_dict(self) -> dict[str, Any]:
        """Return the seed of each world, and the actions of its running episode."""
        return {"worlds": [world.state_dict() for world in self._worlds]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Repeat the running episode of each world."""
        self._unrestored = [
            index
            for index, (world, saved) in enumerate(zip(self._worlds, state["worlds"], strict=True))
            if not world.load_state_dict(saved)
        ]
        for index, world in enumerate(self._worlds):
            self._write(index, world.observation())

    def inexact(self) -> str | None:
        """Return why a resume begins new episodes, or None where it repeats the running ones."""
        long = [len(world.actions) for world in self._worlds if len(world.actions) > self._config.most_repeated]
        if long:
            return (
                f"an episode of {self._config.part} of TorchRL has {max(long)} steps, more than [env] most_repeated = "
                f"{self._config.most_repeated} that a resume repeats; a resume begins new episodes"
            )
        return None

    def unrestored(self) -> str | None:
        """Return which worlds did not come to the same observation when their actions were repeated."""
        if not self._unrestored:
            return None
        return (
            f"{len(self._unrestored)} of {len(self._worlds)} worlds of {self._config.part} of TorchRL gave another "
            "observation when the actions of their running episode were repeated: not everything in it follows from "
            "its seed"
        )

    def close(self) -> None:
        """Close every world."""
        for world in self._worlds:
            world.close()

    def _rows(self, world: int) -> slice:
        return slice(world * self._agents, (world + 1) * self._agents)

    def _write(self, world: int, observation: Array) -> None:
        self._observation[self._rows(world)] = observation

    def _id(self) -> str:
        names = [value for value in self._config.keywords.values() if isinstance(value, str)]
        return ":".join([self._config.part, *names[:2]])

    def _made(self) -> Any:
        """Return an env of TorchRL, of one world."""
        config = self._config
        parameters = keywords_of(config.part_class).parameters
        arguments = config.arguments("[env]")
        if "num_envs" in parameters:  # of an env that is a vector itself
            arguments["num_envs"] = 1
        if config.frame_skip != 1:
            arguments.setdefault("frame_skip", config.frame_skip)
        numbered = [name for name in _NUMBERED if name in parameters]
        arguments |= {name: True for name in numbered if name not in arguments}
        with untouched_generators():  # an env of TorchRL may draw its first seed, and libraries at their first import
            return self._transformed(called(config.part_class, arguments, "[env]"))

    def _transformed(self, env: Any) -> Any:
        from torchrl.envs import TransformedEnv  # type: ignore[import-untyped]

        for number, table in enumerate(self._config.transforms):
            transform = built("env transform", table, f"[env] transforms.{number}")
            env = TransformedEnv(env, transform)
        return env
