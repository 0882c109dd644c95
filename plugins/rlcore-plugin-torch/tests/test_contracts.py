"""The contracts of the plugin and of its checkpointer, and files that torch itself opens."""

import json

import pytest
import torch
from rlcore_plugin_testing import difference
from rlcore_plugin_testing.contracts import CheckpointerContract, PluginContract
from rlcore_plugin_testing.contracts.checkpointer import cases

from rlcore.checkpoints.provenance import Provenance
from rlcore.checkpoints.store import Store
from rlcore.errors import StorageError
from rlcore.state.snapshot import Snapshot
from rlcore.types.progress import Progress


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
        changes = [
            *({"shape": shape} for shape in ([5], [-1], [-3], [-1, -3], [3.0], [True, 3], ["3"], 3, None, [2**62, 4])),
            *({"shape": shape} for shape in ([0], [2**62, 0], [2**40, 2**40])),
            *({"record": record} for record in ("9", "../data/0", "", None, 0, [])),
            *({"dtype": dtype} for dtype in ("float99", "float64", "save", "float16", "__doc__", None, 1)),
        ]
        for change in changes:
            (tmp_path / "tensors.json").write_text(json.dumps({"a": index["a"] | change}))
            with pytest.raises(StorageError):
                self.backend().load(tmp_path)

    @pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
    @pytest.mark.parametrize("kind", ["sparse", "quantized", "meta"])
    def test_what_it_cannot_carry_is_refused_when_saving(self, kind, tmp_path):
        """torch.save takes these, in other records than the index would say."""
        tensor = {
            "sparse": lambda: torch.eye(3).to_sparse(),
            "quantized": lambda: torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.qint8),
            "meta": lambda: torch.empty(3, device="meta"),
        }[kind]()
        with pytest.raises(StorageError, match=r"the tensor 'bad' is .*dense tensors with data only"):
            self.backend().save(tmp_path, {"good": torch.ones(2), "bad": tensor})

    def test_a_folder_without_files_is_refused_with_its_name(self, tmp_path):
        with pytest.raises((StorageError, OSError), match=tmp_path.name):
            self.backend().load(tmp_path)


def test_a_store_names_the_back_end_that_wrote_a_checkpoint(tmp_path):
    backend = TestTorch().backend()
    snapshot = Snapshot.of({"model": {"w": torch.ones(2)}}, Progress(10, frames=5))
    Store(tmp_path, backend, "torch").save(snapshot, Provenance())
    with pytest.raises(StorageError, match="CKPT_BACKEND=torch"):
        Store(tmp_path, backend, "other").load_newest()
