"""Seconds of the processor of an update and a planned step of the authors' TD-MPC2, at its own sizes; one JSON line.

`--source` is the folder `tdmpc2` of a checkout of github.com/nicklashansen/tdmpc2. Its constructor wants a GPU, and so
does the Adam that it asks for; everything else is its own: `_update`, with the step of the optimizers and of the
targets, and `_plan`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import torch

CONFIG = {
    "obs": "state",
    "obs_shape": {"state": (3,)},
    "action_dim": 1,
    "multitask": False,
    "task_dim": 0,
    "latent_dim": 512,
    "enc_dim": 256,
    "mlp_dim": 512,
    "num_enc_layers": 2,
    "num_q": 5,
    "dropout": 0.01,
    "simnorm_dim": 8,
    "num_bins": 101,
    "vmin": -10,
    "vmax": 10,
    "bin_size": 0.2,
    "log_std_min": -10.0,
    "log_std_max": 2.0,
    "horizon": 3,
    "batch_size": 256,
    "rho": 0.5,
    "consistency_coef": 20,
    "reward_coef": 0.1,
    "value_coef": 0.1,
    "entropy_coef": 1e-4,
    "grad_clip_norm": 20,
    "tau": 0.01,
    "iterations": 6,
    "num_samples": 512,
    "num_elites": 64,
    "num_pi_trajs": 24,
    "min_std": 0.05,
    "max_std": 2,
    "temperature": 0.5,
    "lr": 3e-4,
    "enc_lr_scale": 0.3,
}


def agent_of(source: str) -> Any:
    """Return the agent on the CPU."""
    sys.path.insert(0, source)
    import tdmpc2
    from common.scale import RunningScale

    agent = tdmpc2.TDMPC2.__new__(tdmpc2.TDMPC2)
    torch.nn.Module.__init__(agent)
    config = agent.cfg = SimpleNamespace(**CONFIG)
    agent.device = torch.device("cpu")
    model = agent.model = tdmpc2.WorldModel(config)
    groups = [
        {"params": model._encoder.parameters(), "lr": config.lr * config.enc_lr_scale},
        {"params": model._dynamics.parameters()},
        {"params": model._reward.parameters()},
        {"params": [value for value in model._Qs.parameters() if not value.is_meta]},
    ]
    agent.optim = torch.optim.Adam(groups, lr=config.lr)
    agent.pi_optim = torch.optim.Adam(model._pi.parameters(), lr=config.lr, eps=1e-5)
    agent.scale = RunningScale.__new__(RunningScale)
    torch.nn.Module.__init__(agent.scale)
    agent.scale.cfg, agent.scale._value = config, torch.ones(1)
    agent.scale._percentiles = torch.tensor([5.0, 95.0])
    agent.discount, agent._prev_mean = 0.975, torch.zeros(3, 1)
    model.eval()
    return agent


def main() -> None:
    """Measure and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True)
    parser.add_argument("--updates", type=int, default=10)
    parser.add_argument("--plans", type=int, default=10)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    agent = agent_of(args.source)
    update, plan = agent._update, agent._plan
    if args.compile:
        update, plan = torch.compile(update), torch.compile(plan)
    batch = torch.randn(4, 256, 3), torch.rand(3, 256, 1) * 2 - 1, torch.randn(3, 256, 1)
    for number in range(args.updates + 1):
        if number == 1:
            began = time.process_time()
        update(*batch)
    update_s = (time.process_time() - began) / args.updates
    observation = torch.zeros(1, 3)
    for number in range(args.plans + 2):  # the first step of an episode is another one
        if number == 2:
            began = time.process_time()
        plan(observation, t0=number == 0)
    plan_s = (time.process_time() - began) / args.plans
    print(json.dumps({"side": "official", "updates_per_s": 1 / update_s, "steps_per_s": 1 / plan_s}))


if __name__ == "__main__":
    main()
