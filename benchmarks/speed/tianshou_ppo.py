"""Speed of tianshou's PPO: its collector and its update called in turn, without the trainer's evaluation and logging.

The advantages and the log-probabilities of the collected actions count as update, because tianshou computes them there.
"""

import torch
from common import (
    WORKLOADS,
    Phases,
    Workload,
    clock,
    make_env,
    orthogonal,
    peer_parser,
    prepare,
    report,
    whole_batches,
)
from gymnasium import spaces
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy, ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory, LRSchedulerFactory
from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.net.discrete import DiscreteActor, DiscreteCritic
from tianshou.utils.torch_utils import policy_within_training_step
from torch import nn
from torch.distributions import Categorical, Distribution, Independent, Normal
from torch.optim.lr_scheduler import LambdaLR, LRScheduler


class Annealing(LRSchedulerFactory):
    """Makes the schedule of a workload; tianshou steps it once per update of a batch."""

    def __init__(self, workload: Workload, batches: int) -> None:
        self._workload = workload
        self._batches = batches

    def create_scheduler(self, optim: torch.optim.Optimizer) -> LRScheduler:
        return LambdaLR(optim, lambda batch: self._workload.schedule(batch / self._batches))


def diagonal_normal(loc_scale: tuple[torch.Tensor, torch.Tensor]) -> Distribution:
    """Make the distribution of continuous actions."""
    return Independent(Normal(*loc_scale), 1)


def categorical(logits: torch.Tensor) -> Distribution:
    """Make the distribution of discrete actions."""
    return Categorical(logits=logits)


def make_continuous(bodies: list[Net], space: spaces.Box) -> tuple[ProbabilisticActorPolicy, nn.Module]:
    """Make the policy, with one free standard deviation, and the critic of the pendulum."""
    actor = ContinuousActorProbabilistic(preprocess_net=bodies[0], action_shape=space.shape, unbounded=True)
    policy = ProbabilisticActorPolicy(
        actor=actor, dist_fn=diagonal_normal, action_scaling=True, action_bound_method="clip", action_space=space
    )
    return policy, ContinuousCritic(preprocess_net=bodies[1])


def make_discrete(bodies: list[Net], space: spaces.Discrete) -> tuple[ProbabilisticActorPolicy, nn.Module]:
    """Make the policy and the critic of CartPole."""
    actor = DiscreteActor(preprocess_net=bodies[0], action_shape=space.n, softmax_output=False)
    policy = DiscreteActorPolicy(actor=actor, dist_fn=categorical, action_space=space)
    return policy, DiscreteCritic(preprocess_net=bodies[1])


def make_algorithm(workload: Workload, seed: int, batches: int) -> PPO:
    """Make PPO with the constants of a workload."""
    env = make_env(workload, seed)
    shape, action_space = env.observation_space.shape, env.action_space
    bodies = [Net(state_shape=shape, hidden_sizes=workload.hidden, activation=nn.Tanh) for _ in range(2)]
    make = make_continuous if workload.is_idp else make_discrete
    policy, critic = make(bodies, action_space)
    orthogonal(policy.actor, output_gain=0.01)
    orthogonal(critic, output_gain=1.0)
    optimizer = AdamOptimizerFactory(lr=workload.learning_rate)
    return PPO(
        policy=policy,
        critic=critic,
        optim=optimizer.with_lr_scheduler_factory(Annealing(workload, batches)),
        gamma=workload.gamma,
        gae_lambda=workload.gae_lambda,
        eps_clip=workload.clip,
        value_clip=workload.clip_value,
        vf_coef=workload.value_coef,
        ent_coef=workload.entropy_coef,
        max_grad_norm=workload.max_grad_norm,
        advantage_normalization=True,
    )


def run(algorithm: PPO, workload: Workload, seed: int, batches: int, phases: Phases) -> list[float]:
    """Train for some batches and return the returns of the finished episodes."""
    envs = DummyVectorEnv([lambda: make_env(workload, seed) for _ in range(workload.envs)])
    envs.seed(seed)
    collector = Collector(algorithm, envs, VectorReplayBuffer(workload.batch, workload.envs))
    collector.reset()
    returns: list[float] = []
    for _ in range(batches):
        started = clock()
        with policy_within_training_step(algorithm.policy):
            stats = collector.collect(n_step=workload.batch)
            collected = clock()
            algorithm.update(collector.buffer, workload.minibatch, workload.epochs)
        collector.reset_buffer(keep_statistics=True)
        phases.add(collected - started, clock() - collected)
        returns += list(stats.returns)
    return returns


def main() -> None:
    args = peer_parser(__doc__).parse_args()
    workload = WORKLOADS[args.workload]
    batches = whole_batches(workload, args.frames) // workload.batch
    prepare(args)
    phases = Phases(workload.batch)
    algorithm = make_algorithm(workload, args.seed, batches)
    report("tianshou", args, phases, run(algorithm, workload, args.seed, batches, phases))


if __name__ == "__main__":
    main()
