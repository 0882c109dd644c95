"""Seconds that the command line takes to answer without training, and whether it imported torch."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

COMMANDS = (["--help"], ["plugins", "list"], ["config", "check", "examples/ppo-idp.toml"])
PROBE = (
    "import sys; from rlcore.cli import main\n"
    "try: main(sys.argv[1:])\n"
    "except SystemExit: pass\n"
    "sys.stderr.write(str('torch' in sys.modules or 'tensordict' in sys.modules))"
)


def main() -> None:
    """Run each command five times and print one JSON line per command."""
    for command in COMMANDS:
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            done = subprocess.run([sys.executable, "-c", PROBE, *command], capture_output=True, text=True)
            seconds.append(time.perf_counter() - began)
        heavy = done.stderr.endswith("True")
        name = " ".join(["rlcore", *command])
        print(json.dumps({"command": name, "seconds": round(statistics.median(seconds), 3), "imports_torch": heavy}))


if __name__ == "__main__":
    main()
