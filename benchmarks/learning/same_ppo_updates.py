"""Whether PPO's advantages and updates are Stable-Baselines3's, on MinAtar's Breakout: same weights, same batches.

A run of examples/ppo-minatar-breakout.toml writes down its first weights, each batch, the rows of each minibatch, and
the weights that its updates left. Stable-Baselines3 begins from the same weights and takes the same batches: values,
log-probabilities and advantages are its own, and its own `train` updates on the same minibatches. Lines say how far the
advantages are apart in each iteration, and how far the weights ended apart as a fraction of how far they moved.
Sooner or later rounding decides whether a unit is active for a sample, and from then on the two part.

    python benchmarks/learning/same_ppo_updates.py --peers-python .venv-peers/bin/python
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from written_updates import Pair, begin_alike, compare, print_apart

ROOT = Path(__file__).resolve().parents[2]
KEYS = ("observation", "action", ("next", "observation"), ("next", "reward"), ("next", "done"), "advantage")
SAMPLES, EPOCHS = 1024, 4  # of an iteration of the example
FRAMES = 1_000_000  # of its learning rate
PARTS = {  # of the model here, and of the policy there
    "actor.network.encoder.convolutions.0": "features_extractor.layers.0",
    "actor.network.encoder.linear.1": "features_extractor.layers.3",
    "actor.network.head.layers.0": "action_net",
    "critic.head.layers.0": "value_net",
}


def make_notes() -> Any:
    """Return a hook that notes batches, and which of their rows each minibatch has."""
    from rlcore import hookimpl

    class Notes:
        def __init__(self) -> None:
            self.batches: list[dict[Any, Tensor]] = []
            self.minibatches: list[Tensor] = []

        @hookimpl
        def batch_process(self, batch: Any) -> Any:
            return batch.set("row", torch.arange(batch.numel()).reshape(*batch.batch_size, 1))

        @hookimpl
        def process_optim_batch(self, minibatch: Any) -> None:
            self.minibatches.append(minibatch["row"].flatten().clone())

        @hookimpl
        def post_steps(self, batch: Any) -> None:  # the estimator has written its advantages
            self.batches.append({key: batch[key].clone() for key in KEYS})

    return Notes()


def train_here(iterations: int) -> dict[str, Any]:
    """Return the weights before and after so many iterations, their batches and minibatches."""
    from rlcore import build, load_config

    notes = make_notes()
    changes = ["run.device='cpu'", "run.threads=1", f"evaluator.every={FRAMES}", "hook=[]", "logger=[]"]
    config = load_config(ROOT / "examples" / "ppo-minatar-breakout.toml", changes)
    trainer = build(config, write=False, hooks=[notes]).trainer
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    trainer.stop_at = iterations * SAMPLES
    trainer.train()
    after = dict(trainer.model.state_dict())
    return {"before": before, "after": after, "batches": notes.batches, "minibatches": notes.minibatches}


def pairs(weights: dict[str, Tensor], policy: Any) -> Iterator[Pair]:
    """Return the part, our weight and theirs, for each weight and bias."""
    for ours, theirs in PARTS.items():
        for name, value in policy.get_submodule(theirs).named_parameters():
            yield theirs, weights[f"{ours}.{name}"], value


@torch.no_grad()
def fill(buffer: Any, policy: Any, batch: dict[Any, Tensor], ended: Tensor) -> Tensor:
    """Fill the rollout buffer of Stable-Baselines3, and return which envs ended an episode in the last step."""
    observation, action, following, reward, done = (batch[key].transpose(0, 1) for key in KEYS[:5])
    steps, envs = action.shape
    images, last = (each.float().movedim(-1, -3) for each in (observation, following[-1]))
    value, log_prob, _ = policy.evaluate_actions(images.flatten(0, 1), action.flatten())
    buffer.reset()
    buffer.observations[:], buffer.actions[:, :, 0], buffer.rewards[:] = images, action, reward[..., 0]
    buffer.values[:], buffer.log_probs[:] = value.reshape(steps, envs), log_prob.reshape(steps, envs)
    buffer.episode_starts[:] = torch.cat([ended[None], done[:-1, :, 0]])
    buffer.pos, buffer.full = steps, True
    buffer.compute_returns_and_advantage(policy.predict_values(last), done[-1, :, 0].numpy())
    return done[-1, :, 0]


def train_peer(written: dict[str, Any]) -> None:
    """Take the same updates with Stable-Baselines3, and print how the two compare."""
    from sb3_minatar import NETWORK, SETTINGS, make_game
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import DummyVecEnv

    use, num_envs, settings = SETTINGS["ppo"]
    envs = DummyVecEnv([partial(make_game, "Breakout")] * num_envs)
    model = use("CnnPolicy", envs, policy_kwargs=NETWORK, device="cpu", seed=1, **settings)
    model.set_logger(configure(None, []))
    both, buffer = partial(pairs, policy=model.policy), model.rollout_buffer
    begin_alike(written, both)
    minibatches = iter(written["minibatches"])
    each_epoch = len(written["minibatches"]) // len(written["batches"]) // EPOCHS
    arrange = buffer.get

    def same_minibatches(size: int) -> Iterator[Any]:
        next(arrange(size))  # lays the samples out as ours are: env by env
        for _ in range(each_epoch):
            yield buffer._get_samples(next(minibatches).numpy())

    buffer.get = same_minibatches
    ended = torch.zeros(num_envs, dtype=torch.bool)
    for number, batch in enumerate(written["batches"]):
        ended = fill(buffer, model.policy, batch, ended)
        theirs = torch.as_tensor(buffer.advantages).T
        apart = (batch["advantage"][..., 0] - theirs).abs().max().item()
        print(f"iteration {number + 1}: advantages apart {apart:.1e}, of {theirs.abs().max().item():.2f} at most")
        model._current_progress_remaining = 1 - number * SAMPLES / FRAMES  # here a rate is that of the batch's begin
        model.train()
    print_apart("ppo", written, both)


def main() -> None:
    """Train here, and compare in the interpreter of the peers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=4, help="of 16 updates each")
    compare(parser, lambda args: train_here(args.iterations), lambda args, written: train_peer(written))


if __name__ == "__main__":
    main()
