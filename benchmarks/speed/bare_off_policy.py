"""Hand-written DQN, SAC, TD3 and REDQ: tensors, fused Adam, rows of one array; no library but torch and Gymnasium."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import torch
from off_policy import EPSILON_FRAMES, OffPolicy, Stopwatch, off_policy_parser, start
from torch import Tensor
from torch.nn import functional

Weights = list[Tensor]


def mlp(sizes: Sequence[int], copies: int | None = None) -> Weights:
    """Return weights and biases as torch makes them, for `copies` networks in one batch, or for one without."""
    lead = () if copies is None else (copies,)
    weights = []
    for inputs, outputs in itertools.pairwise(sizes):
        bound = inputs**-0.5
        bias = (outputs,) if copies is None else (copies, 1, outputs)
        weights.append(torch.empty(*lead, inputs, outputs).uniform_(-bound, bound))
        weights.append(torch.empty(bias).uniform_(-bound, bound))
    return weights


def forward(weights: Weights, x: Tensor) -> Tensor:
    """Return the outputs of a network, or `[copy, sample, ...]` of several."""
    batched = weights[0].dim() == 3
    if batched:
        x = x.expand(weights[0].shape[0], *x.shape)
    for place in range(0, len(weights), 2):
        product = torch.baddbmm if batched else torch.addmm
        x = product(weights[place + 1], x, weights[place])
        if place + 2 < len(weights):
            x = x.relu()
    return x


class Adam:
    """Adam without an optimizer: one fused kernel, or its formula where the update is compiled."""

    def __init__(self, weights: Weights, lr: float, compiled: bool) -> None:
        self.weights, self._lr, self._compiled = weights, lr, compiled
        self.raw = [weight.detach() for weight in weights]
        self._first = [torch.zeros_like(weight) for weight in self.raw]
        self._second = [torch.zeros_like(weight) for weight in self.raw]
        self._count = torch.zeros(())
        self._counts = [self._count] * len(weights)

    def minimise(self, loss: Callable[[Weights], Tensor]) -> None:
        """Take one step."""
        if not self._compiled:
            with torch.enable_grad():
                gradients = torch.autograd.grad(loss(self.weights), self.weights)
            self._count += 1
            torch._fused_adam_(
                *(self.raw, list(gradients), self._first, self._second, [], self._counts),
                **{"lr": self._lr, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8},
                **{"amsgrad": False, "maximize": False},
            )
            return
        gradients = torch.func.grad(loss)(self.raw)
        self._count.add_(1)
        first, second = 1 - 0.9**self._count, (1 - 0.999**self._count).sqrt()
        for value, gradient, mean, square in zip(self.raw, gradients, self._first, self._second, strict=True):
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            value.sub_(self._lr / first * mean / (square.sqrt() / second + 1e-8))


class Rows:
    """Transitions as rows of one array: observation, next observation, action, reward, end."""

    def __init__(self, capacity: int, observed: int, actions: int) -> None:
        self.tensor = torch.zeros(capacity, 2 * observed + actions + 2)
        self._array, self._observed, self._written = self.tensor.numpy(), observed, 0

    def write(self, observation: Any, following: Any, action: Any, reward: float, terminated: bool) -> None:
        """Write one over the oldest."""
        row, size = self._array[self._written % len(self._array)], self._observed
        row[:size], row[size : 2 * size], row[2 * size : -2] = observation, following, action
        row[-2], row[-1] = reward, terminated
        self._written += 1

    def draw(self, count: int) -> Tensor:
        """Return rows chosen at random."""
        return self.tensor.index_select(0, torch.randint(min(self._written, len(self.tensor)), (count,)))


class Control:
    """SAC with any number of critics, or TD3."""

    def __init__(self, work: OffPolicy, observed: int, actions: int, td3: bool, compiled: bool) -> None:
        self.work, self.td3, self._observed, self._actions = work, td3, observed, actions
        self._actor = mlp([observed, *work.hidden, actions if td3 else 2 * actions])
        self._critics = mlp([observed + actions, *work.hidden, 1], work.critics)
        self._alpha = [torch.zeros(1)]
        self._targets = [weight.clone() for weight in self._critics]
        self._target_actor = [weight.clone() for weight in self._actor]
        for weight in (*self._actor, *self._critics, *self._alpha):
            weight.requires_grad_(True)
        self._of_actor = Adam(self._actor, work.actor_lr, compiled)
        self._of_critics = Adam(self._critics, work.critic_lr, compiled)
        self._of_alpha = Adam(self._alpha, work.critic_lr, compiled)
        self._raw = self._of_actor.raw
        update = self._update_td3 if td3 else self._update_sac
        self._update = torch.compile(update, fullgraph=True, dynamic=False) if compiled else update

    def act(self, observation: Any) -> Any:
        """Return the action for one observation, an array."""
        seen = torch.from_numpy(observation).float()[None]
        if self.td3:
            action = forward(self._raw, seen).tanh() + 0.1 * torch.randn(1, self._actions)
            return action.clamp_(-1, 1).numpy()[0]
        mean, spread = forward(self._raw, seen).chunk(2, 1)
        return torch.tanh(mean + spread.clamp(-20, 2).exp() * torch.randn(1, self._actions)).numpy()[0]

    def update(self, rows: Tensor, number: int) -> None:
        """Take one step of everything whose turn it is."""
        noise = torch.randn(2, len(rows), self._actions)
        chosen = torch.randperm(self.work.critics)[: self.work.subset]
        with_actor = number % self.work.actor_every == 0
        self._update(rows, noise, chosen, with_actor)

    def _parts(self, rows: Tensor) -> tuple[Tensor, ...]:
        size = self._observed
        return rows[:, :size], rows[:, size : 2 * size], rows[:, 2 * size : -2], rows[:, -2], rows[:, -1]

    def _sampled(self, weights: Weights, seen: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, spread = forward(weights, seen).chunk(2, 1)
        spread = spread.clamp(-20, 2)
        action = torch.tanh(mean + spread.exp() * noise)
        log_prob = (-0.5 * noise.square() - spread - 0.9189385 - torch.log(1 - action.square() + 1e-6)).sum(1)
        return action, log_prob

    def _values(self, weights: Weights, seen: Tensor, action: Tensor) -> Tensor:
        return forward(weights, torch.cat([seen, action], 1))[..., 0]

    def _update_sac(self, rows: Tensor, noise: Tensor, chosen: Tensor, with_actor: bool) -> None:
        seen, following, action, reward, ended = self._parts(rows)
        work, alpha = self.work, self._alpha[0].detach().exp()
        fixed = self._of_critics.raw
        with torch.no_grad():
            next_action, log_prob = self._sampled(self._raw, following, noise[0])
            values = self._values(self._targets, following, next_action)
            values = values if work.subset == work.critics else values.index_select(0, chosen)
            target = reward + work.gamma * (1 - ended) * (values.amin(0) - alpha * log_prob)
        self._of_critics.minimise(lambda w: (self._values(w, seen, action) - target).square().mean(1).sum())

        def of_actor(weights: Weights) -> Tensor:
            action, log_prob = self._sampled(weights, seen, noise[1])
            values = self._values(fixed, seen, action)
            value = values.amin(0) if work.subset == work.critics else values.mean(0)
            return (alpha * log_prob - value).mean()

        with torch.no_grad():
            _, log_prob = self._sampled(self._raw, seen, noise[1])
            missing = log_prob.mean() - self._actions
        self._of_actor.minimise(of_actor)
        self._of_alpha.minimise(lambda w: (-w[0].exp() * missing).sum())
        torch._foreach_lerp_(self._targets, fixed, work.tau)

    def _update_td3(self, rows: Tensor, noise: Tensor, chosen: Tensor, with_actor: bool) -> None:
        seen, following, action, reward, ended = self._parts(rows)
        work, fixed = self.work, self._of_critics.raw
        with torch.no_grad():
            smooth = (0.2 * noise[0]).clamp(-0.5, 0.5)
            next_action = (forward(self._target_actor, following).tanh() + smooth).clamp(-1, 1)
            target = reward + work.gamma * (1 - ended) * self._values(self._targets, following, next_action).amin(0)
        self._of_critics.minimise(lambda w: (self._values(w, seen, action) - target).square().mean(1).sum())
        if with_actor:
            first = [weight[:1] for weight in fixed]
            self._of_actor.minimise(lambda w: -self._values(first, seen, forward(w, seen).tanh()).mean())
            torch._foreach_lerp_(self._targets, fixed, work.tau)
            torch._foreach_lerp_(self._target_actor, self._raw, work.tau)


def control(work: OffPolicy, args: argparse.Namespace, watch: Stopwatch) -> None:
    """Train on continuous actions, one update per frame."""
    env = gymnasium.make(work.env_id)
    observed, actions = env.observation_space.shape[0], env.action_space.shape[0]
    rows = Rows(work.capacity, observed, actions)
    learner = Control(work, observed, actions, args.workload.startswith("td3"), args.compile)
    env.action_space.seed(args.seed)
    observation, _ = env.reset(seed=args.seed)
    for frame in range(1, work.begin + (args.frames or work.frames) + 1):
        action = env.action_space.sample() if frame <= work.warmup else learner.act(observation)
        following, reward, terminated, truncated, _ = env.step(action)
        rows.write(observation, following, action, reward, terminated)
        observation = env.reset()[0] if terminated or truncated else following
        if frame > work.warmup:
            learner.update(rows.draw(work.minibatch), frame)
            watch.at(frame)


def dqn(work: OffPolicy, args: argparse.Namespace, watch: Stopwatch) -> None:
    """Train on CartPole: ten frames, one update; the target is copied every 50 updates."""
    env = gymnasium.make(work.env_id, disable_env_checker=True).unwrapped
    rows = Rows(work.capacity, 4, 1)
    weights = mlp([4, *work.hidden, 2])
    target = [weight.clone() for weight in weights]
    for weight in weights:
        weight.requires_grad_(True)
    adam = Adam(weights, work.critic_lr, args.compile)

    def update(drawn: Tensor) -> None:
        with torch.no_grad():
            value = drawn[:, 9] + work.gamma * forward(target, drawn[:, 4:8]).amax(1) * (1 - drawn[:, 10])
        action = drawn[:, 8:9].long()
        adam.minimise(lambda w: functional.mse_loss(forward(w, drawn[:, :4]).gather(1, action)[:, 0], value))

    step = torch.compile(update, fullgraph=True, dynamic=False) if args.compile else update
    total = work.begin + (args.frames or work.frames)
    generator = np.random.default_rng(args.seed)
    chances, actions = generator.random(total).tolist(), generator.integers(2, size=total).tolist()
    observation, length = env.reset(seed=args.seed)[0], 0
    for frame in range(1, total + 1):
        epsilon = max(0.05, 1 - 0.95 * frame / EPSILON_FRAMES)
        action = actions[frame - 1]
        if chances[frame - 1] >= epsilon:
            action = int(forward(adam.raw, torch.from_numpy(observation)[None]).argmax())
        following, reward, terminated, _, _ = env.step(action)
        rows.write(observation, following, action, reward, terminated)
        length += 1
        observation = following
        if terminated or length == 500:
            observation, length = env.reset()[0], 0
        if frame > work.warmup and frame % work.frames_per_update == 0:
            step(rows.draw(work.minibatch))
            if frame % 500 == 0:
                torch._foreach_copy_(target, adam.raw)
            watch.at(frame)


def main() -> None:
    args = off_policy_parser(__doc__).parse_args()
    work = start(args)
    watch = Stopwatch(work)
    with torch.no_grad():
        (dqn if args.workload == "dqn-cartpole" else control)(work, args, watch)
    watch.report("bare", args)


if __name__ == "__main__":
    main()
