"""ClearCudaCache counts its calls and clears at each interval."""

import pytest
import torch

from rlcore import ClearCudaCache, HookError


@pytest.fixture
def cleared(monkeypatch):
    """The calls of the one function that the hook is there to call; there may be no CUDA where this runs."""
    calls = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append(True))
    return calls


def test_every_interval_th_call_clears(cleared):
    hook = ClearCudaCache(3)
    seen = []
    for _ in range(7):
        hook()
        seen.append(len(cleared))
    assert seen == [0, 0, 1, 1, 1, 2, 2]


def test_the_count_goes_on_after_a_resume(cleared):
    hook, resumed = ClearCudaCache(3), ClearCudaCache(3)
    hook()
    hook()
    resumed.load_state_dict(hook.state_dict())
    resumed()
    assert len(cleared) == 1


def test_it_is_called_once_per_iteration(batch, make_trainer):
    hook = ClearCudaCache(2)
    trainer = make_trainer([batch(4), batch(4)], optim_steps_per_batch=5)
    hook.register(trainer)
    trainer.train()
    assert hook.count == 2
    assert trainer.state_dict()["clear_cuda_cache"] == {"count": 2}


def test_an_interval_that_is_not_positive_is_refused():
    with pytest.raises(HookError, match="interval = 0"):
        ClearCudaCache(0)
