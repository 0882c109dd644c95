"""Measures updates of FlashSAC at its published size beside a bare loop, in one process and in turns.

    OMP_NUM_THREADS=1 python benchmarks/flashsac_updates.py --rounds 3

HalfCheetah's sizes, minibatches of 512; an update of rlcore contains the draw of its minibatch. Times are seconds of
the processor, so that other work on the machine counts little; with one thread they are those of a machine of one's
own. Two updates are taken at once, of which one moves the actor.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rlcore_plugin_presets.presets import presets

import rlcore

sys.path.insert(0, str(Path(__file__).with_name("speed")))
from bare_flashsac import Updates, random_batch


def of_rlcore(folder: str, compiled: bool) -> Callable[[], None]:
    """Return what takes one update of rlcore, from a buffer with a thousand frames of HalfCheetah."""
    text = next(preset.text for preset in presets() if preset.name == "flashsac-generic")
    file = Path(folder) / "flashsac.toml"
    file.write_text(text[: text.index("[preset]")])
    sizes = ["run.total_frames=1_004", "model.random_frames=1_000", "buffer.warmup_frames=1_000", "metrics.every=1_000"]
    named = [f"run.folder='{folder}'", f"run.name='compiled-{compiled}'", f"learner.compile={str(compiled).lower()}"]
    trainer = rlcore.build(rlcore.load_config(file, ["env.id='HalfCheetah-v5'", *sizes, *named])).trainer
    trainer.train()
    learner, buffer = trainer.learner, trainer.buffer

    def update() -> None:
        learner.update(buffer.sample())
        learner.progress.updates += 1

    return update


def of_bare_loop(compiled: bool) -> Callable[[], None]:
    """Return what takes one update of the bare loop."""
    updates, generator = Updates(compiled), torch.Generator().manual_seed(0)
    batches = [random_batch(generator) for _ in range(8)]
    return lambda: updates(batches[updates.done % len(batches)])


SYSTEMS: dict[str, Callable[[str], Callable[[], None]]] = {
    "rlcore-eager": lambda folder: of_rlcore(folder, False),
    "bare-eager": lambda folder: of_bare_loop(False),
    "rlcore-compiled": lambda folder: of_rlcore(folder, True),
    "bare-compiled": lambda folder: of_bare_loop(True),
}


def main() -> None:
    """Print the seconds of an update of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=4, help="of each in a round; an even number")
    parser.add_argument(
        "--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS), help="to compile takes minutes"
    )
    args = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        systems = {name: SYSTEMS[name](folder) for name in args.systems}
        seconds: dict[str, list[float]] = {name: [] for name in systems}
        for update in systems.values():
            for _ in range(4):
                update()
        for _ in range(args.rounds):
            for name, update in systems.items():
                begun = time.process_time()
                for _ in range(args.updates):
                    update()
                seconds[name].append((time.process_time() - begun) / args.updates)
    print(f"{torch.get_num_threads()} thread(s), torch {torch.__version__}")
    for name, several in seconds.items():
        middle = statistics.median(several)
        print(f"{name}: {middle:.4f} s of the processor per update, {1 / middle:.2f} updates/s, of {sorted(several)}")


if __name__ == "__main__":
    main()
