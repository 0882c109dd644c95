"""What the steppers of named trainers refuse; the bits that they train to are compared in tests/parity."""

import pytest
import torch

from rlcore.algorithms import TD3OptimizationStepper
from rlcore.errors import StorageError


def test_a_state_of_other_parameters_is_refused_and_nothing_is_taken_from_it():
    def stepper(size):
        made = [torch.optim.Adam([torch.nn.Parameter(torch.ones(size))]) for _ in range(2)]
        for optimizer in made:
            optimizer.param_groups[0]["params"][0].sum().backward()
            optimizer.step()
        return TD3OptimizationStepper(*made)

    other, mine = stepper(3), stepper(2)
    other.calls = 5
    with pytest.raises(StorageError, match=r"exp_avg of parameter 0 is \[2\].* here, \[3\]"):
        mine.load_state_dict(other.state_dict())
    assert mine.calls == 0
