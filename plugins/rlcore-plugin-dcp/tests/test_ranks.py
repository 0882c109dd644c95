"""Several ranks, each a process: what they write together is read by as many, by more, by fewer and by one alone."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rlcore_plugin_dcp.checkpointer import DcpCheckpointer
from rlcore_plugin_testing.ranks import digests, in_ranks
from rlcore_plugin_testing.small_run import make_config

from rlcore.checkpoints.manifest import scan
from rlcore.errors import StorageError
from rlcore.run.build import build

SECTIONS = {"env": {"use": "testing:toy", "num_envs": 2}, "checkpoint": {"use": "dcp", "every": 32}}
RANK = Path(__file__).with_name("rank.py")
WHOLE = {
    "rows": torch.arange(60.0).reshape(12, 5),
    "columns": torch.arange(21.0).reshape(3, 7),
    "unequal": torch.arange(5),
    "everywhere": torch.arange(4).bfloat16(),
    "plain": torch.full((2, 2), 7.0),
    "step": torch.tensor(3),
}


@pytest.fixture
def ranks(tmp_path):
    """Run so many ranks to their end, and return what they print."""

    def run(count, folder, what):
        store = tmp_path / f"{what}-{count}-{len(list(tmp_path.iterdir()))}"
        words = [sys.executable, str(RANK)]
        started = [
            subprocess.Popen(
                [*words, str(rank), str(count), str(store), str(folder), what],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(count)
        ]
        try:
            ended = [process.communicate(timeout=120) for process in started]
        finally:
            for process in started:
                process.kill()
        for process, (_, errors) in zip(started, ended, strict=True):
            assert process.returncode == 0, errors
        return [output for output, _ in ended]

    return run


def alone():
    return DcpCheckpointer(DcpCheckpointer.Config(), None)


@pytest.fixture
def folder(tmp_path):
    """Where the checkpoint goes."""
    made = tmp_path / "checkpoint"
    made.mkdir()
    return made


@pytest.mark.slow
def test_what_two_ranks_save_one_two_and_three_load(ranks, folder):
    ranks(2, folder, "save")
    assert sorted(path.name for path in folder.iterdir()) == ["0.bin", "1.bin", "metadata.json"]
    written, wanted = (path.stat().st_size for path in folder.glob("*.bin")), (t.nbytes for t in WHOLE.values())
    assert sum(written) < sum(wanted) + 64 * 9, "what is the same everywhere is written once"
    found = alone().load(folder)
    assert found.keys() == WHOLE.keys()
    assert all(torch.equal(found[name], WHOLE[name]) for name in WHOLE)
    into = {name: torch.zeros_like(tensor) for name, tensor in WHOLE.items()}
    alone().load_into(folder, into)
    assert all(torch.equal(into[name], WHOLE[name]) for name in WHOLE)
    ranks(3, folder, "load")


@pytest.mark.slow
def test_what_two_ranks_save_two_load(ranks, folder):
    ranks(2, folder, "save")
    ranks(2, folder, "load")


@pytest.mark.slow
def test_what_one_process_saves_two_ranks_load(ranks, folder):
    alone().save(folder, WHOLE)
    ranks(2, folder, "load")


@pytest.mark.slow
def test_every_rank_is_told_when_one_cannot_write(ranks, folder):
    (folder / "1.bin").mkdir()
    outputs = ranks(2, folder, "fail")
    assert all("the save of several ranks" in output and "rank 1: " in output for output in outputs)
    assert all("Is a directory" in output for output in outputs)
    with pytest.raises(StorageError):
        alone().load(folder)


@pytest.mark.slow
def test_every_rank_is_told_when_the_files_are_damaged(ranks, folder):
    ranks(2, folder, "save")
    (folder / "1.bin").write_bytes(b"")
    outputs = ranks(2, folder, "damaged")
    assert all(f"in {folder} failed" in output or f"files of {folder}" in output for output in outputs)


def test_of_ranks_that_train_together_the_first_saves_alone_though_a_process_group_is_there(ranks, folder):
    ranks(2, folder, "first")
    assert sorted(path.name for path in folder.iterdir()) == ["0.bin", "metadata.json"]
    assert alone().load(folder)["step"] == 3


def test_ranks_that_train_together_go_on_from_it_to_the_bits_of_ranks_that_use_another(tmp_path):
    def train(name, use, stop=None):
        overrides = ["ranks.count=2", f"run.name={name}", f"checkpoint.use={use}", "run.total_frames=64"]
        config = make_config(*overrides, folder=tmp_path, sections=SECTIONS)
        resume = config.run.place.exists()
        config.run.place.mkdir(exist_ok=True)

        def rank(group):
            run = build(config, group=group, resume=resume)
            run.trainer.stop_at = stop or 64
            run.trainer.train()

        in_ranks(2, rank)
        return scan(config.run.place / "checkpoints").entries[-1].manifest

    train("parts", "dcp", stop=32)
    assert train("parts", "dcp")["progress"]["frames"] == 64
    train("whole", "torch")
    parts, whole = digests(tmp_path / "parts"), digests(tmp_path / "whole")
    assert {"model", "rank-1/buffer"} <= set(parts)
    assert parts == whole
