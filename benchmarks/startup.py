"""Seconds that the command line takes to answer without training, and what it imported.

The last row has fifty more plugins installed, each of which would end the process if it were imported.

    python benchmarks/startup.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import RESULTS, machine

PLUGINS = 50
ROUNDS = 7
COMMANDS = (["--help"], ["plugins", "list"], ["config", "check", "examples/ppo-idp.toml"])
PROBE = (
    "import sys; from rlcore.cli.command_line import main\n"
    "try: main(sys.argv[1:])\n"
    "except SystemExit as stop: assert not stop.code, stop\n"
    "sys.stderr.write(str('torch' in sys.modules or 'tensordict' in sys.modules))"
)


def install(folder: Path) -> None:
    """Write distributions whose modules must not be imported."""
    for number in range(PLUGINS):
        name = f"rlcore_plugin_number_{number}"
        (folder / f"{name}.py").write_text("raise SystemExit('a plugin was imported that nothing named')\n")
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: rlcore>=0.1,<1\n"
        (info / "METADATA").write_text(metadata)
        (info / "entry_points.txt").write_text(f"[rlcore]\nnumber-{number} = {name}\n")


def row(command: list[str], path: str = "") -> str:
    """Return a row of the table: the median over some rounds, and whether torch was imported."""
    seconds = []
    environment = os.environ | ({"PYTHONPATH": path} if path else {})
    for _ in range(ROUNDS):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", PROBE, *command], capture_output=True, text=True, env=environment)
        seconds.append(time.perf_counter() - began)
        if done.returncode or (path and f"number-{PLUGINS - 1}" not in done.stdout):
            raise SystemExit(done.stderr)
    imported = "yes" if done.stderr.endswith("True") else "no"
    more = f", {PLUGINS} more plugins installed" if path else ""
    return f"| `rlcore {' '.join(command)}`{more} | {statistics.median(seconds):.2f} | {imported} |"


def main() -> None:
    """Print and write the table."""
    with tempfile.TemporaryDirectory() as folder:
        install(Path(folder))
        rows = [*(row(command) for command in COMMANDS), row(["plugins", "list"], folder)]
    lines = ["| command | seconds | imports torch |", "|---|---|---|", *rows]
    text = f"# Start-up\n\n{machine()}. Median of {ROUNDS}.\n\n" + "\n".join(lines) + "\n"
    (RESULTS / "startup.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
