"""Proofs on a checkpoint: damage is found, a power cut loses nothing acknowledged, opening it runs nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.retention import Best, Latest
from rlcore.checkpoints.store import Store
from rlcore.config.sections import load_config
from rlcore.errors import StorageError
from rlcore.run.build import build
from rlcore.run.ready import Run
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.faults.bits import cut_files, flipped_bits
from rlcore_plugin_testing.faults.crash_states import CrashRecorder
from rlcore_plugin_testing.prove.table import Row

# what no checkpoint may bring about, also when something is imported late
FOREIGN: Final = ("pickle.find_class", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "socket.connect")
CODE: Final = (*FOREIGN, "exec", "compile", "import", "marshal.loads", "ctypes.dlopen")


def damage(run: Run, checkpoints: Path, scratch: Path, most: int, step: Callable[[str], Any]) -> Row:
    """Flip bits of, cut and remove the files of the latest checkpoint, and see that none of it loads."""
    claim = "damage to a checkpoint is found"
    newest, wanted = run.backend.store(checkpoints).load_newest()
    folder = scratch / "damaged"
    copy = folder / newest.path.name
    shutil.copytree(newest.path, copy)
    store = run.backend.store(folder)
    counts = {"flipped bits": 0, "truncations": 0, "missing files": 0}
    for file in sorted(copy.iterdir()):
        kinds = (
            ("flipped bits", flipped_bits(file, most)),
            ("truncations", cut_files(file, most // 2)),
            ("missing files", _without(file)),
        )
        for kind, damages in kinds:
            for what in damages:
                counts[kind] += 1
                if not _refuses(store, wanted):
                    return Row(claim, "does not hold", f"{what}: it loads, as something else than was saved")
        step("damage")
    return Row(claim, "holds", ", ".join(f"{count} {kind}" for kind, count in counts.items()))


def power_cuts(run: Run, checkpoints: Path, scratch: Path, most: int, step: Callable[[str], Any]) -> Row:
    """Save the latest checkpoint again under a recorder, and load what a power cut at any moment could leave."""
    claim = "a power cut while saving loses nothing acknowledged"
    newest, states = run.backend.store(checkpoints).load_newest()
    folder = scratch / "power"
    folder.mkdir()
    with CrashRecorder(folder) as recorder:
        for reached in (newest.reached, newest.reached + 1):
            store = run.backend.store(folder, (Latest(1), Best()))
            store.save(Snapshot.of(states, _clocks(run, reached)), Provenance())
            recorder.acknowledge(reached)
    found = list(recorder.states(most=8))
    chosen = found[:: max(1, len(found) // most)]
    place = scratch / "after-power-cut"
    for state in chosen:
        state.write(place)
        try:
            reached = run.backend.store(place).load_newest()[0].reached
        except StorageError:
            reached = -1
        shutil.rmtree(place)
        if reached < (state.acknowledged or -1):
            return Row(claim, "does not hold", f"{state.event}: {newest.unit} {state.acknowledged} is lost")
    step("power cuts")
    return Row(claim, "holds", f"{len(chosen)} states of the disk, of {len(recorder.events)} moments in two saves")


def opening(config: Path, checkpoints: Path, step: Callable[[str], Any]) -> Row:
    """Load a checkpoint in a process of its own that hears of everything that is run."""
    claim = "opening a checkpoint runs no code from it"
    code = f"import sys; from {__name__} import open_watched; open_watched(sys.argv[1], sys.argv[2])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(config), str(checkpoints)], capture_output=True, text=True, check=False
    )
    step("opening")
    if done.returncode:
        return Row(claim, "does not hold", done.stderr.strip()[-300:])
    answer = json.loads(done.stdout.splitlines()[-1])
    if answer["events"]:
        return Row(claim, "does not hold", "ran: " + ", ".join(answer["events"][:5]))
    return Row(
        claim, "holds", f"{answer['tensors']} tensors loaded under an audit hook: nothing run, unpickled, started"
    )


def open_watched(config: str, checkpoints: str) -> None:
    """Load the latest checkpoint twice, print what ran: at first what is foreign, then any code at all."""
    run = build(load_config(config), write=False)
    store = run.backend.store(Path(checkpoints))
    events: list[str] = []
    heard: Iterable[str] = FOREIGN

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        if event in heard:
            events.append(f"{event} {str(arguments)[:80]}")

    sys.addaudithook(hear)
    store.load_newest()
    heard = CODE
    _, states = store.load_newest()
    heard = ()
    tensors = Snapshot.of(states, Progress(1)).tensors
    sys.stdout.write("\n" + json.dumps({"events": events, "tensors": len(tensors)}) + "\n")


def _clocks(run: Run, reached: int) -> Progress:
    """Return the clocks of a run that is so far on its own."""
    info = run.trainer.run_info
    return Progress(info.total_frames, total_updates=info.total_updates, **{run.trainer.progress.clock: reached})


def _refuses(store: Store, wanted: Any) -> bool:
    """Return whether what is there does not load, or is unchanged in meaning."""
    try:
        _, found = store.load_newest()
    except StorageError:
        return True
    return difference(found, wanted) is None


def _without(file: Path) -> Iterator[str]:
    aside = file.parent.with_name(f".aside-{file.name}")
    file.rename(aside)
    try:
        yield f"{file.name}: missing"
    finally:
        aside.rename(file)
