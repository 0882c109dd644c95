"""Speed of TorchRL's PPO with an LSTM that actor and critic share, in a loop like that of its PPO tutorial.

Batches are cut into stretches of 32 steps, each from the state that was collected; the LSTM begins again within them by
TorchRL's own way. Its advantages are computed again in every epoch, as in the tutorial, and count as update.
"""

from __future__ import annotations

import torch
from common import Phases, Workload, clock, peer_parser, prepare, report, whole_batches
from lstm_ppo import SEEN, SIZE, STRETCH, WORKLOADS, make_env
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torchrl.collectors import Collector
from torchrl.data.replay_buffers import ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.data.replay_buffers.storages import LazyTensorStorage
from torchrl.envs import Compose, InitTracker, RewardSum, SerialEnv, StepCounter, TransformedEnv
from torchrl.envs.libs.gym import GymWrapper
from torchrl.modules import LSTMModule, ProbabilisticActor, ValueOperator, set_recurrent_mode
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from torchrl_ppo import finished_returns

ACTIONS = 2


def make_policy(lstm: LSTMModule, env: TransformedEnv) -> ProbabilisticActor:
    """Return the actor: the LSTM, and a head for logits."""
    head = TensorDictModule(nn.Linear(SIZE, ACTIONS), in_keys=["embed"], out_keys=["logits"])
    return ProbabilisticActor(
        TensorDictSequential(lstm, head),
        spec=env.action_spec,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )


def train(workload: Workload, frames: int, seed: int, phases: Phases) -> list[float]:
    """Train and return the returns of the finished episodes."""
    games = SerialEnv(workload.envs, lambda: GymWrapper(make_env(), categorical_action_encoding=True))
    env = TransformedEnv(games, Compose(InitTracker(), StepCounter(), RewardSum()))
    lstm = LSTMModule(input_size=len(SEEN), hidden_size=SIZE, in_key="observation", out_key="embed")
    env.append_transform(lstm.make_tensordict_primer())
    env.set_seed(seed)
    actor = make_policy(lstm, env)
    critic = TensorDictSequential(lstm, ValueOperator(nn.Linear(SIZE, 1), in_keys=["embed"]))
    loss = ClipPPOLoss(
        actor_network=actor,
        critic_network=critic,
        clip_epsilon=workload.clip,
        entropy_bonus=False,
        critic_coeff=workload.value_coef,
        loss_critic_type="l2",
        normalize_advantage=True,
    )
    advantage = GAE(
        gamma=workload.gamma, lmbda=workload.gae_lambda, value_network=critic, average_gae=False, shifted=True
    )
    optimizer = torch.optim.Adam(loss.parameters(), workload.learning_rate)
    batches = frames // workload.batch
    scheduler = LambdaLR(optimizer, lambda batch: workload.schedule(batch / batches))
    stretches = workload.batch // STRETCH
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(stretches),
        sampler=SamplerWithoutReplacement(),
        batch_size=workload.minibatch // STRETCH,
    )
    collector = Collector(env, actor, frames_per_batch=workload.batch, total_frames=frames, device="cpu")
    returns: list[float] = []
    started = clock()
    for batch in collector:
        collected = clock()
        with set_recurrent_mode(True):
            for _ in range(workload.epochs):
                with torch.no_grad():
                    advantage(batch)
                buffer.empty()
                buffer.extend(batch.reshape(stretches, STRETCH))
                for _ in range(workload.batch // workload.minibatch):
                    losses = loss(buffer.sample())
                    total = losses["loss_objective"] + losses["loss_critic"]
                    total.backward()
                    nn.utils.clip_grad_norm_(loss.parameters(), workload.max_grad_norm)
                    optimizer.step()
                    optimizer.zero_grad()
        scheduler.step()
        phases.add(collected - started, clock() - collected)
        returns += finished_returns(batch)
        started = clock()
    return returns


def main() -> None:
    """Train and print the JSON line."""
    args = peer_parser(__doc__, tuple(WORKLOADS)).parse_args()
    workload = WORKLOADS[args.workload]
    prepare(args)
    phases = Phases(workload.batch)
    returns = train(workload, whole_batches(workload, args.frames), args.seed, phases)
    report("torchrl", args, phases, returns)


if __name__ == "__main__":
    main()
