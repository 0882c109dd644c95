"""Speed of a loop with TorchRL's collector, GAE and `ClipPPOLoss` on Pong, like the one of TorchRL's PPO tutorial.

The games have Gymnasium's wrappers, which step faster than TorchRL's own transforms of pixels. Actor and critic share
the convolutions, which TorchRL's modules run once for both while acting; advantages are computed once per batch.
"""

import torch
from common import Phases, clock, orthogonal, prepare, report, whole_batches
from pong import PONG, make_game, pong_parser
from tensordict.nn import TensorDictModule
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from torchrl.collectors import Collector
from torchrl.data.replay_buffers import ReplayBuffer
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.data.replay_buffers.storages import LazyTensorStorage
from torchrl.envs import Compose, RewardSum, SerialEnv, SignTransform, StepCounter, TransformedEnv
from torchrl.envs.libs.gym import GymWrapper
from torchrl.modules import ActorValueOperator, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE


class Body(nn.Module):
    """The convolutions of Mnih et al. (2015), over images of bytes with any leading shape."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(
            nn.Conv2d(4, 32, 8, 4),
            nn.ReLU(),
            nn.Conv2d(32, 64, 4, 2),
            nn.ReLU(),
            nn.Conv2d(64, 64, 3, 1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(64 * 7 * 7, 512),
            nn.ReLU(),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Return features `[..., 512]`."""
        features = self.network(images.reshape(-1, 4, 84, 84) / 255.0)
        return features.reshape(*images.shape[:-3], 512)


def make_env(seed: int) -> TransformedEnv:
    """Make several games that one process steps in turn."""
    games = SerialEnv(PONG.envs, lambda: GymWrapper(make_game(), categorical_action_encoding=True))
    env = TransformedEnv(games, Compose(StepCounter(), RewardSum(), SignTransform(in_keys=["reward"])))
    env.set_seed(seed)
    return env


def make_networks(env: TransformedEnv) -> ActorValueOperator:
    """Make the body and its two heads."""
    logits, value = nn.Linear(512, 6), nn.Linear(512, 1)
    orthogonal(logits, 0.01)
    orthogonal(value, 1.0)
    actor = ProbabilisticActor(
        TensorDictModule(logits, in_keys=["hidden"], out_keys=["logits"]),
        spec=env.action_spec,
        in_keys=["logits"],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
    )
    body = TensorDictModule(Body(), in_keys=["observation"], out_keys=["hidden"])
    return ActorValueOperator(body, actor, ValueOperator(value, in_keys=["hidden"]))


def main() -> None:
    args = pong_parser(__doc__).parse_args()
    frames = whole_batches(PONG, args.frames)
    prepare(args)
    env = make_env(args.seed)
    networks = make_networks(env)
    actor, critic = networks.get_policy_operator(), networks.get_value_operator()
    collector = Collector(env, actor, frames_per_batch=PONG.batch, total_frames=frames, split_trajs=False, device="cpu")
    loss = ClipPPOLoss(
        actor_network=actor,
        critic_network=critic,
        clip_epsilon=PONG.clip,
        entropy_coeff=PONG.entropy_coef,
        critic_coeff=PONG.value_coef,
        loss_critic_type="l2",
        normalize_advantage=True,
        clip_value=PONG.clip_value,
    )
    advantage = GAE(gamma=PONG.gamma, lmbda=PONG.gae_lambda, value_network=critic, average_gae=False)
    optimizer = torch.optim.Adam(loss.parameters(), PONG.learning_rate, eps=1e-5)
    scheduler = LambdaLR(optimizer, lambda batch: PONG.schedule(batch * PONG.batch / frames))
    buffer = ReplayBuffer(storage=LazyTensorStorage(PONG.batch), sampler=SamplerWithoutReplacement())
    phases, started = Phases(PONG.batch), clock()
    returns: list[float] = []
    for batch in collector:
        collected = clock()
        with torch.no_grad():
            advantage(batch)
        for _ in range(PONG.epochs):
            buffer.extend(batch.reshape(-1))
            for _ in range(PONG.batch // PONG.minibatch):
                losses = loss(buffer.sample(PONG.minibatch))
                (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), PONG.max_grad_norm)
                optimizer.step()
                optimizer.zero_grad()
        scheduler.step()
        phases.add(collected - started, clock() - collected)
        ended = batch["next", "done"].reshape(-1)
        returns += batch["next", "episode_reward"].reshape(-1)[ended].tolist()
        started = clock()
    report("torchrl", args, phases, returns)


if __name__ == "__main__":
    main()
