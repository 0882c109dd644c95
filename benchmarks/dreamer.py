"""Updates of DreamerV3 beside those of TorchRL's parts, of equal sizes, one side after the other in one process.

    OMP_NUM_THREADS=1 python benchmarks/dreamer.py --rounds 7 --updates 2

An update is the loss of sequences of vectors, its gradients, a step of the optimizer and of the slow critic. Both sides
have the widths of the size `1m`, 16 sequences of 64 steps, 15 imagined steps, and two numbered actions.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rlcore_plugin_dreamer.sizes import SIZES
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import Tensor, nn

SEQUENCES, STEPS, IMAGINED, VECTOR, ACTIONS = 16, 64, 15, 4, 2
BINS = 255
WIDTHS = SIZES["1m"]


def rlcore_side(compiled: bool = False) -> Callable[[], float]:
    """Return one update by rlcore's learner, eager or of compiled parts."""
    from rlcore_plugin_testing import make_trainer

    trainer = make_trainer(
        sections={
            "run": {"name": "dreamer", "seed": 1, "total_frames": 2048, "device": "cpu"},
            "env": {"use": "testing:toy", "actions": "numbered", "episode_lengths": [200]},
            "model": {"use": "dreamer", "size": "1m"},
            "loss": {"use": "dreamer", "imagination": IMAGINED},
            "estimator": [],
            "optimizer": [{"use": "dreamer:laprop"}],
            "learner": {"compile": compiled},
            "collector": {"frames_per_batch": 1024},
            "buffer": {
                "use": "replay:sequences",
                "capacity": 4096,
                "minibatch_size": SEQUENCES,
                "sequence_length": STEPS,
                "burn_in": 0,
                "n_steps": 1,
                "alpha": 0.0,
                "warmup_frames": 2048,
            },
        }
    )
    trainer.train()

    def update() -> float:
        (minibatch,) = trainer.buffer.minibatches(None)
        values = trainer.learner.update(minibatch)
        return float(values["loss_world"])

    return update


def torchrl_side() -> Callable[[], float]:
    """Return one update by TorchRL's losses and optimizer."""
    from torchrl.data import Composite, OneHot, Unbounded
    from torchrl.envs.model_based import DreamerEnv
    from torchrl.modules import (
        DreamerV3DiscreteActor,
        DreamerV3MLP,
        RSSMPosteriorV3,
        RSSMPriorV3,
        RSSMRolloutV3,
        WorldModelWrapper,
    )
    from torchrl.objectives import (
        DreamerV3ActorLoss,
        DreamerV3Loss,
        DreamerV3ModelLoss,
        DreamerV3ValueLoss,
        SoftUpdate,
    )
    from torchrl.trainers.algorithms.dreamer_v3 import DreamerV3Optimizer

    state, features = WIDTHS.latents * WIDTHS.classes, WIDTHS.latents * WIDTHS.classes + WIDTHS.deter
    prior_net = RSSMPriorV3(
        action_shape=(ACTIONS,),
        hidden_dim=WIDTHS.hidden,
        rnn_hidden_dim=WIDTHS.deter,
        num_categoricals=WIDTHS.latents,
        num_classes=WIDTHS.classes,
        action_dim=ACTIONS,
        recurrent_model="block_gru",
        num_blocks=WIDTHS.blocks,
        unimix=0.01,
    )
    posterior_net = RSSMPosteriorV3(
        hidden_dim=WIDTHS.hidden,
        rnn_hidden_dim=WIDTHS.deter,
        num_categoricals=WIDTHS.latents,
        num_classes=WIDTHS.classes,
        obs_embed_dim=WIDTHS.units,
        use_rms_norm=True,
        unimix=0.01,
    )

    def head(outputs: int, depth: int, scale: float) -> nn.Module:
        return DreamerV3MLP(features, outputs, depth=depth, num_cells=WIDTHS.units, outscale=scale)

    following = [("next", "state"), ("next", "belief")]
    prior = TensorDictModule(
        prior_net, in_keys=["state", "belief", "action"], out_keys=[("next", "prior_logits"), *following]
    )
    posterior = TensorDictModule(
        posterior_net,
        in_keys=[("next", "belief"), ("next", "encoded")],
        out_keys=[("next", "posterior_logits"), ("next", "state")],
    )
    reward_net, continue_net = head(BINS, 1, 0.0), head(1, 1, 1.0)
    encoder = DreamerV3MLP(VECTOR, None, depth=3, num_cells=WIDTHS.units)
    world_model = TensorDictSequential(
        TensorDictModule(encoder, in_keys=[("next", "observation")], out_keys=[("next", "encoded")]),
        RSSMRolloutV3(prior, posterior, reset_key="is_init"),
        TensorDictModule(head(VECTOR, 3, 1.0), in_keys=following, out_keys=[("next", "reco_pixels")]),
        TensorDictModule(reward_net, in_keys=following, out_keys=[("next", "reward_logits")]),
        TensorDictModule(continue_net, in_keys=following, out_keys=[("next", "continue_pred")]),
    )
    own = ["state", "belief"]
    bins = _symexp_bins()
    imagination = WorldModelWrapper(
        TensorDictModule(prior_net, in_keys=[*own, "action"], out_keys=["_", *own]),
        TensorDictModule(_Chain(reward_net, _Decoded(bins)), in_keys=own, out_keys=["reward"]),
    )
    env = DreamerEnv(imagination, prior_shape=(state,), belief_shape=(WIDTHS.deter,))
    env.observation_spec = Composite(state=Unbounded(state), belief=Unbounded(WIDTHS.deter))
    env.state_spec = env.observation_spec.clone()
    env.action_spec = OneHot(ACTIONS)
    env.reward_spec = Unbounded((1,))
    actor = DreamerV3DiscreteActor(features, ACTIONS, num_cells=WIDTHS.units)
    value = TensorDictSequential(
        TensorDictModule(head(BINS, 3, 0.0), in_keys=own, out_keys=["state_value_logits"]),
        TensorDictModule(_Decoded(bins), in_keys=["state_value_logits"], out_keys=["state_value"]),
    )
    model_loss = DreamerV3ModelLoss(
        world_model, lambda_continue=1.0, kl_mode="separate", unimix=0.01, detach_output=False
    )
    model_loss.set_keys(pixels="observation")
    actor_loss = DreamerV3ActorLoss(
        actor,
        value,
        env,
        continuation_model=TensorDictModule(_Chain(continue_net, nn.Sigmoid()), in_keys=own, out_keys=["continuation"]),
        imagination_horizon=IMAGINED,
        use_reinforce=True,
    )
    value_loss = DreamerV3ValueLoss(value, value_loss="two_hot", actor_loss=actor_loss, slow_critic_regularization=1.0)
    updater = SoftUpdate(value_loss, tau=0.02)
    loss = DreamerV3Loss(model_loss, actor_loss, value_loss)
    optimizer = DreamerV3Optimizer(loss.parameters())
    generator = torch.Generator().manual_seed(0)
    shape = (SEQUENCES, STEPS)
    index = torch.randint(ACTIONS, shape, generator=generator)
    sample = TensorDict(
        {
            "state": torch.zeros(*shape, state),
            "belief": torch.zeros(*shape, WIDTHS.deter),
            "action": nn.functional.one_hot(index, ACTIONS).float(),
            "is_init": torch.zeros(*shape, 1, dtype=torch.bool),
            "next": {
                "observation": torch.randn(*shape, VECTOR, generator=generator),
                "reward": torch.randn(*shape, 1, generator=generator),
                "done": torch.zeros(*shape, 1, dtype=torch.bool),
                "terminated": torch.zeros(*shape, 1, dtype=torch.bool),
            },
        },
        list(shape),
    )

    def update() -> float:
        losses = loss(sample.clone(recurse=False))
        total = sum(value for key, value in losses.items() if key.startswith("loss_"))
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        updater.step()
        return float(total.detach())

    return update


class _Chain(nn.Module):
    """A head of the two parts of a state, and what follows it."""

    def __init__(self, head: nn.Module, last: nn.Module) -> None:
        super().__init__()
        self.head, self.last = head, last

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return what the last makes of the outputs of the head."""
        return self.last(self.head(torch.cat(inputs, -1)))  # type: ignore[no-any-return]


class _Decoded(nn.Module):
    """The mean of a distribution over bins, by its logits."""

    def __init__(self, bins: Tensor) -> None:
        super().__init__()
        self.register_buffer("bins", bins)

    def forward(self, logits: Tensor) -> Tensor:
        """Return `[..., 1]`."""
        return (logits.softmax(-1) * self.bins).sum(-1, keepdim=True)


def _symexp_bins() -> Tensor:
    from rlcore_plugin_dreamer.bins import symexp_bins

    return symexp_bins(BINS)


def main() -> None:
    """Take updates of each side in turn, and print the seconds of one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=3, help="of a side in a round")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    sides = {"rlcore": rlcore_side(), "rlcore compiled": rlcore_side(compiled=True), "torchrl": torchrl_side()}
    clocks = {"wall time": time.perf_counter, "CPU time": time.process_time}
    seconds: dict[str, dict[str, list[float]]] = {clock: {name: [] for name in sides} for clock in clocks}
    for update in sides.values():
        update()
    for _ in range(arguments.rounds):
        for name, update in sides.items():
            begin = {clock: read() for clock, read in clocks.items()}
            for _ in range(arguments.updates):
                update()
            for clock, read in clocks.items():
                seconds[clock][name].append((read() - begin[clock]) / arguments.updates)
    for clock, by_side in seconds.items():
        for name, found in by_side.items():
            print(f"{name}: {statistics.median(found):.3f} s an update, {clock} ({min(found):.3f} to {max(found):.3f})")
        for name in ("rlcore", "rlcore compiled"):
            ratios = [b / a for a, b in zip(by_side[name], by_side["torchrl"], strict=True)]
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"torchrl / {name}, {clock}: {ratio}")


if __name__ == "__main__":
    main()
