"""Speed of TorchRL's DQN, SAC, TD3 and REDQ: its collector, replay buffer and loss modules in a loop.

TorchRL computes every loss of a module at each update; TD3's actor is stepped at every second one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from off_policy import EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start
from tensordict.nn import TensorDictModule, TensorDictSequential
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import Compose, DoubleToFloat, EnvBase, StepCounter, TransformedEnv
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import (
    MLP,
    AdditiveGaussianModule,
    EGreedyModule,
    ProbabilisticActor,
    QValueActor,
    TanhModule,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import DQNLoss, HardUpdate, LossModule, REDQLoss, SACLoss, SoftUpdate, TD3Loss

Update = Callable[[Any, int], None]


def network(work: OffPolicy, inputs: int, outputs: int) -> MLP:
    """Make the network of a workload."""
    return MLP(in_features=inputs, out_features=outputs, num_cells=list(work.hidden), activation_class=nn.ReLU)


def adam(parameters: Any, lr: float) -> torch.optim.Adam:
    """Make an optimizer for a module's parameters, given as a TensorDict."""
    return torch.optim.Adam(list(parameters.flatten_keys().values()), lr)


def dqn(work: OffPolicy, env: EnvBase) -> tuple[Any, Any, Update]:
    """Return policy, exploration and update."""
    value = QValueActor(network(work, 4, 2), spec=env.action_spec, in_keys=["observation"])
    greedy = EGreedyModule(spec=env.action_spec, eps_init=1.0, eps_end=0.05, annealing_num_steps=EPSILON_FRAMES)
    loss = DQNLoss(value, loss_function="l2", delay_value=True)
    loss.make_value_estimator(gamma=work.gamma)
    target = HardUpdate(loss, value_network_update_interval=50)
    optimizer = torch.optim.Adam(loss.parameters(), work.critic_lr)

    def update(batch: Any, number: int) -> None:
        loss(batch)["loss"].backward()
        optimizer.step()
        optimizer.zero_grad()
        target.step()

    return TensorDictSequential(value, greedy), greedy, update


def critic_of(work: OffPolicy, env: EnvBase) -> ValueOperator:
    """Make one critic."""
    inputs = env.observation_spec["observation"].shape[-1] + env.action_spec.shape[-1]
    return ValueOperator(network(work, inputs, 1), in_keys=["observation", "action"])


def stochastic(work: OffPolicy, env: EnvBase) -> ProbabilisticActor:
    """Make the actor of SAC and REDQ."""
    inputs, actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    body = nn.Sequential(network(work, inputs, 2 * actions), NormalParamExtractor())
    space = env.action_spec_unbatched.space
    return ProbabilisticActor(
        TensorDictModule(body, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=env.action_spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": space.low, "high": space.high},
        return_log_prob=False,
    )


def stepping(work: OffPolicy, loss: LossModule, groups: list[tuple[torch.optim.Optimizer, int]], names: str) -> Update:
    """Return an update that adds the losses, and steps each optimizer at its own pace; the targets at the slowest."""
    loss.make_value_estimator(gamma=work.gamma)
    target = SoftUpdate(loss, tau=work.tau)

    def update(batch: Any, number: int) -> None:
        losses = loss(batch)
        sum(losses[name] for name in names.split()).backward()
        for optimizer, every in groups:
            if number % every == 0:
                optimizer.step()
            optimizer.zero_grad()
        if number % work.actor_every == 0:
            target.step()

    return update


def sac(work: OffPolicy, env: EnvBase, redq: bool) -> tuple[Any, Any, Update]:
    """Return policy, no exploration, and update of SAC or REDQ."""
    actor = stochastic(work, env)
    if redq:
        loss: LossModule = REDQLoss(
            actor, critic_of(work, env), num_qvalue_nets=work.critics, sub_sample_len=work.subset, loss_function="l2"
        )
    else:
        loss = SACLoss(actor, critic_of(work, env), num_qvalue_nets=work.critics, loss_function="l2", delay_qvalue=True)
    groups = [
        (adam(loss.actor_network_params, work.actor_lr), 1),
        (adam(loss.qvalue_network_params, work.critic_lr), 1),
        (torch.optim.Adam([loss.log_alpha], work.critic_lr), 1),
    ]
    return actor, None, stepping(work, loss, groups, "loss_actor loss_qvalue loss_alpha")


def td3(work: OffPolicy, env: EnvBase) -> tuple[Any, Any, Update]:
    """Return policy, exploration and update."""
    inputs, actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    actor = TensorDictSequential(
        TensorDictModule(network(work, inputs, actions), in_keys=["observation"], out_keys=["action"]),
        TanhModule(in_keys=["action"], out_keys=["action"], spec=env.action_spec),
    )
    noise = AdditiveGaussianModule(spec=env.action_spec, sigma_init=0.1, sigma_end=0.1, annealing_num_steps=1)
    loss = TD3Loss(
        actor,
        critic_of(work, env),
        action_spec=env.action_spec,
        num_qvalue_nets=work.critics,
        loss_function="l2",
        delay_actor=True,
    )
    groups = [
        (adam(loss.qvalue_network_params, work.critic_lr), 1),
        (adam(loss.actor_network_params, work.actor_lr), work.actor_every),
    ]
    return TensorDictSequential(actor, noise), noise, stepping(work, loss, groups, "loss_actor loss_qvalue")


def main() -> None:
    args = off_policy_parser(__doc__).parse_args()
    if args.compile:
        raise SystemExit("torchrl: compiled updates are not measured")
    work = start(args)
    watch, frames = Stopwatch(work), work.begin + (args.frames or work.peer_frames)
    discrete = args.workload.startswith("dqn")
    changes = [StepCounter(500)] if discrete else [DoubleToFloat()]
    env = TransformedEnv(GymEnv(work.env_id), Compose(*changes))
    env.set_seed(args.seed)
    if discrete:
        policy, exploration, update = dqn(work, env)
    elif args.workload.startswith("td3"):
        policy, exploration, update = td3(work, env)
    else:
        policy, exploration, update = sac(work, env, args.workload.startswith("redq"))
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(work.capacity), batch_size=work.minibatch)
    collector = Collector(
        env,
        policy,
        frames_per_batch=work.frames_per_update,
        total_frames=frames,
        init_random_frames=0 if discrete else work.warmup,
    )
    frame = 0
    for batch in collector:
        frame += batch.numel()
        if exploration is not None:
            exploration.step(batch.numel())
        buffer.extend(batch.reshape(-1))
        if frame > work.warmup:
            update(buffer.sample(), (frame - work.warmup) // work.frames_per_update)
            watch.at(frame)
    watch.report("torchrl", args)


if __name__ == "__main__":
    main()
