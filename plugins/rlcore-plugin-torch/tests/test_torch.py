"""The torch back end: the contract of checkpointers, and files that torch itself opens."""

import json

import pytest
import torch

from rlcore.checkpoint import Store
from rlcore.errors import StorageError
from rlcore.progress import Progress
from rlcore.testing import difference, make_run
from rlcore.testing.contracts import CheckpointerContract, PluginContract
from rlcore.testing.contracts.checkpointer import cases


class TestPlugin(PluginContract):
    plugin = "torch"


class TestTorch(CheckpointerContract):
    use = "torch"

    @pytest.mark.parametrize("case", list(cases()))
    def test_torch_opens_the_file_without_its_index(self, case, tmp_path):
        tensors = cases()[case]
        self.backend().save(tmp_path, tensors)
        loaded = torch.load(tmp_path / "tensors.pt", weights_only=True)
        assert difference({name: tensor.detach() for name, tensor in tensors.items()}, loaded) is None

    def test_an_index_of_another_file_is_refused(self, tmp_path):
        self.backend().save(tmp_path, {"a": torch.ones(3)})
        index = json.loads((tmp_path / "tensors.json").read_text())
        for change in ({"shape": [5]}, {"record": "9"}, {"dtype": "float99"}, {"dtype": "float64"}, {"dtype": "save"}):
            (tmp_path / "tensors.json").write_text(json.dumps({"a": index["a"] | change}))
            with pytest.raises(StorageError):
                self.backend().load(tmp_path)

    def test_a_folder_without_files_is_refused_with_its_name(self, tmp_path):
        with pytest.raises((StorageError, OSError), match=tmp_path.name):
            self.backend().load(tmp_path)


def test_a_run_saves_with_it_and_resumes(tmp_path):
    sections = {"checkpoint": {"use": "torch", "every": 32}}
    run = make_run(folder=tmp_path, sections=sections)
    run.trainer.train()
    weights = {name: value.clone() for name, value in run.trainer.model.state_dict().items()}
    resumed = make_run("run.total_frames=96", folder=tmp_path, sections=sections, resume=True)
    assert difference(weights, dict(resumed.trainer.model.state_dict())) is None
    resumed.trainer.train()
    assert resumed.trainer.progress.frames == 96


def test_a_store_names_the_back_end_that_wrote_a_checkpoint(tmp_path):
    backend = TestTorch().backend()
    Store(tmp_path, backend, "torch").save({"model": {"w": torch.ones(2)}}, {}, Progress(10, frames=5))
    with pytest.raises(StorageError, match="CKPT_BACKEND=torch"):
        Store(tmp_path, backend, "other").load_newest()
