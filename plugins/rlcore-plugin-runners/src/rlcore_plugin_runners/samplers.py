"""rlpyt's samplers: the sections [env], [collector] and [evaluator] that each stands for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from rlcore.errors import ConfigError
from rlcore_plugin_runners.collectors import check_collector
from rlcore_plugin_runners.envs import sections_of
from rlcore_plugin_runners.originals import CarriesRlpyt
from rlcore_plugin_runners.samples import BatchSpec
from rlcore_plugin_runners.trajectories import TrajInfo

log = logging.getLogger(__name__)


class SerialSampler(CarriesRlpyt):
    """Steps `batch_B` envs in this process, for batches of `batch_T` steps.

    Args:
        EnvCls: `gym_make` or `AtariEnv`.
        env_kwargs: its arguments.
        batch_T: steps of each env in a batch.
        batch_B: envs.
        CollectorCls: a collector of rlpyt for this sampler; all begin the next episode at once.
        max_decorrelation_steps: 0; envs begin at a reset, and with another number a warning says so.
        TrajInfoCls: what is kept of each episode.
        eval_n_envs: envs that evaluate.
        eval_CollectorCls: one of its collectors that evaluate.
        eval_env_kwargs: as `env_kwargs`: envs for evaluation are made of the same config.
        eval_max_steps: not needed: every episode is played to its end, so that short ones are not favoured.
        eval_max_trajectories: episodes of an evaluation; default: one in each env.

    Attributes:
        batch_T, batch_B: as given.
        agent: as `initialize` was told.
        trainer: rlcore's, once a runner has built it.

    Raises:
        ConfigError: an argument that has no counterpart.
    """

    asynchronous: ClassVar[bool] = False
    where: ClassVar[str] = "cpu"

    def __init__(
        self,
        EnvCls: Any,  # noqa: N803, as in rlpyt
        env_kwargs: Mapping[str, Any],
        batch_T: int,  # noqa: N803
        batch_B: int,  # noqa: N803
        CollectorCls: type | None = None,  # noqa: N803
        max_decorrelation_steps: int = 100,
        TrajInfoCls: type[TrajInfo] = TrajInfo,  # noqa: N803
        eval_n_envs: int = 0,
        eval_CollectorCls: type | None = None,  # noqa: N803
        eval_env_kwargs: Mapping[str, Any] | None = None,
        eval_max_steps: int | None = None,
        eval_max_trajectories: int | None = None,
    ) -> None:
        check_collector("CollectorCls", CollectorCls, self.where)
        check_collector("eval_CollectorCls", eval_CollectorCls, self.where)
        if eval_env_kwargs is not None and dict(eval_env_kwargs) != dict(env_kwargs):
            raise ConfigError("eval_env_kwargs: evaluations are made of the envs of training; give them env_kwargs too")
        if max_decorrelation_steps:
            log.warning("max_decorrelation_steps = %d: envs begin at a reset, without them", max_decorrelation_steps)
        self.batch_T, self.batch_B = int(batch_T), int(batch_B)
        self.TrajInfoCls = TrajInfoCls
        self._env = (EnvCls, dict(env_kwargs))
        self._evaluation = (int(eval_n_envs), int(eval_max_trajectories or eval_n_envs))
        self.trainer: Any = None
        self.play: Callable[[], list[TrajInfo]] = list  # a runner sets what evaluates

    @property
    def batch_spec(self) -> BatchSpec:
        """The size of a batch."""
        return BatchSpec(self.batch_T, self.batch_B)

    @property
    def batch_size(self) -> int:
        """Steps of a batch, over all envs."""
        return self.batch_T * self.batch_B

    def initialize(
        self,
        agent: Any,
        affinity: Any = None,
        seed: int | None = None,
        bootstrap_value: bool = False,
        traj_info_kwargs: Mapping[str, Any] | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Take in the agent; called once the run is built.

        Args:
            agent: of the run.
            affinity: of the run.
            seed: of the run, as the script gave it.
            bootstrap_value: False.
            traj_info_kwargs: of the runner.
            rank: of this process.
            world_size: processes that train together.
        """
        self.agent = agent

    def evaluate_agent(self, itr: int) -> list[TrajInfo]:
        """Play the episodes of an evaluation.

        Args:
            itr: iteration, from 0.
        """
        return self.play()

    def shutdown(self) -> None:
        """Do nothing; called at the end of training, when all envs are closed."""

    def sections(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        """Return env, collector and hooks.

        Args:
            affinity: of the run; the number of its `workers_cpus` is that of the workers.
        """
        collector = {**self._collector(affinity), "frames_per_batch": self.batch_T * self.batch_B}
        return {**sections_of(*self._env, self.batch_B), "collector": collector}

    def evaluator(self, log_interval_itrs: int) -> dict[str, Any]:
        """Return the section of the evaluations at log points.

        Raises:
            ConfigError: there are no envs for it.
        """
        envs, episodes = self._evaluation
        if envs < 1:
            raise ConfigError("a runner that evaluates needs a sampler with eval_n_envs = 1 or more")
        every = {"iterations": log_interval_itrs}
        return {"use": "episodes", "every": every, "episodes": episodes, "num_envs": min(envs, episodes)}

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        return {"use": "local"}


class CpuSampler(SerialSampler):
    """Steps the envs in worker processes, each with a copy of the policy: as many as there are `workers_cpus`."""

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        return {"use": "parallel:workers", "num_workers": self._workers(affinity)}

    def _workers(self, affinity: Mapping[str, Any]) -> int:
        """Return how many workers there are, at most as many as CPUs for them: each has as many envs."""
        most = min(self.batch_B, len(affinity.get("workers_cpus") or (0, 0)))
        return next(count for count in range(most, 0, -1) if self.batch_B % count == 0)


class GpuSampler(CpuSampler):
    """Steps the envs in worker processes, and acts for all of them in the process of the learner, on its device."""

    where = "gpu"

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        return {"use": "parallel:central", "num_workers": self._workers(affinity)}


class AlternatingSampler(GpuSampler):
    """Acts for one half of the workers while the other half steps; there are two workers or another even number."""

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._collector(affinity), "alternating": True}

    def _workers(self, affinity: Mapping[str, Any]) -> int:
        if self.batch_B % 2:
            raise ConfigError(f"AlternatingSampler: batch_B = {self.batch_B} has no halves; give it an even number")
        most = max(2, min(self.batch_B, len(affinity.get("workers_cpus") or (0, 0))))
        return next(count for count in range(most - most % 2, 0, -2) if self.batch_B % count == 0)


class AsyncCpuSampler(CpuSampler):
    """Workers that go on while the learner learns, one batch ahead of it at most."""

    asynchronous = True

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        return {**super()._collector(affinity), "mode": "async", "max_lag": 1}


class AsyncSerialSampler(AsyncCpuSampler):
    """The same with one worker."""

    def _workers(self, affinity: Mapping[str, Any]) -> int:
        return 1


class AsyncGpuSampler(AsyncCpuSampler):
    """Of a run on the CPU what `AsyncCpuSampler` is, which a warning says; with a GPU it is refused.

    Each worker acts with its own copy of the policy: where one process acted for all of them, they would wait while
    it learns. The batches are those of such a sampler.
    """

    where = "gpu"

    def _collector(self, affinity: Mapping[str, Any]) -> dict[str, Any]:
        if affinity.get("cuda_idx") is not None:
            raise ConfigError(
                "AsyncGpuSampler: where the learner's process acts on a GPU for all envs, they wait while it learns; "
                "take AsyncCpuSampler, which has a copy of the policy in each worker, and goes on"
            )
        log.warning("AsyncGpuSampler: without a GPU it is AsyncCpuSampler: each worker acts with a copy of the policy")
        return super()._collector(affinity)


class NoOverlapAlternatingSampler(AlternatingSampler):
    """The same here: acting for one half does not wait for the other."""
