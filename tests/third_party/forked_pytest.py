"""Runs pytest in forks of one process, which has imported torch: that takes longer than the tests.

Each line of the input is a JSON list of two folders: one of packages, and one with the file `test_it.py`.
"""

from __future__ import annotations

import json
import os
import sys

import pytest
import tensordict  # noqa: F401

for line in sys.stdin:
    packages, folder = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        with open("output", "w") as output:
            os.dup2(output.fileno(), 1)
        sys.path.append(packages)
        os.environ["PYTHONPATH"] = packages  # of the processes that tests start
        code = pytest.main(["-q", "-k", "not preset", "test_it.py"])
        sys.stdout.flush()
        os._exit(code)
    os.waitpid(child, 0)
    print(flush=True)
