"""Small runs: stopped and resumed, and compiled."""

import shutil

import pytest
import torch
from rlcore_plugin_testing import check_resumed, make_trainer

from .sections import REPLAY, around


def test_a_run_resumes_to_the_bit(tmp_path):
    check_resumed(tmp_path, sections=around(buffer={**REPLAY, "use": "replay:prioritized"}))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_the_compiled_update_is_the_eager_one():
    results = []
    for compiled in ("false", "true"):
        trainer = make_trainer(f"learner.compile={compiled}", sections=around(buffer=REPLAY))
        trainer.train()
        results.append(trainer.model.state_dict())
    for name, value in results[0].items():
        torch.testing.assert_close(results[1][name], value, atol=1e-5, rtol=1e-4)
