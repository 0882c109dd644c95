"""Runs the faults against every system and writes the table.

    python benchmarks/faults/table.py --peers-python .venv-peers/bin/python

Each system's script runs in its own environment and can be run alone: `python benchmarks/faults/sb3_faults.py --rows
kill nan` prints a JSON line per row.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rows import ROWS

HERE = Path(__file__).resolve().parent
RESULTS = HERE.parent / "results"
STORAGE = ("control", "kill", "resume", "bitflip", "cut", "diskfull", "filelimit")
FORMAT = ("control", "bitflip", "cut")
# name in the JSON lines, heading, script, rows that differ from those of the column before
SYSTEMS = (
    ("rlcore", "rlcore", "rlcore_faults.py", tuple(ROWS)),
    ("sb3", "Stable-Baselines3", "sb3_faults.py", tuple(ROWS)),
    ("torchrl", "TorchRL, one file", "torchrl_faults.py", tuple(ROWS)),
    ("torchrl-archive", "TorchRL, `Checkpoint` archive", "torchrl_faults.py", STORAGE),
    ("torchrl-directory", "TorchRL, `Checkpoint` directory", "torchrl_faults.py", FORMAT),
)
SYSTEM_DEADLINE = 900

TITLES = {
    "control": "no fault (control)",
    "kill": "SIGKILL at a random moment, saving every 64 frames; {kill} kills",
    "resume": "train 1,024, new process, train 1,024 more, against 2,048: weights to the bit; {resume} seeds",
    "bitflip": "one random bit of the checkpoint flipped, then loaded; {bitflip} flips",
    "cut": "biggest file of the checkpoint 1 KiB shorter, then loaded; each of the biggest where several are equal",
    "diskfull": "disk full, half a checkpoint free; 1 trial",
    "filelimit": "writing fails halfway through a checkpoint (limit on the size of files); 1 trial",
    "sigterm": "SIGTERM, checkpoints 4,096 frames apart; 1 trial",
    "nan": "one NaN reward at frame 7,000, checkpoints 256 apart; 1 trial",
    "hang": "env hangs at frame 7,000, checkpoints 4,096 apart; 40 s deadline for the run; 1 trial",
    "logger": "logger raises from frame 768 on, checkpoints 512 apart; 4,096 frames; 1 trial",
    "envraise": "env raises at frame 7,000, checkpoints 4,096 apart, resumed without the fault; 1 trial",
}

NOTES = """\
PPO on CartPole-v1: one env, 256 frames per batch (64 in the first row of faults), minibatches of 64, one epoch, actor
and critic of 2 x 256, CPU, one thread. The row `no fault` is the run of the NaN, hang and raise rows without a fault.
"Frame N of M" is the frame of the latest checkpoint that loads and how far the run was, counted at the last whole
iteration, for Stable-Baselines3 at the last whole rollout, which is also where its callback saves. "Behind" counts in
the same way. How many kills hit a save depends on the machine and its load, and so differs from run to run.

- rlcore: `rlcore train CONFIG` with defaults but for intervals, `--resume RUN` to go on; loading is
  `build(config, resume=True)`, as `--resume` does it. A damaged checkpoint is skipped and the one before is taken; in
  the rows of the flipped bit and the cut file there is only one. `[run] hang_after = 5` in the row of the hanging env
  (default: 60 s). After an error rlcore saves the latest copy of its state that it holds in memory; how old that is
  depends on the speed of the run, so those frames differ from run to run.
- Stable-Baselines3: `CheckpointCallback(save_freq=interval)` during `learn`, `model.save` after it, each into a file of
  its own; loading is `PPO.load` of the latest file, then `learn(reset_num_timesteps=False)`. In the row of the logger,
  `Logger(output_formats=[...])` with a `KVWriter`. A script may catch signals and errors and call `model.save`; this
  one does not.
- TorchRL, one file: `PPOTrainer(save_trainer_file=..., save_trainer_interval=interval - 1)` with `CKPT_BACKEND=torch`,
  loaded with `trainer.load_from_file`, seed given to the trainer. The library announces that this format goes.
- TorchRL, `Checkpoint`: `Checkpoint(format=..., rng=GlobalRNGState())` and `CheckpointRotation(keep_last=2)`, same
  loading. `directory` is the default format. Only rows on storage; the others do not depend on the format. It holds the
  policy three times (of the collector, the loss module and the policy), and the one loaded last counts, so that damage
  to another does no harm.
- The full disk is a `tmpfs`. rlcore sees before it writes that the checkpoint does not fit; in the row after it, nobody
  can see that.
- SIGKILL leaves what the system has cached, so no row says anything about a power cut.
- "Detected": loading raised, or ended the process. "Harmless": all that was loaded is the same to the bit. "Silently
  wrong": it is not, and nothing was said. What counts as loaded: for rlcore the state of every component; for
  Stable-Baselines3 policy, optimizer and timesteps; for TorchRL loss module, optimizer, collector and counters, or
  every component of the `Checkpoint`, generators and replay buffer among them.
"""


def run(python: str, system: str, script: str, rows: list[str]) -> list[dict[str, Any]]:
    """Run rows of one system and return the JSON lines."""
    command = [python, str(HERE / script), "--system", system, "--rows", *rows]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SYSTEM_DEADLINE)
        out, err = done.stdout, done.stderr
    except subprocess.TimeoutExpired as expired:
        out, err = (stream.decode() if isinstance(stream, bytes) else "" for stream in (expired.stdout, expired.stderr))
    found = [json.loads(line) for line in out.splitlines() if line.startswith('{"system"')]
    if len(found) < len(rows) + 1:
        print(f"{system}: {len(rows) + 1 - len(found)} rows are missing: {err[-800:]}", file=sys.stderr)
    for line in found:
        if "row" in line:
            print(f"  {system:<18} {line['row']:<9} {line['took_s']:>6.1f} s  {line['cell']}", flush=True)
    return found


def table(lines: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    cells = {(line["system"], line["row"]): line for line in lines if "row" in line}
    columns = [(system, heading) for system, heading, _, _ in SYSTEMS if any(key[0] == system for key in cells)]
    text = [f"| fault | {' | '.join(heading for _, heading in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for row, title in TITLES.items():
        found = {system: cells[system, row] for system, _ in columns if (system, row) in cells}
        if found:
            trials = {row: next((line["trials"] for line in found.values() if "trials" in line), "?")}
            shown = [found[system]["cell"] if system in found else "" for system, _ in columns]
            text.append(f"| {title.format(**trials)} | {' | '.join(shown)} |")
    return "\n".join(text)


def versions(lines: list[dict[str, Any]]) -> str:
    """Return the versions, each once."""
    found = {name: version for line in lines for name, version in line.get("versions", {}).items()}
    return ", ".join(f"{name} {version}" for name, version in found.items())


def main() -> None:
    """Run and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="interpreter of the peers' environment; without it only rlcore runs")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--systems", nargs="+", choices=[system[0] for system in SYSTEMS], help="default: all")
    parser.add_argument("--name", default="faults", help="name of the files under results/")
    args = parser.parse_args()
    began, lines = time.monotonic(), []
    for system, _, script, possible in SYSTEMS:
        python = sys.executable if system == "rlcore" else args.peers_python
        rows = [row for row in args.rows if row in possible]
        if python and rows and (args.systems is None or system in args.systems):
            lines += run(python, system, script, rows)
    minutes = (time.monotonic() - began) / 60
    date = datetime.date.today().isoformat()
    text = (
        f"# Faults\n\n{date}, Python {platform.python_version()}, {versions(lines)}; {os.cpu_count()} cores, "
        f"{minutes:.0f} minutes.\n\n{table(lines)}\n\n{NOTES}"
    )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{args.name}.md").write_text(text)
    (RESULTS / "rows" / f"{args.name}.json").write_text(json.dumps({"date": date, "lines": lines}, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
