"""One side of `device_rsl_rl.py`: PPO in one env with rsl_rl's interface, by rlcore's runner, by rsl_rl's or by skrl.

It reads a number of iterations per line and answers with the seconds that they took; an empty line is answered with the
mean return of 512 episodes, played without noise, and ends it.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any

import torch
from tensordict import TensorDict
from torch import Tensor, nn

STEPS = 24
EPISODE = 50
HIDDEN = [128, 64]
CFG: dict[str, Any] = {
    "num_steps_per_env": STEPS,
    "save_interval": 10**9,
    "obs_groups": {"actor": ["policy"], "critic": ["policy"]},
    "algorithm": {"class_name": "PPO", "schedule": "adaptive", "desired_kl": 0.01, "entropy_coef": 0.005},
    "actor": {
        "class_name": "MLPModel",
        "hidden_dims": HIDDEN,
        "obs_normalization": True,
        "distribution_cfg": {"class_name": "GaussianDistribution"},
    },
    "critic": {"class_name": "MLPModel", "hidden_dims": HIDDEN, "obs_normalization": True},
}


class Hover:
    """Drones that are to stay at the middle of a square in a wind; an episode ends outside of it, or after 50 steps."""

    num_actions = 2
    max_episode_length = EPISODE
    device = torch.device("cpu")

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(num_envs, dtype=torch.long)
        self.state = self._begun()  # position, velocity, wind

    def get_observations(self) -> TensorDict:
        return TensorDict({"policy": self.state}, batch_size=self.num_envs)

    def step(self, actions: Tensor) -> tuple[TensorDict, Tensor, Tensor, dict[str, Tensor]]:
        actions = actions.clamp(-1, 1)
        position, velocity, wind = self.state.split(2, 1)
        velocity = 0.9 * velocity + 0.1 * actions + 0.02 * wind
        position = position + 0.1 * velocity
        self.episode_length_buf = self.episode_length_buf + 1
        out = position.abs().amax(1) > 2
        time_outs = (self.episode_length_buf >= EPISODE) & ~out
        dones = out | time_outs
        reward = torch.exp(-position.square().sum(1)) - 0.01 * actions.square().sum(1) - 1.0 * out
        self.state = torch.where(dones[:, None], self._begun(), torch.cat([position, velocity, wind], 1))
        self.episode_length_buf = torch.where(dones, 0, self.episode_length_buf)
        return self.get_observations(), reward, dones, {"time_outs": time_outs}

    def _begun(self) -> Tensor:
        drawn = torch.rand(self.num_envs, 6) * 2 - 1
        return drawn * torch.tensor([1.5, 1.5, 0.1, 0.1, 1.0, 1.0])


def runner_side(
    kind: type, num_envs: int, seed: int, **keys: Any
) -> tuple[Callable[[int], None], Callable[[Any], Tensor]]:
    """Return what trains by an `OnPolicyRunner`, and its policy."""
    runner = kind(Hover(num_envs), {**copy.deepcopy(CFG), "seed": seed, **keys}, None, "cpu")
    return runner.learn, lambda observations: runner.get_inference_policy("cpu")(observations)


def skrl_side(num_envs: int) -> tuple[Callable[[int], None], Callable[[Any], Tensor]]:
    """Return what trains by skrl, with the same networks and settings as far as it has them, and its policy."""
    import gymnasium
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
    from skrl.resources.preprocessors.torch import RunningStandardScaler
    from skrl.resources.schedulers.torch import KLAdaptiveLR
    from skrl.trainers.torch.sequential import SequentialTrainerCfg

    seen, acted = (gymnasium.spaces.Box(-float("inf"), float("inf"), (size,)) for size in (6, 2))
    spaces = {"observation_space": seen, "action_space": acted, "device": "cpu"}

    def mlp(outputs: int) -> nn.Module:
        return nn.Sequential(nn.Linear(6, 128), nn.ELU(), nn.Linear(128, 64), nn.ELU(), nn.Linear(64, outputs))

    class Actor(GaussianMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(self, **spaces)
            GaussianMixin.__init__(self)
            self.net, self.log_std = mlp(2), nn.Parameter(torch.zeros(2))

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {"log_std": self.log_std}

    class Critic(DeterministicMixin, Model):  # type: ignore[misc]
        def __init__(self) -> None:
            Model.__init__(self, **spaces)
            DeterministicMixin.__init__(self)
            self.net = mlp(1)

        def compute(self, inputs: Any, role: str = "") -> Any:
            return self.net(inputs["observations"]), {}

    cfg = PPO_CFG(
        rollouts=STEPS,
        learning_epochs=5,
        mini_batches=4,
        learning_rate=1e-3,
        learning_rate_scheduler=KLAdaptiveLR,
        learning_rate_scheduler_kwargs={"kl_threshold": 0.01, "min_lr": 1e-5},
        observation_preprocessor=RunningStandardScaler,
        observation_preprocessor_kwargs={"size": seen, "device": "cpu"},
        grad_norm_clip=1.0,
        entropy_loss_scale=0.005,
        value_loss_scale=1.0,
        time_limit_bootstrap=True,
    )
    cfg.experiment.write_interval = cfg.experiment.checkpoint_interval = 0
    memory = RandomMemory(memory_size=STEPS, num_envs=num_envs, device="cpu")
    agent = PPO(models={"policy": Actor(), "value": Critic()}, memory=memory, cfg=cfg, **spaces)
    agent.init(trainer_cfg=SequentialTrainerCfg(timesteps=0))
    agent.enable_training_mode(True)
    env, count = Hover(num_envs), 0
    observations = env.get_observations()["policy"]

    def train(iterations: int) -> None:
        """Do what skrl's trainers do."""
        nonlocal observations, count
        for _ in range(iterations * STEPS):
            times = {"timestep": count, "timesteps": 10**9}
            agent.pre_interaction(**times)
            with torch.no_grad():
                actions = agent.act(observations, None, **times)[0]
                groups, reward, dones, extras = env.step(actions)
                ends = dones & ~extras["time_outs"], extras["time_outs"]
                agent.record_transition(
                    observations=observations,
                    states=None,
                    actions=actions,
                    rewards=reward[:, None],
                    next_observations=groups["policy"],
                    next_states=None,
                    terminated=ends[0][:, None],
                    truncated=ends[1][:, None],
                    infos={},
                    **times,
                )
            agent.post_interaction(**times)
            observations, count = groups["policy"], count + 1

    def policy(groups: Any) -> Any:
        given = {"observations": agent._observation_preprocessor(groups["policy"])}
        return agent.policy.act(given, role="policy")[1]["mean_actions"]

    return train, policy


def side_of(name: str, num_envs: int, seed: int) -> tuple[Callable[[int], None], Callable[[Any], Tensor]]:
    """Return what trains for a number of iterations, and the policy that it trains."""
    if name == "skrl":
        return skrl_side(num_envs)
    if name == "rsl_rl":
        from rsl_rl.runners import OnPolicyRunner as Theirs

        return runner_side(Theirs, num_envs, seed)
    from rlcore_plugin_rsl_rl import OnPolicyRunner

    keys = {"torch_compile_mode": "default"} if name == "rlcore, compiled" else {}
    return runner_side(OnPolicyRunner, num_envs, seed, **keys)


@torch.no_grad()
def mean_return(policy: Callable[[Any], Tensor]) -> float:
    """Return the mean over the first episode of each env."""
    torch.manual_seed(1_000)
    env = Hover(512)
    total, running = torch.zeros(512), torch.ones(512)
    for _ in range(EPISODE):
        _, reward, dones, _ = env.step(policy(env.get_observations()))
        total += running * reward
        running *= ~dones
    return float(total.mean())


def main() -> None:
    """Answer line by line."""
    name, num_envs, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries print there
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    train, policy = side_of(name, num_envs, seed)
    for line in sys.stdin:
        if not line.strip():
            break
        began = perf_counter()
        train(int(line))
        print(perf_counter() - began, file=answers, flush=True)
    print(mean_return(policy), file=answers, flush=True)


if __name__ == "__main__":
    main()
