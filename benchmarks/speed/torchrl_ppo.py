"""Speed of TorchRL's PPO, in two styles.

`--style trainer` (the default) runs `torchrl.trainers.algorithms.PPOTrainer` with logging and the progress bar off,
`--style raw` a loop like the one in TorchRL's PPO tutorial. Both compute the advantages again in every epoch, and both
count that as update.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from common import WORKLOADS, Phases, Schedule, Workload, clock, peer_parser, prepare, report, tanh_mlp, whole_batches
from tensordict import TensorDictBase
from tensordict.nn import TensorDictModule
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LRScheduler
from torchrl.collectors import Collector
from torchrl.data.replay_buffers import ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.data.replay_buffers.storages import LazyTensorStorage
from torchrl.envs import (
    Compose,
    DoubleToFloat,
    EnvBase,
    ObservationNorm,
    RewardSum,
    SerialEnv,
    StepCounter,
    TransformedEnv,
)
from torchrl.envs.libs.gym import GymEnv
from torchrl.modules import ProbabilisticActor, TanhNormal, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE
from torchrl.trainers.algorithms import PPOTrainer

NEVER = 10**9


@dataclass
class Learner:
    """The objects of one PPO run."""

    workload: Workload
    frames: int
    env: TransformedEnv
    actor: ProbabilisticActor
    collector: Collector
    loss: ClipPPOLoss
    advantage: GAE
    optimizer: torch.optim.Optimizer
    scheduler: LRScheduler


def make_pendulum(seed: int) -> TransformedEnv:
    """Make the pendulum with the tutorial's transforms; TorchRL takes the statistics of 1000 random frames itself."""
    normalization = ObservationNorm(in_keys=["observation"])
    transforms = Compose(normalization, DoubleToFloat(), StepCounter(), RewardSum())
    env = TransformedEnv(GymEnv(WORKLOADS["idp"].env_id), transforms)
    env.set_seed(seed)
    normalization.init_stats(num_iter=1000, reduce_dim=0, cat_dim=0)
    return env


def make_cartpole(envs: int, seed: int) -> TransformedEnv:
    """Make several CartPoles that one process steps in turn."""
    batched: EnvBase = SerialEnv(envs, lambda: GymEnv("CartPole-v1", categorical_action_encoding=True))
    env = TransformedEnv(batched, Compose(StepCounter(), RewardSum()))
    env.set_seed(seed)
    return env


def make_actor(workload: Workload, env: TransformedEnv, output_gain: float | None) -> ProbabilisticActor:
    """Make the policy: a tanh-normal with a scale per state for the pendulum, a categorical for CartPole."""
    inputs = env.observation_spec["observation"].shape[-1]
    if not workload.is_idp:
        return ProbabilisticActor(
            TensorDictModule(
                tanh_mlp(inputs, 2, workload.hidden, output_gain), in_keys=["observation"], out_keys=["logits"]
            ),
            spec=env.action_spec,
            in_keys=["logits"],
            distribution_class=torch.distributions.Categorical,
            return_log_prob=True,
        )
    bounds = env.action_spec_unbatched.space
    network = nn.Sequential(tanh_mlp(inputs, 2, workload.hidden, output_gain), NormalParamExtractor())
    return ProbabilisticActor(
        TensorDictModule(network, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=env.action_spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": bounds.low, "high": bounds.high},
        return_log_prob=True,
    )


def make_loss(workload: Workload, actor: ProbabilisticActor, critic: ValueOperator) -> ClipPPOLoss:
    """Make the clipped loss, as in the tutorial for the pendulum and close to CleanRL's for CartPole."""
    if workload.is_idp:
        style = {"loss_critic_type": "smooth_l1", "normalize_advantage": False}
    else:
        style = {"loss_critic_type": "l2", "normalize_advantage": True, "clip_value": workload.clip_value}
    return ClipPPOLoss(
        actor_network=actor,
        critic_network=critic,
        clip_epsilon=workload.clip,
        entropy_bonus=True,
        entropy_coeff=workload.entropy_coef,
        critic_coeff=workload.value_coef,
        **style,
    )


def make_learner(
    workload: Workload, frames: int, seed: int, schedule: Schedule, default_weights: bool = False
) -> Learner:
    """Make everything a run needs.

    Args:
        workload: environment and constants.
        frames: frames of the whole run, a multiple of the batch.
        seed: seed of the environment.
        schedule: how the learning rate falls over the run.
        default_weights: leave the weights as torch makes them, which the tutorial does, instead of orthogonal ones.
    """
    env = make_pendulum(seed) if workload.is_idp else make_cartpole(workload.envs, seed)
    actor = make_actor(workload, env, None if default_weights else 0.01)
    inputs = env.observation_spec["observation"].shape[-1]
    critic_network = tanh_mlp(inputs, 1, workload.hidden, None if default_weights else 1.0)
    critic = ValueOperator(critic_network, in_keys=["observation"])
    loss = make_loss(workload, actor, critic)
    optimizer = torch.optim.Adam(loss.parameters(), workload.learning_rate)
    batches = frames // workload.batch
    return Learner(
        workload=workload,
        frames=frames,
        env=env,
        actor=actor,
        collector=Collector(
            env, actor, frames_per_batch=workload.batch, total_frames=frames, split_trajs=False, device="cpu"
        ),
        loss=loss,
        advantage=GAE(
            gamma=workload.gamma,
            lmbda=workload.gae_lambda,
            value_network=critic,
            average_gae=workload.is_idp,
        ),
        optimizer=optimizer,
        scheduler=LambdaLR(optimizer, lambda batch: schedule(batch / batches)),
    )


def finished_returns(batch: TensorDictBase) -> list[float]:
    """Read the returns of the episodes that ended in a batch."""
    ended = batch["next", "done"].reshape(-1)
    return batch["next", "episode_reward"].reshape(-1)[ended].tolist()


def update_raw(learner: Learner, buffer: ReplayBuffer, batch: TensorDictBase) -> None:
    """Train on one batch: per epoch new advantages, then minibatches of equal size, leaving out a remainder."""
    workload = learner.workload
    for _ in range(workload.epochs):
        learner.advantage(batch)
        buffer.extend(batch.reshape(-1))
        for _ in range(workload.batch // workload.minibatch):
            losses = learner.loss(buffer.sample(workload.minibatch))
            total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
            total.backward()
            nn.utils.clip_grad_norm_(learner.loss.parameters(), workload.max_grad_norm)
            learner.optimizer.step()
            learner.optimizer.zero_grad()
    learner.scheduler.step()


def run_raw(learner: Learner, phases: Phases) -> list[float]:
    """Train with a hand-written loop and return the returns of the finished episodes."""
    storage = LazyTensorStorage(max_size=learner.workload.batch)
    buffer = ReplayBuffer(storage=storage, sampler=SamplerWithoutReplacement())
    returns: list[float] = []
    started = clock()
    for batch in learner.collector:
        collected = clock()
        update_raw(learner, buffer, batch)
        phases.add(collected - started, clock() - collected)
        returns += finished_returns(batch)
        started = clock()
    return returns


class TrainerTimer:
    """Takes the times of a trainer from two of its hooks and the returns from its batches."""

    def __init__(self, phases: Phases) -> None:
        self.returns: list[float] = []
        self._phases = phases
        self._collected = 0.0
        self._started = clock()

    def batch_process(self, batch: TensorDictBase) -> TensorDictBase:
        """Note the end of a collection."""
        self._collected = clock()
        self.returns += finished_returns(batch)
        return batch

    def post_steps(self) -> None:
        """Note the end of an update."""
        now = clock()
        self._phases.add(self._collected - self._started, now - self._collected)
        self._started = now


def run_trainer(learner: Learner, phases: Phases) -> list[float]:
    """Train with `PPOTrainer` and return the returns of the finished episodes."""
    workload = learner.workload
    buffer = ReplayBuffer(
        storage=LazyTensorStorage(max_size=workload.batch),
        sampler=SamplerWithoutReplacement(),
        batch_size=workload.minibatch,
    )
    trainer = PPOTrainer(
        collector=learner.collector,
        total_frames=learner.frames,
        frame_skip=1,
        optim_steps_per_batch=None,
        num_epochs=workload.epochs,
        loss_module=learner.loss,
        optimizer=learner.optimizer,
        lr_scheduler=learner.scheduler,
        clip_grad_norm=True,
        clip_norm=workload.max_grad_norm,
        replay_buffer=buffer,
        gae=learner.advantage,
        progress_bar=False,
        enable_logging=False,
        auto_log_optim_steps=False,
        save_trainer_interval=NEVER,
        log_interval=NEVER,
    )
    timer = TrainerTimer(phases)
    trainer.register_op("batch_process", timer.batch_process)
    trainer.register_op("post_steps", timer.post_steps)
    trainer.train()
    return timer.returns


STYLES: dict[str, Callable[[Learner, Phases], list[float]]] = {"trainer": run_trainer, "raw": run_raw}


def main() -> None:
    parser = peer_parser(__doc__)
    parser.add_argument("--style", choices=list(STYLES), default="trainer")
    args = parser.parse_args()
    workload = WORKLOADS[args.workload]
    frames = whole_batches(workload, args.frames)
    prepare(args)
    phases = Phases(workload.batch)
    learner = make_learner(workload, frames, args.seed, workload.schedule)
    returns = STYLES[args.style](learner, phases)
    report("torchrl" if args.style == "trainer" else f"torchrl-{args.style}", args, phases, returns)


if __name__ == "__main__":
    main()
