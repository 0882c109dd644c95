"""A file of TorchRL's tests of its trainers or helpers, run with the names of rlcore in their place.

    python tests/parity/run_torchrl_tests.py test/test_trainer.py [-k EXPRESSION]

The file is one of a checkout of pytorch/rl. Nothing but its imports is changed: a name of `torchrl.trainers` or of its
loggers that rlcore has is imported from there; one that it does not have stays TorchRL's. Printed are those names, how
many tests pass, and the reasons why others do not, each with the number of tests that it stops.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

REPLACED = ("torchrl.trainers", "torchrl.record.loggers")
ROOMS = ("rlcore", "rlcore.algorithms", "rlcore.helpers", "rlcore.loggers")
# helper modules of TorchRL's tests, and where the installed package has them
OF_TESTS = {"mocking_classes": "torchrl.testing.mocking_classes", "_utils_internal": "torchrl.testing"}


class Imports(ast.NodeTransformer):
    """Replaces imports.

    Attributes:
        kept: names that rlcore does not have, with the modules of TorchRL that they stay in.
    """

    def __init__(self) -> None:
        self.kept: list[str] = []

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.ImportFrom]:
        """Import each name from where rlcore has it."""
        module = node.module or ""
        if module.split(".")[0] in OF_TESTS:
            return [ast.ImportFrom(OF_TESTS[module.split(".")[0]], node.names, 0)]
        if not module.startswith(REPLACED):
            return [node]
        return [ast.ImportFrom(self._place(module, alias.name), [alias], 0) for alias in node.names]

    def _place(self, module: str, name: str) -> str:
        for room in ROOMS:
            if name[0] != "_" and hasattr(importlib.import_module(room), name):
                return room
        self.kept.append(f"{module}.{name}")
        return module


def rewritten(source: str) -> tuple[str, list[str]]:
    """Return the source with its imports replaced, and the names that stay TorchRL's."""
    imports = Imports()
    tree = ast.fix_missing_locations(imports.visit(ast.parse(source)))
    return ast.unparse(tree), imports.kept


def outcomes(report: Path) -> tuple[Counter[str], Counter[str]]:
    """Return how many tests passed, failed and were skipped, and how many each reason stopped."""
    counts: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        stopped = [part for part in case if part.tag in ("failure", "error", "skipped")]
        counts[stopped[0].tag if stopped else "passed"] += 1
        for part in stopped[:1]:
            reasons[re.sub(r"0x[0-9a-f]+|/\S+", "...", (part.get("message") or "").split("\n")[0])[:160]] += 1
    return counts, reasons


def main() -> int:
    """Run the file that is named, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("-k", default="")
    options = parser.parse_args()
    source, kept = rewritten(options.file.read_text())
    with tempfile.TemporaryDirectory() as folder:
        test, report = Path(folder, "test_rewritten.py"), Path(folder, "report.xml")
        test.write_text(source)
        command = [sys.executable, "-m", "pytest", "-q", "--rootdir", folder, "-p", "no:cacheprovider", "-W", "ignore"]
        subprocess.run([*command, f"--junitxml={report}", "-k", options.k, str(test)], stdout=subprocess.DEVNULL)
        counts, reasons = outcomes(report)
    print("stay TorchRL's:", ", ".join(kept) or "none")
    print(", ".join(f"{number} {kind}" for kind, number in counts.most_common()))
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
