"""Make `reference.npz`: what the authors' implementation computes, with the weights and the noise that it used.

    git clone https://github.com/nicklashansen/tdmpc2
    python plugins/rlcore-plugin-tdmpc2/tests/make_reference.py tdmpc2/tdmpc2

Float64, on the CPU. What it draws is drawn here, in its order, and kept.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

OUT = Path(__file__).with_name("reference.npz")
CONFIG = {
    "obs": "state",
    "obs_shape": {"state": (3,)},
    "action_dim": 2,
    "multitask": False,
    "task_dim": 0,
    "latent_dim": 8,
    "enc_dim": 6,
    "mlp_dim": 10,
    "num_enc_layers": 2,
    "num_q": 5,
    "dropout": 0.0,
    "simnorm_dim": 4,
    "num_bins": 21,
    "vmin": -10,
    "vmax": 10,
    "bin_size": 1.0,
    "log_std_min": -10.0,
    "log_std_max": 2.0,
    "horizon": 3,
    "batch_size": 6,
    "rho": 0.5,
    "consistency_coef": 20,
    "reward_coef": 0.1,
    "value_coef": 0.1,
    "entropy_coef": 0.1,
    "grad_clip_norm": 1e9,
    "tau": 0.01,
    "iterations": 4,
    "num_samples": 24,
    "num_elites": 6,
    "num_pi_trajs": 4,
    "min_std": 0.05,
    "max_std": 2,
    "temperature": 0.5,
}


TRAINED = ("_encoder", "_dynamics", "_reward")


class Drawn:
    """Stands in for torch's samplers, and keeps what each returned, in order."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(3)
        self.values: list[Tensor] = []

    def randn(self, *shape: int, **kwargs: Any) -> Tensor:
        return self._keep(torch.empty(*shape).normal_(generator=self.generator))

    def randn_like(self, like: Tensor) -> Tensor:
        return self.randn(*like.shape)

    def randperm(self, count: int, **kwargs: Any) -> Tensor:
        return self._keep(torch.rand(count, generator=self.generator).argsort())

    def exponential_(self, values: Tensor) -> Tensor:
        return self._keep(values.uniform_(generator=self.generator).log_().neg_())

    def take(self) -> list[np.ndarray]:
        values, self.values = self.values, []
        return [value.numpy() for value in values]

    def _keep(self, value: Tensor) -> Tensor:
        self.values.append(value.clone())
        return value


class Kept:
    """An optimizer that takes no step, and keeps the gradients."""

    def __init__(self, parameters: dict[str, Tensor]) -> None:
        self.parameters = parameters
        self.gradients: dict[str, np.ndarray] = {}

    def step(self) -> None:
        self.gradients = {name: value.grad.numpy().copy() for name, value in self.parameters.items()}

    def zero_grad(self, set_to_none: bool) -> None:
        for value in self.parameters.values():
            value.grad = None


def agent_of(source: str) -> Any:
    """Return the authors' agent on the CPU, whose constructor wants a GPU, with random weights."""
    sys.path.insert(0, source)
    import tdmpc2
    from common.scale import RunningScale

    agent = tdmpc2.TDMPC2.__new__(tdmpc2.TDMPC2)
    torch.nn.Module.__init__(agent)
    agent.cfg, agent.device = SimpleNamespace(**CONFIG), torch.device("cpu")
    agent.model = tdmpc2.WorldModel(agent.cfg)
    generator = torch.Generator().manual_seed(2)
    for parameter in agent.model.parameters():
        parameter.data.add_(torch.empty_like(parameter).normal_(generator=generator), alpha=0.4)
    agent.model.init()
    agent.model._target_Qs_params.data.mul_(0.9)
    agent.scale = RunningScale.__new__(RunningScale)
    torch.nn.Module.__init__(agent.scale)
    agent.scale.cfg, agent.scale._value = agent.cfg, torch.ones(1)
    agent.scale._percentiles = torch.tensor([5.0, 95.0])
    agent.discount, agent._prev_mean = 0.97, torch.zeros(3, 2)
    agent.model.eval()
    return agent


def named(model: Any, trained: tuple[str, ...]) -> dict[str, Tensor]:
    """Return parameters by the names of the authors, of some of their networks."""
    names = dict(model.named_parameters())
    return {name: value for name, value in names.items() if name.startswith(trained)}


def main(source: str) -> None:
    """Compute an update and four planned steps, and write the file."""
    torch.set_default_dtype(torch.float64)
    agent, drawn = agent_of(source), Drawn()
    for name in ("randn", "randn_like", "randperm"):
        setattr(torch, name, getattr(drawn, name))
    torch.Tensor.exponential_ = lambda values: drawn.exponential_(values)  # type: ignore[method-assign]
    model, generator = agent.model, torch.Generator().manual_seed(4)
    entries = {
        f"weights/{name}": value.detach().numpy().copy() for name, value in named(model, (*TRAINED, "_pi")).items()
    }
    for key, value in model._Qs.params.data.flatten_keys(".").items():
        entries[f"critics/{key}"] = value.numpy().copy()
        entries[f"targets/{key}"] = model._target_Qs_params.data[tuple(key.split("."))].numpy().copy()
    observation = torch.empty(4, 6, 3).normal_(generator=generator)
    action = torch.empty(3, 6, 2).uniform_(-1, 1, generator=generator)
    reward = torch.empty(3, 6, 1).normal_(generator=generator) * 5
    with torch.no_grad():
        entries["td_target"] = agent._td_target(model.encode(observation[1:], None), reward, None).numpy()
    entries |= {f"target_noise/{number}": value for number, value in enumerate(drawn.take())}
    critics = {name: value for name, value in model._Qs.named_parameters() if not value.is_meta}
    agent.optim = Kept({**named(model, TRAINED), **critics})
    agent.pi_optim = Kept(named(model, ("_pi",)))
    info = agent._update(observation, action, reward)
    entries |= {f"update_noise/{number}": value for number, value in enumerate(drawn.take())}
    entries |= {f"info/{name}": value.numpy() for name, value in info.items()}
    entries |= {"observation": observation.numpy(), "action": action.numpy(), "reward": reward.numpy()}
    entries |= {f"gradients/{name}": value for name, value in agent.optim.gradients.items()}
    entries |= {f"prior_gradients/{name}": value for name, value in agent.pi_optim.gradients.items()}
    for key, value in model._target_Qs_params.data.flatten_keys(".").items():
        entries[f"moved_targets/{key}"] = value.numpy().copy()
        model._target_Qs_params.data[tuple(key.split("."))].copy_(torch.from_numpy(entries[f"targets/{key}"]))
    for step in range(4):
        planned = agent._plan(observation[step, :1], t0=step == 0)
        entries |= {f"plan_noise/{step}/{number}": value for number, value in enumerate(drawn.take())}
        entries |= {f"planned/{step}": planned.numpy(), f"plan/{step}": agent._prev_mean.numpy().copy()}
    np.savez_compressed(OUT, **entries)
    print(f"{OUT}: {len(entries)} arrays")


if __name__ == "__main__":
    main(sys.argv[1])
