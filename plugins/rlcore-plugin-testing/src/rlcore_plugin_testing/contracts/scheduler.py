"""What a scheduler must keep: a function of progress alone, so that a resumed run needs no state for it."""

from __future__ import annotations

import math

from rlcore.types.progress import Progress
from rlcore_plugin_testing.contracts.base import ComponentContract

TOTAL = 1000


class SchedulerContract(ComponentContract):
    """Base of the tests of a scheduler."""

    kind = "scheduler"

    def test_names_what_it_schedules(self) -> None:
        """The learner binds it by `target`."""
        scheduler = self.make(self.bench())
        assert isinstance(scheduler.target, str), "set `target` to a number of the optimizer, such as 'lr'"
        assert scheduler.target, "set `target` to a number of the optimizer, such as 'lr'"

    def test_is_a_function_of_progress(self) -> None:
        """The same progress gives the same value, in any order and from any instance."""
        first, second = (self.make(self.bench()) for _ in range(2))
        frames = [0, 100, 999, 500, 1000, 0, 250, 1500]
        forward = [first.value(0.5, Progress(TOTAL, frames=count)) for count in frames]
        backward = [second.value(0.5, Progress(TOTAL, frames=count)) for count in reversed(frames)]
        assert forward == backward[::-1], "value() depends on earlier calls; compute it from `initial` and `progress`"

    def test_values_are_finite_numbers(self) -> None:
        """Beyond the horizon too: the last batch may pass it."""
        scheduler = self.make(self.bench())
        for count in (0, 1, 500, 1000, 5000):
            value = scheduler.value(0.5, Progress(TOTAL, frames=count))
            assert isinstance(value, float), f"value() returns {type(value).__name__}, not a float"
            assert math.isfinite(value), f"value() is {value} after {count} of {TOTAL} frames"
            assert value >= 0, f"value() is {value} after {count} of {TOTAL} frames"

    def test_stays_at_its_end(self) -> None:
        """Past the horizon nothing moves any more."""
        scheduler = self.make(self.bench())
        end, later = (scheduler.value(0.5, Progress(TOTAL, frames=count)) for count in (TOTAL, 2 * TOTAL))
        assert end == later, f"the value moves from {end} to {later} past the horizon; use progress.fraction"

    def test_scales_with_the_initial_value(self) -> None:
        """The config's number is where the schedule starts from."""
        scheduler = self.make(self.bench())
        small, large = (scheduler.value(initial, Progress(TOTAL, frames=300)) for initial in (0.1, 0.2))
        assert math.isclose(2 * small, large, rel_tol=1e-9), f"0.1 becomes {small} and 0.2 becomes {large}"
