"""Make `reference.npz`: what the authors' implementation computes, with the weights and the noise that it used.

    git clone https://github.com/danijar/dreamerv3
    git -C dreamerv3 checkout f8817c4040cebada9bb9712554b0234c70c291d5
    pip install jax ninjax elements einops optax chex ruamel.yaml
    python plugins/rlcore-plugin-dreamer/tests/make_reference.py dreamerv3

Float64, on the CPU. What it draws is drawn here, in its order, and kept. The file has arrays in single precision, in
which all that goes in is exact.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import elements
import jax
import jax.numpy as jnp
import ninjax as nj
import numpy as np
import optax
from ruamel.yaml import YAML

OUT = Path(__file__).with_name("reference.npz")
SIZES = {
    r".*\.rssm": {"deter": 8, "hidden": 6, "stoch": 3, "classes": 4, "blocks": 2, "free_nats": 2.5},
    r".*\.bspace": 2,
    r".*\.units": 5,
    r".*\.depth": 1,
    "imag_length": 3,
}
SEQUENCES, STEPS, ACTIONS, VECTOR = 3, 5, 3, 4
TRAINED = ("enc/", "dyn/", "dec/", "rew/", "con/", "pol/", "val/")
BOUNDS = {"retnorm/lo/value": -0.5, "retnorm/hi/value": 2.0}


def rounded(values: np.ndarray) -> np.ndarray:
    """Return numbers that are the same in the file."""
    return values.astype(np.float32).astype(np.float64)


class Drawn:
    """Stands in for JAX's samplers, and keeps the numbers of which each made its sample, in order."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(3)
        self.values: list[np.ndarray] = []

    def categorical(self, seed: Any, logits: Any, axis: int, shape: tuple[int, ...]) -> Any:
        uniform = self._keep(self.generator.random(shape))
        return (jax.nn.softmax(logits).cumsum(axis)[..., :-1] <= uniform[..., None]).sum(axis)

    def normal(self, seed: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        return self._keep(self.generator.normal(size=shape))

    def take(self) -> list[np.ndarray]:
        values, self.values = self.values, []
        return values

    def _keep(self, value: np.ndarray) -> np.ndarray:
        self.values.append(rounded(value))
        return self.values[-1]


class Weights(dict[str, np.ndarray]):
    """Random weights by the names of the authors, the same ones for all that has these names."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = np.random.default_rng(2)

    def of(self, function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """Return those that a function takes, and the other state that it creates."""
        state, _ = nj.pure(function)({}, *args, seed=0, create=True)
        for name, value in sorted(state.items()):
            if value.ndim and name not in self:
                self[name] = rounded(self._drawn(name, value.shape))
        return {**state, **{name: jnp.asarray(self[name]) for name in state if name in self}}

    def _drawn(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        values = self.generator.normal(size=shape)
        if name == "dyn/dynin0/bias":
            return 0 * values  # the clipping has a least norm
        if name.endswith("scale"):
            return 1 + 0.3 * values
        if shape == (255,):
            return values - 0.02 * (np.arange(255) - 127) ** 2  # of moderate numbers
        return 1.5 * values / np.sqrt(np.prod(shape[:-1])) if name.endswith("kernel") else 0.5 * values


def scan(function: Any, carry: Any, xs: Any, length: int | None = None, unroll: int = 1, axis: int = 0) -> Any:
    """Stands in for the scan of ninjax, which would trace the samplers once for all steps."""
    outputs = []
    for step in range(length or jax.tree.leaves(xs)[0].shape[axis]):
        carry, output = function(carry, jax.tree.map(lambda x: x.take(step, axis), xs))  # noqa: B023
        outputs.append(output)
    return carry, jax.tree.map(lambda *steps: jnp.stack(steps, axis), *outputs)


def class_of(source: Path) -> Any:
    """Return the class of the authors' agents, for float64, without what trains them on devices and what steps envs."""
    for name in ("embodied", "dreamerv3"):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(source / name)]
    sys.modules["embodied.jax.agent"] = ModuleType("embodied.jax.agent")
    sys.modules["embodied.jax.agent"].Agent = object  # type: ignore[attr-defined]
    from dreamerv3 import agent, rssm
    from embodied.jax import heads, nets, opt, outs, utils

    for module in (agent, rssm, heads, nets, opt, outs, utils):
        module.f32 = jnp.float64
    nets.COMPUTE_DTYPE = jnp.float64
    return agent.Agent


def agent_of(source: Path, kind: Any, action: Any, observation: Any) -> Any:
    """Return an agent of a class, for a space of actions and one of observations."""
    spaces = {"image" if observation.dtype == np.uint8 else "vector": observation, "reward": elements.Space(np.float64)}
    spaces |= {name: elements.Space(bool) for name in ("is_first", "is_last", "is_terminal")}
    configs = YAML(typ="safe").load(source / "dreamerv3" / "configs.yaml")
    config = elements.Config(configs["defaults"]["agent"], replay_context=0).update(SIZES)
    return kind(spaces, {"action": action}, config)


def batch_of(numbered: bool, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Return sequences `[sequence, time, ...]`: whole episodes with numbered actions, or steps within one."""
    shape = (SEQUENCES, STEPS)
    first, last, terminal = np.zeros((3, *shape), bool)
    first[:, 0], last[:2, -1], terminal[0, -1] = numbered, True, True
    reward = rounded(5 * generator.normal(size=shape))
    numbers = rounded(generator.uniform(-1, 1, (*shape, ACTIONS)))
    return {
        "vector": rounded(3 * generator.normal(size=(*shape, VECTOR))),
        "reward": np.where(first, 0, reward),
        "is_first": first,
        "is_last": last,
        "is_terminal": terminal,
        "action": generator.integers(ACTIONS, size=shape) if numbered else numbers,  # that led to each
        "deter": rounded(generator.uniform(-1, 1, (SEQUENCES, 8))),
        "stoch": np.eye(4)[generator.integers(4, size=(SEQUENCES, 3))],
    }


def update(agent: Any, batch: dict[str, np.ndarray], weights: Weights, drawn: Drawn) -> dict[str, np.ndarray]:
    """Return a step of the policy, the terms of the loss, its gradients, and what it moves."""
    arrays = {name: jnp.asarray(value) for name, value in batch.items()}
    carry = ({}, {name: arrays.pop(name) for name in ("deter", "stoch")}, {})
    action = {"action": arrays.pop("action")}
    state = weights.of(agent.loss, carry, arrays, action, True) | {k: jnp.asarray(v) for k, v in BOUNDS.items()}
    drawn.take()
    acting = (*carry, {name: value[:, 0] for name, value in action.items()})
    observation = {name: value[:, 0] for name, value in arrays.items()}
    _, ((_, following, _, acted), *_) = nj.pure(agent.policy)(state, acting, observation, seed=0)
    entries = {f"acted/{name}": value for name, value in {**following, **acted}.items()}
    entries |= {f"acted/noise/{number}": value for number, value in enumerate(drawn.take())}

    def total(trained: dict[str, Any]) -> Any:
        run = nj.pure(agent.loss)
        after, (_, (_, _, outs, _)) = run({**state, **trained}, carry, arrays, action, True, seed=0)
        losses = outs["losses"]
        # within an episode, the reward that came with the first observation is that of a step that is not replayed
        losses["rew"] = losses["rew"] if batch["is_first"].any() else losses["rew"][:, 1:]
        losses = {name: value.mean() for name, value in losses.items()}
        return sum(agent.scales[name] * value for name, value in losses.items()), (losses, after)

    trained = {name: value for name, value in state.items() if name.startswith(TRAINED)}
    (_, (losses, after)), gradients = jax.value_and_grad(total, has_aux=True)(trained)
    entries |= {f"noise/{number}": value for number, value in enumerate(drawn.take())}
    entries |= {f"losses/{name}": value for name, value in losses.items()}
    entries |= {f"gradients/{name}": value for name, value in gradients.items()}
    entries["bounds"] = np.array([after[name] for name in BOUNDS])
    moved, _ = nj.pure(agent.slowval.update)(after, create=True)
    return entries | {f"moved/{name}": value for name, value in moved.items() if name.startswith("slowval/")}


def optimized(agent: Any, weights: Weights, gradients: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the weights of the recurrent model after steps, by the gradients of each update in turn."""
    optimizer = agent._make_opt(lr=0.01, warmup=3)
    weights = {name: jnp.asarray(value) for name, value in weights.items() if name.startswith("dyn/")}
    state = optimizer.init(weights)
    for step in range(6):
        taken = {name: 10.0 ** (step - 3) * gradients[step % 2][f"gradients/{name}"] for name in weights}
        moves, state = optimizer.update(taken, state, weights)
        weights = optax.apply_updates(weights, moves)
    return weights


def pictured(agent: Any, weights: Weights, generator: np.random.Generator) -> dict[str, Any]:
    """Return an image, what it is encoded to, a state, and what image it predicts."""
    entries = {
        "image": generator.integers(256, size=(1, 1, 64, 48, 3), dtype=np.uint8),
        "deter": rounded(generator.uniform(-1, 1, (1, 1, 8))),
        "stoch": np.eye(4)[generator.integers(4, size=(1, 1, 3))],
    }
    arrays, reset = {name: jnp.asarray(value) for name, value in entries.items()}, jnp.zeros((1, 1), bool)

    def coded() -> Any:
        return agent.enc({}, arrays, reset, False)[2], agent.dec({}, arrays, reset, False)[2]["image"].pred()

    entries["tokens"], entries["decoded"] = nj.pure(coded)(weights.of(coded))[1]
    return entries


def main(source: Path) -> None:
    """Compute an update with actions of each kind, steps of the optimizer and images, and write the file."""
    jax.config.update("jax_enable_x64", True)
    kind, drawn, weights, generator = class_of(source), Drawn(), Weights(), np.random.default_rng(4)
    jax.random.categorical, jax.random.normal, nj.scan = drawn.categorical, drawn.normal, scan
    actions = {"numbered": elements.Space(np.int32, (), 0, ACTIONS), "numbers": elements.Space(np.float64, (ACTIONS,))}
    entries: dict[str, Any] = {}
    updates = []
    for name, action in actions.items():
        agent = agent_of(source, kind, action, elements.Space(np.float64, (VECTOR,)))
        batch = batch_of(name == "numbered", generator)
        updates.append(update(agent, batch, weights, drawn))
        entries |= {f"{name}/{key}": value for key, value in {**batch, **updates[-1]}.items()}
    entries |= {f"optimized/{key}": value for key, value in optimized(agent, weights, updates).items()}
    of_images = agent_of(source, kind, action, elements.Space(np.uint8, (64, 48, 3)))
    entries |= {f"images/{key}": value for key, value in pictured(of_images, weights, generator).items()}
    entries |= {f"weights/{key}": value for key, value in weights.items()}
    arrays = {key: np.asarray(value) for key, value in entries.items()}
    single = {key: value.astype(np.float32) for key, value in arrays.items() if value.ndim and value.dtype == float}
    np.savez_compressed(OUT, **{**arrays, **single})
    print(f"{OUT}: {len(entries)} arrays")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
