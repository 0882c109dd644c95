"""rlpyt's runners of several processes, which sample for themselves and step by the mean of their gradients."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from rlcore.errors import ConfigError, NotSupportedError, RlcoreError
from rlcore.process import companion, how_it_ended
from rlcore.types import is_overridden, names_of_originals
from rlcore_plugin_runners.affinity import bound, cpus_of
from rlcore_plugin_runners.agents import Agent
from rlcore_plugin_runners.algos import Algorithm
from rlcore_plugin_runners.context import current
from rlcore_plugin_runners.runners import MinibatchRl, write_params
from rlcore_plugin_runners.samplers import SerialSampler
from rlcore_plugin_runners.trajectories import TrajInfo

# what each process has in rlpyt, and the whole run has in a config
_OF_EACH = (
    ("env", "num_envs"),
    ("collector", "frames_per_batch"),
    ("buffer", "minibatch_size"),
    ("buffer", "capacity"),
)


class SyncRl(MinibatchRl):
    """Several processes that each sample, and step together by the mean of their gradients.

    They are the ranks of `rlcore train`, which `train` starts and waits for; no `trainer` is in this process. As in
    rlpyt, what the sampler and the algorithm say is that of each process: envs, batches, minibatches and replay are
    so many times larger in the config. `n_steps` is of all. Rows are about the episodes of the first process.

    Args:
        affinity: a list with one dict for each process; the run is bound to the CPUs of all. For one a dict will do.

    Raises:
        ConfigError: with several processes, a GPU for each, or a `TrajInfoCls` of the script's own.
    """

    def __init__(
        self, algo: Algorithm, agent: Agent, sampler: SerialSampler, n_steps: float, affinity: Any = None, **keys: Any
    ) -> None:
        ranks = [dict(rank) for rank in affinity] if isinstance(affinity, Sequence) else [dict(affinity or {})]
        if not ranks:
            raise ConfigError(f"{type(self).__name__}: affinity is an empty list; it has one dict for each process")
        self.world_size = len(ranks)
        super().__init__(algo, agent, sampler, n_steps, affinity=ranks[0], **keys)
        if self.world_size > 1:
            self._check(ranks)
            self._cpus = set().union(*map(cpus_of, ranks))

    def startup(self, resume: bool = False) -> int:
        """Build everything; of several processes, `train` alone can.

        Raises:
            ConfigError: there are several.
        """
        if self.world_size > 1:
            raise ConfigError(f"startup: {self.world_size} processes are built by train(), each of its own")
        return super().startup(resume)

    def train(self, resume: bool = False) -> None:
        """Train to the end.

        Args:
            resume: go on from the latest snapshot of the run that the `logger_context` around it names.

        Raises:
            RlcoreError: the run ended with an error, which it has printed.
        """
        if self.world_size == 1:
            super().train(resume)
            return
        context = current()
        if resume and context is None:
            raise ConfigError("resume = True needs a logger_context around it, with override_prefix = True")
        with tempfile.TemporaryDirectory() as folder, bound(self._cpus):
            place = Path(folder) / "run" if context is None else context.folder
            path = Path(folder) / "config.toml"
            path.write_text(tomli_w.dumps(self._config_at(place)), encoding="utf-8")
            words = ["train", str(path), *(["--resume"] if resume else [])]
            process = subprocess.Popen([sys.executable, "-m", "rlcore", *words])
            companion.end_with_this(process.pid, signal.SIGTERM)  # it saves its state
            code = _code_of(process)
        if context is not None and context.folder.exists():
            write_params(context)
        if code:
            said = "; it said why" if code > 0 else ""
            raise RlcoreError(f"{type(self).__name__}: training {how_it_ended(code)}{said}")

    def get_itr_snapshot(self, itr: int) -> dict[str, Any]:
        """Return what rlpyt's snapshots hold, where there is a trainer in this process.

        Raises:
            ConfigError: there are several processes.
        """
        if self.world_size > 1:
            raise ConfigError(
                f"get_itr_snapshot: the {self.world_size} processes write checkpoints; `rlcore ckpt` reads them"
            )
        return super().get_itr_snapshot(itr)

    def config(self) -> dict[str, Any]:
        """Return the sections of the config, with `[ranks]` where there are several processes."""
        sections = super().config()
        if self.world_size > 1:
            for section, key in _OF_EACH:
                if key in sections[section]:
                    sections[section][key] *= self.world_size
            sections["ranks"] = {"use": "processes", "count": self.world_size}
        return sections

    def _config_at(self, place: Path) -> dict[str, Any]:
        """Return the config of a run in a folder."""
        sections = self.config()
        sections["run"] |= {"folder": str(place.parent.absolute()), "name": place.name}
        return sections

    def _check(self, ranks: Sequence[Mapping[str, Any]]) -> None:
        name = type(self).__name__
        devices = {rank.get("cuda_idx") for rank in ranks}
        if len(devices) > 1:
            raise ConfigError(
                f"{name}: the affinities name several GPUs ({sorted(map(str, devices))}), and the processes that it "
                "starts have one device; leave cuda_idx out, or give all the same"
            )
        for part in (self, self.algo, self.agent, self.sampler):
            names = [name for name in names_of_originals(type(part)) if is_overridden(part, name, __package__)]
            if names:
                raise NotSupportedError(
                    f"{type(part).__name__}.{min(names)} would never be called: each of the {self.world_size} "
                    "processes builds the run from its config; hooks of a config are in all of them"
                )
        infos = self.sampler.TrajInfoCls
        if infos is not TrajInfo:
            raise ConfigError(
                f"{name}: TrajInfoCls = {infos.__name__} is of this process, and others train; leave it out"
            )


class SyncRlEval(SyncRl):
    """The same, with evaluations, which the first process makes."""

    evaluates = True


def _code_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for a run to end, which a Ctrl-C reaches as it does this process, and return its exit code."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.wait()
        raise
    except BaseException:
        process.terminate()
        process.wait()
        raise
