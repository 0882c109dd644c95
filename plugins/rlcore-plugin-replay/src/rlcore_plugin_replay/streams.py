"""Where the steps of each env go in a ring of its own, and which sequences they complete; numbers only, no tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Cut:
    """How episodes are cut into sequences.

    Attributes:
        length: steps of a sequence that are trained on.
        burn_in: steps before those, which only lead to the state of the policy.
        overlap: steps that a sequence shares with the one before it.
        n_steps: steps joined into a target.
    """

    length: int
    burn_in: int
    overlap: int
    n_steps: int

    @property
    def stride(self) -> int:
        """Steps from the beginning of a sequence to that of the next one."""
        return self.length - self.overlap

    @property
    def ahead(self) -> int:
        """Rows from the first trained step to the last one whose observation counts."""
        return self.length + self.n_steps - 1

    @property
    def rows(self) -> int:
        """Rows of a sequence: burn-in, trained steps, and the steps after them for the targets of the last ones."""
        return self.burn_in + self.ahead + 1

    def room(self, steps: int) -> int:
        """Return the rows that an env needs for batches of so many steps, also where each step is an episode."""
        return self.rows + 2 * steps + 1


@dataclass
class Plan:
    """Writes of a batch; places are rows in the ring of all envs.

    Attributes:
        steps: env, time and place of each step, and whether it begins an episode.
        finals: env, time and place of each next observation with a row of its own, as at the end of an episode.
        states: env and time of each stored state of the policy, and its place among the states.
        complete: place of the first trained step of each complete sequence, the number of its rows before and after
            that, and the place of its state; -1 for the state at the beginning of an episode.
        dropped: places of sequences with overwritten rows.
    """

    steps: list[tuple[int, int, int, bool]] = field(default_factory=list)
    finals: list[tuple[int, int, int]] = field(default_factory=list)
    states: list[tuple[int, int, int]] = field(default_factory=list)
    complete: list[tuple[int, int, int, int]] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


class Streams:
    """The steps of each env one after another, as rows that count up from 0 and take places in a ring.

    A row is the observation before a step with the step. The last observation of an episode is a row too, without a
    step. That of an episode that runs on lies where the row of its next step will.

    Sequences begin at the step 0 of an episode and then every `cut.stride` steps; the last one is left out where the
    one before it has all of its steps. They are complete once there are `cut.ahead` steps from there on, or the
    episode ended.

    Args:
        num_envs: how many envs there are.
        rows: places of each env, at least `cut.room` for the steps of a batch.
        cut: of episodes into sequences.

    Attributes:
        states: places for states of the policy.
    """

    def __init__(self, num_envs: int, rows: int, cut: Cut) -> None:
        self._num_envs = num_envs
        self._rows = rows
        self._cut = cut
        self._lap = (rows + cut.burn_in) // cut.stride + 2  # sequences that can be complete or under way at a time
        self.states = self._lap * num_envs
        self._count = [0] * num_envs  # rows of each env
        self._steps = [0] * num_envs  # of its running episode

    @property
    def filled(self) -> int:
        """Places up to which something was written; the rest is empty."""
        return min(max(self._count) + 1, self._rows) * self._num_envs

    def oldest(self) -> list[int]:
        """Return the place of the oldest row of each env that a sequence may have, of envs that have some."""
        counts = [(env, count) for env, count in enumerate(self._count) if count]
        return [self._place(env, max(0, count + 1 - self._rows)) for env, count in counts]

    def take(
        self, valid: Sequence[Sequence[bool]], done: Sequence[Sequence[bool]], first: Sequence[Sequence[bool]] | None
    ) -> Plan:
        """Return where the steps of a batch go.

        Args:
            valid: `[env][time]`, False for steps that are left out.
            done: whether an episode ends with the step.
            first: whether one begins with it. Steps in the middle of an episode whose beginning is not there are left
                out, since the state of the policy before them is not known; None for a policy without one.
        """
        plan = Plan()
        for env in range(self._num_envs):
            begin = self._count[env]
            self._take_env(plan, env, valid[env], done[env], None if first is None else first[env])
            self._drop(plan, env, begin)
        return plan

    def end(self) -> Plan:
        """Return what is complete once every episode that runs on has ended where it is."""
        plan = Plan()
        for env, steps in enumerate(self._steps):
            if steps:
                self._end(plan, env, self._count[env], steps)
                self._count[env] += 1
                self._drop(plan, env, self._count[env] - 1)
                self._steps[env] = 0
        return plan

    def state_dict(self) -> dict[str, Any]:
        """Return how many rows and steps there are."""
        return {"count": list(self._count), "steps": list(self._steps)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there."""
        self._count, self._steps = [*map(int, state["count"])], [*map(int, state["steps"])]

    def _take_env(
        self, plan: Plan, env: int, valid: Sequence[bool], done: Sequence[bool], first: Sequence[bool] | None
    ) -> None:
        cut, count, steps = self._cut, self._count[env], self._steps[env]
        for time, (kept, ends) in enumerate(zip(valid, done, strict=True)):
            if not kept:
                if steps:  # the step after is missing, so the episode ends here as far as is known
                    if time:
                        plan.finals.append((env, time - 1, self._place(env, count)))
                    self._end(plan, env, count, steps)
                    count, steps = count + 1, 0
                continue
            if not steps and first is not None and not first[time]:
                continue
            plan.steps.append((env, time, self._place(env, count), not steps))
            if steps and (steps + cut.burn_in) % cut.stride == 0:
                plan.states.append((env, time, self._state_place(env, count + cut.burn_in)))
            count, steps = count + 1, steps + 1
            begin = steps - cut.ahead
            if begin >= 0 and begin % cut.stride == 0:
                self._begin(plan, env, count - cut.ahead, begin, cut.ahead)
            if ends:
                plan.finals.append((env, time, self._place(env, count)))
                self._end(plan, env, count, steps)
                count, steps = count + 1, 0
        if steps:
            plan.finals.append((env, len(valid) - 1, self._place(env, count)))
        self._count[env], self._steps[env] = count, steps

    def _end(self, plan: Plan, env: int, row: int, steps: int) -> None:
        """Complete what an episode of so many steps has left, whose last observation is this row."""
        cut = self._cut
        begin = max(0, -(-(steps - cut.ahead + 1) // cut.stride) * cut.stride)
        while begin < steps and (begin == 0 or begin + cut.overlap < steps):
            self._begin(plan, env, row - steps + begin, begin, steps - begin)
            begin += cut.stride

    def _begin(self, plan: Plan, env: int, row: int, step: int, after: int) -> None:
        """Note the sequence whose first trained step is this row, that step of its episode."""
        burn_in = self._cut.burn_in
        state = self._state_place(env, row) if step > burn_in else -1
        plan.complete.append((self._place(env, row), min(step, burn_in), after, state))

    def _drop(self, plan: Plan, env: int, begin: int) -> None:
        """Note the sequences that end since there were so many rows."""
        behind = 1 - self._rows + self._cut.burn_in
        for row in range(max(0, begin + behind), self._count[env] + behind):
            plan.dropped.append(self._place(env, row))

    def _place(self, env: int, row: int) -> int:
        return row % self._rows * self._num_envs + env

    def _state_place(self, env: int, row: int) -> int:
        """Return the place of the state for the sequence that begins at a row; no two begin within a stride."""
        return row // self._cut.stride % self._lap * self._num_envs + env
