"""The points at moments of a run: its start, an episode, an evaluation, a checkpoint, an error, its end.

`specs.py` says what holds for all points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlcore.hooks.declaration import point

if TYPE_CHECKING:
    from pathlib import Path

    from rlcore.types import Episode, EvaluationResult
    from rlcore.types.trainer import Trainer


class LifeSpecs:
    """Called at moments of a run."""

    @point("notify", "life")
    def setup(self, trainer: Trainer) -> None:
        """Called when everything is built and restored, before the first frame of this process.

        Once per process, for every hook that is there from the start; the place to open files.

        Args:
            trainer: in a resumed run its clocks, weights and the state of this hook are those of the checkpoint.

        Called in `rlcore/training/loop.py`:

            parts.hooks.setup(self)
        """

    @point("notify", "life")
    def episode_end(self, episode: Episode, trainer: Trainer) -> None:
        """Called for each episode that ended during collection.

        After `batch_process`, before `pre_steps_log`; several times per iteration or not at all, in the order in which
        the episodes ended.

        Args:
            episode: `return_`, the sum of the rewards as the env gave them; `length` in steps; `env_index`; and
                `infos`, the info mapping of its last step. May be kept.
            trainer: `trainer.progress` counts the frames of the batch and this episode.

        Called in `rlcore/training/loop.py`:

            for episode in episodes:
                progress.episodes += 1
                self.parts.hooks.episode_end(episode, self)
        """

    @point("notify", "life")
    def evaluation(self, result: EvaluationResult, trainer: Trainer) -> None:
        """Called after an evaluation.

        After the one before the first frame, those at intervals, the last one, and each `trainer.evaluate()`.

        Args:
            result: one entry per episode in `returns`, `lengths` and `seeds`; `frames`, `mean_return`, `mean_length`.
                May be kept.
            trainer: `trainer.best_evaluation` takes this one into account.

        Called in `rlcore/training/interface.py`:

            result = parts.evaluator.evaluate()
            ...
            parts.hooks.evaluation(result, self)
        """

    @point("notify", "life")
    def checkpoint_saved(self, path: Path, trainer: Trainer) -> None:
        """Called after a checkpoint was committed.

        With `[checkpoint] async` it is called between two later iterations, once the files are written. It is also
        called for what is saved after an error; an error of the hook is only logged then.

        Args:
            path: the folder of the checkpoint. Retention removes it when later ones make it superfluous: copy what is
                to stay. Nothing in it may be changed.
            trainer: with `async` it is further than the checkpoint.

        Called in `rlcore/training/interface.py`:

            def _checkpoint_saved(self, path: Path) -> None:
                self.parts.hooks.checkpoint_saved(path, self)
        """

    @point("notify", "life")
    def on_exception(self, error: BaseException, trainer: Trainer) -> None:
        """Called when the run ends with an error, before what stands is saved and before `shutdown`.

        At most once; it cannot stop the error. Not called when a script leaves the loop over the trainer, nor when a
        signal asked the run to stop. An error of the hook is logged, and the next hook is called.

        Args:
            error: what ends the run; it may be a `KeyboardInterrupt`.
            trainer: in the middle of the iteration that failed.

        Called in `rlcore/training/loop.py`:

            self.parts.hooks.on_exception(error, self)
            ...
            raise
        """

    @point("notify", "life")
    def shutdown(self, trainer: Trainer) -> None:
        """Called at the end of every run, also after an error, in reverse order of the config.

        Once per process, after the last checkpoint; also without `setup`, where another hook failed in it. An error of
        the hook is logged, and the next hook is called.

        Args:
            trainer: its collector, evaluator and loggers are still open.

        Called in `rlcore/training/loop.py`:

            self.parts.hooks.shutdown(self)
        """
