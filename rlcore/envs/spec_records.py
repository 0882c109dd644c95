"""The spec of an env as plain values: what a checkpoint records, so that a policy is used without the env."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rlcore.types.records import AgentSpec, EnvSpec

if TYPE_CHECKING:
    import gymnasium

    from rlcore.types.records import Array

# bounds of their own for more elements than these would make every manifest large
_MOST_BOUNDS: Final = 10_000


def spec_record(spec: EnvSpec) -> dict[str, Any]:
    """Return what a checkpoint records of an env; empty where a space cannot be recorded.

    Args:
        spec: of the env itself, before any transform.
    """
    spaces = [_space_record(space) for space in (spec.observation_space, spec.action_space)]
    agents = [_agent_record(agent) for agent in spec.agents]
    if not all(spaces) or not all(agents):
        return {}
    return {
        "id": spec.id,
        "observation_space": spaces[0],
        "action_space": spaces[1],
        "frame_skip": spec.frame_skip,
        "max_episode_steps": spec.max_episode_steps,
        **({"agents": agents} if agents else {}),
    }


def recorded_spec(record: Mapping[str, Any]) -> EnvSpec:
    """Return the spec of one env, or of one game, from what `spec_record` returned.

    Raises:
        Exception: it is not what `spec_record` returns.
    """
    agents = tuple(_agent(agent) for agent in record.get("agents", ()))
    return EnvSpec(
        id=str(record["id"]),
        observation_space=_space(record["observation_space"]),
        action_space=_space(record["action_space"]),
        num_envs=max(1, len(agents)),
        frame_skip=int(record["frame_skip"]),
        max_episode_steps=record["max_episode_steps"],
        agents=agents,
    )


def _agent_record(agent: AgentSpec) -> dict[str, Any]:
    """Return an agent of a game as plain values; empty where one of its spaces cannot be recorded."""
    spaces = [_space_record(space) for space in (agent.observation_space, agent.action_space)]
    return {"name": agent.name, "observation_space": spaces[0], "action_space": spaces[1]} if all(spaces) else {}


def _agent(record: Mapping[str, Any]) -> AgentSpec:
    return AgentSpec(str(record["name"]), _space(record["observation_space"]), _space(record["action_space"]))


def _space_record(space: gymnasium.Space[Any]) -> dict[str, Any]:
    """Return a space as plain values; empty for one that does not come back the same from them."""
    name = type(space).__name__
    values = vars(space)
    if name == "Packed":
        leaves = {leaf: _space_record(leaf_space) for leaf, leaf_space in values["leaves"].items()}
        return {"space": name, "leaves": leaves, "choices": list(values["choices"])} if all(leaves.values()) else {}
    if name not in _FIELDS:
        return {}
    if name == "Box":
        fields = {"shape": list(space.shape or ()), **{end: _bound(values[end]) for end in ("low", "high")}}
    else:
        fields = {field: np.asarray(values[field]).tolist() for field in _FIELDS[name]}
    record = {"space": name, "dtype": str(space.dtype), **fields}
    try:
        return record if _space(record) == space else {}
    except (TypeError, ValueError, AssertionError, OverflowError):  # a subclass of the same name, or too many bounds
        return {}


_FIELDS: Final = {
    "Box": ("shape", "low", "high"),
    "Discrete": ("n", "start"),
    "MultiDiscrete": ("nvec", "start"),
    "MultiBinary": ("n",),
}


def _bound(bound: Array) -> Any:
    """Return a bound as one number where all elements have the same, else as a list; infinities as texts."""
    flat = np.unique(bound) if bound.size and (bound == bound.flat[0]).all() else bound.ravel()
    if flat.size > _MOST_BOUNDS:
        return None
    numbers = [number if np.isfinite(number) else str(number) for number in flat.tolist()]
    return numbers[0] if flat.size == 1 else numbers


def _space(record: Mapping[str, Any]) -> gymnasium.Space[Any]:
    from gymnasium import spaces

    name = record["space"]
    if name == "Packed":
        from rlcore.envs.packed import Packed  # torch and Gymnasium, which most records do without

        return Packed({leaf: _space(leaf_record) for leaf, leaf_record in record["leaves"].items()}, record["choices"])
    dtype = np.dtype(record["dtype"])
    if name == "Box":
        shape = tuple(record["shape"])
        low, high = (_numbers(record[end], shape, dtype) for end in ("low", "high"))
        return spaces.Box(low, high, shape, dtype.type)
    if name == "Discrete":
        return spaces.Discrete(record["n"], start=record["start"])
    if name == "MultiDiscrete":
        counts = np.asarray(record["nvec"])
        starts = np.asarray(record.get("start", np.zeros_like(counts)))  # a record of an earlier version has none
        return spaces.MultiDiscrete(counts, dtype=dtype.type, start=starts)
    if name == "MultiBinary":
        return spaces.MultiBinary(record["n"])
    raise ValueError(f"there is no space {name!r}")


def _numbers(written: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    numbers = [float(n) if isinstance(n, str) else n for n in (written if isinstance(written, list) else [written])]
    array = np.array(numbers, dtype=dtype)
    return np.full(shape, array[0]) if array.size == 1 else array.reshape(shape)
