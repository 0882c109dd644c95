"""The collector `device`: steps envs of tensors with the policy, and writes every step where it happens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import torch
from pydantic import BaseModel, Field

from rlcore.collectors import EnvCollector
from rlcore.envs import ActionCheck, observation_dtype
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, describe
from rlcore.state import check_array
from rlcore.types import done_by, has_memory
from rlcore_plugin_device.compiled import compiled_step
from rlcore_plugin_device.episodes import Ended, EpisodeCounter, Unread
from rlcore_plugin_device.memory import Memory
from rlcore_plugin_device.storage import Storage
from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep, torch_dtype
from rlcore_plugin_device.transforms import Transforms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlcore import Context
    from rlcore.types import CollectedBatch


# steps between two rows of metrics after which episodes are read all the same: they hold 16 bytes for each
MOST_UNREAD: Final = 2**24


class DeviceCollector(EnvCollector):
    """Steps envs of tensors on the device of the run.

    The batch `[env, time]` that it returns is a view of storage that the next call overwrites.

    Raises:
        ConfigError: the envs are none of tensors, or are on another device; a transform works on arrays.
    """

    stays_on_device = True

    class Config(BaseModel, extra="forbid"):
        """Size of a batch."""

        frames_per_batch: int = Field(1000, ge=1, description="frames per batch, over all envs")
        compile: bool = Field(
            False,
            description="compile policy and env as one graph, which rounds otherwise, by rlcore-plugin-compile",
            json_schema_extra=done_by("compile"),
        )

    def __init__(self, config: Config, context: Context) -> None:
        super().__init__(config.frames_per_batch, context, context)
        self._env = _tensor_env(context)
        self.most_truncations = self._env.most_truncations(self._steps)
        self._transforms = Transforms(context.transforms, context.device)
        space = self._spec.observation_space
        assert space.shape is not None
        dtype = torch_dtype(observation_dtype(space))
        self._storage = Storage(self._steps, self._spec.num_envs, space.shape, dtype, context.device)
        self._compiled = compiled_step(self._env, self._transforms.action, context) if config.compile else None
        self._check_actions = ActionCheck(self._spec)
        self._checks_actions = True
        has_state = has_memory(context.model)
        self._memory = Memory(self._policy, self._spec.num_envs, context.device) if has_state else None
        self._episodes = EpisodeCounter(self._spec.num_envs, context.device, context.first_env)
        # the CPU has nothing to wait for, and ranks agree on episodes in every iteration
        self._may_wait = context.device.type != "cpu" and context.group.size == 1
        self._unread = Unread()

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EnvError: the envs fail, or an observation or reward is not finite; nothing of the batch reaches the buffer.
            PluginError: an action lies outside of the action space.
        """
        frame = self._context.progress.frames
        self._policy.refresh()
        with torch.inference_mode():
            noise = self._draw_noise()
        with torch.no_grad():
            self._step_envs(noise, frame)
            self._unread.ended.append(self._episodes.take(self._storage.reward, self._storage.done))
        self._finished = [] if self._reads_late() else self._episodes.records(self._unread.take_ended())
        return self._storage.batch()

    def late(self) -> dict[Any, torch.Tensor]:
        """Return whether each batch since the last row of metrics was finite, and the episodes that ended in it."""
        return self._unread.tensors()

    def take_late(self, values: Mapping[Any, torch.Tensor]) -> None:
        """Let `episodes` return those of all batches that were not read before.

        Raises:
            EnvError: an observation or reward of one of them is not finite.
        """
        self._unread.replace(values)
        self._refuse_what_is_not_finite()
        self._finished = self._episodes.records(self._unread.take_ended())

    def _reads_late(self) -> bool:
        """Return whether what is on the device is read with a row of metrics: in a run whose hooks need no episodes."""
        hooks = self._context.built.get("hooks") if self._may_wait else None
        few = len(self._unread.ended) * self.batch_steps < MOST_UNREAD
        return few and hooks is not None and not hooks.used("episode_end")

    def _step_envs(self, noise: torch.Tensor, frame: int) -> None:
        storage, heart = self._storage, self._context.heart
        if not self._started:
            self._begin(frame)
        else:
            storage.observation[0] = storage.observation[-1].clone()
        parameters = []
        for time in range(self._steps):
            recalled = () if self._memory is None else self._memory.recalled()
            inputs = storage.observation[time], noise[time], *recalled
            (action, parameter, *remembered), step = self._acted(inputs, frame)
            storage.write(time, action, self._transforms.stepped(step))
            parameters.append(parameter)
            if self._memory is not None:
                self._memory.keep(remembered[0], step.terminated | step.truncated)
            heart.beats += 1
        actions = storage.finish()
        self._check(actions, frame)
        described = self._policy.describe(torch.stack(parameters), actions)
        storage.describe(described if self._memory is None else {**described, **self._memory.described()})

    def _begin(self, frame: int) -> None:
        """Begin an episode in every env."""
        seed = self._reset_seed(frame) + self._context.first_env
        with self._blaming_the_env(frame):
            observation = self._env.reset_tensors(seed)
        self._storage.observation[0] = self._transforms.begun(observation)
        self._episodes.reset()
        if self._memory is not None:
            self._memory.begin()
        self._started = True

    def _acted(self, inputs: tuple[torch.Tensor, ...], frame: int) -> tuple[Sequence[torch.Tensor], TensorStep]:
        """Return what the policy answers, the actions first, and the step of the envs that they lead to."""
        if self._compiled is not None:
            return self._compiled(self._policy.act, *inputs)
        acted = self._policy.act(*inputs)
        with self._blaming_the_env(frame):
            return acted, self._env.step_tensors(self._transforms.action(acted[0]))

    @contextmanager
    def _blaming_the_env(self, frame: int) -> Iterator[None]:
        try:
            yield
        except (*FROM_OUTSIDE, EnvError):
            raise
        except BaseException as error:  # an exit too: it is the env's error, and no end of the run
            raise EnvError(
                f"env {self._spec.id!r} raised {describe(error)} in the batch that began at frame {frame}, which is "
                "discarded"
            ) from error

    def _check(self, actions: torch.Tensor, frame: int) -> None:
        """Refuse numbers that are not finite, and actions outside of their space."""
        self._unread.finite[frame] = self._storage.finite(self._transforms.take_sum())
        if not self._reads_late():
            self._refuse_what_is_not_finite()
        if self._checks_actions:
            self._check_actions(actions.cpu())
            self._checks_actions = actions.device.type == "cpu"  # elsewhere a copy of each batch would cost too much

    def _refuse_what_is_not_finite(self) -> None:
        frame, now = self._unread.first_not_finite(), self._context.progress.frames
        if frame is not None:
            then = "the batch is discarded" if frame == now else f"that was read at frame {now}"
            raise EnvError(
                f"env {self._spec.id!r}: an observation or reward of the batch that began at frame {frame} is not "
                f"finite; {then}. Repair the environment"
            )

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def inexact(self) -> str | None:
        """Return why a resume would not go on exactly; None where the envs say nothing against it."""
        return self._env.inexact()

    def state_dict(self) -> dict[str, Any]:
        """Return the noise's position, the running episodes, and those that ended since the last row of metrics.

        Raises:
            EnvError: an observation or reward that is read late is not finite.
        """
        self._refuse_what_is_not_finite()
        ended = [each._asdict() for each in self._unread.ended]
        return {**super().state_dict(), **({"ended": ended} if ended else {})}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with what was saved."""
        super().load_state_dict(state)
        self._unread = Unread(Ended(**each).to(self._context.device) for each in state.get("ended", ()))

    def _running_episodes(self) -> int:
        return self._episodes.running

    def _save_episodes(self) -> Any:
        return {
            "env": self._env.state_dict(),
            "observation": self._storage.observation[-1],
            "episodes": self._episodes.state_dict(),
            **({} if self._memory is None else {"memory": self._memory.state_dict()}),
        }

    def _load_episodes(self, episodes: Mapping[str, Any]) -> None:
        """Go on with what was saved.

        Raises:
            StorageError: it is of other envs than these: another number, or other observations.
        """
        latest = self._storage.observation[-1]
        check_array("the latest observation", episodes["observation"], latest.shape, "[env]")
        self._env.load_state_dict(episodes["env"])
        self._storage.observation[-1] = episodes["observation"].to(self._context.device)
        self._episodes.load_state_dict(episodes["episodes"])
        if self._memory is not None:
            self._memory.load_state_dict(episodes["memory"])


def _tensor_env(context: Context) -> TensorEnv:
    env = context.env
    if not isinstance(env, TensorEnv):
        raise ConfigError(
            f"[collector] use = 'device' steps envs of tensors, and {context.env_spec.id!r} is one of arrays; take one "
            "of rlcore-plugin-torch-envs or a TensorEnv of your own, or [collector] use = 'local'",
            remedy={"collector": {"use": "local"}},
        )
    if env.device.type != context.device.type:
        raise ConfigError(
            f"[env] {context.env_spec.id!r} has its tensors on {env.device}, and the run is on {context.device}; build "
            "it with context.device"
        )
    return env
