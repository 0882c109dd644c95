"""rlpyt's runners: each puts a config together of what it is given, and trains by rlcore's own loop."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import tomli_w
import torch

import rlcore
from rlcore.errors import ConfigError
from rlcore_plugin_runners import logger
from rlcore_plugin_runners.affinity import bound, cpus_of, of_one_process
from rlcore_plugin_runners.agents import Agent
from rlcore_plugin_runners.algos import Algorithm
from rlcore_plugin_runners.context import LogContext, current
from rlcore_plugin_runners.joined import Joined, timed
from rlcore_plugin_runners.originals import CarriesRlpyt
from rlcore_plugin_runners.samplers import SerialSampler
from rlcore_plugin_runners.samples import steps_of
from rlcore_plugin_runners.trajectories import TrajInfo

# keys that count frames, of which a step has as many as it repeats its action
_IN_FRAMES = (("collector", "frames_per_batch"), ("buffer", "warmup_frames"), ("model", "random_frames"))


class MinibatchRl(CarriesRlpyt):
    """Samples and optimises in turn; rows are about the last episodes of training.

    Args:
        algo: gives loss, optimizer and buffer.
        agent: gives the model.
        sampler: gives the envs and the collector.
        n_steps: env steps of the whole run, rounded to whole iterations and log points; see `get_n_itr`.
        seed: of every random number; default: 1 and the `run_ID` of the `logger_context`, so that runs differ.
        affinity: `cuda_idx`, `master_cpus`, `workers_cpus`, `master_torch_threads`, `set_affinity`; of `make_affinity`.
        log_interval_steps: env steps between two rows of `progress.csv`, and between two snapshots.
        log_traj_window: episodes that a row is about.

    Attributes:
        trainer: rlcore's, after `startup`.
        world_size: processes that train together.

    Raises:
        ConfigError: something cannot be as it is given; says what, and what to do.
    """

    evaluates: ClassVar[bool] = False
    asynchronous: ClassVar[bool] = False
    world_size = 1

    def __init__(
        self,
        algo: Algorithm,
        agent: Agent,
        sampler: SerialSampler,
        n_steps: float,
        seed: int | None = None,
        affinity: Mapping[str, Any] | None = None,
        log_interval_steps: float = 1e5,
        log_traj_window: int = 100,
    ) -> None:
        if sampler.asynchronous != self.asynchronous:
            takes = "an asynchronous" if self.asynchronous else "a synchronous"
            raise ConfigError(f"{type(self).__name__} takes {takes} sampler, and not {type(sampler).__name__}")
        self.algo, self.agent, self.sampler = algo, agent, sampler
        self.n_steps, self.log_interval_steps = int(n_steps), int(log_interval_steps)
        self.seed = seed
        self.affinity = of_one_process(affinity or {})
        self.log_traj_window = 0 if self.evaluates else log_traj_window
        self.itr_batch_size = sampler.batch_T * sampler.batch_B * self.world_size
        self.log_interval_itrs = max(self.log_interval_steps // self.itr_batch_size, 1)
        self.trainer: Any = None
        self._evaluated: tuple[list[TrajInfo], float] = ([], 0.0)
        self._cpus = cpus_of(self.affinity)

    def get_n_itr(self) -> int:
        """Return the iterations of the run: those that `n_steps` has, up to the next log point."""
        n_itr = self.n_steps // self.itr_batch_size
        return max(math.ceil(n_itr / self.log_interval_itrs), 1) * self.log_interval_itrs

    def startup(self, resume: bool = False) -> int:
        """Build everything and return the number of iterations; `train` does it.

        Args:
            resume: go on from the latest snapshot of the run that the `logger_context` around it names.
        """
        context = current()
        if resume and context is None:
            raise ConfigError("resume = True needs a logger_context around it, with override_prefix = True")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "config.toml"
            path.write_text(tomli_w.dumps(self.config()), encoding="utf-8")
            config = rlcore.load_config(path)
        place = None if context is None else context.folder
        run = rlcore.build(config, write=context is not None, resume=resume, place=place)
        self.trainer = run.trainer
        self._hook = next(hook.instance for hook in self.trainer.hooks.hooks if hook.name == "diagnostics")
        if context is not None:
            write_params(context)
        joined = Joined(self, self._hook)
        if resume:  # the checkpoint has the state
            self.agent.initial_model_state_dict = self.algo.initial_optim_state_dict = None
        joined.initialize()
        self.initialize_logging()
        return self.get_n_itr()

    def train(self, resume: bool = False) -> None:
        """Train to the end.

        Args:
            resume: as in `startup`.
        """
        with bound(self._cpus):
            self.startup(resume)
            self.trainer.train()
            self.shutdown()

    def shutdown(self) -> None:
        """Tell the sampler that training is over; all parts of the run are closed."""
        self.sampler.shutdown()

    def get_traj_info_kwargs(self) -> dict[str, Any]:
        """Return attributes of trajectory infos, whose names get a `_` before them."""
        return {"discount": self.algo.discount}

    def initialize_logging(self) -> None:
        """Do nothing; called once everything is built."""

    def evaluate_agent(self, itr: int) -> tuple[list[TrajInfo], float]:
        """Evaluate.

        Args:
            itr: iteration, from 0.

        Returns:
            The episodes, and the seconds that they took.
        """
        self.agent.eval_mode(itr)
        return timed(lambda: self.sampler.evaluate_agent(itr))

    def store_diagnostics(self, itr: int, traj_infos: list[TrajInfo], opt_info: Any) -> None:
        """Store what an iteration gave for the next row.

        Args:
            itr: iteration, from 0.
            traj_infos: episodes of training that ended in it.
            opt_info: what `optimize_agent` returned.
        """
        self._hook.store(traj_infos, steps_of(opt_info))

    def log_diagnostics(
        self,
        itr: int,
        traj_infos: list[TrajInfo] | None = None,
        eval_time: float = 0,
        prefix: str = "Diagnostics/",
    ) -> None:
        """Save a snapshot and write a row.

        Args:
            itr: iteration, from 0.
            traj_infos: of the evaluation, where there is one.
            eval_time: its seconds.
            prefix: of the clocks' columns.
        """
        self.save_itr_snapshot(itr)
        self._hook.record(logger.taken())
        self._hook.write_row(self.trainer.progress, traj_infos, prefix)

    def stores(self, itr: int, traj_infos: list[TrajInfo], opt_info: Any) -> None:
        """Call `store_diagnostics` as rlpyt does."""
        self.store_diagnostics(itr, traj_infos, opt_info)

    def evaluates_now(self, itr: int) -> None:
        """Call what evaluates, and keep what it returns for the row that follows."""
        self._evaluated = self.evaluate_agent(itr)

    def logs(self, itr: int) -> None:
        """Call `log_diagnostics` as rlpyt does."""
        if self.evaluates:
            self.log_diagnostics(itr, *self._evaluated)
        else:
            self.log_diagnostics(itr)

    def get_itr_snapshot(self, itr: int) -> dict[str, Any]:
        """Return what rlpyt's snapshots hold, of the trainer as it is now; checkpoints hold all of its state.

        Args:
            itr: iteration, from 0.
        """
        return {
            "itr": itr,
            "cum_steps": (itr + 1) * self.itr_batch_size,
            "agent_state_dict": self.agent.state_dict(),
            "optimizer_state_dict": self.algo.optim_state_dict(),
        }

    def save_itr_snapshot(self, itr: int) -> None:
        """Write the snapshot where the `logger_context` asks for one: `params.pkl`, or `itr_N.pkl` of those that stay.

        Args:
            itr: iteration, from 0.
        """
        context = current()
        name = None if context is None else context.snapshot_name(itr)
        if context is not None and name is not None:
            unfinished = context.folder / f"{name}.tmp"
            torch.save(self.get_itr_snapshot(itr), unfinished)
            unfinished.replace(context.folder / name)

    def config(self) -> dict[str, Any]:
        """Return the sections of the config, as a TOML file would have them."""
        n_itr, context = self.get_n_itr(), current()
        steps = self.sampler.batch_T * self.sampler.batch_B
        sections = {**self.algo.sections(steps), **self.sampler.sections(self.affinity)}
        sections["model"] = self.agent.section(self.algo, n_itr, self.itr_batch_size)
        if schedulers := self.algo.schedulers(n_itr * self.itr_batch_size):
            sections["scheduler"] = schedulers
        if self.agent.recurrent and sections["buffer"]["use"] == "rollout":
            sections["buffer"] |= _of_sequences(sections["buffer"]["minibatch_size"], self.sampler.batch_T)
        env = sections["env"]
        skip = env.get("frame_skip", 4 if env["use"] == "atari:atari" else 1)
        for section, key in _IN_FRAMES:
            if key in sections[section]:
                sections[section][key] *= skip
        if env["use"] == "atari:atari" and env["stack"] > 1 and "capacity" in sections["buffer"]:
            sections["buffer"]["stack"] = env["stack"]
        sections["run"] = self._run(n_itr * self.itr_batch_size * skip)
        sections["metrics"] = {"every": {"iterations": self.log_interval_itrs}}
        if self.evaluates:
            sections["evaluator"] = self.sampler.evaluator(self.log_interval_itrs)
        diagnostics = {
            "use": "runners:diagnostics",
            "log_interval_itrs": self.log_interval_itrs,
            "traj_window": self.log_traj_window,
            "batch_size": self.algo.samples_per_update(steps) * self.world_size,
            "discount": self.algo.discount,
        }
        sections["hook"] = [*sections["hook"], diagnostics, {"use": "core:progress-bar", "always": False}]
        if context is not None:
            if context.summary_writer:
                sections["logger"] = [{"use": "tensorboard:tensorboard"}]
            sections["checkpoint"] = context.checkpoint(self.log_interval_itrs, n_itr)
        return sections

    def _run(self, total_frames: int) -> dict[str, Any]:
        cuda = self.affinity.get("cuda_idx")
        return {
            "name": "rlpyt",
            "seed": self._seed(),
            "total_frames": total_frames,
            "device": "cpu" if cuda is None else f"cuda:{cuda}",
            "threads": self.affinity.get("master_torch_threads") or 1,
        }

    def _seed(self) -> int:
        if self.seed is not None:
            return self.seed
        run_id = 0 if (context := current()) is None else context.run_id
        return 1 + int(run_id) if str(run_id).isdecimal() else 1


class MinibatchRlEval(MinibatchRl):
    """Samples and optimises in turn; rows are about evaluations, before training and at each log point."""

    evaluates = True


class AsyncRl(MinibatchRl):
    """Samples in worker processes while it optimises; an iteration is a batch of the sampler."""

    asynchronous = True

    def get_n_itr(self) -> int:
        """Return the iterations of the run: whole log intervals."""
        return max(math.ceil(self.n_steps / self.log_interval_steps), 1) * self.log_interval_itrs

    def store_diagnostics(  # type: ignore[override]  # as in rlpyt
        self, itr: int, sampler_itr: int, traj_infos: list[TrajInfo], opt_info: Any
    ) -> None:
        """Store what an iteration gave for the next row.

        Args:
            itr: iteration, from 0.
            sampler_itr: the same.
            traj_infos: episodes that ended.
            opt_info: what `optimize_agent` returned.
        """
        self._hook.store(traj_infos, steps_of(opt_info))

    def log_diagnostics(  # type: ignore[override]
        self, itr: int, sampler_itr: int, throttle_time: float, prefix: str = "Diagnostics/"
    ) -> None:
        """Save a snapshot and write a row.

        Args:
            itr: iteration, from 0.
            sampler_itr: the same.
            throttle_time: 0.
            prefix: of the clocks' columns.
        """
        self.save_itr_snapshot(itr)
        self._hook.record(logger.taken())
        self._hook.write_row(self.trainer.progress, self._evaluated[0] if self.evaluates else None, prefix)

    def stores(self, itr: int, traj_infos: list[TrajInfo], opt_info: Any) -> None:
        """Call `store_diagnostics` as rlpyt does."""
        self.store_diagnostics(itr, itr, traj_infos, opt_info)

    def logs(self, itr: int) -> None:
        """Call `log_diagnostics` as rlpyt does."""
        self.log_diagnostics(itr, itr, 0.0)


class AsyncRlEval(AsyncRl):
    """The same, with evaluations, which `store_diagnostics` is given."""

    evaluates = True

    def store_diagnostics(  # type: ignore[override]  # as in rlpyt
        self, itr: int, sampler_itr: int, traj_infos: list[TrajInfo], opt_info: Any
    ) -> None:
        """Store what an iteration gave, or the episodes of an evaluation, for the next row."""
        if traj_infos:
            self._evaluated = traj_infos, 0.0
        self._hook.store([], steps_of(opt_info))

    def stores(self, itr: int, traj_infos: list[TrajInfo], opt_info: Any) -> None:
        """Call `store_diagnostics` as rlpyt does, without the episodes of training."""
        self.store_diagnostics(itr, itr, [], opt_info)

    def evaluates_now(self, itr: int) -> None:
        """Let the sampler evaluate, and store its episodes."""
        self.agent.eval_mode(itr)
        self.store_diagnostics(itr, itr, self.sampler.evaluate_agent(itr), ())

    def logs(self, itr: int) -> None:
        """Call `log_diagnostics` as rlpyt does."""
        self.log_diagnostics(itr, itr, 0.0)


def _of_sequences(minibatch_size: int, batch_steps: int) -> dict[str, Any]:
    """Return the keys of a buffer for policies with a memory, whose minibatches have whole batches of some envs."""
    envs = max(1, minibatch_size // batch_steps)
    return {"use": "rollout-sequences", "sequence_length": batch_steps, "minibatch_size": envs * batch_steps}


def write_params(context: LogContext) -> None:
    """Write `params.json`, with what cannot be JSON as text."""
    text = json.dumps(dict(context.params), indent=4, default=str)
    (context.folder / "params.json").write_text(text + "\n", encoding="utf-8")
