"""The loop of rlcore calls the methods of a runner, its algorithm, its agent and its sampler at their times."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from rlcore_plugin_runners.diagnostics import Diagnostics
from rlcore_plugin_runners.samples import BatchSpec, EnvSpaces, OptInfo, Samples
from rlcore_plugin_runners.trajectories import TrajInfo

if TYPE_CHECKING:
    from rlcore_plugin_runners.runners import MinibatchRl


class Joined:
    """Calls the methods that a script may override, in rlpyt's order.

    Args:
        runner: whose trainer is built.
        hook: writes the rows of the run.
    """

    def __init__(self, runner: MinibatchRl, hook: Diagnostics) -> None:
        trainer = runner.trainer
        self._runner, self._progress, self.hook = runner, trainer.progress, hook
        self._optim_steps, self._evaluate = trainer.optim_steps, trainer.evaluate
        self._opt_info: Any = None
        # a trainer that is built from a config has a class of rlcore: what a subclass would override is replaced
        trainer.optim_steps, trainer.evaluate = self._optimise, self._evaluate_agent
        hook.joined = self
        hook.traj_info_cls = runner.sampler.TrajInfoCls
        hook.traj_info_kwargs = runner.get_traj_info_kwargs()

    def initialize(self) -> None:
        """Let sampler, agent and algorithm see what the run was built of, before the first iteration."""
        runner = self._runner
        sampler, agent, algo, trainer = runner.sampler, runner.agent, runner.algo, runner.trainer
        env = self.hook.env_spec
        agent.trainer = algo.trainer = sampler.trainer = trainer
        sampler.play = self._play
        kwargs = runner.get_traj_info_kwargs()
        sampler.initialize(agent, runner.affinity, runner.seed, traj_info_kwargs=kwargs)
        agent.initialize(EnvSpaces(env.observation_space, env.action_space))
        agent.to_device(runner.affinity.get("cuda_idx"))
        spec = BatchSpec(sampler.batch_T, sampler.batch_B)
        algo.initialize(agent, runner.get_n_itr(), spec, mid_batch_reset=True, examples=None)
        agent.sample_mode(self._progress.iterations)

    def _optimise(self, batch: Any) -> None:
        """Let the algorithm take the optimisation steps that follow a batch."""
        itr = self._progress.iterations
        self._runner.agent.train_mode(itr)
        self._runner.algo.take_steps = lambda: self._steps(batch)
        self._opt_info = self._runner.algo.optimize_agent(itr, Samples(batch))

    def _steps(self, batch: Any) -> OptInfo:
        self._optim_steps(batch)
        return OptInfo(self.hook.latest_steps())

    def after_steps(self, traj_infos: list[TrajInfo], steps: Sequence[Mapping[str, Tensor]], batch: Any) -> None:
        """Store what an iteration gave; before the replay buffer is warm, the algorithm is called without steps."""
        itr, runner = self._progress.iterations - 1, self._runner
        if self._opt_info is None:
            runner.agent.train_mode(itr)
            runner.algo.take_steps = lambda: OptInfo([])
            self._opt_info = runner.algo.optimize_agent(itr, Samples(batch))
        opt_info, self._opt_info = self._opt_info, None
        runner.stores(itr, traj_infos, opt_info)

    def _play(self) -> list[TrajInfo]:
        self._evaluate()
        return self.hook.latest_evaluation()

    def _evaluate_agent(self) -> None:
        """Let the runner evaluate; before the first frame a row follows at once."""
        progress = self._progress
        self._runner.evaluates_now(max(progress.iterations - 1, 0))
        if progress.frames == 0:
            self._runner.logs(0)

    def after_iteration(self) -> None:
        """Have a row written where one is due, and begin to sample again."""
        progress, runner = self._progress, self._runner
        if progress.iterations % runner.log_interval_itrs == 0:
            runner.logs(progress.iterations - 1)
        if progress.now < progress.total:
            runner.agent.sample_mode(progress.iterations)


def timed(play: Any) -> tuple[list[TrajInfo], float]:
    """Return the trajectory infos of an evaluation, and its seconds."""
    began = time.monotonic()
    infos = play()
    return infos, time.monotonic() - began
