"""What every component must keep, and the bench on which the suites build components."""

from __future__ import annotations

import json
import os
import random
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import pytest
import tomli_w
import torch
from pydantic import BaseModel, ValidationError

from rlcore.config.sections import Config, Section
from rlcore.plugins.component import COMPONENT_SECTIONS, Component
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Owner, Provided
from rlcore.run.build import build
from rlcore.run.ready import Run
from rlcore.state.tree import through_checkpoint
from rlcore.types.context import Context
from rlcore.types.optional import missing, offers
from rlcore.types.outputs import Stateful
from rlcore.types.part import defines, with_defaults
from rlcore.types.settings import SectionKeys
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.resumed import differing_parts, newest
from rlcore_plugin_testing.small_run import TOY_CONFIG, make_config


@lru_cache(maxsize=128)
def find(kind: str, use: str) -> Provided:
    """Return the installed component that `use` names, as a config would."""
    host = PluginHost()
    host.load_for(use)
    return host.registry.find(kind, use)


@lru_cache(maxsize=128)
def _validated(sections: str, folder: Path | None) -> Config:
    """Return the config of a small run; the suites ask for the same one again and again."""
    return make_config(sections=json.loads(sections), folder=folder)


DICTS: Final[Mapping[str, Any]] = {"env": {"use": "testing:toy-dict"}, "model": {"use": "mlp", "hidden": [4]}}


class ComponentContract:
    """Base of the suites.

    Attributes:
        kind: kind of the component.
        use: what a config says to name it: `"name"`, or `"plugin:name"`.
        target: the class itself, for a component that is not installed as a plugin.
        config: the keys of its section.
        around: other sections of the small run in which it is tested, such as `{"env": {"use": "testing:toy"}}`.
        leaf: of the observations, for a transform of one; see `TransformContract`.
        device: of the small run: what the environment variable `RLCORE_TEST_DEVICE` names, else the CPU; with
            `pytest -p rlcore_plugin_testing.pretend_device` the pretend device.
    """

    device: ClassVar[str] = os.environ.get("RLCORE_TEST_DEVICE", "cpu")
    kind: ClassVar[str] = ""
    use: ClassVar[str] = ""
    target: ClassVar[type | None] = None
    config: ClassVar[Mapping[str, Any]] = {}
    around: ClassVar[Mapping[str, Any]] = {}
    leaf: ClassVar[str | None] = None

    @classmethod
    def of(cls, use: str, config: Mapping[str, Any] | None = None, around: Mapping[str, Any] | None = None) -> Self:
        """Return the bench of a component for tests outside of its suite.

        Example:
            PPO = LossContract.of("ppo", {"clip_epsilon": 0.1})

            def test_values():
                loss = PPO.make(PPO.bench())
        """
        named: type[Self] = type(cls.__name__, (cls,), {"use": use, "config": config or {}, "around": around or {}})
        return named()

    def provided(self) -> Provided:
        """Return the component under test with its owner."""
        if self.target is not None:
            return Provided(Component(self.kind, "under-test", self.target), Owner("test", "this test", "0"))
        assert self.use, f"{type(self).__name__} must say what it tests: set `use`, as in a config"
        return find(self.kind, self.use)

    def settings(self, **changes: Any) -> BaseModel:
        """Return the validated config of the component, with some keys changed."""
        return self.provided().schema().model_validate({**self.config, **changes})

    def run(
        self,
        folder: Path | None = None,
        resume: bool = False,
        changes: Mapping[str, Any] | None = None,
        around: Mapping[str, Any] | None = None,
    ) -> Run:
        """Build a small run in which the component takes its place, with toy parts around it."""
        sections = {**self.around, **(around or {})}
        # the toy hook keeps the context for `bench`
        sections["hook"] = [{"use": "testing:toy"}, *sections.get("hook", [])]
        config = _validated(json.dumps(sections), folder)
        config = replace(config, sections={name: list(found) for name, found in config.sections.items()})
        provided = self.provided()
        section = Section(
            self.kind, provided.component.name, provided, self.settings(**(changes or {})), leaf=self.leaf
        )
        name = _section_of(self.kind)
        if self.kind == "hook":
            config.sections[name].append(replace(section, name="under-test"))
        else:
            config.sections[name] = [section]
        config = replace(config, run=config.run.model_copy(update={"device": self.device}))
        return build(config, write=folder is not None, resume=resume)

    def bench(
        self,
        folder: Path | None = None,
        changes: Mapping[str, Any] | None = None,
        around: Mapping[str, Any] | None = None,
    ) -> Context:
        """Return the context of a small run in which everything is built; nothing has been collected.

        Args:
            folder: a run folder for what writes; it must exist.
            changes: of the component's config.
            around: other sections.
        """
        run = self.run(changes=changes, around=around)
        context: Context = run.trainer.hooks.hooks[0].instance.context
        context = context.for_component(self.kind, self.provided().component.name)
        info = context.run
        return replace(context, run=replace(info, folder=folder))

    def seeing_dicts(self) -> Context:
        """Return a bench whose env observes a dict with a mask of its actions, or skip where there cannot be one."""
        env, model = self.around.get("env", {"use": "testing:toy"}), self.around.get("model", DICTS["model"])
        if env["use"] != "testing:toy" or model["use"].startswith("testing:") or not PluginHost().is_installed("mlp"):
            pytest.skip("the env is another one, or the model takes no dicts")
        keys = {key: value for key, value in env.items() if key != "use"}
        return self.bench(around={"env": {**DICTS["env"], **keys}, "model": model})

    def make(self, context: Context, **changes: Any) -> Any:
        """Build the component on a bench."""
        return self.provided().build(self.settings(**changes), context)

    def test_config_survives_being_written_and_read(self) -> None:
        """The resolved config of a run is TOML; reading it back must give the same component."""
        settings = self.settings()
        dumped = settings.model_dump(mode="json", exclude_none=True)
        again = type(settings).model_validate(tomllib.loads(tomli_w.dumps(dumped)))
        assert again == settings, (
            f"the config of {self.provided()} changes when it is dumped and validated again:\n  {settings!r}\n"
            f"  {again!r}\nUse types that TOML has: strings, numbers, booleans, lists and tables. A key whose default "
            "is not None cannot be set to None, because TOML has no null."
        )

    def test_config_refuses_an_unknown_key(self) -> None:
        """A misspelt key must be an error, not a silent default."""
        try:
            self.settings(no_such_key=1)
        except ValidationError:
            return
        pytest.fail(f'{self.provided()} accepts unknown keys; write class Config(BaseModel, extra="forbid")')

    def test_config_describes_every_key(self) -> None:
        """`rlcore plugins show` and the reference are made from the descriptions."""
        fields = self.provided().schema().model_fields
        bare = [name for name, field in fields.items() if not field.description]
        assert not bare, f"{self.provided()}: give these keys a Field(..., description=...): {', '.join(bare)}"

    def test_runs_and_resumes_in_a_small_run(self, tmp_path: Path) -> None:
        """The component trains and is saved; a run that stops in its middle and resumes is the run without a stop."""
        whole = self.run(folder=tmp_path / "whole").trainer
        whole.train()
        assert whole.progress.now >= whole.progress.total
        for name, part in whole.parts.stateful.items():
            absent = missing(part, Stateful)
            assert len(absent) != 1, f"{name} keeps no state over a resume, since it has no {absent[0]}"
        around = {}
        if whole.progress.iterations == 1:  # of large batches it takes more frames to have a middle
            section = {**TOY_CONFIG["run"], **self.around.get("run", {})}
            around = {"run": {**section, f"total_{whole.progress.clock}": 2 * whole.progress.now}}
            whole = self.run(folder=tmp_path / "long", around=around).trainer
            whole.train()
        stopped = self.run(folder=tmp_path / "parts", around=around).trainer
        stopped.stop_at = whole.progress.total // 2
        stopped.train()
        resumed = self.run(folder=tmp_path / "parts", resume=True, around=around).trainer
        resumed.train()
        if not newest(whole)["exact"]:
            return
        differing = differing_parts(whole, resumed)
        assert not differing, (
            f"after a stop and a resume in the middle of a run, the state of {', '.join(differing)} is not that of a "
            "run without a stop: state_dict() leaves something out, or load_state_dict() does not set it"
        )


class StateContract(ComponentContract):
    """What a component keeps whose behaviour can depend on what it did before."""

    def exercise(self, component: Any, context: Context) -> None:
        """Use the component so that its state, if it has any, changes."""
        raise NotImplementedError

    def behaviour(self, component: Any, context: Context) -> Any:
        """Return what the component does next, as tensors, arrays, numbers and lists and dicts of them."""
        raise NotImplementedError

    def test_state_is_restored(self) -> None:
        """A resumed run must go on as if it had never stopped, whatever the instance did before `load_state_dict`."""
        first, second = self.bench(), self.bench()
        used, other = self.make(first), self.make(second)
        self.exercise(used, first)
        state = saved(used)
        if state is not None:
            other.load_state_dict(state)
        self._check_restored(used, first, other, second)
        if state is None:
            return
        for _ in range(2):
            self.exercise(other, second)
        other.load_state_dict(saved(used))
        self._check_restored(used, first, other, second)

    def test_global_generators_change_nothing(self) -> None:
        """Results must follow from the run's seed alone, so nothing may take numbers from the global generators."""
        found = []
        for seed in (1, 2):
            context = self.bench()
            _seed_globals(seed)
            component = self.make(context)
            self.exercise(component, context)
            found.append(self.behaviour(component, context))
        where = difference(found[0], found[1])
        assert where is None, (
            f"{self.provided()} depends on the global random generators: {where}. Take random numbers from "
            "context.generator() or context.numpy_generator()."
        )

    def test_the_discount_counts(self) -> None:
        """A key `gamma` changes what a component does, unless its config says that it does not count."""
        settings = self.settings()
        if "gamma" not in type(settings).model_fields or not with_defaults(settings, SectionKeys).discounts:
            pytest.skip("has no discount")
        found = []
        for gamma in (0.25, 0.75):
            context = self.bench()
            component = self.make(context, gamma=gamma)
            self.exercise(component, context)
            found.append(self.behaviour(component, context))
        assert difference(found[0], found[1]) is not None, f"{self.provided()} does the same whatever its gamma: use it"

    def _check_restored(self, used: Any, first: Context, other: Any, second: Context) -> None:
        where = difference(self.behaviour(used, first), self.behaviour(other, second))
        hint = (
            "state_dict() leaves something out, or load_state_dict() does not set it"
            if defines(used, Stateful.state_dict)
            else "has no state_dict(): give it state_dict and load_state_dict"
        )
        assert where is None, f"{self.provided()} does not go on as before after a resume: {where}. It {hint}."


def saved(component: Any) -> Any:
    """Return the state of a component as a checkpoint gives it back, or None when it has none."""
    if not defines(component, Stateful.state_dict):
        return None
    assert offers(component, Stateful), f"{type(component).__name__} has state_dict but no load_state_dict"
    return through_checkpoint(component.state_dict())


def _seed_globals(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def _section_of(kind: str) -> str:
    return next(name for name, (of_kind, _) in COMPONENT_SECTIONS.items() if of_kind == kind)
