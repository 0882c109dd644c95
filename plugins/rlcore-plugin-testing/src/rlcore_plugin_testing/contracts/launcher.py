"""What a launcher must keep, tried by real processes: the ranks of a generation meet, and those of two never do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from rlcore.types import Launcher
from rlcore.types.context import Context
from rlcore_plugin_testing.contracts.base import ComponentContract
from rlcore_plugin_testing.processes import Processes

_DEADLINE: Final = 30.0


class LauncherContract(ComponentContract):
    """Base of the tests of a launcher."""

    kind = "launcher"

    def bench(
        self,
        folder: Path | None = None,
        changes: Mapping[str, Any] | None = None,
        around: Mapping[str, Any] | None = None,
    ) -> Context:
        """Return a context outside of any run: a launcher is built before one is."""
        return Context.alone("ranks").for_component("launcher", self.provided().component.name)

    @pytest.mark.parametrize("count", [1, 2, 3])
    def test_ranks_meet(self, count: int) -> None:
        """Each has its number, and hears what the others say."""
        launcher: Launcher = self.make(self.bench())
        launcher.open(count, 1, _DEADLINE)
        for found in Processes(count, lambda rank: _said(launcher, rank)).results():
            assert found == [[rank, count, 1] for rank in range(count)], f"the ranks hear {found} of each other"

    def test_generations_do_not_meet(self) -> None:
        """The ranks of a second generation are among themselves, whatever the first ones left."""
        launcher: Launcher = self.make(self.bench())
        for generation in (1, 2):
            launcher.open(2, generation, _DEADLINE)
            for found in Processes(2, lambda rank: _said(launcher, rank)).results():
                expected = [[rank, 2, generation] for rank in range(2)]
                assert found == expected, f"the ranks of generation {generation} hear {found} of each other"

    def test_runs_and_resumes_in_a_small_run(self, tmp_path: Path) -> None:
        """It is built without a run, and twice: a run of one process has none."""
        for _ in range(2):
            launcher: Launcher = self.make(self.bench())
            launcher.open(1, 1, _DEADLINE)


def _said(launcher: Launcher, rank: int) -> list[list[int]]:
    group = launcher.join(rank)
    found = [list(numbers) for numbers in group.share((group.rank, group.size, group.generation))]
    group.barrier()  # nobody leaves before all have heard
    return found
