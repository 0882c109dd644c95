"""The points of an iteration, in the order of their calls. `specs.py` says what holds for all points."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlcore.hooks.declaration import point

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

    from rlcore.types import Key, Learner
    from rlcore.types.trainer import Trainer


class LoopSpecs:
    """Called in every iteration, in this order."""

    @point("pipeline", "outer")
    def batch_process(self, batch: TensorDict, trainer: Trainer) -> TensorDict | None:
        """Change a batch after collection, before the buffer takes it.

        Once per iteration, after the transforms. Not called for a collector that fills a replay buffer in the
        background, since there is no batch. The returns of episodes are recorded already, so a change of rewards does
        not show in them.

        Args:
            batch: `[env, time]`; `rlcore.types` lists its entries. The TensorDict is this iteration's own: entries may
                be set. The tensors are views of the collector's storage, which the next iteration overwrites.
            trainer: `trainer.progress` does not count this batch yet.

        Returns:
            The batch of this iteration, also of another size; None for the one that was handed in. The frames that
            were collected are counted, whatever the size.

        Called in `rlcore/training/loop.py`:

            batch = self._process_batch_hook(batch)
            ...
            self._count(together, episodes)
            ...
            parts.buffer.add(batch)
        """

    @point("collect", "outer")
    def pre_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any] | None:
        """Return metrics of the batch, before optimisation.

        Once per iteration, after `batch_process` and the `episode_end` of each episode, before the buffer.

        Args:
            batch: `[env, time]` as `batch_process` left it, valid until the next iteration; to be read only. None
                where a collector fills a replay buffer in the background.
            trainer: `trainer.progress` counts the frames and episodes of this batch.

        Returns:
            Numbers, arrays or tensors by metric name, logged under these names; None for none. A tensor is kept as it
            is until the next write: return a new one, not a view of the batch.

        Called in `rlcore/training/loop.py`:

            self._record(hooks.pre_steps_log(batch, self))
            ...
            parts.buffer.add(batch)
        """

    @point("notify", "outer")
    def pre_optim_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Called before the first epoch of an iteration.

        Once per iteration, after the buffer took the batch; not before `warmup_frames` of the buffer are collected.
        An estimator with `every = "batch"` runs after it.

        Args:
            batch: `[env, time]` as `batch_process` left it; None where a collector works in the background.
            trainer: its model still has the weights that collected the batch.

        Called in `rlcore/training/loop.py`:

            hooks.pre_optim_steps(batch, self)
            if estimator is not None and estimator.every == "batch":
                estimator(batch)
        """

    @point("collect", "inner")
    def pre_epoch_log(self, batch: TensorDict, learner: Learner) -> Mapping[str, Any] | None:
        """Return metrics of the batch, before each epoch.

        Once per epoch: `num_epochs` of the buffer times per iteration, before `pre_epoch`.

        Args:
            batch: `[env, time]` as `batch_process` left it, with what an estimator with `every = "batch"` wrote; to be
                read only. None where a collector works in the background.
            learner: takes the updates of the epoch.

        Returns:
            As `pre_steps_log`.

        Called in `rlcore/training/loop.py`:

            self._record(hooks.pre_epoch_log(batch, learner))
            epoch_batch = hooks.pre_epoch(batch, learner)
        """

    @point("pipeline", "inner")
    def pre_epoch(self, batch: TensorDict, learner: Learner) -> TensorDict | None:
        """Change the batch before an epoch.

        Once per epoch, after `pre_epoch_log`. An estimator with `every = "epoch"` runs after this point.

        Args:
            batch: `[env, time]` as `batch_process` left it, the same object before every epoch of an iteration: what
                is set in it stays for the next epoch; what is set in a copy (`batch.copy()`) does not. None where a
                collector works in the background.
            learner: its weights have moved since the epoch before.

        Returns:
            The batch of this epoch; None for the one that was handed in. The next epoch begins with the batch of the
            iteration again.

        Called in `rlcore/training/loop.py`:

            epoch_batch = hooks.pre_epoch(batch, learner)
            if estimator is not None and estimator.every == "epoch":
                estimator(epoch_batch)
        """

    @point("pipeline", "inner")
    def process_optim_batch(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> Mapping[Key, Tensor] | None:
        """Change a minibatch before the loss.

        Once per update, up to several hundred times per iteration.

        Args:
            minibatch: entries `[sample, ...]` by key; with the stock buffers a `rlcore.Minibatch`, which gathers an
                entry when it is first read. Assign a new tensor to a key: later hooks and the loss read it, and the
                batch stays as it is. Do not change a tensor in place, it may lie in the memory of the buffer.
            learner: takes the update.

        Returns:
            The minibatch of this update, any mapping from keys to tensors; None for the one that was handed in. With a
            compiled update it must keep keys, shapes and dtypes.

        Raises:
            EndOfEpoch: raise it, from `rlcore.errors`, to end the epoch before its last minibatch.

        Called in `rlcore/learners/base.py`:

            minibatch = hooks.process_optim_batch(minibatch, self)
            ...
            metrics = self.take_step(minibatch)
        """

    @point("pipeline", "inner")
    def post_loss(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> dict[str, Tensor] | None:
        """Change the losses before backward.

        Once per update, between loss and backward. It splits a compiled update, which then runs uncompiled.

        Args:
            losses: what the loss returned, by name: 0-d tensors, and `td_error` `[sample, 1]` if there is one. Those
                called `loss_*` have a gradient, and are summed and minimised. The dict is this update's own: entries
                may be set, replaced and removed.
            minibatch: as the loss got it; to be read only.
            learner: its weights are those of the loss.

        Returns:
            The losses to go on with, a new `loss_*` entry among them is minimised too; None for those handed in.

        Called in `plugins/rlcore-plugin-gradient/src/rlcore_plugin_gradient/learner.py`:

            losses = self._loss(turn.entries) if names is None else self._loss(turn.entries, names)
            losses = hooks.post_loss(losses, turn.minibatch, self)
        """

    @point("owner", "inner")
    def optimizer(
        self, losses: dict[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Tensor]:
        """Do zero_grad, backward and step in place of the learner, and return metrics; one hook only.

        Once per update, after `post_loss`. It splits a compiled update. Where a loss or gradient is not finite, it must
        itself see that no weight changes.

        Args:
            losses: 0-d tensors by name; those called `loss_*` have a gradient.
            minibatch: as the loss got it; to be read only.
            learner: `learner.optimizers` has the optimizers by name; `learner.step(losses)` is the step that would have
                been taken.

        Returns:
            Metrics of the update by name, detached tensors on the device. Not None.

        Raises:
            PluginError: two hooks implement it; raised when the trainer is built.

        Called in `plugins/rlcore-plugin-gradient/src/rlcore_plugin_gradient/learner.py`:

            if hooks.used("optimizer"):
                ...
                return hooks.optimizer(losses, turn.minibatch, self)
            return self.apply(self.backward(losses))
        """
        raise NotImplementedError

    @point("notify", "inner")
    def post_optim(self, minibatch: Mapping[Key, Tensor], learner: Learner) -> None:
        """Called after the step of the optimizers and of the target networks.

        Once per update. Also after an update that changed nothing because it was not finite.

        Args:
            minibatch: as the loss got it; to be read only.
            learner: its weights have moved; change them under `torch.no_grad()`, in place.

        Called in `rlcore/learners/base.py`:

            self.progress.updates += 1
            hooks.post_optim(minibatch, self)
        """

    @point("collect", "inner")
    def post_optim_log(
        self, metrics: Mapping[str, Tensor], minibatch: Mapping[Key, Tensor], learner: Learner
    ) -> Mapping[str, Any] | None:
        """Return further metrics of an update.

        Once per update, after `post_optim`. Leave tensors on their device: they are read when they are written, and
        reading one here waits for the device in every update.

        Args:
            metrics: of the step, by name, detached: the losses, what else the loss returned, and `grad_norm`; to be
                read only.
            minibatch: as the loss got it; to be read only.
            learner: its weights have moved.

        Returns:
            Numbers or tensors by name, logged with the prefix `train/`; one of a name in `metrics` replaces that. None
            for none.

        Called in `rlcore/learners/base.py`:

            hooks.post_optim(minibatch, self)
            return hooks.post_optim_log(metrics, minibatch, self)
        """

    @point("collect", "inner")
    def post_epoch_log(self, batch: TensorDict, learner: Learner) -> Mapping[str, Any] | None:
        """Return metrics after the minibatches of each epoch.

        Once per epoch, before `post_epoch`.

        Args:
            batch: `[env, time]` as `pre_epoch` and the estimator left it; to be read only. None where a collector works
                in the background.
            learner: its weights are those after the epoch.

        Returns:
            As `pre_steps_log`.

        Called in `rlcore/training/loop.py`:

            self._updates(epoch_batch, averages)
            self._record(hooks.post_epoch_log(epoch_batch, learner))
        """

    @point("notify", "inner")
    def post_epoch(self, batch: TensorDict, learner: Learner) -> None:
        """Called after the minibatches of an epoch.

        Once per epoch, after `post_epoch_log`.

        Args:
            batch: as at `post_epoch_log`.
            learner: its weights are those after the epoch.

        Called in `rlcore/training/loop.py`:

            self._record(hooks.post_epoch_log(epoch_batch, learner))
            hooks.post_epoch(epoch_batch, learner)
        """

    @point("collect", "outer")
    def post_optim_complete_log(
        self, updates: int, losses: Mapping[str, Tensor], trainer: Trainer
    ) -> Mapping[str, Any] | None:
        """Return metrics after all epochs of an iteration.

        Once per iteration in which an update was made, after the learner's schedules have moved.

        Args:
            updates: of the run so far.
            losses: the mean of everything of one number that the updates of this iteration returned, by name, with the
                metrics of `post_optim_log`; 0-d tensors or numbers, this call's own.
            trainer: its model has the weights of the next iteration.

        Returns:
            As `pre_steps_log`.

        Called in `rlcore/training/loop.py`:

            self._record(hooks.post_optim_complete_log(parts.progress.updates, averages.means(), self))
        """

    @point("notify", "outer")
    def post_steps(self, batch: TensorDict, trainer: Trainer) -> None:
        """Called after all epochs of an iteration.

        Once per iteration, also in one without optimisation. The evaluation comes after it, if one is due.

        Args:
            batch: `[env, time]` as `batch_process` left it, with what the estimator wrote; valid until the next
                iteration. None where a collector works in the background.
            trainer: `trainer.progress.iterations` counts this iteration already.

        Called in `rlcore/training/loop.py`:

            parts.progress.iterations += not parts.progress.unfinished
            hooks.post_steps(batch, self)
        """

    @point("collect", "outer")
    def post_steps_log(self, batch: TensorDict, trainer: Trainer) -> Mapping[str, Any] | None:
        """Return metrics of the iteration, after optimisation.

        Once per iteration, after `post_steps` and after the evaluation if one was due; the last point before metrics
        are written.

        Args:
            batch: as at `post_steps`; to be read only.
            trainer: `trainer.last_evaluation` has the evaluation of this iteration, if there was one.

        Returns:
            As `pre_steps_log`.

        Called in `rlcore/training/loop.py`:

            self._record(self.parts.hooks.post_steps_log(self._batch, self))
        """
