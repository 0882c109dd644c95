"""The collector `device`: steps envs of tensors with the policy, and writes every step where it happens."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import torch
from pydantic import BaseModel, Field

from rlcore.collectors import EnvCollector
from rlcore.envs import ActionCheck
from rlcore.errors import FROM_OUTSIDE, ConfigError, EnvError, describe
from rlcore.state import check_array
from rlcore.types import Episode, done_by, has_memory
from rlcore_plugin_device.compiled import compiled_step
from rlcore_plugin_device.episodes import EpisodeCounter
from rlcore_plugin_device.form import Form, is_same, writes_to
from rlcore_plugin_device.memory import Memory
from rlcore_plugin_device.storage import Storage
from rlcore_plugin_device.tensor_env import TensorEnv, TensorStep
from rlcore_plugin_device.transforms import Transforms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rlcore import Context
    from rlcore.types import CollectedBatch

# numbers of episodes that may wait on the device: 128 MiB of them
_MOST_UNREAD: Final = 2**24


class Unread(NamedTuple):
    """What the device holds of a batch that the host has not read.

    Attributes:
        frame: at which the batch began.
        finite: whether all of its rewards and observations are, 0-d.
        ended: its episodes, `[2, time, env]`; see `EpisodeCounter.take`.
    """

    frame: int
    finite: torch.Tensor
    ended: torch.Tensor


class DeviceCollector(EnvCollector):
    """Steps envs of tensors on the device of the run.

    The batch `[env, time]` that it returns is a view of storage that the next call overwrites.

    Attributes:
        most_truncations: how many steps of an env are truncated at most within a batch; an estimator with it, and
            whoever sums over a batch, needs to ask the host nothing.

    Raises:
        ConfigError: the envs are none of tensors, or are on another device; a transform works on arrays.
    """

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
        self._storage = Storage(self._steps, self._spec.num_envs, self._spec.observation_space, context.device)
        self._compiled = compiled_step(self._env, self._transforms.action, context) if config.compile else None
        self._form = Form(self._env.spec, self._env.device, type(self._env).__name__)
        self._checks_form = True
        self._check_actions = ActionCheck(self._spec)
        self._checks_actions = True
        has_state = has_memory(context.model)
        self._memory = Memory(self._policy, self._spec.num_envs, context.device) if has_state else None
        self._episodes = EpisodeCounter(self._spec.num_envs, context.device, context.first_env)
        self._unread: list[Unread] = []

    def collect_columns(self) -> CollectedBatch:
        """Return the next batch as its tensors.

        Raises:
            EnvError: the envs fail, or on the CPU an observation or reward is not finite; nothing of the batch reaches
                the buffer.
            PluginError: an action lies outside of the action space.
        """
        frame = self._context.progress.frames
        self._policy.refresh()
        with torch.inference_mode():
            noise = self._draw_noise()
        with torch.no_grad():
            self._step_envs(noise, frame)
        return self._storage.batch()

    def episodes(self) -> list[Episode]:
        """Return the episodes that ended since they were told of last, in the order in which they ended.

        While nobody asks for them they stay on the device: there are some only in an iteration that ends with a row of
        metrics, an evaluation or a checkpoint, or where a hook takes each episode.

        Raises:
            EnvError: an observation or reward of a batch since then is not finite.
        """
        hooks = self._context.built.get("hooks")
        if hooks is None or hooks.asked(self.batch_steps * self._spec.frame_skip):
            self._read()
        finished, self._finished = self._finished, []
        return finished

    def _read(self) -> None:
        """Read what the device holds of the batches since the last time, in one copy, and refuse what is not finite."""
        unread, self._unread = self._unread, []
        if not unread:
            return
        numbers = torch.cat([torch.cat([batch.finite.double()[None], batch.ended.flatten()]) for batch in unread])
        for batch, of_batch in zip(unread, numbers.cpu().numpy().reshape(len(unread), -1), strict=True):
            if not of_batch[0]:
                raise EnvError(
                    f"env {self._spec.id!r}: an observation or reward of the batch that began at frame {batch.frame} "
                    "is not finite; the batch is discarded. Repair the environment"
                )
            self._finished += self._episodes.told(of_batch[1:].reshape(batch.ended.shape))

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
            storage.write(time, action, self._transforms.stepped(action, step))
            parameters.append(parameter)
            if self._memory is not None:
                self._memory.keep(remembered[0], step.terminated | step.truncated)
            heart.beats += 1
        actions = storage.finish()
        finite = storage.finite(self._transforms.take_sum())
        self._unread.append(Unread(frame, finite, self._episodes.take(storage.reward, storage.done)))
        # before the actions are checked: what follows from an observation that is not finite is the env's error
        if self._checks_actions or sum(batch.ended.numel() for batch in self._unread) > _MOST_UNREAD:
            self._read()
        if self._checks_actions:
            self._check_actions(actions.cpu())
            self._checks_actions = actions.device.type == "cpu"  # elsewhere a copy of each batch would cost too much
        described = self._policy.describe(torch.stack(parameters), actions)
        storage.describe(described if self._memory is None else {**described, **self._memory.described()})

    def _begin(self, frame: int) -> None:
        """Begin an episode in every env."""
        seed = self._reset_seed(frame) + self._context.first_env
        with self._blaming_the_env(frame):
            observation = self._env.reset_tensors(seed)
            self._form.check_observation(observation, "reset_tensors")
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
            action = self._transforms.action(acted[0])
            return acted, self._first_step(action) if self._checks_form else self._env.step_tensors(action)

    def _first_step(self, action: torch.Tensor) -> TensorStep:
        """Return the first step, if it is of the form that later ones are written in."""
        version = writes_to(action)
        step = self._env.step_tensors(action)
        self._form.check_step(step)
        if writes_to(action) != version:
            raise EnvError(
                f"env {self._spec.id!r}: {type(self._env).__name__}.step_tensors changes the actions in place; work on "
                "a copy"
            )
        self._checks_form = False
        return step

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

    def close(self) -> None:
        """Close the envs."""
        self._env.close()

    def inexact(self) -> str | None:
        """Return why a resume would not go on exactly; None where the envs say nothing against it."""
        return self._env.inexact()

    def _running_episodes(self) -> int:
        return self._episodes.running

    def _save_episodes(self) -> Any:
        self._read()
        return {
            "env": self._env.state_dict(),
            "observation": self._storage.observation[-1],
            "episodes": self._episodes.state_dict(),
            **({} if self._memory is None else {"memory": self._memory.state_dict()}),
            **(
                {"untold": [(each.return_, each.length, each.env_index) for each in self._finished]}
                if self._finished
                else {}
            ),
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
        untold = episodes.get("untold", ())
        self._finished = [Episode(return_, length, index, {}) for return_, length, index in untold]
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
    if not is_same(env.device, context.device):
        raise ConfigError(
            f"[env] {context.env_spec.id!r} has its tensors on {env.device}, and the run is on {context.device}; build "
            "it with context.device"
        )
    return env
