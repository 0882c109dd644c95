"""Where an agent plays: the envs and the evaluator of its run, and nothing of the training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from rlcore.errors import ConfigError
from rlcore.run import AgentBuilder, EnvMaker, Saved, prepare_process, read_saved
from rlcore.run_folder import check_is_run
from rlcore.types import Context, Env, EnvSpec, Evaluator, Progress
from rlcore_plugin_agents.agent import Agent
from rlcore_plugin_agents.loading import device_of, load_agent

# what the folder says of an evaluation, whatever the checkpoint was trained with
_OF_THE_FOLDER: Final = ("run", "plugins", "evaluator")
_SECTIONS: Final = ("env", "transform", "model", "evaluator")
# what may be set otherwise than it was; all else is the policy's, or of the training
_FREE: Final = ("env.", "evaluator.", "run.device=", "run.threads=", "run.deterministic=")


@dataclass(frozen=True)
class Stage:
    """An agent and the envs that it plays in.

    Attributes:
        context: has the policy, the transforms and the maker of envs.
        spec: of the env that the agent was trained in, before any transform.
        frames: training frames of the weights.
        at: how long they were trained, in words.
        evaluator: as the config has it.
    """

    context: Context
    spec: EnvSpec
    frames: int
    at: str
    evaluator: Evaluator

    def env(self, num_envs: int, **keys: Any) -> Env:
        """Return envs of the agent's run, with other keys.

        Raises:
            ConfigError: the env has no such key or value, or has other spaces than the agent was trained with.
        """
        env: Env = self.context.make_env(num_envs, **keys)
        return env


def set_stage(
    folder: Path,
    *,
    best: bool = False,
    changes: Iterable[str] = (),
    evaluation: Mapping[str, Any] | None = None,
    device: str | None = None,
    agent: Path | None = None,
    trust: bool = False,
) -> Stage:
    """Build what an agent plays in.

    Args:
        folder: of the run.
        best: the checkpoint with the best evaluation instead of the latest.
        changes: `"env.key=value"` or `"evaluator.key=value"`, as after `--set`.
        evaluation: keys of the evaluator, over those of the config.
        device: of the model; default: that of the config.
        agent: an exported file to play in the place of the checkpoint's agent.
        trust: run the code that the config names, or that the file is, though it was not written here.

    Raises:
        RlcoreError: something of it cannot be read or built.
    """
    check_is_run(folder)
    if agent is not None and best:
        raise ConfigError(
            "--best chooses a checkpoint, and --agent plays a file in the place of one: leave one of them out"
        )
    saved = _with(
        read_saved(folder, best, trust), folder, changes, {} if device is None else {"device": device}, evaluation or {}
    )
    config, run = saved.config, saved.run
    prepare_process(run)
    builder = AgentBuilder(saved, device_of(run.device), _SECTIONS)
    if agent is None:
        parts = builder.build()
        context, spec, frames, at = builder.context, parts.spec, saved.frames, saved.at
    else:
        loaded = load_agent(agent, device=str(builder.context.device), trust=trust)
        context, spec, frames = _context_of(loaded, builder.context), loaded.spec, loaded.frames
        at = f"frame {frames:,}"
    context.built["make_env"] = _env_maker(builder, context, config["env"], spec)
    if limit := config["env"].get("max_episode_steps"):  # it may be another one than in training
        context.built["env_spec"] = replace(context.env_spec, max_episode_steps=-(-limit // spec.frame_skip))
    table = config.get("evaluator") or {"use": "core:episodes"}
    section = builder.section("evaluator", table)
    evaluator = section.provided.build(section.config, context.for_component("evaluator", section.name))
    return Stage(context, spec, frames, at, evaluator)


def _with(
    saved: Saved,
    folder: Path,
    changes: Iterable[str],
    run: Mapping[str, Any],
    evaluation: Mapping[str, Any],
) -> Saved:
    """Return what was saved with what the folder and the user say of an evaluation."""
    saved = saved.with_sections_of(folder, _OF_THE_FOLDER)
    config, changes = saved.config, list(changes)
    together = {key: value for key, value in config["env"].items() if key == "num_envs"}  # as many as were trained in
    evaluator = {"use": "core:episodes", **config.get("evaluator", together), **evaluation}
    for change in changes:
        if not change.replace(" ", "").startswith(_FREE):
            raise ConfigError(
                f"--set {change}: an agent plays as it was trained; what can be set are keys of env and evaluator, and "
                "run.device, run.threads and run.deterministic"
            )
    return saved.changed({**config, "run": {**config["run"], **run}, "evaluator": evaluator}, changes)


def _context_of(agent: Agent, like: Context) -> Context:
    """Return the context of an agent that comes from a file."""
    parts = {"model": SimpleNamespace(policy=agent.policy), "transforms": agent.transforms, "env_spec": agent.spec}
    progress = Progress(like.run.total_frames, agent.frames)
    return replace(like, parts=parts, progress=progress)


def _env_maker(builder: AgentBuilder, context: Context, table: Mapping[str, Any], spec: EnvSpec) -> Callable[..., Env]:
    """Return what makes envs of a section; they must have the spaces that the agent knows."""
    section = builder.section("env", table)
    provided, config, schema = section.provided, section.config, type(section.config)

    def make(num_envs: int, **keys: Any) -> Env:
        unknown = [key for key in keys if key not in schema.model_fields]
        if unknown:
            raise ConfigError(f"{provided} has no key {', '.join(map(repr, unknown))}, which is asked of it here")
        try:
            changed = schema.model_validate({**config.model_dump(exclude_unset=True), **keys})
        except ValueError as error:
            raise ConfigError(f"{provided} cannot be made with {keys}: {error}") from None
        env = EnvMaker(provided, changed, table.get("name", "env"), context)("evaluation", num_envs=num_envs)
        known = (spec.observation_space, spec.action_space)
        if (env.spec.observation_space, env.spec.action_space) != known:
            found = f"{env.spec.observation_space} and {env.spec.action_space}"
            env.close()
            raise ConfigError(
                f"env {env.spec.id!r} has the spaces {found}, and the agent was trained with {known[0]} and {known[1]}"
            )
        return env

    return make
