"""torch's compiler is imported with what needs it, and knows then all that it was to be told before."""

import subprocess
import sys

PROGRAM = """
import sys
from rlcore_plugin_testing import make_run

make_run(sections={"optimizer": [{"use": "adam", "lr": 1e-3}]}).trainer.train()
assert "torch._dynamo" not in sys.modules, "training imports the compiler"

import torch
from tensordict import base, utils

marked = [name for name in ("state_dict", "zero_grad", "add_param_group") if hasattr(torch.optim.Optimizer, name)]
methods = [vars(torch.optim.Optimizer)[name].__wrapped__ for name in marked]
assert all(vars(method)["__dynamo_disable"] is method for method in methods)

import torch._dynamo

allowed = torch._dynamo.trace_rules._allowed_callable_ids
assert id(utils._add_batch_dim_c) in allowed and id(base._foreach_copy_compiled) in allowed
assert utils._lock_warn._dynamo_marked_constant
assert not any("__dynamo_disable" in vars(method) for method in methods)
torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))]).zero_grad()
assert vars(methods[1])["__dynamo_disable"] is not methods[1]


def later(values):
    return values + 1


assert torch.compiler.allow_in_graph(later) is later and id(later) in allowed
print("right")
"""


def test_the_compiler_comes_late_and_misses_nothing():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["right"], done.stderr


def test_one_that_is_there_already_is_left_alone():
    program = "import torch._dynamo as d, torch.compiler as c; before = c.allow_in_graph; import rlcore; "
    program += "print(before is c.allow_in_graph)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "True\n"
