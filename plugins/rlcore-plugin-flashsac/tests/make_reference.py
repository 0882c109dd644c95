"""Make `reference.npz`: what the authors' implementation computes, with the weights and the noise that it used.

    git clone https://github.com/Holiday-Robot/FlashSAC
    git -C FlashSAC checkout 87edc9061150ae9e962dd84e6544e27a1554b3ab
    python plugins/rlcore-plugin-flashsac/tests/make_reference.py FlashSAC

Float64, on the CPU, not compiled. What it draws is drawn here, in its order, and kept. Weights and minibatches are
exact in single precision.
"""

from __future__ import annotations

import copy
import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

OUT = Path(__file__).with_name("reference.npz")
OBSERVATION, ACTIONS, SAMPLES, ATOMS, LARGEST, GAMMA, STEPS = 4, 3, 7, 21, 5.0, 0.97, 3
LR, TAU, ALPHA, TARGET_ENTROPY = 0.01, 0.1, 0.3, 0.5 * ACTIONS * math.log(2 * math.pi * math.e * 0.15**2)


class Drawn:
    """Stands in for torch's sampler of normal numbers, and keeps what each call returned, in order."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(3)
        self.values: list[Tensor] = []

    def normal(self, shape: Any, dtype: torch.dtype, device: torch.device) -> Tensor:
        self.values.append(single(shape, self.generator))
        return self.values[-1]

    def take(self) -> list[Tensor]:
        values, self.values = self.values, []
        return values


def single(shape: Any, generator: torch.Generator) -> Tensor:
    """Return normal numbers that are exact in single precision."""
    return torch.empty(tuple(shape), dtype=torch.float32).normal_(generator=generator).double()


def rounded(values: Tensor) -> Tensor:
    """Return numbers that are the same in the file."""
    return values.to(torch.float32).double()


def prepare(source: str) -> None:
    """Have the authors' modules importable alone, compute in float64, and compile nothing."""
    torch.set_default_dtype(torch.float64)
    torch.compile = lambda function: function
    torch.Tensor.float = torch.Tensor.double  # type: ignore[assignment]
    for name in (
        "flash_rl",
        "flash_rl.agents",
        "flash_rl.agents.flashSAC",
        "flash_rl.agents.utils",
        "flash_rl.buffers",
    ):
        sys.modules[name] = ModuleType(name)
        sys.modules[name].__path__ = [str(Path(source, *name.split(".")))]
    sys.modules["flash_rl.buffers"].Batch = dict  # type: ignore[attr-defined]


def randomise(module: nn.Module, generator: torch.Generator) -> nn.Module:
    """Return a module with random weights and running statistics."""
    for name, value in module.double().state_dict().items():
        drawn = single(value.shape, generator)
        if name.endswith("running_var"):
            value.copy_(rounded(0.5 + drawn.square()))
        elif "norm" in name and name.endswith("weight"):
            value.copy_(rounded(1 + 0.25 * drawn))
        elif name != "predictor.bin_values":
            value.copy_(0.5 * drawn)
    return module


def networks() -> dict[str, nn.Module]:
    """Return the authors' networks, with random weights."""
    from flash_rl.agents.flashSAC.network import FlashSACActor, FlashSACDoubleCritic, FlashSACTemperature

    generator = torch.Generator().manual_seed(2)
    critic = FlashSACDoubleCritic(2, OBSERVATION + ACTIONS, 6, ATOMS, -LARGEST, LARGEST)
    return {
        "actor": randomise(FlashSACActor(2, OBSERVATION, 5, ACTIONS), generator),
        "critic": randomise(critic, generator),
        "target": randomise(copy.deepcopy(critic), generator),
        "temperature": FlashSACTemperature(ALPHA).double(),
    }


def trained(networks: dict[str, nn.Module]) -> dict[str, Any]:
    """Return copies of networks as the authors train them."""
    from flash_rl.agents.utils.network import Network

    made: dict[str, Any] = {}
    for name, network in copy.deepcopy(networks).items():
        optimizer = None if name == "target" else torch.optim.Adam(network.parameters(), lr=LR)
        bounded = name != "temperature"
        source = {"ema_source": made["critic"], "ema_tau": TAU} if name == "target" else {}
        made[name] = Network(network, optimizer, use_weight_normalization=bounded, **source)
    return made


def arrays(prefix: str, tensors: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Return tensors under a prefix."""
    return {f"{prefix}/{name}": value.detach().numpy().copy() for name, value in tensors.items()}


def after(prefix: str, network: nn.Module) -> dict[str, np.ndarray]:
    """Return the state of a network and, where it has some, its gradients."""
    gradients = {name: value.grad for name, value in network.named_parameters() if value.grad is not None}
    state = {name: value for name, value in network.state_dict().items() if not name.endswith("bin_values")}
    return arrays(f"{prefix}/after", state) | arrays(f"{prefix}/gradients", gradients)


def minibatch(generator: torch.Generator) -> dict[str, Tensor]:
    """Return transitions, one of which ends its episode and one of which goes beyond the atoms."""
    batch = {
        "observation": rounded(2 * single((SAMPLES, OBSERVATION), generator) + 1),
        "next_observation": 2 * single((SAMPLES, OBSERVATION), generator),
        "action": single((SAMPLES, ACTIONS), generator).clamp(-1, 1),
        "reward": 2 * single((SAMPLES,), generator),
        "terminated": (torch.arange(SAMPLES) == 2).double(),
    }
    batch["reward"][3] = 8.5
    return batch | {f"actor_{name}": batch[name] for name in ("observation", "next_observation")}


class Update:
    """The authors' updates of one minibatch after another."""

    def __init__(self, drawn: Drawn) -> None:
        from flash_rl.agents.flashSAC import update

        self.functions = update
        self.drawn = drawn
        self.common = {"device": torch.device("cpu"), "use_amp": False, "grad_scaler": None}
        self.target_probs = torch.empty(0)
        compute = update._compute_categorical_td_target

        def keeping(*args: Any, **kwargs: Any) -> Tensor:
            self.target_probs = compute(*args, **kwargs)
            return self.target_probs

        update._compute_categorical_td_target = keeping

    def actor(self, agent: dict[str, Any], batch: dict[str, Tensor], prefix: str) -> dict[str, np.ndarray]:
        parts = [agent[name] for name in ("actor", "critic", "temperature")]
        info = self.functions.update_actor(*parts, batch, bc_alpha=0.0, **self.common)
        (noise,) = self.drawn.take()
        return arrays(prefix, info | {"noise": noise[:SAMPLES]})  # the other actions count for nothing

    def critic(self, agent: dict[str, Any], batch: dict[str, Tensor], prefix: str) -> dict[str, np.ndarray]:
        parts = [agent[name] for name in ("actor", "critic", "target", "temperature")]
        numbers = {"min_v": -LARGEST, "max_v": LARGEST, "num_bins": ATOMS, "gamma": GAMMA, "n_step": STEPS}
        info = self.functions.update_critic(*parts, batch, **numbers, **self.common)
        self.functions.update_target_network(agent["target"])
        (noise,) = self.drawn.take()
        return arrays(prefix, info | {"target_probs": self.target_probs, "next_noise": noise})

    def temperature(self, agent: dict[str, Any], entropy: Tensor, prefix: str) -> dict[str, np.ndarray]:
        return arrays(prefix, self.functions.update_temperature(agent["temperature"], entropy, TARGET_ENTROPY))


def outputs(agent: dict[str, Any], batch: dict[str, Tensor]) -> dict[str, np.ndarray]:
    """Return what actor and critics give in evaluation and in training, and the statistics that training leaves."""
    entries: dict[str, np.ndarray] = {}
    for training in (False, True):
        kind = "training" if training else "evaluation"
        mean, std = agent["actor"].network.get_mean_and_std(batch["observation"], training)
        values, info = agent["critic"](batch["observation"], batch["action"], training)
        entries |= arrays(kind, {"mean": mean, "std": std, "values": values, "log_probs": info["log_prob"]})
    for name in ("actor", "critic"):
        entries |= arrays(f"training/{name}", dict(agent[name].network.named_buffers()))
    return entries


def scales(generator: torch.Generator) -> dict[str, np.ndarray]:
    """Return rewards and ends of two envs, and the scale after each step."""
    from flash_rl.agents.utils.reward_normalization import RewardNormalizer

    normalizer = RewardNormalizer(GAMMA, LARGEST, False, torch.device("cpu"))
    normalizer.G_rms.epsilon = 0.0  # added to a count, so that the variance of the beginning never quite goes
    for owner, name in ((normalizer, "G_r_max"), *((normalizer.G_rms, name) for name in ("mean", "var", "count"))):
        setattr(owner, name, getattr(owner, name).double())
    rewards = single((24, 2), generator)
    rewards[20, 1] = 40.0
    ends = torch.rand(24, 2, generator=generator) < 0.25
    one, values = torch.ones(1), []
    for reward, end in zip(rewards, ends, strict=True):
        normalizer.update_reward_stats(reward, end, torch.zeros_like(end))
        values.append(1 / normalizer.normalize_rewards(one))
    return arrays("rewards", {"rewards": rewards, "ends": ends, "scales": torch.cat(values)})


def main(source: str) -> None:
    """Compute outputs, updates at equal weights and one after the other, and scales; write the file."""
    prepare(source)
    drawn, generator, made = Drawn(), torch.Generator().manual_seed(4), networks()
    torch.distributions.normal._standard_normal = drawn.normal  # type: ignore[attr-defined]
    update, batches = Update(drawn), [minibatch(generator) for _ in range(3)]
    entries: dict[str, np.ndarray] = {"log_alpha": made["temperature"].log_temp.detach().numpy().copy()}
    for name in ("actor", "critic", "target"):
        state = made[name].state_dict().items()
        entries |= arrays(f"weights/{name}", {key: value for key, value in state if not key.endswith("bin_values")})
    for number, batch in enumerate(batches):
        entries |= arrays(f"batches/{number}", {key: value for key, value in batch.items() if key[:6] != "actor_"})

    bounded = trained(made)
    for name in ("actor", "critic", "target"):
        bounded[name].normalize_parameters()
    made = {name: each.network for name, each in bounded.items()}
    for name in ("actor", "critic"):
        entries |= arrays(f"bounded/{name}", dict(made[name].named_parameters()))
    entries |= outputs(trained(made), batches[0])

    agent = trained(made)
    entries |= update.actor(agent, batches[0], "updates")
    entropy = torch.from_numpy(entries["updates/actor/entropy"])
    entries |= update.temperature(agent, entropy, "updates") | after("temperature", agent["temperature"].network)
    entries |= after("actor", agent["actor"].network)
    agent = trained(made)
    entries |= update.critic(agent, batches[0], "updates")
    entries |= after("critic", agent["critic"].network) | after("target", agent["target"].network)

    agent = trained(made)
    for number, batch in enumerate(batches):
        if number != 1:
            entries |= update.actor(agent, batch, f"turns/{number}")
        entries |= update.critic(agent, batch, f"turns/{number}")
    for name in ("actor", "critic", "target"):
        entries |= {
            key: value for key, value in after(f"turns/{name}", agent[name].network).items() if "/after/" in key
        }
    entries |= scales(generator)

    whole = {key for key in entries if key.startswith(("weights/", "batches/")) or key.endswith("noise")}
    small = {key: value.astype(np.float32) if key in whole else value for key, value in entries.items()}
    assert all(np.array_equal(small[key].astype(float), entries[key]) for key in whole)
    np.savez_compressed(OUT, **small)
    print(f"{OUT}: {len(small)} arrays")


if __name__ == "__main__":
    main(sys.argv[1])
