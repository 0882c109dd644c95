"""Speed of a PPO loop written by hand: no framework, no hooks, no metrics, nothing saved.

It uses the env object, the distribution and the loss of rlcore's plugins, and is otherwise as fast as plain PyTorch and
NumPy were made to go: storage allocated once and written through views, the actor alone per step, one gather per entry
and epoch, fused Adam that clips inside its kernel, or the whole update as one compiled graph without guards.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from common import Phases, clock, peer_parser, prepare, report, whole_batches
from rlcore_config import config_for

from rlcore import build

KEYS = ("observation", "action", "sample_log_prob", "advantage", "value_target", "state_value")


class BareLoop:
    """State of the loop: the parts taken from the plugins, and arrays `[time, env, ...]`."""

    def __init__(self, args: argparse.Namespace, frames: int) -> None:
        config = config_for(args.workload, frames, args.seed, compiled=False)
        parts = build(config, write=False).trainer.parts
        context = parts.collector._context  # the only way to the very parts that the plugins built
        self.env, self.model, self.loss = context.env, context.model, context.loss
        self.transforms = context.transforms
        spec = context.env_spec
        self.envs, self.next_step = spec.num_envs, spec.reset_mode == "next_step"
        self.config = config
        self.steps = config.one("collector").config.frames_per_batch // self.envs
        self.lr = config.one("optimizer").config.lr
        self.eps = config.one("optimizer").config.eps
        self.max_norm = config.one("learner").config.max_grad_norm
        self.estimator = config.one("estimator").config
        shape = (self.steps, self.envs)
        self.observation = np.zeros((self.steps + 1, self.envs, *spec.observation_space.shape), np.float32)
        self.rows = torch.from_numpy(self.observation)[:-1].unbind(0)
        self.reward = np.zeros(shape, np.float32)
        self.terminated, self.truncated = np.zeros(shape, bool), np.zeros(shape, bool)
        self.valid = np.ones(shape, bool)
        self.ended = np.zeros(self.envs, bool)
        self.generator = torch.Generator().manual_seed(args.seed)
        self.running, self.returns = np.zeros(self.envs), []
        observation = self.env.reset(seed=args.seed)
        for transform in self.transforms:
            observation = transform.step(observation, np.ones(self.envs, bool))
        self.observation[-1] = observation

    @torch.inference_mode()
    def collect(self) -> dict[tuple[int, int], Any]:
        """Step the envs through one batch; return the last observations of episodes that ended."""
        policy, env_step = self.model.policy, self.env.step
        policy.refresh()
        self.observation[0] = self.observation[-1]
        noise = policy.draw(self.steps, self.envs, self.generator).unbind(0)
        finals, actions, outputs = {}, [], []
        for time, row in enumerate(self.rows):
            action, output = policy.act(row, noise[time])
            actions.append(action)
            outputs.append(output)
            observation, self.reward[time], self.terminated[time], self.truncated[time], final, _ = env_step(
                action.numpy()
            )
            for index, last in final.items():
                for transform in self.transforms:
                    last = transform.final(last, index)
                finals[time, index] = np.array(last)
            for transform in self.transforms:
                observation = transform.step(observation, self.ended)
            self.observation[time + 1] = observation
        with torch.inference_mode(False):
            self.action = torch.stack([action.clone() for action in actions])
        described = policy.describe(torch.stack(outputs), self.action)
        with torch.inference_mode(False):
            self.log_prob = described["sample_log_prob"].clone()
        self._finish()
        return finals

    def _finish(self) -> None:
        self.done = self.terminated | self.truncated
        if self.next_step:
            self.valid[0] = ~self.ended
            np.logical_not(self.done[:-1], out=self.valid[1:])
        for reward, done in zip(self.reward, self.done, strict=True):
            self.running += reward
            if done.any():
                self.returns += self.running[done].tolist()
                self.running[done] = 0
        self.ended = self.done[-1].copy()

    @torch.no_grad()
    def estimate(self, finals: dict[tuple[int, int], Any]) -> None:
        """Generalised advantage estimation; the critic runs once over the batch and on truncated ends."""
        value = self.model.critic(torch.from_numpy(self.observation))
        values = value.squeeze(-1).numpy()
        following = values[1:].copy()
        places = [place for place in finals if not self.terminated[place]]
        if places:
            ends = torch.from_numpy(np.stack([finals[place] for place in places]))
            following[tuple(zip(*places, strict=True))] = self.model.critic(ends).squeeze(-1).numpy()
        delta = self.reward + self.estimator.gamma * following * ~self.terminated - values[:-1]
        factor = self.estimator.gamma * self.estimator.lmbda * ~self.done
        advantage = scan(delta, factor.astype(np.float32))
        self.value = value[:-1]
        self.advantage = torch.from_numpy(advantage).unsqueeze(-1)
        self.target = self.advantage + self.value
        if self.estimator.standardise:
            self.advantage = (self.advantage - self.advantage.mean()) / self.advantage.std()

    def entries(self) -> list[torch.Tensor]:
        """Return the entries that the loss reads, `[time * env, ...]`, in the order of `KEYS`."""
        observation = torch.from_numpy(self.observation)[:-1]
        found = (observation, self.action, self.log_prob, self.advantage, self.target, self.value)
        return [entry.flatten(0, 1) for entry in found]

    def order(self, size: int) -> torch.Tensor:
        """Return the shuffled valid rows of an epoch, whole minibatches."""
        order = torch.randperm(self.steps * self.envs, generator=self.generator)
        whole = len(order) // size * size
        if self.next_step:
            order = order[torch.from_numpy(self.valid).flatten()[order]]
            if len(order) < whole:
                order = torch.cat([order, order[: whole - len(order)]])
        return order[:whole]


def scan(delta: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """Return the discounted sums along time; plain numbers where there is one env."""
    if delta.shape[1] == 1:
        running, result = 0.0, []
        for value, weight in zip(delta[::-1, 0].tolist(), factor[::-1, 0].tolist(), strict=True):
            running = value + weight * running
            result.append(running)
        return np.asarray(result[::-1], dtype=np.float32)[:, None]
    result, running = np.empty_like(delta), np.zeros_like(delta[0])
    for time in range(len(delta) - 1, -1, -1):
        running = delta[time] + factor[time] * running
        result[time] = running
    return result


def eager_update(loop: BareLoop) -> tuple[Callable[[list[torch.Tensor]], None], Callable[[float], None]]:
    """Return an update through autograd and fused Adam, and what sets its learning rate."""
    parameters = list(loop.model.parameters())
    optimizer: Any = torch.optim.Adam(parameters, lr=loop.lr, eps=loop.eps, fused=True)

    def update(tensors: list[torch.Tensor]) -> None:
        losses = loop.loss(dict(zip(KEYS, tensors, strict=True)))
        optimizer.zero_grad()
        (losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]).backward()
        norm = torch.nn.utils.get_total_norm([parameter.grad for parameter in parameters], foreach=True)
        optimizer.grad_scale = (norm / loop.max_norm).clamp_(min=1.0)
        optimizer.found_inf = norm.isfinite().logical_not_().float()
        optimizer.step()

    def set_lr(lr: float) -> None:
        optimizer.param_groups[0]["lr"] = lr

    return update, set_lr


def compiled_update(loop: BareLoop) -> tuple[Callable[[list[torch.Tensor]], None], Callable[[float], None]]:
    """Return an update compiled as one graph, and what sets its learning rate."""
    names = [name for name, _ in loop.loss.named_parameters()]
    parameters = [parameter.detach() for parameter in loop.loss.parameters()]
    first, second = ([torch.zeros_like(parameter) for parameter in parameters] for _ in range(2))
    step, lr = torch.tensor(0.0), torch.tensor(loop.lr)

    def total(values: list[torch.Tensor], tensors: list[torch.Tensor]) -> torch.Tensor:
        minibatch = dict(zip(KEYS, tensors, strict=True))
        losses = torch.func.functional_call(loop.loss, dict(zip(names, values, strict=True)), (minibatch,))
        return losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]

    def whole(tensors: list[torch.Tensor]) -> None:
        gradients = torch.func.grad(total)(parameters, tensors)
        norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
        scale = (loop.max_norm / (norm + 1e-6)).clamp(max=1.0)
        step.add_(1)
        size, correction = lr / (1 - 0.9**step), (1 - 0.999**step).sqrt()
        for parameter, gradient, one, two in zip(parameters, gradients, first, second, strict=True):
            gradient = gradient * scale
            one.lerp_(gradient, 0.1)
            two.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            parameter.sub_(size * one / (two.sqrt() / correction + loop.eps))

    options = {"cpp_wrapper": True, "guard_filter_fn": torch.compiler.skip_all_guards_unsafe}
    function = torch.compile(whole, fullgraph=True, dynamic=False, options=options)

    def update(tensors: list[torch.Tensor]) -> None:
        with torch.no_grad():
            function(tensors)

    return update, lr.fill_


def main() -> None:
    """Train and print the JSON line."""
    parser = peer_parser(__doc__)
    parser.add_argument("--compile", action="store_true", help="compile the update")
    args = parser.parse_args()
    prepare(args)
    frames = whole_batches(args_workload(args), args.frames)
    loop = BareLoop(args, frames)
    update, set_lr = (compiled_update if args.compile else eager_update)(loop)
    buffer = loop.config.one("buffer").config
    batch = loop.steps * loop.envs
    phases = Phases(batch)
    annealed = bool(loop.config.sections["scheduler"])
    for iteration in range(frames // batch):
        if annealed:
            set_lr(loop.lr * (1 - iteration * batch / frames))
        began = clock()
        finals = loop.collect()
        collected = clock()
        for epoch in range(buffer.epochs):
            if epoch == 0 or loop.estimator.every == "epoch":
                loop.estimate(finals)
            order = loop.order(buffer.minibatch_size)
            chunks = [entry[order].split(buffer.minibatch_size) for entry in loop.entries()]
            for tensors in zip(*chunks, strict=True):
                update(list(tensors))
                phases._pending += args.compile  # a compiled update calls no optimizer that could be counted
        phases.add(collected - began, clock() - collected)
    report("bare loop, compiled" if args.compile else "bare loop", args, phases, loop.returns)


def args_workload(args: argparse.Namespace) -> Any:
    """Return the workload of the flags."""
    from common import WORKLOADS

    return WORKLOADS[args.workload]


if __name__ == "__main__":
    main()
