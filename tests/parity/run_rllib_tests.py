"""Runs a file of RLlib's own tests on rlcore's learners: `python run_rllib_tests.py FILE`, with `ray[rllib]` installed.

Names that rlcore has too are imported from it; RLlib's examples and testing classes, which are scripts, are changed
likewise; all other names stay RLlib's. Printed is how many tests pass, and the error of each that fails.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.util
import signal
import sys
import unittest
import warnings
from importlib.machinery import ModuleSpec
from pathlib import Path

from typing_extensions import override

import rlcore

PREFIX = "rewritten "
# of a test, in seconds: one that asks for GPUs waits for ever where there are none
LIMIT = 60
# what a user would have written, and not the library
SCRIPTS = ("ray.rllib.core.testing", "ray.rllib.examples")
# scripts that a wheel of Ray is without, and what they say
NOT_SHIPPED = {"MultiAgentCartPole": ("ray.rllib.env.multi_agent_env", "make_multi_agent", "('CartPole-v1')")}


class Rewriting(ast.NodeTransformer):
    """Takes names that rlcore has from there."""

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        """Return the imports of a line, name by name."""
        if not (node.module or "").startswith("ray.rllib"):
            return [node]
        return [self.changed(node.module, alias) for alias in node.names]

    def changed(self, module: str, alias: ast.alias) -> ast.stmt:
        """Return the import of one name."""
        if hasattr(rlcore, alias.name):
            module = "rlcore"
        elif module.startswith(SCRIPTS):
            module = PREFIX + module.replace(".", "/")
        # a name that this version of RLlib has no more fails the tests that use it, and no others
        name = alias.asname or alias.name
        gone = f"{name} = _absent({module!r}, {alias.name!r})"
        if alias.name in NOT_SHIPPED:
            origin, maker, arguments = NOT_SHIPPED[alias.name]
            gone = f"from {origin} import {maker}; {name} = {maker}{arguments}"
        caught = ast.ExceptHandler(ast.Name("ImportError", ast.Load()), None, ast.parse(gone).body)
        return ast.Try([ast.ImportFrom(module, [alias], 0)], [caught], [], [])


def absent(module: str, name: str) -> type:
    """Return what stands for a name that cannot be imported: any use of it is that error."""

    def fail(*_: object, **__: object) -> None:
        raise ImportError(f"{module} has no {name}")

    return type(name, (), {"__new__": fail})


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports a script of RLlib with its imports changed."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return how to import a changed script; None for any other module."""
        if not name.startswith(PREFIX):
            return None
        origin = importlib.util.find_spec(name.removeprefix(PREFIX).replace("/", "."))
        return None if origin is None else ModuleSpec(name, self, origin=origin.origin)

    def exec_module(self, module: object) -> None:
        """Run the changed script."""
        spec = module.__spec__
        run(Path(spec.origin), vars(module))


def run(file: Path, names: dict[str, object]) -> None:
    """Run a file with its imports changed, in a namespace."""
    tree = ast.fix_missing_locations(Rewriting().visit(ast.parse(file.read_text())))
    names["_absent"] = absent
    exec(compile(tree, str(file), "exec"), names)


def on_loopback() -> None:
    """Let Ray listen on the loopback interface alone, whatever a test asks for."""
    import ray

    start = ray.init

    def init(*_: object, **__: object) -> object:
        return start(
            num_cpus=4, include_dashboard=False, object_store_memory=100_000_000, log_to_driver=False,
            _node_ip_address="127.0.0.1",
        )  # fmt: skip

    ray.init = init


class Limited(unittest.TextTestResult):
    """Ends a test that takes too long."""

    @override
    def startTest(self, test: unittest.TestCase) -> None:
        """Begin to count."""
        super().startTest(test)
        signal.signal(signal.SIGALRM, expire)
        signal.alarm(LIMIT)

    @override
    def stopTest(self, test: unittest.TestCase) -> None:
        """End to count."""
        signal.alarm(0)
        super().stopTest(test)


def expire(*_: object) -> None:
    """Raise what ends a test."""
    raise TimeoutError(f"not done after {LIMIT} s")


def main(file: str) -> int:
    """Run the tests of a file, and print how many pass; return how many do not."""
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, Finder())
    on_loopback()
    module = importlib.util.module_from_spec(ModuleSpec("theirs", None, origin=file))
    sys.modules["theirs"] = module
    run(Path(file), vars(module))
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(verbosity=0, stream=sys.stderr, resultclass=Limited).run(suite)
    failed = result.failures + result.errors
    print(f"{Path(file).name}: {result.testsRun - len(failed)} of {result.testsRun} pass")
    for test, told in failed:
        print(f"  {test.id()}: {told.strip().splitlines()[-1]}")
    return len(failed)


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1])))
