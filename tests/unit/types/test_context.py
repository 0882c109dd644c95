"""What a component may ask for while it is built."""

from __future__ import annotations

import pytest
import torch

from rlcore import ConfigError, Context, Progress
from rlcore.types import RunInfo


def context(seed=1, **parts):
    return Context(RunInfo("run", seed, 100), torch.device("cpu"), Progress(100), "hook", "mine", parts)


def test_seeds_differ_by_run_kind_name_and_purpose_and_nothing_else():
    base = context()
    others = [context(2), base.for_component("loss", "mine"), base.for_component("hook", "other")]
    seeds = [each.seed() for each in (base, *others)] + [base.seed("purpose")]
    assert len(set(seeds)) == 5
    assert context().seed() == base.seed()
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_generators_are_a_components_own():
    first, second = context().generator("a"), context().generator("a")
    torch.manual_seed(0)
    assert torch.equal(torch.rand(5, generator=first), torch.rand(5, generator=second))
    assert context().numpy_generator().random() == context().numpy_generator().random()
    assert context().generator("b").initial_seed() != context().generator("a").initial_seed()


def test_a_part_that_is_not_built_is_named_with_what_there_is():
    with pytest.raises(ConfigError, match=r"hook 'mine' asks for the buffer, which is not built; there is: env, model"):
        _ = context(env=1, model=2).buffer
    assert context(env=1).env == 1
    assert context().estimator is None


def test_what_is_built_has_two_names_and_no_further_copies():
    base = context(env=1)
    base.built["model"] = 2
    assert base.parts is base.built
    assert base.for_component("loss", "mine").model == 2
