"""Building components one after another, each seeing those before it, and registering what has state for checkpoints.

In which order, and from which keys, is up to the callers: `run/builder.py` for a config, `scripts/factory.py` for
a script.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import takewhile
from typing import Any

import torch
from pydantic import BaseModel

from rlcore.assembly.env_maker import EnvMaker
from rlcore.config.reading import Section
from rlcore.envs.leaves import LeafEnv, OnLeaf, check_leaf, check_observes, leaf_spec
from rlcore.envs.packed import Packed
from rlcore.envs.spec_env import SpecEnv
from rlcore.envs.transformed import TransformedEnv, transformed_spec
from rlcore.errors import ConfigError
from rlcore.plugins.registry import Provided
from rlcore.types import Env, EnvSpec, Transform
from rlcore.types.context import Context
from rlcore.types.hook_parts import HookBringer
from rlcore.types.optional import PartUser, offers
from rlcore.types.optional_learning import Paced


class Assembly:
    """The parts of one run, as far as they are built.

    Attributes:
        context: what the parts see; `context.built` holds them by kind.
        stateful: everything that takes part in checkpoints, by name.
        owners: the distribution of each, by name.
    """

    def __init__(self, context: Context) -> None:
        self.context = context
        self.stateful: dict[str, Any] = {}
        self.owners: dict[str, str] = {}

    def build(self, provided: Provided, config: BaseModel, name: str) -> Any:
        """Build a component that keeps no state of its own in checkpoints."""
        self.context.heart.beats += 1
        kind = provided.component.kind
        learning = torch.is_grad_enabled()
        try:
            built = provided.build(config, self.context.for_component(kind, name))
        finally:
            _check_torch(provided, learning)
        if kind == "optimizer" and offers(config, Paced) and not offers(built, Paced):
            built.every = config.every  # of a class that does not know the key, which every section of optimizers has
        return built

    def part(self, provided: Provided, config: BaseModel, name: str, single: bool = False) -> Any:
        """Build a component and register it: under its kind when it is the `single` one, else under `kind.name`."""
        kind = provided.component.kind
        built = to_device(self.build(provided, config, name), self.context.device)
        if isinstance(built, torch.nn.Module):
            built.eval()  # whoever acts uses it so; a learner puts layers into training mode for the losses
        return self.register(kind if single else f"{kind}.{name}", built, provided.owner.distribution)

    def section(self, section: Section, single: bool = False, **keys: Any) -> Any:
        """Build and register the component of a section, with further `keys`; see `part`."""
        return self.part(section.provided, section.config.model_copy(update=keys), section.name, single)

    def register(self, name: str, built: Any, distribution: str = "rlcore") -> Any:
        """Register a part for checkpoints; one without state is listed as such in the resume report."""
        self.stateful[name] = built
        self.owners[name] = distribution
        return built

    def env(self, provided: Provided, config: BaseModel, name: str, **keys: Any) -> Env:
        """Build the training envs, with further `keys`, and keep the recipe for those of evaluation and fitting."""
        parts, config = self.context.built, config.model_copy(update=keys)

        parts["make_env_for"] = make_env = EnvMaker(provided, config, name, self.context)
        parts["make_env"] = lambda num_envs, **keys: make_env("evaluation", num_envs=num_envs, **keys)
        parts["make_fitting_env"] = self._fitting_env
        first = self.context.first_env
        parts["env"] = env = make_env(f"from {first}" if first else "", first)  # its state is saved by the collector
        parts["env_spec"] = env.spec
        parts["transforms"] = []
        return env

    def spaces(self, spec: EnvSpec) -> None:
        """Take the spec of the envs where none are made."""
        env = SpecEnv(spec)
        self.context.built.update(env=env, env_spec=spec, transforms=[], make_env_for=lambda *_, **__: env)
        self.context.built["make_fitting_env"] = self._fitting_env

    def transform(self, provided: Provided, config: BaseModel, name: str, leaf: str | None = None) -> Transform:
        """Build a transform, fit it on an env as the transforms before it leave it, and put it behind them.

        Args:
            provided: the component.
            config: the keys of its section.
            name: of its section.
            leaf: of the observations that it changes, where these are dicts.
        """
        transform = self.unfitted_transform(provided, config, name, leaf)
        fitting = self._seen_before(transform, name)
        try:
            transform.fit(fitting)
        finally:
            fitting.close()
        return self.put(transform)

    def unfitted_transform(self, provided: Provided, config: BaseModel, name: str, leaf: str | None) -> Transform:
        """Build a transform, which sees the spec of the leaf that it changes; see `transform`."""
        parts = self.context.built
        spec: EnvSpec = parts["env_spec"]
        if leaf is not None:
            check_leaf(spec, name, leaf)
            parts["env_spec"] = leaf_spec(spec, leaf)
        try:
            transform: Transform = self.part(provided, config, name)
        finally:
            parts["env_spec"] = spec
        check_observes(transform, spec, name, leaf)
        if leaf is None:
            return transform
        assert isinstance(spec.observation_space, Packed)
        return OnLeaf(transform, spec.observation_space, leaf)

    def put(self, transform: Transform) -> Transform:
        """Put a transform behind those there are."""
        parts = self.context.built
        parts["env_spec"] = transformed_spec(parts["env_spec"], transform)
        parts["transforms"].append(transform)
        return transform

    def _fitting_env(self, transform: Transform, name: str) -> Env:
        """Return one env as the transforms before `transform` leave it, or as all do where it is not among them."""
        found = next((own for own in self.context.transforms if _is(own, transform)), transform)
        env = self._seen_before(found, name)
        return LeafEnv(env, found.leaf) if isinstance(found, OnLeaf) else env

    def _seen_before(self, transform: Transform, name: str) -> SpecEnv:
        """Return one env, seen through the transforms before `transform`, or through all where it is not among them.

        The env is made when its first frame is wanted, as one may exist only once.
        """
        parts = self.context.built
        transforms: list[Transform] = list(takewhile(lambda fitted: fitted is not transform, parts["transforms"]))
        spec = reduce(transformed_spec, transforms, replace(parts["env"].spec, num_envs=1))
        return SpecEnv(spec, lambda: TransformedEnv(parts["make_env_for"](f"fit {name}", num_envs=1), transforms))

    def check_model_parts(self, requiring: Any, provided: Provided, model: str) -> None:
        """Refuse a model that lacks a part which `requiring` uses.

        Raises:
            ConfigError: names the missing parts, whose they would be and who needs them.
        """
        built = self.context.model.parts()
        missing = [part for part in requiring.requires if part not in built] if offers(requiring, PartUser) else []
        if missing:
            raise ConfigError(
                f"{provided} requires the model parts {', '.join(missing)}, which {model} does not build; it builds "
                f"{', '.join(built)}"
            )


def _is(found: Transform, transform: Transform) -> bool:
    """Return whether one of the transforms is the given one, or puts it on a leaf."""
    return found is transform or (isinstance(found, OnLeaf) and found.transform is transform)


def to_device(built: Any, device: torch.device) -> Any:
    """Return a module on the device, and anything else as it is."""
    return built.to(device) if isinstance(built, torch.nn.Module) else built


def hooks_of(part: object) -> list[Any]:
    """Return the hooks that a loss or a buffer brings; none of one that brings none, or that is not built."""
    return list(part.hooks) if offers(part, HookBringer) else []


def _check_torch(provided: Provided, learning: bool) -> None:
    """Refuse to go on where a module changed what torch makes of every tensor.

    Args:
        provided: the component that was built.
        learning: whether gradients were enabled before.

    Raises:
        ConfigError: says which call to leave out.
    """
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    calls = [] if dtype == torch.float32 else [f"torch.set_default_dtype({dtype})"]
    calls += [] if device.type == "cpu" else [f"torch.set_default_device({str(device)!r})"]
    calls += [] if torch.is_grad_enabled() or not learning else ["torch.set_grad_enabled(False)"]
    if calls:
        raise ConfigError(
            f"while {provided} was built, or before, a module or the script called {', '.join(calls)}, which changes "
            "all of torch; say dtype, device and gradients for your own tensors alone: torch.zeros(3, dtype=...)"
        )
