"""Two halves of the envs that take turns: while one steps, the policy acts for the other."""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from rlcore.collectors import Acting, BatchStorage, EnvStepper, remembering
from rlcore.types import Stateful, offers
from rlcore_plugin_parallel.all_rows import AllRows

if TYPE_CHECKING:
    from rlcore.types import Context, Episode, Transform
    from rlcore_plugin_parallel.env_processes import EnvPart


class Halves:
    """Steps two halves of the envs in turn; to a collector it is one `EnvStepper`.

    Args:
        context: of the collector.
        parts: the halves.
        all_rows: whether the policy acts on the rows of both for each, which keeps its bits.
    """

    def __init__(self, context: Context, parts: Sequence[EnvPart], all_rows: bool) -> None:
        spec, policy = context.env_spec, context.model.policy
        self._shares = [part.share for part in parts]
        self._all_rows = all_rows
        self._transforms: list[list[Transform]] = [copy.deepcopy(context.transforms) for _ in parts]
        self._memories = [
            remembering(policy, spec, context.device, part.share)
            if all_rows
            else remembering(policy, replace(spec, num_envs=part.spec.num_envs), context.device)
            for part in parts
        ]
        self._steppers = [
            EnvStepper(part, transforms, spec, context.heart, context.first_env + part.share.start, memory, part)
            for part, transforms, memory in zip(parts, self._transforms, self._memories, strict=True)
        ]
        self._storages: list[BatchStorage] = []

    @property
    def running(self) -> int:
        """How many episodes are in their middle."""
        return sum(stepper.running for stepper in self._steppers)

    def begin(self, seed: int, frame: int) -> None:
        """Begin an episode in every env; env `i` of the run with `seed + i`."""
        for stepper in self._steppers:
            stepper.begin(seed, frame)

    def collect(self, storage: BatchStorage, policy: Acting, noise: Tensor, frame: int) -> list[tuple[int, Episode]]:
        """Fill the storage of a batch, and return the episodes that ended in it, each with the step at which it did."""
        if not self._storages:
            self._storages = [storage.share(share) for share in self._shares]
        turns = [self._turns(number, storage, policy, noise, frame) for number in range(len(self._shares))]
        finished: list[tuple[int, Episode]] = []
        while turns:
            for turn in list(turns):
                try:
                    next(turn)
                except StopIteration as ended:
                    finished += ended.value
                    turns.remove(turn)
        return sorted(finished, key=lambda at: (at[0], at[1].env_index))

    def state_dict(self) -> dict[str, Any]:
        """Return the running episodes and the state of the envs and transforms, by half."""
        halves = []
        for stepper, transforms in zip(self._steppers, self._transforms, strict=True):
            kept = [transform.state_dict() if offers(transform, Stateful) else None for transform in transforms]
            halves.append({**stepper.state_dict(), "transforms": kept})
        return {"halves": halves}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on with the saved episodes."""
        for stepper, transforms, saved in zip(self._steppers, self._transforms, state["halves"], strict=True):
            for transform, kept in zip(transforms, saved["transforms"], strict=True):
                if kept is not None and offers(transform, Stateful):
                    transform.load_state_dict(kept)
            stepper.load_state_dict(saved)

    def _turns(
        self, number: int, storage: BatchStorage, policy: Acting, noise: Tensor, frame: int
    ) -> Generator[None, None, list[tuple[int, Episode]]]:
        share, share_storage = self._shares[number], self._storages[number]
        acting = self._memories[number] or policy
        if self._all_rows:
            return self._steppers[number].collecting(share_storage, AllRows(acting, share), noise, frame, storage.rows)
        return self._steppers[number].collecting(share_storage, acting, noise[:, share], frame)
