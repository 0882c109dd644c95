"""Proofs by training: again, killed and resumed, stopped and resumed; each compared with an uninterrupted run."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from typing import Any

from rlcore.checkpoints.manifest import scan
from rlcore.errors import RlcoreError
from rlcore_plugin_testing.faults.chain import Job, run_chain, run_once
from rlcore_plugin_testing.faults.killer import Launcher, Strike
from rlcore_plugin_testing.faults.recorder import Comparison, compare, iterations, read
from rlcore_plugin_testing.prove.subject import Subject, times_of
from rlcore_plugin_testing.prove.table import Row

DEADLINE = 600.0


class Runs:
    """Trains the shortened run in several ways.

    Args:
        subject: what is trained.
        launcher: starts the processes.
        step: called after each process with what it was for.
    """

    def __init__(self, subject: Subject, launcher: Launcher, step: Callable[[str], Any]) -> None:
        self._subject, self._launcher, self._step = subject, launcher, step
        self.reference = subject.job("reference")
        attempt = run_once(launcher, self.reference, None, DEADLINE)
        if attempt.code:
            raise RlcoreError(f"the run itself ended with exit code {attempt.code}; it printed:\n{attempt.output}")
        self.inexact = tuple(_newest_manifest(self.reference)["inexact"])
        step("uninterrupted run")

    def again(self) -> Row:
        """Train again without an interruption, in a fresh interpreter with another hash seed."""
        job = self._subject.job("again")
        attempt = run_once(self._launcher, job, None, DEADLINE, hash_seed=1)
        self._step("again")
        if attempt.code:
            return Row("two runs are equal", "does not hold", f"exit code {attempt.code}: {attempt.output[-300:]}")
        return self._row("two runs are equal", job, "in another process, with another hash seed")

    def killed(self, kills: int, seed: int = 0) -> Row:
        """Kill at random, resume, and so on; where a run ends before all kills are used up, begin another."""
        draw = random.Random(seed)
        strikes = self._strikes(kills, draw)
        done, chains = 0, 0
        row = Row(_killed(0), "does not hold", "no kill came before the end of a run")
        while done < kills and chains < kills:
            job = self._subject.job(f"killed-{chains}")
            chains += 1
            try:
                attempts = run_chain(
                    self._launcher, job, strikes[done:], DEADLINE, after_each=lambda attempt: self._step("kill")
                )
            except RlcoreError as error:
                return Row(_killed(done), "does not hold", str(error)[:400])
            struck = sum(attempt.struck for attempt in attempts)
            done += struck
            if not struck and done < kills:  # it comes after the end of any run, so another takes its place
                strikes[done:] = self._strikes(kills - done, draw)
            if not done:
                continue
            repeated = compare(self.reference.recording, job.recording).repeated
            late = f", {kills - done} of {kills} came after the end of a run" if done < kills else ""
            row = self._row(_killed(done), job, f"over {chains} runs, {repeated} iterations repeated{late}")
            if row.verdict == "does not hold":
                break
        return row

    def stopped(self) -> Row:
        """Stop by SIGTERM in the middle, and resume."""
        claim = "stopped by SIGTERM and resumed = uninterrupted"
        job = self._subject.job("stopped")
        middle = max(1, len(iterations(self.reference.recording)) // 2)
        try:
            strike = Strike(point="pre_steps_log", count=middle, number=signal.SIGTERM)
            attempts = run_chain(self._launcher, job, [strike], DEADLINE)
        except RlcoreError as error:
            return Row(claim, "does not hold", str(error)[:400])
        self._step("stopped and resumed")
        return self._row(claim, job, f"exit code {attempts[0].code}, then {attempts[-1].code}")

    def saving(self) -> Row:
        """Say what saving costs at the interval of the config."""
        times = [line for line in read(times_of(self.reference.recording)) if line["frames"]]
        config, total = self._subject.config, self._subject.config.run.horizon
        every = config.checkpoint.every or max(1, total // 10)
        save = sorted(line["saving"] for line in times)[len(times) // 2]
        training = times[-1]["training"] / times[-1]["frames"]
        share = save / (save + every * training)
        figures = (
            f"{1000 * save:.1f} ms every {every:,} {config.run.clock}, which take {every * training:.1f} s: {share:.2%}"
        )
        return Row("time spent on saving", "measured", figures)

    def environment(self) -> Row:
        """Say whether the environment goes on in the middle of its episodes."""
        if self.inexact:
            return Row("exact resume", "not claimed", "resumes at an episode boundary: " + "; ".join(self.inexact))
        section = self._subject.config.one("env")
        assert section is not None
        return Row(
            "exact resume", "holds", f"exact = true: the state of {section.provided} is saved, and was tried out"
        )

    def _strikes(self, kills: int, draw: random.Random) -> list[Strike]:
        lines = read(times_of(self.reference.recording))
        trained = max(1, len(iterations(self.reference.recording)))
        seconds = lines[-1]["training"] / trained + sum(line["saving"] for line in lines) / len(lines)
        makes = [
            lambda: Strike(after=draw.uniform(0, 1.5 * seconds)),
            lambda: Strike(event=draw.randint(8, 45)),
            lambda: Strike(after=draw.uniform(0, 1.5 * seconds)),
            lambda: Strike(point="post_optim", count=draw.randint(1, 20)),
            lambda: Strike(at=draw.uniform(0, 1.0)),
        ]
        return [makes[number % len(makes)]() for number in range(kills)]

    def _row(self, claim: str, job: Job, figures: str) -> Row:
        comparison = compare(self.reference.recording, job.recording)
        different = _different_metrics(self.reference, job)
        if comparison.equal and not different:
            return Row(claim, "holds", f"{comparison.lines} lines of hashes and metrics.csv equal; {figures}")
        found = _first(comparison) or "metrics.csv has other bytes"
        if self.inexact:
            return Row(claim, "not claimed", f"{figures}; first difference: {found}")
        return Row(claim, "does not hold", f"first difference: {found}; {self._suspects(job)}; {figures}")

    def _suspects(self, job: Job) -> str:
        """Name the components that may be the reason: those that save nothing, and those whose state differs."""
        unsaved = self._subject.without_state()
        wanted, found = _newest_manifest(self.reference)["digests"], _newest_manifest(job)["digests"]
        differing = [name for name in wanted if wanted[name] != found.get(name)]
        named = f"these save no state: {', '.join(unsaved)}" if unsaved else "every hook and transform saves its state"
        return f"{named}; different at the end: {', '.join(differing) or 'none'}"


def _killed(times: int) -> str:
    return f"killed {times} {'time' if times == 1 else 'times'} and resumed = uninterrupted"


def _first(comparison: Comparison) -> str:
    return str(comparison.differences[0]) if comparison.differences else ""


def _different_metrics(reference: Job, job: Job) -> bool:
    wanted, found = (other.folder / "metrics.csv" for other in (reference, job))
    return wanted.exists() and (not found.exists() or wanted.read_bytes() != found.read_bytes())


def _newest_manifest(job: Job) -> dict[str, Any]:
    return dict(scan(job.folder / "checkpoints").entries[-1].manifest)
