"""What other libraries learn on the pendulum: PPO with the settings of TorchRL's tutorial, then an evaluation.

`--peer torchrl` trains with a loop like the tutorial's: torch's own initial weights, advantages again in every epoch.
`--peer sb3` trains Stable-Baselines3 with the same constants. In both the learning rate falls to zero along a cosine.
Then 20 episodes of deterministic actions run from fixed seeds, and one JSON line gives the mean, standard deviation,
smallest and largest return, the mean length of the episodes, and the seconds that training took (imports left out).
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "speed"))

from common import (
    IDP,
    WORKLOADS,
    Phases,
    add_run_flags,
    cosine,
    emit,
    idp_statistics,
    prepare,
    whole_batches,
)

EPISODES = 20
FIRST_EVALUATION_SEED = 10_000

Policy = Callable[[np.ndarray], np.ndarray]
"""Maps an observation, as the environment gives it, to an action."""


def train_torchrl(seed: int, frames: int) -> tuple[Policy, float]:
    """Train TorchRL; return its deterministic policy and the seconds of training."""
    import torch
    import torchrl_ppo
    from tensordict import TensorDict
    from torchrl.envs import ExplorationType, set_exploration_type

    started = time.perf_counter()
    workload = WORKLOADS["idp"]
    learner = torchrl_ppo.make_learner(workload, frames, seed, cosine, default_weights=True)
    torchrl_ppo.run_raw(learner, Phases(workload.batch))
    seconds = time.perf_counter() - started
    normalization = learner.env.transform[0]
    loc, scale = normalization.loc.double(), normalization.scale.double()

    @torch.no_grad()
    def act(observation: np.ndarray) -> np.ndarray:
        normalized = (torch.as_tensor(observation) * scale + loc).float()
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return learner.actor(TensorDict({"observation": normalized}))["action"].numpy()

    return act, seconds


def train_sb3(seed: int, frames: int) -> tuple[Policy, float]:
    """Train Stable-Baselines3; return its deterministic policy and the seconds of training."""
    import sb3_ppo

    started = time.perf_counter()
    model = sb3_ppo.make_model(WORKLOADS["idp"], seed, cosine)
    model.learn(total_timesteps=frames)
    seconds = time.perf_counter() - started
    stats = idp_statistics(seed)

    def act(observation: np.ndarray) -> np.ndarray:
        return model.predict(stats.normalize(observation), deterministic=True)[0]

    return act, seconds


def run_episode(env: gymnasium.Env, act: Policy, seed: int) -> tuple[float, int]:
    """Run one episode to its end; return its return and its length."""
    observation, _ = env.reset(seed=seed)
    total, length, ended = 0.0, 0, False
    while not ended:
        observation, reward, terminated, truncated, _ = env.step(act(observation))
        total, length, ended = total + float(reward), length + 1, terminated or truncated
    return total, length


def evaluate(act: Policy) -> dict[str, float]:
    """Run the evaluation episodes and summarise them."""
    env = gymnasium.make(IDP)
    episodes = [run_episode(env, act, FIRST_EVALUATION_SEED + k) for k in range(EPISODES)]
    returns, lengths = np.array(episodes).T
    return {
        "mean": float(returns.mean()),
        "std": float(returns.std()),
        "min": float(returns.min()),
        "max": float(returns.max()),
        "length": float(lengths.mean()),
    }


PEERS: dict[str, Callable[[int, int], tuple[Policy, float]]] = {"torchrl": train_torchrl, "sb3": train_sb3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", choices=list(PEERS), required=True)
    parser.add_argument("--frames", type=int, default=50_000, help="frames to train for (default: 50000)")
    add_run_flags(parser)
    args = parser.parse_args()
    frames = whole_batches(WORKLOADS["idp"], args.frames, at_least=1)
    prepare(args)
    act, seconds = PEERS[args.peer](args.seed, frames)
    emit(
        peer=args.peer,
        workload="idp",
        seed=args.seed,
        threads=args.threads,
        frames=frames,
        **evaluate(act),
        train_s=seconds,
    )


if __name__ == "__main__":
    main()
