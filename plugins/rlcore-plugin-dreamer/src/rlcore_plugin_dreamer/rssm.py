"""The recurrent state-space model: a deterministic state, categorical latents, and how both go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from rlcore_plugin_dreamer.categorical import mixed, sample, straight_through
from rlcore_plugin_dreamer.layers import EPS, BlockLinear, NormedLayer, hidden_layers, linear
from rlcore_plugin_dreamer.sizes import Widths

Transition = Callable[[Tensor, Tensor, Tensor], Tensor]


class Latent(NamedTuple):
    """A state of the model.

    Attributes:
        deter: the deterministic part, `[..., deter]`.
        stoch: one-hot latents side by side, `[..., latent * class]`.
    """

    deter: Tensor
    stoch: Tensor

    def features(self) -> Tensor:
        """Return both side by side, as heads take them, `[..., deter + latent * class]`."""
        return torch.cat(self, -1)


class Observed(NamedTuple):
    """The states of sequences that were observed.

    Attributes:
        latent: `[time, sequence, ...]`.
        posterior: log-probabilities of the latents given the observation, `[time, sequence, latent, class]`.
        prior: those without it.
    """

    latent: Latent
    posterior: Tensor
    prior: Tensor


class RSSM(nn.Module):
    """Predicts latents from what was before, and infers them from observations (Hafner et al., 2025, equation 3).

    The deterministic state is that of a GRU in blocks: each block sees its own part of the state, and all see what the
    latents, the action and the whole state give.

    Args:
        widths: of its layers.
        actions: how many numbers an action is.
        tokens: how many an encoded observation is.
        unimix: the share of the uniform distribution in that of a latent.
        generator: samples the weights.
    """

    def __init__(self, widths: Widths, actions: int, tokens: int, unimix: float, generator: torch.Generator) -> None:
        super().__init__()
        deter, hidden, self._blocks = widths.deter, widths.hidden, widths.blocks
        self._unimix = unimix
        self.latents, self.classes = widths.latents, widths.classes
        self.deter, self.stoch = deter, widths.latents * widths.classes
        self.of_deter = NormedLayer(deter, hidden, generator)
        self.of_stoch = NormedLayer(self.stoch, hidden, generator)
        self.of_action = NormedLayer(actions, hidden, generator)
        block = deter // self._blocks
        self.mix = BlockLinear(self._blocks, block + 3 * hidden, block, generator)
        self.mix_norm = nn.RMSNorm(deter, EPS)
        self.gates = BlockLinear(self._blocks, block, 3 * block, generator)
        self.prior_hidden = hidden_layers(deter, [hidden, hidden], generator)
        self.prior_logits = linear(hidden, self.stoch, generator)
        self.posterior_hidden = NormedLayer(deter + tokens, hidden, generator)
        self.posterior_logits = linear(hidden, self.stoch, generator)

    def initial(self, rows: int) -> Latent:
        """Return the state before an episode: zeros, without a class."""
        zeros = self.of_deter.linear.weight.detach().new_zeros
        return Latent(zeros(rows, self.deter), zeros(rows, self.stoch))

    def transition(self) -> Transition:
        """Return the map of a deterministic state, latents and an encoded action to the next deterministic state.

        The weights are arranged once, for all steps of a sequence. What all blocks see goes through one product: it is
        not repeated for each of them.
        """
        blocks, block = self._blocks, self.deter // self._blocks
        own, shared = torch.split(self.mix.weight, [block, self.mix.weight.shape[1] - block], 1)
        shared = shared.transpose(0, 1).flatten(1)  # [input, block * output]
        bias, (gate_weight, gate_bias) = self.mix.bias.flatten(), (self.gates.weight, self.gates.bias)

        def step(deter: Tensor, stoch: Tensor, action: Tensor) -> Tensor:
            columns = torch.unflatten(deter, -1, (blocks, block)).transpose(0, 1)
            seen = torch.cat([self.of_deter(deter), self.of_stoch(stoch), action], -1)
            mixed_rows = torch.addmm(bias, seen, shared) + torch.bmm(columns, own).transpose(0, 1).flatten(1)
            hidden = functional.silu(self.mix_norm(mixed_rows))
            hidden = torch.unflatten(hidden, -1, (blocks, block)).transpose(0, 1)
            reset, new, update = torch.baddbmm(gate_bias, hidden, gate_weight).chunk(3, -1)
            following = torch.lerp(columns, torch.tanh(reset.sigmoid() * new), (update - 1).sigmoid())
            return following.transpose(0, 1).flatten(1)

        return step

    def encoded_action(self, action: Tensor) -> Tensor:
        """Return what the transition takes of actions `[..., action]`, numbers beyond 1 cut to 1."""
        return self.of_action(action / action.detach().abs().clamp(min=1))  # type: ignore[no-any-return]

    def prior(self, deter: Tensor) -> Tensor:
        """Return log-probabilities `[..., latent, class]` of the latents by the deterministic state alone."""
        return self._mixed(self.prior_logits(self.prior_hidden(deter)))

    def posterior(self) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]:
        """Return the two halves of the posterior: of tokens for all times at once, and of a state with the first half.

        The second returns log-probabilities `[row, latent, class]`.
        """
        layer = self.posterior_hidden
        of_deter, of_tokens = torch.split(
            layer.linear.weight, [self.deter, layer.linear.weight.shape[1] - self.deter], 1
        )
        bias, turned = layer.linear.bias, of_deter.t()

        def prepared(tokens: Tensor) -> Tensor:
            return functional.linear(tokens, of_tokens, bias)

        def log_probs(deter: Tensor, from_tokens: Tensor) -> Tensor:
            return self._mixed(self.posterior_logits(layer.activated(torch.addmm(from_tokens, deter, turned))))

        return prepared, log_probs

    def observe(self, tokens: Tensor, action: Tensor, first: Tensor, begin: Latent, uniform: Tensor) -> Observed:
        """Infer the states of sequences.

        Args:
            tokens: encoded observations, `[time, sequence, token]`.
            action: that led to each, `[time, sequence, action]`.
            first: which observations begin an episode, `[time, sequence, 1]`.
            begin: the state before the first observation, `[sequence, ...]`.
            uniform: numbers in [0, 1), `[time, sequence, latent]`.
        """
        prepare, log_probs_of = self.posterior()
        step, going = self.transition(), first.logical_not()
        from_tokens, from_action = prepare(tokens), self.encoded_action(torch.where(first, 0, action))
        deter, stoch = begin
        deters, stochs, posteriors = [], [], []
        # unbound at once: the gradient of a single row would fill those of all others with zeros, in each step
        rows = (going.to(deter.dtype).unbind(), from_action.unbind(), from_tokens.unbind(), uniform.unbind())
        for keep, of_action, of_tokens, noise in zip(*rows, strict=True):
            deter = step(deter * keep, stoch * keep, of_action)
            log_probs = log_probs_of(deter, of_tokens)
            stoch = self.sampled(log_probs, noise)
            deters.append(deter)
            stochs.append(stoch)
            posteriors.append(log_probs)
        states = Latent(torch.stack(deters), torch.stack(stochs))
        return Observed(states, torch.stack(posteriors), self.prior(states.deter))

    def sampled(self, log_probs: Tensor, uniform: Tensor) -> Tensor:
        """Return one-hot latents `[..., latent * class]`, with the gradient of their probabilities."""
        probs = log_probs.exp()
        return straight_through(sample(probs.detach(), uniform), probs).flatten(-2)

    def _mixed(self, logits: Tensor) -> Tensor:
        return mixed(torch.unflatten(logits, -1, (self.latents, self.classes)), self._unimix)
