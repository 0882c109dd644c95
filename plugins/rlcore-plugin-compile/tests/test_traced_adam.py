"""The step of Adam that is written out for the compiler, tried without one: it is torch's, from the first step on."""

from __future__ import annotations

import pytest
import torch
from rlcore_plugin_compile.traced_adam import TracedAdam

from rlcore.learners.gradient_step import GradientStep


@pytest.mark.parametrize("kind", ["Adam", "AdamW"])
@pytest.mark.parametrize("keys", [{}, {"betas": (0.0, 0.999)}, {"weight_decay": 0.1, "eps": 1e-5}], ids=str)
def test_its_steps_are_those_of_torch_in_double_precision(kind, keys):
    """To the rounding of its own: a bias correction taken as 1 - beta**steps would be off by 1e-5 at first."""
    generator = torch.Generator().manual_seed(0)
    exact = torch.nn.Parameter(torch.randn(64, generator=generator).double())
    rounded = torch.nn.Parameter(exact.detach().float())
    optimizer = getattr(torch.optim, kind)([rounded], lr=1.0, **keys)
    reference = getattr(torch.optim, kind)([exact], lr=1.0, **keys)
    traced = TracedAdam(GradientStep(optimizer, None, torch.device("cpu")), "adam")
    for _ in range(5):
        gradient = torch.randn(64, generator=generator)
        exact.grad = gradient.double()
        reference.step()
        traced.step([gradient], torch.zeros(()), traced.tensors())
        torch.testing.assert_close(rounded.detach().double(), exact.detach(), rtol=1e-6, atol=2e-6)
