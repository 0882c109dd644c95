"""A group of learners behind one: updates, state and weights of all of them."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch

from rlcore.errors import ConfigError, NotSupportedError
from rlcore.types import Carries
from rlcore_plugin_learners.asking import WEIGHTS_AFTER, Asking, Results
from rlcore_plugin_learners.batches import MultiBatch, TrainingData, check_ids
from rlcore_plugin_learners.call_results import CallResult, RemoteCallResults
from rlcore_plugin_learners.checkpointable import Checkpointable
from rlcore_plugin_learners.columns import COMPONENT_LEARNER, COMPONENT_RL_MODULE
from rlcore_plugin_learners.config import AlgorithmConfig
from rlcore_plugin_learners.episode_columns import parts_of
from rlcore_plugin_learners.group_shape import GroupShape
from rlcore_plugin_learners.launching import crew_of
from rlcore_plugin_learners.learner import Learner
from rlcore_plugin_learners.module import RLModuleSpec
from rlcore_plugin_learners.multi import MultiRLModuleSpec
from rlcore_plugin_learners.old_names import OldNames
from rlcore_plugin_learners.originals import LEARNER_GROUP
from rlcore_plugin_learners.recorded import import_name
from rlcore_plugin_learners.shards import orders_of, shards
from rlcore_plugin_learners.states import Paths, below, chosen_of

if TYPE_CHECKING:
    from rlcore_plugin_learners.remote import RemoteLearners

Result = TypeVar("Result")


class LearnerGroup(Carries, Asking, GroupShape, Checkpointable, OldNames):
    """Learners of the same modules: one in this process, or several in processes of their own or actors of Ray.

    Several share the rows of a batch, and average their gradients over all of them. Where one is lost, all begin again
    from the state before the update, which is then done over.

    Args:
        config: its settings; with `num_learners=0` the learner is in this process.
        module_spec: which modules to build; default: those of the config.
        placement_group: of Ray, in whose bundles the actors are placed.
        deadline: seconds that a learner is waited for without a sign of life.
        restarts: how often in a row learners may be lost without an update in between.
    """

    original = LEARNER_GROUP

    def __init__(
        self,
        config: AlgorithmConfig,
        module_spec: MultiRLModuleSpec | RLModuleSpec | None = None,
        placement_group: Any = None,
        *,
        deadline: float = 60.0,
        restarts: int = 3,
    ) -> None:
        spec = (module_spec or config.get_multi_rl_module_spec()).as_multi_rl_module_spec()
        self.config = config
        self._limits = {"deadline": deadline, "restarts": restarts}
        self._placement_group = placement_group
        self._learner: Learner | None = None
        self._remote: RemoteLearners | None = None
        self._ready: deque[Results] = deque()
        self._dropped = 0
        crew = crew_of(config, spec, deadline, placement_group)
        if crew is not None:
            from rlcore_plugin_learners.remote import RemoteLearners

            self._remote = RemoteLearners(crew, deadline, restarts)
            self._finalizer = weakref.finalize(self, self._remote.close)
        else:
            self._learner = config.learner_type()(config=config, module_spec=spec)
            self._learner.build()

    def update(
        self,
        batch: Any = None,
        batches: Any = None,
        batch_refs: Any = None,
        episodes: Any = None,
        episodes_refs: Any = None,
        data_iterators: Any = None,
        training_data: TrainingData | None = None,
        *,
        timesteps: Mapping[str, int] | None = None,
        async_update: bool = False,
        full: Literal["wait", "drop"] = "wait",
        return_state: bool = False,
        num_total_minibatches: int = 0,
        num_epochs: int | None = None,
        minibatch_size: int | None = None,
        shuffle_batch_per_epoch: bool | None = None,
        num_iters: int | None = None,
    ) -> Results:
        """Train, and return what each learner logged.

        Args:
            batch: see `Learner.update`, as for what is not explained here. Learners share its rows.
            batches: see there.
            batch_refs: see there.
            episodes: see there.
            episodes_refs: see there.
            data_iterators: see there.
            training_data: see there.
            timesteps: see there.
            async_update: return at once, with the results of earlier calls that are ready by now, in the order of the
                calls; none is an empty list. Only with learners in other processes.
            full: where `max_requests_in_flight_per_learner` updates wait already: wait for one, or drop this one, for
                all learners.
            return_state: whether the first result has the weights, under `_rl_module_state_after_update`.
            num_total_minibatches: see there.
            num_epochs: see there.
            minibatch_size: see there; of each learner.
            shuffle_batch_per_epoch: see there.
            num_iters: see there.

        Raises:
            ConfigError: see there; or asynchronous without other processes, or the group was shut down.
            RankLost: learners were lost too often in a row.
        """
        settings: dict[str, Any] = {
            "num_total_minibatches": num_total_minibatches,
            "num_epochs": num_epochs,
            "minibatch_size": minibatch_size,
            "shuffle_batch_per_epoch": shuffle_batch_per_epoch,
            "num_iters": num_iters,
        }
        settings = {name: value for name, value in settings.items() if value is not None}
        given = training_data or TrainingData(batch, batches, batch_refs, episodes, episodes_refs, data_iterators)
        if full not in ("wait", "drop"):
            raise ConfigError(f"full is {full!r}; it takes 'wait' or 'drop'")
        return self._update(given, timesteps or {}, settings, async_update, full, return_state)

    def _update(
        self,
        given: TrainingData,
        timesteps: Mapping[str, int],
        settings: dict[str, Any],
        async_update: bool,
        full: str,
        return_state: bool,
    ) -> Results:
        if self._remote is None:
            if async_update:
                raise ConfigError("async_update=True takes learners in other processes: num_learners of 1 or more")
            learner = self._here()
            result = learner.update(training_data=given, timesteps=timesteps, **settings)
            if return_state:
                result[WEIGHTS_AFTER] = learner.get_state(COMPONENT_RL_MODULE)[COMPONENT_RL_MODULE]
            return [result]
        ids = self._there().state[COMPONENT_RL_MODULE]
        several = self._shared(given, ids, settings.pop("num_iters", None))
        orders = orders_of(several, timesteps, settings, given.env_steps())
        if async_update:
            return self._update_later(orders, full, return_state)
        return self._ask(orders, "update", return_state)

    def _shared(self, given: TrainingData, ids: Collection[str], num_iters: int | None) -> list[MultiBatch]:
        """Return the columns by module of each learner; episodes stay whole."""
        shape, cpu, count = self.config.learner_type()._of_episodes, torch.device("cpu"), self.config.num_learners
        parts = parts_of([episode for episode in given.whole_episodes() if len(episode)], count)
        if any(parts):
            several = [TrainingData(episodes=p).by_module(cpu, ids, None, shape) if p else {} for p in parts]
        else:
            several = shards(given.by_module(cpu, ids, num_iters), count)
        for data in several:
            check_ids(data, ids)
        return several

    def add_module(
        self,
        *,
        module_id: str,
        module_spec: RLModuleSpec,
        config_overrides: dict[str, Any] | None = None,
        new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None,
    ) -> MultiRLModuleSpec:
        """Add a module to every learner; see `Learner.add_module`."""
        return self._restructure(  # type: ignore[no-any-return]
            methodcaller(
                "add_module",
                module_id=module_id,
                module_spec=module_spec,
                config_overrides=config_overrides,
                new_should_module_be_updated=new_should_module_be_updated,
            )
        )

    def remove_module(
        self, module_id: str, *, new_should_module_be_updated: Collection[str] | Callable[..., bool] | None = None
    ) -> MultiRLModuleSpec:
        """Take a module out of every learner."""
        return self._restructure(  # type: ignore[no-any-return]
            methodcaller(
                "remove_module", module_id=module_id, new_should_module_be_updated=new_should_module_be_updated
            )
        )

    def get_state(
        self, components: Paths = None, *, not_components: Paths = None, inference_only: bool = False
    ) -> dict[str, Any]:
        """Return the state of the learners, which is the same in all of them, under `learner`.

        Args:
            components: paths in it, such as `rl_module/p0` or `learner/rl_module/p0`.
            not_components: paths of what to leave out.
            inference_only: whether to leave out the weights that acting does not need.
        """
        chosen, left_out = (below(COMPONENT_LEARNER, paths) for paths in (components, not_components))
        ask = methodcaller("get_state", chosen, not_components=left_out, inference_only=inference_only)
        if self._remote is not None and not inference_only:
            return {COMPONENT_LEARNER: chosen_of(self._kept(), chosen, left_out)}
        return {COMPONENT_LEARNER: self._each(ask)[0]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set what a state of `get_state` has, in every learner."""
        if set(state) != {COMPONENT_LEARNER}:
            raise ConfigError(f"the state of a group has the one part {COMPONENT_LEARNER!r}, not {', '.join(state)}")
        self._each(methodcaller("set_state", state[COMPONENT_LEARNER]))

    def save_to_path(self, path: str | Path | None = None, *, state: Mapping[str, Any] | None = None) -> str:
        """Write the state into a folder; see `Learner.save_to_path`, whose folders this one reads and writes too."""
        state = self.get_state() if state is None else state
        return super().save_to_path(path, state=state[COMPONENT_LEARNER])

    def get_ctor_args_and_kwargs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what the constructor takes for another one like this: positional arguments, and those by name."""
        spec = self._each(_spec_of)[0]
        placed = {} if self._placement_group is None else {"placement_group": self._placement_group}
        return (), {"config": self.config, "module_spec": spec, **self._limits, **placed}

    def get_checkpointable_components(self) -> list[tuple[str, Checkpointable]]:
        """Return the learner, where it is in this process."""
        return [] if self._learner is None else [(COMPONENT_LEARNER, self._learner)]

    def get_constructors(self) -> dict[str, Any]:
        """Return classes and what they are constructed with; see `Checkpointable.get_constructors`."""
        made = super().get_constructors()
        if self._learner is None:
            made["components"] = {COMPONENT_LEARNER: self._each(methodcaller("get_constructors"))[0]}
        return made

    @classmethod
    def _chosen(cls, constructors: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return those of a group; a learner in a folder is made into one of the same config and modules."""
        if constructors and COMPONENT_LEARNER not in constructors.get("components", {}):
            return {**constructors, "class": import_name(cls)}
        return constructors

    def restore_from_path(self, path: str | Path, *, component: str | None = None) -> None:
        """Set the state of every learner from a folder; see `Learner.restore_from_path`."""
        inner = next(iter(below(COMPONENT_LEARNER, component) or []), None)
        self._each(methodcaller("restore_from_path", Path(path).absolute(), component=inner))

    def foreach_learner(
        self,
        func: Callable[..., Result],
        *,
        healthy_only: bool = True,
        remote_actor_ids: Collection[int] | None = None,
        timeout_seconds: float | None = None,
        return_obj_refs: bool = False,
        mark_healthy: bool = False,
        **kwargs: Any,
    ) -> RemoteCallResults[Result]:
        """Return what a function of a learner returns for each of them: results that are asked by `get()`.

        An error of the function is raised here.

        Args:
            func: any function; it is called with the learner and `kwargs`.
            healthy_only: no matter: learners that are lost are started again first.
            remote_actor_ids: numbers of the learners in other processes to ask; default: all.
            timeout_seconds: return what has come by then; who has not answered goes on. None waits for all.
            return_obj_refs: refused if true: who calls this gets the results.
            mark_healthy: no matter, as `healthy_only`.
            kwargs: for the function.

        Raises:
            ConfigError: there is no learner of such a number, or the group was shut down.
            NotSupportedError: references were asked for.
        """
        if return_obj_refs:
            raise NotSupportedError("return_obj_refs: foreach_learner returns results; leave it out")
        function = partial(func, **kwargs) if kwargs else func
        if self._remote is None:
            return RemoteCallResults([CallResult(None, self._here().apply(function))])
        count = self.config.num_learners
        asked = sorted(set(range(count) if remote_actor_ids is None else remote_actor_ids))
        for rank in asked:
            if rank not in range(count):
                raise ConfigError(f"remote_actor_ids has {rank!r}; the learners are 0 to {count - 1}")
        answers = self._ask_some(function, asked, timeout_seconds)
        return RemoteCallResults([CallResult(rank, result) for rank, result in answers])

    def get_stats(self) -> dict[str, Any]:
        """Return how many learners live, how many updates wait or were dropped, and how often learners were lost."""
        remote = self._remote
        return {
            "num_learners": len(self),
            "num_updates_in_flight": 0 if remote is None else remote.waiting,
            "num_updates_dropped_lifetime": self._dropped,
            "num_deaths_lifetime": 0 if remote is None else remote.deaths,
        }

    def shutdown(self) -> None:
        """End the learners; may be called again."""
        if self._learner is not None:
            self._learner.shutdown()
        self._learner = None
        if self._remote is None:
            return
        if self._remote.runs and self.config.learner_type().shutdown is not Learner.shutdown:
            self._each(methodcaller("shutdown"))
        self._remote.close()


def _spec_of(learner: Learner) -> MultiRLModuleSpec:
    """Return how the modules are built that a learner has now."""
    return MultiRLModuleSpec.from_module(learner.module)
