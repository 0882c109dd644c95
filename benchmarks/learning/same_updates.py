"""Whether the updates of TD3, DDPG and DQN are Stable-Baselines3's: same weights and minibatches, compared at the end.

A run of rlcore on HalfCheetah, of DQN on CartPole, writes down its first weights, each minibatch, and the weights that
its updates left. Stable-Baselines3's own `train` begins from the same weights and takes the same minibatches. One line
for each part says how far the two ended apart, as a fraction of how far they moved. Rounding grows from update to
update, to a percent after some hundred, while a difference in the algorithm shows at once: an actor that follows the
critics of the update before ends 0.15 apart. The noise of target actions is off in both, since each side draws its own.
DQN is that of examples/dqn-cartpole.toml without `double` and with the error of Stable-Baselines3, smooth_l1.

    python benchmarks/learning/same_updates.py td3 --peers-python .venv-peers/bin/python
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from torch import Tensor
from written_updates import (
    KEYS,
    Pair,
    begin_alike,
    compare,
    pairs_of_critics,
    pairs_of_network,
    print_apart,
    train_noted,
)

ROOT = Path(__file__).resolve().parents[2]
WARMUP = 1_000
SETTINGS = (
    "env.id='HalfCheetah-v5'",
    f"model.random_frames={WARMUP}",
    f"buffer.warmup_frames={WARMUP}",
    "buffer.minibatch_size=256",
    "loss.gamma=0.99",
    "evaluator.every=1_000_000",
    "hook=[]",
)
OF_ALGORITHM = {"td3": ("loss.target_noise=0.0",), "ddpg": (), "dqn": ("loss.double=false", "loss.error='smooth_l1'")}
# of examples/dqn-cartpole.toml: updates of an iteration, after which the target is copied; its frames; those before it
DQN_UPDATES, DQN_FRAMES, DQN_WARMUP = 128, 256, 1024
LEARNING_RATE = 1e-3
HIDDEN = (400, 300)


def train_here(algorithm: str, updates: int, compiled: bool) -> dict[str, Any]:
    """Return the weights before and after so many updates of a run, and their minibatches."""
    from rlcore import build, load_config

    if algorithm == "dqn":
        with tempfile.TemporaryDirectory() as folder:
            frames = DQN_WARMUP + DQN_FRAMES * (updates // DQN_UPDATES - 1)
            flags = [*OF_ALGORITHM["dqn"], f"run.folder='{folder}'", f"run.total_frames={frames}", "hook=[]"]
            flags += ["evaluator.every=1_000_000", f"learner.compile={str(compiled).lower()}"]
            return train_noted(build(load_config(ROOT / "examples" / "dqn-cartpole.toml", flags)).trainer)
    with tempfile.TemporaryDirectory() as folder:
        changes = (f"run.folder='{folder}'", f"run.total_frames={WARMUP + updates - 1}", f"model.hidden={list(HIDDEN)}")
        rates = (f"optimizer.{part}.lr={LEARNING_RATE}" for part in ("critics", "actor"))
        flags = [*SETTINGS, *OF_ALGORITHM[algorithm], *changes, *rates, f"learner.compile={str(compiled).lower()}"]
        trainer = build(load_config(ROOT / "examples" / f"{algorithm}-pendulum.toml", flags)).trainer
        return train_noted(trainer)


class Minibatches:
    """Hands the minibatches to Stable-Baselines3 in the place of its replay buffer."""

    def __init__(self, minibatches: list[dict[Any, Tensor]], actions: Callable[[Tensor], Tensor] = lambda a: a) -> None:
        self._rest: Iterator[dict[Any, Tensor]] = iter(minibatches)
        self._actions = actions

    def sample(self, batch_size: int, env: Any = None) -> SimpleNamespace:
        """Return the next one."""
        entries = next(self._rest)
        observation, action, following, reward, terminated = (entries[key] for key in KEYS)
        transitions = {"observations": observation, "actions": self._actions(action), "next_observations": following}
        return SimpleNamespace(**transitions, rewards=reward, dones=terminated.float(), discounts=None)


def pairs(weights: dict[str, Tensor], model: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    for part, actor in {"actor": model.actor, "target_actor": model.actor_target}.items():
        yield from pairs_of_network(part, weights, f"{part}.network", actor.mu)
    for part, critics in {"critics": model.critic, "target_critics": model.critic_target}.items():
        yield from pairs_of_critics(part, weights, critics.q_networks)


def train_peer(algorithm: str, written: dict[str, Any]) -> None:
    """Take the same updates with Stable-Baselines3, and print how the two compare."""
    import gymnasium
    from stable_baselines3 import DDPG, TD3
    from stable_baselines3.common.logger import configure

    use = {"td3": TD3, "ddpg": DDPG}[algorithm]
    settings = {"learning_rate": LEARNING_RATE, "gamma": 0.99, "policy_kwargs": {"net_arch": list(HIDDEN)}}
    model = use("MlpPolicy", gymnasium.make("HalfCheetah-v5"), device="cpu", seed=1, **settings)
    model.target_policy_noise = 0.0
    model.set_logger(configure(None, []))
    model._current_progress_remaining = 1.0
    begin_alike(written, partial(pairs, model=model))
    model.replay_buffer = Minibatches(written["minibatches"])
    model.train(len(written["minibatches"]), 256)
    print_apart(algorithm, written, partial(pairs, model=model))


def pairs_of_dqn(weights: dict[str, Tensor], model: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    for part, network in {"q_values": model.q_net, "target_q_values": model.q_net_target}.items():
        yield from pairs_of_network(part, weights, part, network)


def train_dqn_of_peer(written: dict[str, Any]) -> None:
    """Take the same updates with Stable-Baselines3's DQN, and print how the two compare."""
    from sb3_tasks import Task
    from stable_baselines3.common.logger import configure

    task = Task.named("dqn-cartpole")
    model = task.model(task.env, 1)
    model.set_logger(configure(None, []))
    begin_alike(written, partial(pairs_of_dqn, model=model))
    model.replay_buffer = Minibatches(written["minibatches"], actions=lambda action: action.unsqueeze(-1))
    for _ in range(len(written["minibatches"]) // DQN_UPDATES):
        model.train(DQN_UPDATES, task.settings["batch_size"])
        model.q_net_target.load_state_dict(model.q_net.state_dict())
    print_apart("dqn", written, partial(pairs_of_dqn, model=model))


def take_updates_of_peer(args: argparse.Namespace, written: dict[str, Any]) -> None:
    """Take the same updates with the algorithm that was asked for."""
    train_dqn_of_peer(written) if args.algorithm == "dqn" else train_peer(args.algorithm, written)


def main() -> None:
    """Train here, and compare in the interpreter of the peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("algorithm", choices=list(OF_ALGORITHM))
    parser.add_argument("--updates", type=int, default=50, help="of DQN a multiple of 128")
    parser.add_argument("--compile", action="store_true", help="compile the update of rlcore")
    compare(parser, lambda args: train_here(args.algorithm, args.updates, args.compile), take_updates_of_peer)


if __name__ == "__main__":
    main()
