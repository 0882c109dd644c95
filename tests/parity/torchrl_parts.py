"""Parts of TorchRL for one seeded script on both trainers: an env without hidden state, actors, losses, buffers."""

from __future__ import annotations

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.collectors import Collector
from torchrl.data import (
    Bounded,
    Categorical,
    Composite,
    LazyTensorStorage,
    OfflineToOnlineReplayBuffer,
    OneHot,
    ReplayBuffer,
    TensorDictReplayBuffer,
    TensorStorage,
    Unbounded,
)
from torchrl.data.replay_buffers.samplers import SamplerWithoutReplacement
from torchrl.envs import EnvBase, RewardSum, TransformedEnv
from torchrl.modules import (
    AdditiveGaussianModule,
    EGreedyModule,
    NormalParamExtractor,
    OneHotCategorical,
    ProbabilisticActor,
    QValueActor,
    TanhNormal,
    ValueOperator,
)
from torchrl.objectives import (
    A2CLoss,
    ClipPPOLoss,
    CQLLoss,
    DDPGLoss,
    DQNLoss,
    IQLLoss,
    ReinforceLoss,
    SACLoss,
    SoftUpdate,
    TD3Loss,
)

BATCH, STEPS = 32, 8


class Cart(EnvBase):
    """A point that is pushed to the middle; its state is in the TensorDict, its noise from torch's generator."""

    def __init__(self, discrete):
        super().__init__(batch_size=[])
        self.discrete = discrete
        self.observation_spec = Composite(observation=Unbounded(3))
        self.action_spec = OneHot(2) if discrete else Bounded(-1, 1, shape=(1,))
        self.reward_spec = Unbounded((1,))
        self.done_spec = Composite(
            done=Categorical(2, dtype=torch.bool, shape=(1,)), terminated=Categorical(2, dtype=torch.bool, shape=(1,))
        )

    def _reset(self, tensordict=None):
        place = torch.rand(2) * 2 - 1
        return TensorDict({"observation": torch.cat([place, torch.zeros(1)])}, [])

    def _step(self, tensordict):
        place, speed, time = tensordict["observation"].unbind(-1)
        push = tensordict["action"].float()
        push = push[..., 0] - push[..., 1] if self.discrete else push[..., 0]
        speed = 0.9 * speed + 0.2 * push
        place = place + 0.2 * speed
        time = time + 0.1
        done = ((place.abs() > 1.5) | (time > 1.25)).reshape(1)
        return TensorDict(
            {
                "observation": torch.stack([place, speed, time], -1),
                "reward": (1 - place.abs()).reshape(1),
                "done": done,
                "terminated": (place.abs() > 1.5).reshape(1),
            },
            [],
        )

    def _set_seed(self, seed):
        torch.manual_seed(seed)


def env(discrete=False):
    return TransformedEnv(Cart(discrete), RewardSum(["reward"], ["reward_sum"]))


def collector(policy, total, discrete=False):
    return Collector(env(discrete), policy, frames_per_batch=BATCH, total_frames=total, reset_at_each_iter=True)


def net(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, outputs))


def actor_critic():
    body = TensorDictModule(net(3, 2), ["observation"], ["logits"])
    actor = ProbabilisticActor(
        body, in_keys=["logits"], distribution_class=OneHotCategorical, return_log_prob=True, spec=OneHot(2)
    )
    return actor, ValueOperator(net(3, 1), in_keys=["observation"])


def gaussian_actor():
    body = TensorDictModule(nn.Sequential(net(3, 2), NormalParamExtractor()), ["observation"], ["loc", "scale"])
    return ProbabilisticActor(
        body,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": -1.0, "high": 1.0},
        return_log_prob=False,
        spec=Bounded(-1, 1, shape=(1,)),
    )


class QNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = net(4, 1)

    def forward(self, observation, action):
        return self.net(torch.cat([observation, action], -1))


def critic():
    return ValueOperator(QNet(), in_keys=["observation", "action"])


def sure_actor():
    body = TensorDictModule(nn.Sequential(net(3, 1), nn.Tanh()), ["observation"], ["action"])
    noise = AdditiveGaussianModule(Bounded(-1, 1, shape=(1,)), annealing_num_steps=1000)
    return body, noise


def replay(size=500):
    return TensorDictReplayBuffer(storage=LazyTensorStorage(size), batch_size=16)


def on_policy(loss_class, total):
    actor, value = actor_critic()
    loss = loss_class(actor, value)
    buffer = TensorDictReplayBuffer(
        storage=LazyTensorStorage(BATCH), sampler=SamplerWithoutReplacement(), batch_size=16
    )
    return {
        "collector": collector(actor, total, discrete=True),
        "loss_module": loss,
        "optimizer": torch.optim.Adam(loss.parameters(), lr=1e-3, fused=True),
        "replay_buffer": buffer,
        "optim_steps_per_batch": 4,
    }


def off_policy(policy, loss, total, discrete=False, **arguments):
    return {
        "collector": collector(policy, total, discrete),
        "loss_module": loss,
        "optimizer": torch.optim.Adam(loss.parameters(), lr=1e-3, fused=True),
        "replay_buffer": replay(),
        "target_net_updater": SoftUpdate(loss, eps=0.95),
        "optim_steps_per_batch": STEPS,
        **arguments,
    }


def dqn(total):
    value = QValueActor(net(3, 2), in_keys=["observation"], spec=OneHot(2))
    greedy = EGreedyModule(OneHot(2), eps_init=0.9, eps_end=0.05, annealing_num_steps=200)
    loss = DQNLoss(value, delay_value=True, action_space="one-hot")
    return off_policy(TensorDictSequential(value, greedy), loss, total, discrete=True, greedy_module=greedy)


def ddpg(total):
    actor, _ = sure_actor()
    return off_policy(actor, DDPGLoss(actor, critic(), delay_actor=True, delay_value=True), total)


def td3(total, stepper):
    actor, noise = sure_actor()
    loss = TD3Loss(actor, critic(), num_qvalue_nets=2, bounds=(-1.0, 1.0))
    arguments = off_policy(TensorDictSequential(actor, noise), loss, total, exploration_module=noise)
    del arguments["optimizer"]
    learnt = (loss.actor_network_params, loss.qvalue_network_params)
    optimizers = [torch.optim.Adam(part.values(True, True), lr=1e-3, fused=True) for part in learnt]
    return {**arguments, "optimization_stepper": stepper(*optimizers)}


def sac(total):
    actor = gaussian_actor()
    return off_policy(actor, SACLoss(actor, critic()), total)


def iql(total):
    actor = gaussian_actor()
    value = ValueOperator(net(3, 1), in_keys=["observation"])
    return off_policy(actor, IQLLoss(actor, critic(), value), total)


def cql(total):
    actor = gaussian_actor()
    return off_policy(actor, CQLLoss(actor, critic()), total)


def offline(total):
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(77)  # the data are the same whatever the seed of the script
        data = env().rollout(200, break_when_any_done=False).exclude("collector")
    buffer = OfflineToOnlineReplayBuffer(
        ReplayBuffer(storage=TensorStorage(data), sampler=SamplerWithoutReplacement()),
        online_capacity=300,
        batch_size=16,
    )
    actor = gaussian_actor()
    return off_policy(actor, SACLoss(actor, critic()), total, replay_buffer=buffer, enable_logging=False)


SCRIPTS = {
    "A2CTrainer": lambda total, stepper: on_policy(A2CLoss, total),
    "PPOTrainer": lambda total, stepper: on_policy(ClipPPOLoss, total),
    "ReinforceTrainer": lambda total, stepper: on_policy(ReinforceLoss, total),
    "DQNTrainer": lambda total, stepper: dqn(total),
    "DDPGTrainer": lambda total, stepper: ddpg(total),
    "SACTrainer": lambda total, stepper: sac(total),
    "TD3Trainer": td3,
    "IQLTrainer": lambda total, stepper: iql(total),
    "CQLTrainer": lambda total, stepper: cql(total),
    "OfflineToOnlineTrainer": lambda total, stepper: offline(total),
}


def make(package, name, total=4 * BATCH, seed=3, **arguments):
    """Return the named trainer of a package over parts that are made again from one seed."""
    torch.manual_seed(seed)
    given = SCRIPTS[name](total, package.TD3OptimizationStepper)
    return getattr(package, name)(
        total_frames=total, frame_skip=1, progress_bar=False, log_interval=1, **{**given, **arguments}
    )
