"""`rlcore ckpt`: what it says about the checkpoints of a real run, and what it removes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rlcore_plugin_testing.faults.bits import flipped_bits, forge

from rlcore.files.lock import Lock

RUN = Path("runs/tiny")
CHECKPOINTS = RUN / "checkpoints"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run with four checkpoints, made once; torch is not needed for what is tested here."""
    from rlcore_plugin_testing import make_run

    folder = tmp_path_factory.mktemp("finished")
    make_run("run.name=tiny", "checkpoint.every=16", "checkpoint.keep_last=10", folder=folder).trainer.train()
    return folder / "tiny"


@pytest.fixture
def names(workdir, finished):
    """Names of the checkpoints of a copy of it, oldest first."""
    shutil.copytree(finished, RUN)
    found = sorted(path.name for path in CHECKPOINTS.glob("[0-9]*"))
    assert [name[:12] for name in found] == [f"{frames:012d}" for frames in (0, 16, 32, 48, 64)]
    return found


def test_a_run_keeps_the_first_of_every_so_many_frames(tmp_path):
    from rlcore_plugin_testing import make_run

    keys = ("checkpoint.every=16", "checkpoint.keep_last=1", "checkpoint.keep_best=false", "checkpoint.keep_every=24")
    make_run("run.name=spaced", *keys, folder=tmp_path).trainer.train()
    assert sorted(int(path.name[:12]) for path in tmp_path.glob("spaced/checkpoints/[0-9]*")) == [32, 48, 64]


def test_list_shows_the_newest_first_and_which_is_the_best(cli, names):
    outcome = cli("ckpt", "list", RUN)
    lines = outcome.out.splitlines()
    assert outcome.code == 0
    assert lines[0].split() == ["frames", "checkpoint", "size", "evaluation", "exact", "back", "end", "age"]
    assert [line.split()[1] for line in lines[1:]] == names[::-1]
    assert lines[1].split()[0] == "64"
    assert "newest" in lines[1]
    assert sum("best" in line for line in lines) == 1
    rows = json.loads(cli("ckpt", "list", RUN, "--json").out)["data"]["checkpoints"]
    assert [row["now"] for row in rows] == [64, 48, 32, 16, 0]
    files = [file for file in (CHECKPOINTS / names[-1]).iterdir() if file.name != "manifest.json"]
    assert rows[0]["size"] == sum(file.stat().st_size for file in files)
    assert (rows[0]["exact"], rows[0]["backend"], rows[0]["marks"][0]) == (True, "toy", "newest")
    evaluated = {row["now"]: row["evaluation"] for row in rows if row["evaluation"] is not None}
    assert set(evaluated) == {32, 64}


def test_verify_says_that_all_are_whole(cli, names):
    outcome = cli("ckpt", "verify", RUN)
    assert (outcome.code, outcome.out.count("whole ")) == (0, 5)


@pytest.mark.parametrize("file", ["tensors.bin", "index.json", "state.json", "manifest.json"])
def test_verify_names_the_damaged_file_and_fails(cli, names, file):
    for _ in flipped_bits(CHECKPOINTS / names[2] / file, most=2):
        outcome = cli("ckpt", "verify", RUN)
        assert outcome.code == 5
        (line,) = [line for line in outcome.out.splitlines() if line.startswith("DAMAGED")]
        assert names[2] in line
        assert file in line
        assert outcome.out.count("whole ") == 4
        assert cli("ckpt", "verify", RUN, names[2]).code == 5
        assert cli("ckpt", "verify", RUN, names[3]).code == 0
    assert cli("ckpt", "verify", RUN).code == 0


def test_verify_mentions_files_that_are_not_its_own(cli, names):
    (CHECKPOINTS / names[0] / "notes.txt").write_text("mine")
    outcome = cli("ckpt", "verify", RUN, "0")
    assert outcome.code == 0
    assert "files that are not its own: notes.txt" in outcome.out


def test_show_says_what_the_manifest_says(cli, names):
    manifest = json.loads((CHECKPOINTS / names[-1] / "manifest.json").read_text())
    outcome = cli("ckpt", "show", RUN)
    assert outcome.code == 0
    assert "frames 64" in outcome.out
    assert manifest["digest"] in outcome.out
    for name, digest in manifest["digests"].items():
        (line,) = [line for line in outcome.out.splitlines() if digest in line]
        assert line.split()[:2] == [name, manifest["owners"][name] or "-"]
    for file in manifest["files"].values():
        assert file["xxh3"] in outcome.out
    assert json.loads(cli("ckpt", "show", RUN, "16", "--json").out)["data"]["manifest"]["progress"]["frames"] == 16


def test_show_gives_the_reasons_why_a_checkpoint_is_not_exact(cli, names):
    forge(CHECKPOINTS / names[-1], exact=False, inexact=["the env has no state"])
    out = cli("ckpt", "show", RUN, names[-1][:14]).out
    assert "exact       no" in out
    assert "because the env has no state" in out


def test_names_that_fit_none_or_several_are_refused(cli, names):
    assert cli("ckpt", "show", RUN, "99").code == 2
    (CHECKPOINTS / "000000000016-zzzzzz").mkdir()
    for wanted in ("16", "000000000016"):
        outcome = cli("ckpt", "show", RUN, wanted)
        assert outcome.code == 2
        assert f"several checkpoints match '{wanted}'" in outcome.err
        assert names[1] in outcome.err
    assert cli("ckpt", "show", RUN, names[1][:15]).code == 0


def test_prune_keeps_the_newest_and_the_best(cli, names):
    best = next(
        row["id"]
        for row in json.loads(cli("ckpt", "list", RUN, "--json").out)["data"]["checkpoints"]
        if "best" in row["marks"]
    )
    kept = sorted({names[-1], best})
    outcome = cli("ckpt", "prune", RUN, "--keep-last", 1, "--dry-run")
    assert (outcome.code, outcome.out.count("would remove")) == (0, 5 - len(kept))
    assert len(list(CHECKPOINTS.glob("[0-9]*"))) == 5
    outcome = cli("ckpt", "prune", RUN, "--keep-last", 1)
    assert (outcome.code, outcome.out.count("removed")) == (0, 5 - len(kept))
    assert sorted(path.name for path in CHECKPOINTS.glob("[0-9]*")) == kept
    assert not list(CHECKPOINTS.glob(".*"))


def test_prune_does_not_count_damaged_ones_and_leaves_them(cli, names):
    for name in names[2:]:
        (CHECKPOINTS / name / "tensors.bin").write_bytes(b"")
    outcome = cli("ckpt", "prune", RUN, "--keep-last", 1)
    assert outcome.code == 5
    assert outcome.err.count("is damaged: 'tensors.bin'") == 3
    assert sorted(path.name for path in CHECKPOINTS.glob("[0-9]*")) == names[1:], "the latest whole one is kept"


def test_prune_waits_for_nobody_and_touches_no_running_run(cli, names):
    code = (
        "import sys, time; from pathlib import Path; from rlcore.files.lock import Lock\n"
        "lock = Lock(Path(sys.argv[1]))\n"
        "print('locked', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(RUN)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"locked\n"
        outcome = cli("ckpt", "prune", RUN, "--keep-last", 1)
        holder.kill()
    assert outcome.code == 2
    assert f"is in use by process {holder.pid}" in outcome.err
    assert len(list(CHECKPOINTS.glob("[0-9]*"))) == 5
    assert cli("ckpt", "prune", RUN, "--keep-last", 1).code == 0
    Lock(RUN).release()


def test_what_is_not_a_run_is_refused(cli, workdir):
    assert cli("ckpt", "list", "nowhere").code == 2
    RUN.mkdir(parents=True)
    (RUN / "config.toml").write_text("")
    assert cli("ckpt", "list", RUN).code == 5
    CHECKPOINTS.mkdir()
    assert cli("ckpt", "list", RUN).code == 0
    assert cli("ckpt", "verify", RUN).code == 5
    assert cli("ckpt", "show", RUN).code == 5


def test_codes_for_the_terminal_are_not_obeyed(cli, names):
    forge(CHECKPOINTS / names[-1], backend="\x1b[31mred\x07", exact=False, inexact=["\x1b]0;title\x07"])
    (CHECKPOINTS / "99-\x1b[2J").mkdir()
    for command in ("list", "show", "verify", "prune"):
        outcome = cli("ckpt", command, RUN)
        assert "\x1b" not in outcome.out + outcome.err
        assert "\x07" not in outcome.out + outcome.err


def test_looking_at_checkpoints_needs_no_torch(names):
    code = (
        "import sys; from rlcore.cli.command_line import main\n"
        "codes = [main(['ckpt', action, sys.argv[1]]) for action in ('list', 'verify', 'show', 'prune')]\n"
        "assert codes == [0] * 4, codes\n"
        "heavy = {'torch', 'numpy', 'tensordict', 'gymnasium'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code, str(RUN)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
