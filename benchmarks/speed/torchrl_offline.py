"""Updates per second of TorchRL's IQL, CQL and TD3+BC losses, with its replay buffer and one Adam; one JSON line."""

from __future__ import annotations

import argparse
import json
import time

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from tensordict.nn.distributions import NormalParamExtractor
from torch import nn
from torchrl.data import Bounded, LazyTensorStorage, TensorDictReplayBuffer
from torchrl.modules import MLP, ProbabilisticActor, TanhModule, TanhNormal, ValueOperator
from torchrl.objectives import CQLLoss, IQLLoss, LossModule, SoftUpdate
from torchrl.objectives.td3_bc import TD3BCLoss

STEPS = 100_000
MINIMISED = {
    "iql": "loss_actor loss_qvalue loss_value",
    "cql": "loss_actor loss_qvalue loss_cql loss_alpha",
    "td3-bc": "loss_actor loss_qvalue",
}


def network(inputs: int, outputs: int) -> MLP:
    """Make a network with two hidden layers of 256."""
    return MLP(in_features=inputs, out_features=outputs, num_cells=[256, 256], activation_class=nn.ReLU)


def loss_of(algorithm: str, observed: int, actions: int) -> LossModule:
    """Make the loss with its networks."""
    spec = Bounded(-1.0, 1.0, (actions,))
    critic = ValueOperator(network(observed + actions, 1), in_keys=["observation", "action"])
    if algorithm == "td3-bc":
        actor = TensorDictSequential(
            TensorDictModule(network(observed, actions), in_keys=["observation"], out_keys=["action"]),
            TanhModule(in_keys=["action"], out_keys=["action"], spec=spec),
        )
        return TD3BCLoss(actor, critic, action_spec=spec, loss_function="l2")
    body = nn.Sequential(network(observed, 2 * actions), NormalParamExtractor())
    stochastic = ProbabilisticActor(
        TensorDictModule(body, in_keys=["observation"], out_keys=["loc", "scale"]),
        spec=spec,
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        return_log_prob=False,
    )
    if algorithm == "cql":
        return CQLLoss(stochastic, critic, action_spec=spec, loss_function="l2", min_q_weight=5.0, num_random=10)
    value = ValueOperator(network(observed, 1), in_keys=["observation"])
    return IQLLoss(stochastic, critic, value, loss_function="l2", temperature=3.0, expectile=0.7)


def transitions(observed: int, actions: int) -> TensorDict:
    """Return made-up transitions `[step]`."""
    nothing = torch.zeros(STEPS, 1, dtype=torch.bool)
    following = {
        "observation": torch.randn(STEPS, observed),
        "reward": torch.randn(STEPS, 1),
        "terminated": nothing,
        "done": nothing,
    }
    rows = {"observation": torch.randn(STEPS, observed), "action": torch.rand(STEPS, actions) * 1.8 - 0.9}
    return TensorDict({**rows, "next": TensorDict(following, STEPS)}, STEPS)


def main() -> None:
    """Time the updates after the first ones and print the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("algorithm", choices=list(MINIMISED))
    parser.add_argument("--sizes", type=int, nargs=2, metavar=("OBSERVED", "ACTIONS"), required=True)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--warm", type=int, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    loss = loss_of(args.algorithm, *args.sizes)
    loss.make_value_estimator(gamma=0.99)
    target = SoftUpdate(loss, tau=0.005)
    optimizer = torch.optim.Adam(loss.parameters(), 3e-4)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(STEPS), batch_size=256)
    buffer.extend(transitions(*args.sizes))
    names, began = MINIMISED[args.algorithm].split(), 0.0
    for number in range(args.warm + args.updates):
        if number == args.warm:
            began = time.perf_counter()
        losses = loss(buffer.sample())
        sum(losses[name] for name in names).backward()
        optimizer.step()
        optimizer.zero_grad()
        target.step()
    print(json.dumps({"peer": "torchrl", "updates_per_s": args.updates / (time.perf_counter() - began)}))


if __name__ == "__main__":
    main()
