"""The recurrent state-space model: a deterministic state, categorical latents, and how both go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from rlcore_plugin_dreamer.categorical import mixed, one_hot, probabilities, sample, straight_through
from rlcore_plugin_dreamer.layers import EPS, BlockLinear, NormedLayer, hidden_layers, linear
from rlcore_plugin_dreamer.sizes import Widths


class Arranged(NamedTuple):
    """Weights as the steps of a sequence take them, laid out once for all of them.

    Attributes:
        own: of what each block alone sees, `[block, input, output]`.
        shared: of what all blocks see, `[input, block * output]`; it goes through one product, repeated for none.
        of_deter: of the posterior, for the deterministic state, `[deter, hidden]`.
        of_tokens: of the posterior, for the tokens, `[hidden, token]`.
    """

    own: Tensor
    shared: Tensor
    of_deter: Tensor
    of_tokens: Tensor


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
    """

    latent: Latent
    posterior: Tensor


# takes what `RSSM.observe_steps` takes, and returns what it returns
ObserveSteps: TypeAlias = Callable[..., tuple[Tensor, Tensor, Tensor]]

# steps of one call at most: calls of compiled functions cost time, and long ones take long to compile
_AT_ONCE: Final = 6


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

    def latent(self, deter: Tensor, index: Tensor) -> Latent:
        """Return the state of a deterministic part and of classes `[..., latent]`; a class of -1 gives zeros alone."""
        return Latent(deter, one_hot(index, self.classes).to(deter.dtype).flatten(-2))

    def arranged(self) -> Arranged:
        """Return the weights as steps take them."""
        block, layer = self.deter // self._blocks, self.posterior_hidden
        own, shared = torch.split(self.mix.weight, [block, self.mix.weight.shape[1] - block], 1)
        weight = layer.linear.weight
        of_deter, of_tokens = torch.split(weight, [self.deter, weight.shape[1] - self.deter], 1)
        return Arranged(own, shared.transpose(0, 1).flatten(1), of_deter.t(), of_tokens)

    def transition(self, arranged: Arranged, deter: Tensor, stoch: Tensor, action: Tensor) -> Tensor:
        """Return the deterministic states that follow, `[row, deter]`.

        Args:
            arranged: weights.
            deter: deterministic states.
            stoch: latents.
            action: encoded.
        """
        blocks = (self._blocks, self.deter // self._blocks)
        columns = torch.unflatten(deter, -1, blocks).transpose(0, 1)
        seen = torch.cat([self.of_deter(deter), self.of_stoch(stoch), action], -1)
        mixed_rows = torch.addmm(self.mix.bias.flatten(), seen, arranged.shared)
        mixed_rows = mixed_rows + torch.bmm(columns, arranged.own).transpose(0, 1).flatten(1)
        hidden = functional.silu(self.mix_norm(mixed_rows))
        hidden = torch.unflatten(hidden, -1, blocks).transpose(0, 1)
        reset, new, update = torch.baddbmm(self.gates.bias, hidden, self.gates.weight).chunk(3, -1)
        following = torch.lerp(columns, torch.tanh(reset.sigmoid() * new), (update - 1).sigmoid())
        return following.transpose(0, 1).flatten(1)

    def encoded_action(self, action: Tensor) -> Tensor:
        """Return what the transition takes of actions `[..., action]`, numbers beyond 1 cut to 1."""
        return self.of_action(action / action.detach().abs().clamp(min=1))  # type: ignore[no-any-return]

    def prior(self, deter: Tensor) -> Tensor:
        """Return log-probabilities `[..., latent, class]` of the latents by the deterministic state alone."""
        return mixed(self._prior_logits(deter), self._unimix)

    def predicted(self, deter: Tensor, uniform: Tensor) -> Tensor:
        """Return one-hot latents `[row, latent * class]` sampled from the prior, without gradient.

        Args:
            deter: deterministic states, `[row, deter]`.
            uniform: numbers in [0, 1), `[row, latent]`.
        """
        index = sample(probabilities(self._prior_logits(deter), self._unimix), uniform)
        return self.latent(deter, index).stoch

    def prepared(self, arranged: Arranged, tokens: Tensor) -> Tensor:
        """Return what the posterior takes of tokens `[..., token]`, for all times at once."""
        return functional.linear(tokens, arranged.of_tokens, self.posterior_hidden.linear.bias)

    def posterior(self, arranged: Arranged, deter: Tensor, prepared: Tensor) -> Tensor:
        """Return log-probabilities `[row, latent, class]` of the latents by the state and prepared tokens."""
        hidden = self.posterior_hidden.activated(torch.addmm(prepared, deter, arranged.of_deter))
        return mixed(self._by_latent(self.posterior_logits(hidden)), self._unimix)

    def observe_steps(
        self,
        arranged: Arranged,
        deter: Tensor,
        stoch: Tensor,
        keep: Tensor,
        action: Tensor,
        prepared: Tensor,
        uniform: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the states after a few observations and the log-probabilities of their latents, `[time, row, ...]`.

        Args:
            arranged: weights.
            deter: deterministic states before them, `[row, deter]`.
            stoch: latents before them.
            keep: 1; or 0 where an observation begins an episode, `[time, row, 1]`.
            action: encoded, that led to each.
            prepared: of its tokens.
            uniform: numbers in [0, 1), `[time, row, latent]`.
        """
        deters, stochs, posteriors = [], [], []
        for its_keep, its_action, its_prepared, its_uniform in zip(
            keep.unbind(), action.unbind(), prepared.unbind(), uniform.unbind(), strict=True
        ):
            deter = self.transition(arranged, deter * its_keep, stoch * its_keep, its_action)
            log_probs = self.posterior(arranged, deter, its_prepared)
            stoch = self.sampled(log_probs, its_uniform)
            deters.append(deter)
            stochs.append(stoch)
            posteriors.append(log_probs)
        return torch.stack(deters), torch.stack(stochs), torch.stack(posteriors)

    def observe(
        self,
        tokens: Tensor,
        action: Tensor,
        first: Tensor,
        begin: Latent,
        uniform: Tensor,
        steps: ObserveSteps | None = None,
    ) -> Observed:
        """Infer the states of sequences.

        Args:
            tokens: encoded observations, `[time, sequence, token]`.
            action: that led to each, `[time, sequence, action]`.
            first: which observations begin an episode, `[time, sequence, 1]`.
            begin: the state before the first observation, `[sequence, ...]`.
            uniform: numbers in [0, 1), `[time, sequence, latent]`.
            steps: what `observe_steps` computes; None for itself.
        """
        steps, arranged, going = steps or self.observe_steps, self.arranged(), first.logical_not()
        prepared, from_action = self.prepared(arranged, tokens), self.encoded_action(torch.where(first, 0, action))
        deter, stoch = begin.deter.contiguous(), begin.stoch.contiguous()  # as those of all further steps
        # all calls have equally many steps: each other number would be compiled too
        times = len(tokens)
        at_once = max(count for count in range(1, _AT_ONCE + 1) if times % count == 0)
        # split at once: the gradient of a single part would fill those of all others with zeros, in each step
        parts = (torch.split(part, at_once) for part in (going.to(deter.dtype), from_action, prepared, uniform))
        results = []
        for of_steps in zip(*parts, strict=True):
            states = steps(arranged, deter, stoch, *of_steps)
            deter, stoch = states[0][-1], states[1][-1]
            results.append(states)
        deters, stochs, posteriors = map(torch.cat, zip(*results, strict=True))
        return Observed(Latent(deters, stochs), posteriors)

    def sampled(self, log_probs: Tensor, uniform: Tensor) -> Tensor:
        """Return one-hot latents `[..., latent * class]`, with the gradient of their probabilities."""
        probs = log_probs.exp()
        return straight_through(sample(probs.detach(), uniform), probs).flatten(-2)

    def _prior_logits(self, deter: Tensor) -> Tensor:
        return self._by_latent(self.prior_logits(self.prior_hidden(deter)))

    def _by_latent(self, logits: Tensor) -> Tensor:
        return torch.unflatten(logits, -1, (self.latents, self.classes))
