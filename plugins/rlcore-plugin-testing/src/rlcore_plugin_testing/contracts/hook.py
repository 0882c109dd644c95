"""What a hook must keep: points that exist, whole batches, an end without a beginning, its state, its own instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from torch import Tensor

from rlcore.hooks.points import Hook, LoopHooks
from rlcore.hooks.resolution import marked
from rlcore.training.loop import Loop
from rlcore_plugin_testing.compare import difference, snapshot
from rlcore_plugin_testing.contracts.base import ComponentContract, saved
from rlcore_plugin_testing.contracts.data import collected


class HookContract(ComponentContract):
    """Base of the tests of a hook.

    Attributes:
        transient: attributes that change in a run and need not be saved, because a resumed run sets them again.
    """

    kind = "hook"
    transient: ClassVar[tuple[str, ...]] = ()

    def in_a_run(self) -> tuple[Any, Loop]:
        """Return a hook inside a small run, and its trainer."""
        trainer = self.run().trainer
        return trainer.hooks.hooks[-1].instance, trainer

    def test_points_and_arguments_exist(self) -> None:
        """A misspelt point or argument would never be called."""
        instance = self.make(self.bench())
        LoopHooks([Hook("under-test", instance)])

    def test_training_goes_to_its_end(self) -> None:
        """The returns of all points are of the right type, and nothing raises."""
        _, trainer = self.in_a_run()
        trainer.train()
        assert trainer.progress.frames >= trainer.run_info.total_frames or trainer.stop_reason, "the run ended early"

    def test_shutdown_needs_no_setup(self) -> None:
        """When a run fails while it is set up, every hook is shut down, also those that were not set up."""
        instance, trainer = self.in_a_run()
        if "shutdown" not in marked(instance):
            pytest.skip("does not implement shutdown")
        for implementation in trainer.hooks.implementations("shutdown"):
            implementation.call(trainer)

    def test_batches_stay_whole(self) -> None:
        """A pipeline changes values; the size, the ends and the other entries stay."""
        instance, trainer = self.in_a_run()
        context = trainer.hooks.hooks[0].instance.context
        batch = collected(context)
        before = batch.clone()
        calls: dict[str, Callable[[], Any]] = {
            "batch_process": lambda: trainer.hooks.batch_process(batch.clone(), trainer),
            "pre_epoch": lambda: trainer.hooks.pre_epoch(batch.clone(), trainer.learner),
        }
        for point, call in calls.items():
            if point not in marked(instance):
                continue
            changed = call()
            assert changed.batch_size == batch.batch_size, f"{point} changed the size to {list(changed.batch_size)}"
            lost = set(before.keys(True, True)) - set(changed.keys(True, True))
            assert not lost, f"{point} lost the entries {', '.join(map(str, lost))}"
            for flag in ("done", "terminated", "truncated"):
                where = difference(before["next", flag], changed["next", flag])
                assert where is None, f"{point} changed where episodes end: {flag}"

    def test_metrics_keep_no_graph(self) -> None:
        """Metrics are kept until they are written, and with one that has a graph all that it was computed from."""
        _, trainer = self.in_a_run()
        metrics: Any = trainer.metrics
        add, kept = metrics.add, set[str]()

        def noting(values: Mapping[str, Any], prefix: str = "") -> None:
            kept.update(name for name, value in values.items() if isinstance(value, Tensor) and value.requires_grad)
            add(values, prefix)

        metrics.add = noting
        trainer.train()
        assert not kept, f"{', '.join(sorted(kept))} are metrics with a graph: detach them"

    def test_what_changes_in_a_run_is_saved(self) -> None:
        """A resumed run must find the hook as it was: every attribute that a run changes is in its state."""
        instance, trainer = self.in_a_run()
        before = snapshot(instance)
        iterations = iter(trainer)
        next(iterations)
        next(iterations)
        after, state = snapshot(instance), saved(instance)
        for _ in iterations:
            pass
        changed = [name for name in after if difference(before.get(name), after[name]) and name not in self.transient]
        if not changed:
            return
        assert state is not None, (
            f"{', '.join(changed)} changed in a run, but the hook has no state_dict and load_state_dict; add them, or "
            "name in `transient` what a resumed run sets again"
        )
        other, _ = self.in_a_run()
        other.load_state_dict(state)
        restored = snapshot(other)
        lost = [name for name in changed if difference(after[name], restored.get(name))]
        assert not lost, f"{', '.join(lost)} are not as they were after load_state_dict(state_dict())"

    def test_two_instances_share_nothing(self) -> None:
        """A config may name a hook twice, and two runs may live in one process."""
        instance, trainer = self.in_a_run()
        other, _ = self.in_a_run()
        before = snapshot(other)
        trainer.train()
        where = difference(before, snapshot(other))
        assert where is None, f"a run of one instance changed another: {where}; keep state in the instance"
        shared = [name for name, value in vars(type(instance)).items() if isinstance(value, list | dict | set)]
        shared = [name for name in shared if not name.startswith("__")]
        assert not shared, f"class attributes that can change: {', '.join(shared)}; make them in __init__"
