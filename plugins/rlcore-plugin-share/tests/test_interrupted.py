"""A push and a pull that are cut off leave nothing that looks complete, and go on from there when they run again."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from io import BytesIO

import pytest
from rlcore_plugin_share.manifest import MANIFEST, UNFINISHED, Entry, Manifest
from rlcore_plugin_share.places.base import FilesPlace
from rlcore_plugin_share.pulling import pull

from rlcore.errors import StorageError


class CutOffError(Exception):
    """In the place of a kill."""


class Memory(FilesPlace):
    """A place in memory, which is cut off after so many steps: a file is written in two."""

    def __init__(self):
        super().__init__("memory")
        self.content, self.steps, self.written = {}, 10**9, []

    def step(self):
        self.steps -= 1
        if self.steps < 0:
            raise CutOffError

    @contextmanager
    def open(self, name, begin=0):
        if name not in self.content:
            raise FileNotFoundError(name)
        yield BytesIO(self.content[name][begin:])

    def sizes(self):
        return {name: len(raw) for name, raw in self.content.items()}

    def put(self, name, pieces):
        self.step()
        raw = b"".join(pieces)
        self.content[name] = raw[: len(raw) // 2]
        self.step()
        self.content[name] = raw
        self.written.append(name)

    def remove(self, name):
        self.step()
        del self.content[name]


def pushed(folder, **texts):
    """A manifest of CSV files beside a config, and where they are."""
    files = {"config.toml": b"", "run_id": b"", **{f"{name}.csv": text.encode() for name, text in texts.items()}}
    sources = {}
    for name, raw in files.items():
        sources[name] = folder / f"{hashlib.sha256(raw).hexdigest()[:8]}-{name}"
        sources[name].write_bytes(raw)
    entries = {name: Entry(len(raw), hashlib.sha256(raw).hexdigest()) for name, raw in files.items()}
    return Manifest("run", "m", "0", entries), sources


def check(place, *manifests):
    """What is complete at the place is one of the manifests, with every file."""
    try:
        complete = place.manifest()
    except StorageError:  # half written, which nobody takes for complete
        return None
    if complete is not None:
        assert complete in manifests
        for name, entry in complete.files.items():
            assert hashlib.sha256(place.content[name]).hexdigest() == entry.sha256
    return complete


def test_a_push_that_is_cut_off_at_any_step_is_whole_or_nothing_and_goes_on(tmp_path):
    old = pushed(tmp_path, same="stays", changed="old!", gone="goes")
    new = pushed(tmp_path, same="stays", changed="new!", more="comes")
    other = pushed(tmp_path, same="stays", changed="else", more="comes")
    steps, cut = 0, True
    while cut:
        place = Memory()
        place.publish(*old, False)
        place.steps, cut = steps, False
        try:
            place.publish(*new, True)
        except CutOffError:
            cut = True
        check(place, old[0], new[0])
        for manifest, sources in (other, new):  # what is pushed may have changed in between
            place.steps = 10**9
            place.publish(manifest, sources, True)
            assert check(place, manifest) == manifest
            assert set(place.content) == {*manifest.files, MANIFEST}
        steps += 1
    assert steps >= 15
    assert place.publish(*new, False) == []


def test_a_push_again_transfers_what_is_missing_alone(tmp_path):
    manifest, sources = pushed(tmp_path, a="first", b="second", c="third")
    place = Memory()
    place.steps = 7  # the unfinished manifest, and two of the five files
    with pytest.raises(CutOffError):
        place.publish(manifest, sources, False)
    place.steps = 10**9
    place.written.clear()
    assert place.publish(manifest, sources, False) == ["c.csv", "config.toml", "run_id"]
    assert place.written == [UNFINISHED, "c.csv", "config.toml", "run_id", MANIFEST]


def test_a_push_again_puts_back_what_was_taken_away_or_cut_there(tmp_path):
    manifest, sources = pushed(tmp_path, a="first", b="second", c="third")
    place = Memory()
    place.publish(manifest, sources, False)
    del place.content["a.csv"]
    place.content["b.csv"] = b"sec"
    assert place.publish(manifest, sources, False) == ["a.csv", "b.csv"]
    assert check(place, manifest) == manifest


def test_a_file_that_changes_while_it_is_pushed_is_not_published(tmp_path):
    manifest, sources = pushed(tmp_path, a="first")
    sources["a.csv"].write_text("other")
    place = Memory()
    with pytest.raises(StorageError, match=r"a\.csv has changed while it was pushed"):
        place.publish(manifest, sources, False)
    assert place.manifest() is None


def test_a_pull_goes_on_in_the_middle_of_a_file(source, cli, tmp_path, content):
    assert cli("push", source, tmp_path / "there").code == 0
    assert cli("pull", tmp_path / "there", tmp_path / "once").code == 0
    whole = content(tmp_path / "once")
    partial = tmp_path / ".twice.pulling"
    (partial / "checkpoints").mkdir(parents=True)
    (partial / "config.toml").write_bytes(whole["config.toml"])
    (partial / "metrics.csv").write_bytes(b"damaged")
    (partial / "stranger.csv").write_bytes(b"of another pull")
    (partial / "checkpoints" / "latest").symlink_to("/etc/passwd")
    name = max((name for name in whole if name.startswith("checkpoints/")), key=lambda name: len(whole[name]))
    part = partial / f".part-{hashlib.sha256(whole[name]).hexdigest()}"
    part.write_bytes(whole[name][:1000])
    with pytest.raises(StorageError, match="is a link"):
        pull(str(tmp_path / "there"), tmp_path / "twice", 10**9)
    (partial / "checkpoints" / "latest").unlink()
    done = pull(str(tmp_path / "there"), tmp_path / "twice", 10**9)
    assert content(tmp_path / "twice") == whole
    assert "config.toml" not in done.new
    assert not partial.exists()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_a_push_and_a_pull_that_are_killed_again_and_again_arrive(source, tmp_path, scheme, content):
    if scheme:
        pytest.importorskip("fsspec")
    for number in range(12):
        (source / f"big-{number}.csv").write_bytes(os.urandom(1 << 20))
    there, here = tmp_path / "there", tmp_path / "here"

    def killed(arrived, *arguments):
        """Run a command, and kill it once a condition holds; return whether it was killed before its end."""
        process = subprocess.Popen([sys.executable, "-m", "rlcore", *map(str, arguments)], stdout=subprocess.DEVNULL)
        while process.poll() is None and not arrived():
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL

    def count(folder):
        return sum(1 for path in folder.rglob("*") if path.is_file())

    kills = 0
    for wanted in (1, 4, 10):
        kills += killed(lambda wanted=wanted: count(there) >= wanted, "push", source, f"{scheme}{there}")
        if not (there / MANIFEST).exists():
            with pytest.raises((Exception,), match="holds nothing that is complete"):
                pull(f"{scheme}{there}", here, 10**9)
    kept = {path: path.stat().st_mtime_ns for path in there.glob("big-*.csv") if path.stat().st_size == 1 << 20}
    assert kills >= 2
    assert kept
    command = [sys.executable, "-m", "rlcore"]
    subprocess.run([*command, "push", source, f"{scheme}{there}"], check=True)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    partial = tmp_path / ".here.pulling"
    kills = 0
    for wanted in (2, 8):
        kills += killed(lambda wanted=wanted: count(partial) >= wanted, "pull", f"{scheme}{there}", here)
        assert here.exists() != partial.exists()
    assert kills
    if not here.exists():
        subprocess.run([*command, "pull", f"{scheme}{there}", here], check=True)
    pushed_files, pulled_files = content(there), content(here)
    assert pulled_files == {name: raw for name, raw in pushed_files.items() if name != "report.html"}
    assert {name: raw for name, raw in content(source).items() if name in pushed_files}.items() <= pushed_files.items()
    assert list(there.rglob(".*")) == []
