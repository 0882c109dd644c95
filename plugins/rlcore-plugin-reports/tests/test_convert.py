"""`rlcore ckpt convert`: the same state under the same hashes, from every back end to every other."""

from __future__ import annotations

import itertools
import json
import shutil
from pathlib import Path

import pytest
import torch
from rlcore_plugin_reports.conversion import convert as convert_by
from rlcore_plugin_testing import difference, make_run
from rlcore_plugin_testing.faults.bits import flipped_bits

from rlcore.assembly.backends import open_backend
from rlcore.checkpoints.manifest import MANIFEST, read_manifest, render, scan
from rlcore.errors import ConfigError, PluginError, StorageError

BACKENDS = ("torch", "torchsnapshot", "dcp")
SAME = ("progress", "evaluation", "owners", "versions", "domain", "exact", "inexact", "sizes", "digests", "digest")
RUN = Path("runs/toy")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Back end to the folder of a run that used it."""
    made = {}
    for backend in BACKENDS:
        folder = tmp_path_factory.mktemp("finished")
        make_run(folder=folder, sections={"checkpoint": {"use": backend, "every": 32}}).trainer.train()
        made[backend] = folder / "toy"
    return made


def convert(entry, target):
    return convert_by(entry, open_backend(entry.manifest["backend"]), open_backend(target))


def newest(folder):
    return scan(folder / "checkpoints").entries[-1]


@pytest.mark.parametrize(("source", "target"), list(itertools.permutations(BACKENDS, 2)))
def test_the_hashes_stay_and_a_run_goes_on_from_it(cli, workdir, finished, source, target):
    shutil.copytree(finished[source], RUN)
    before = newest(RUN)
    outcome = cli("ckpt", "convert", RUN, "--to", target)
    assert outcome.code == 0, outcome.err
    after = newest(RUN)
    assert outcome.out == f"{before.path.name} of back end {source} is also {after.path.name} of {target}\n"
    assert (before.manifest["backend"], after.manifest["backend"]) == (source, target)
    assert {key: before.manifest[key] for key in SAME} == {key: after.manifest[key] for key in SAME}
    assert read_manifest(before.path)["id"] == before.path.name, "what it was made of is still there"
    ended = {}
    for backend, folder in ((source, finished[source].parent), (target, RUN.parent)):
        sections = {"checkpoint": {"use": backend, "every": 32}}
        place = Path("again") / backend
        shutil.copytree(folder / "toy", place / "toy")
        resumed = make_run("run.total_frames=96", folder=place, sections=sections, resume=True)
        resumed.trainer.train()
        ended[backend] = {name: value.clone() for name, value in resumed.trainer.model.state_dict().items()}
    assert difference(ended[source], ended[target]) is None


def test_what_a_script_said_besides_is_kept(workdir, finished):
    shutil.copytree(finished["torch"], RUN)
    file = newest(RUN).path / MANIFEST
    file.write_text(render(json.loads(file.read_text()) | {"metadata": {"score": 1.5}}))
    assert read_manifest(convert(newest(RUN), "dcp"))["metadata"] == {"score": 1.5}


def test_one_that_is_not_the_newest_is_converted_by_its_frame(cli, workdir, finished):
    shutil.copytree(finished["torch"], RUN)
    assert cli("ckpt", "convert", RUN, "32", "--to", "dcp").code == 0
    found = [(entry.frames, entry.manifest["backend"]) for entry in scan(RUN / "checkpoints").entries]
    assert found[-3:] == [(32, "torch"), (32, "dcp"), (64, "torch")]


def test_what_cannot_be_converted_leaves_everything_as_it_was(workdir, finished):
    shutil.copytree(finished["torch"], RUN)
    entry, before = newest(RUN), sorted((RUN / "checkpoints").iterdir())
    with pytest.raises(ConfigError, match="is of back end 'torch' already"):
        convert(entry, "torch")
    with pytest.raises((ConfigError, PluginError), match="did you mean 'torch'"):
        convert(entry, "torhc")
    for _ in flipped_bits(entry.path / "tensors.pt", most=2):
        with pytest.raises(StorageError, match="damaged"):
            convert(entry, "dcp")
    assert sorted((RUN / "checkpoints").iterdir()) == before


def test_a_back_end_that_changes_a_bit_is_not_taken(workdir, finished, monkeypatch):
    from rlcore_plugin_dcp.checkpointer import DcpCheckpointer

    save = DcpCheckpointer.save

    def careless(self, folder, tensors):
        name = next(name for name, tensor in tensors.items() if tensor.numel() and tensor.is_floating_point())
        save(self, folder, {**tensors, name: torch.zeros_like(tensors[name]) - 1})

    monkeypatch.setattr(DcpCheckpointer, "save", careless)
    shutil.copytree(finished["torch"], RUN)
    entry, before = newest(RUN), sorted(path.name for path in (RUN / "checkpoints").glob("0*"))
    with pytest.raises(StorageError, match="would come back as something else; nothing is converted"):
        convert(entry, "dcp")
    assert sorted(path.name for path in (RUN / "checkpoints").glob("0*")) == before
    assert (entry.path / MANIFEST).is_file()
