"""Makes the pictures of the README and of docs/ again: `make readme-figures`, which needs Chromium and two minutes.

The report page is that of six real runs, light and dark. The session in the terminal is real too: each command is run,
and what it printed is what is drawn.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

from jinja2 import Environment, FileSystemLoader

HERE = Path(__file__).resolve().parent
FIGURES = HERE.parent / "docs" / "figures"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = Path(sys.executable).parent / "rlcore"

SESSION = (
    "rlcore init ppo --env CartPole-v1",
    "rlcore train ppo-CartPole-v1.toml",
    "rlcore evaluate runs/ppo-CartPole-v1 --best --episodes 3",
    "rlcore report runs/ppo-CartPole-v1",
)
RATES, SEEDS = ("3e-4", "1e-3"), (1, 2, 3)
PAGE = ("run.total_frames=40000", "metrics.every=1000", "evaluator.every=4000", "evaluator.episodes=10")
# of the window in pixels, which are drawn at this scale
WIDTH, HEIGHT, SCALE = 1200, 1000, 1.5
SCHEMES = {"dark": 0, "light": 1}
MOST_BYTES = 300_000
# of a character, and of a line, in the drawing; and how many characters fit the terminal
ADVANCE, LINE, MARGIN, COLUMNS = 8.4, 20, 20, 100


def main() -> None:
    """Make all pictures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=FIGURES, help="default: docs/figures")
    output = parser.parse_args().output.resolve()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"a browser takes the pictures of the page, and none of these is installed: {', '.join(BROWSERS)}")
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [terminal(folder, output / "terminal.svg"), *pages(browser, folder, output)]
    for file in made:
        size = file.stat().st_size
        print(f"{file}: {size:,} bytes")
        if size > MOST_BYTES:
            sys.exit(f"{file} is larger than {MOST_BYTES:,} bytes")


def terminal(folder: Path, file: Path) -> Path:
    """Run the session and draw it."""
    lines = []
    for command in SESSION:
        lines.append(("command", command))
        printed = run(shlex.split(command)[1:], folder)
        lines += [("output", line.rstrip()) for line in printed.splitlines()]
        lines.append(("output", ""))
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, trim_blocks=True)
    drawn = environment.get_template("terminal.svg.jinja").render(
        lines=lines[:-1],
        width=round(max(len(text) + 2 for _, text in lines) * ADVANCE + 2 * MARGIN),
        advance=ADVANCE,
        line=LINE,
        margin=MARGIN,
    )
    file.write_text(drawn + "\n", encoding="utf-8")
    return file


def pages(browser: str, folder: Path, output: Path) -> list[Path]:
    """Train the runs, write their page, and take its picture in both colours."""
    run(["init", "ppo", "--env", "CartPole-v1", "--output", "page.toml"], folder)
    runs = []
    for rate in RATES:
        for seed in SEEDS:
            name = f"rate-{rate}-seed-{seed}"
            keys = (*PAGE, f"run.name={name}", f"run.seed={seed}", f"optimizer.0.lr={rate}")
            run(["train", "page.toml", "--quiet", *(word for key in keys for word in ("--set", key))], folder)
            runs.append(f"runs/{name}")
    run(["report", *runs, "--output", "report.html"], folder)
    return [picture(browser, folder / "report.html", scheme, output) for scheme in SCHEMES]


def picture(browser: str, page: Path, scheme: str, output: Path) -> Path:
    """Take a picture of the top of a page, in light or dark colours."""
    file = output / f"report-{scheme}.png"
    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"),
        f"--blink-settings=preferredColorScheme={SCHEMES[scheme]}",
        *(f"--window-size={WIDTH},{HEIGHT}", f"--force-device-scale-factor={SCALE}"),
        *(f"--user-data-dir={page.parent / 'profile'}", f"--screenshot={file}"),
    ]
    subprocess.run([browser, *flags, page.as_uri()], check=True, capture_output=True, timeout=120)
    return file


def run(arguments: list[str], folder: Path) -> str:
    """Run rlcore in a terminal and return what is left in it, where a bar goes when it is done."""
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [PROGRAM, *arguments], cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=end, stderr=end
    )
    os.close(end)
    printed = b"".join(iter(lambda: _read(terminal), b"")).decode()
    os.close(terminal)
    kept = [line.removesuffix("\r").rpartition("\r")[2] for line in printed.split("\n")]
    text = "\n".join(line for line in kept if line.strip())
    if process.wait():
        sys.exit(f"rlcore {shlex.join(arguments)} ended with {process.returncode}:\n{text}")
    return text


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # the other end is closed
        return b""


if __name__ == "__main__":
    main()
