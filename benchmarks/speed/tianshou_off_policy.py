"""Speed of tianshou's DQN, SAC and TD3: its collector and its update called in turn, without evaluation and logging."""

from __future__ import annotations

from typing import Any

import gymnasium
from off_policy import EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start
from tianshou.algorithm import DQN, SAC, TD3
from tianshou.algorithm.modelfree.ddpg import ContinuousDeterministicPolicy
from tianshou.algorithm.modelfree.dqn import DiscreteQLearningPolicy
from tianshou.algorithm.modelfree.sac import AutoAlpha, SACPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.exploration import GaussianNoise
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorDeterministic, ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.torch_utils import policy_within_training_step


def make_algorithm(name: str, work: OffPolicy) -> Any:
    """Make the algorithm with the constants of a workload."""
    env = gymnasium.make(work.env_id)
    space, shape, hidden = env.action_space, env.observation_space.shape, list(work.hidden)
    critic_optim = AdamOptimizerFactory(lr=work.critic_lr)
    if name.startswith("dqn"):
        network = Net(state_shape=shape, action_shape=space.n, hidden_sizes=hidden)
        policy = DiscreteQLearningPolicy(model=network, action_space=space, eps_training=1.0)
        # it counts updates
        every = 500 // work.frames_per_update
        return DQN(policy=policy, optim=critic_optim, gamma=work.gamma, target_update_freq=every, is_double=False)
    bodies = [Net(state_shape=shape, action_shape=space.shape, hidden_sizes=hidden, concat=True) for _ in range(2)]
    critics = [ContinuousCritic(preprocess_net=body) for body in bodies]
    body = Net(state_shape=shape, hidden_sizes=hidden)
    shared: dict[str, Any] = {
        "policy_optim": AdamOptimizerFactory(lr=work.actor_lr),
        "critic": critics[0],
        "critic_optim": critic_optim,
        "critic2": critics[1],
        "critic2_optim": critic_optim,
        "tau": work.tau,
        "gamma": work.gamma,
    }
    if name.startswith("sac"):
        sampling = ContinuousActorProbabilistic(
            preprocess_net=body, action_shape=space.shape, unbounded=True, conditioned_sigma=True
        )
        alpha = AutoAlpha(-float(space.shape[0]), 0.0, AdamOptimizerFactory(lr=work.critic_lr))
        return SAC(policy=SACPolicy(actor=sampling, action_space=space), alpha=alpha, **shared)
    actor = ContinuousActorDeterministic(preprocess_net=body, action_shape=space.shape)
    noisy = ContinuousDeterministicPolicy(actor=actor, exploration_noise=GaussianNoise(sigma=0.1), action_space=space)
    return TD3(policy=noisy, update_actor_freq=work.actor_every, **shared)


def train(algorithm: Any, work: OffPolicy, seed: int, frames: int, watch: Stopwatch) -> None:
    """Collect some frames and update once, until all are collected."""
    envs = DummyVectorEnv([lambda: gymnasium.make(work.env_id)])
    envs.seed(seed)
    collector = Collector(algorithm, envs, VectorReplayBuffer(work.capacity, 1), exploration_noise=True)
    collector.reset()
    collector.collect(n_step=work.warmup, random=True)
    discrete = isinstance(algorithm, DQN)
    for frame in range(work.warmup, frames, work.frames_per_update):
        if discrete:
            algorithm.policy.set_eps_training(max(0.05, 1 - 0.95 * frame / EPSILON_FRAMES))
        with policy_within_training_step(algorithm.policy):
            collector.collect(n_step=work.frames_per_update)
            algorithm.update(collector.buffer, work.minibatch)
        watch.at(frame + work.frames_per_update)


def main() -> None:
    args = off_policy_parser(__doc__).parse_args()
    if args.compile or args.workload.startswith("redq"):
        raise SystemExit("tianshou: it compiles nothing, and REDQ is left out")
    work = start(args)
    watch, frames = Stopwatch(work), work.begin + (args.frames or work.peer_frames)
    train(make_algorithm(args.workload, work), work, args.seed, frames, watch)
    watch.report("tianshou", args)


if __name__ == "__main__":
    main()
