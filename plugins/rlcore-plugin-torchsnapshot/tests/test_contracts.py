"""The contracts of the plugin and of its checkpointer, and folders that torchsnapshot itself opens."""

import json

import pytest
import torch
import torchsnapshot
from rlcore_plugin_testing import difference
from rlcore_plugin_testing.contracts import CheckpointerContract, PluginContract
from rlcore_plugin_testing.contracts.checkpointer import cases

from rlcore.errors import StorageError


class TestPlugin(PluginContract):
    plugin = "torchsnapshot"


class TestTorchsnapshot(CheckpointerContract):
    use = "torchsnapshot"

    @pytest.mark.parametrize("case", ["types", "not contiguous", "many", "scalars"])
    def test_torchsnapshot_opens_the_folder(self, case, tmp_path):
        tensors = cases()[case]
        self.backend().save(tmp_path, tensors)
        snapshot = torchsnapshot.Snapshot(str(tmp_path))
        for number, (name, tensor) in enumerate(tensors.items()):
            found = snapshot.read_object(f"0/tensors/{number}")
            as_bytes = tensor.is_complex() or tensor.dtype == torch.bfloat16
            wanted = tensor.reshape(-1).view(torch.uint8) if as_bytes else tensor
            assert difference(wanted, found) is None, name

    def test_an_index_of_another_snapshot_is_refused(self, tmp_path):
        self.backend().save(tmp_path, {"a": torch.ones(3)})
        for file, key, changes in (
            ("tensors.json", "a", {"shape": [[5], [-1], [3.0], None, [2**62, 4]], "entry": ["9", None, "../0"]}),
            ("tensors.json", "a", {"dtype": ["float99", "float64", "save", None]}),
            (".snapshot_metadata", "0/tensors/0", {"byte_range": [[0, 3], [-12, 0], [4, 16], [0.0, 12.0], "x"]}),
            (".snapshot_metadata", "0/tensors/0", {"location": ["../tensors.json", "/dev/zero", "", None, "tensors"]}),
            (".snapshot_metadata", "0/tensors/0", {"serializer": ["torch_save", None]}),
        ):
            before = (tmp_path / file).read_text()
            for entry, values in changes.items():
                for value in values:
                    content = json.loads(before)
                    target = content if file == "tensors.json" else content["manifest"]
                    target[key][entry] = value
                    (tmp_path / file).write_text(json.dumps(content))
                    with pytest.raises(StorageError):
                        self.backend().load(tmp_path)
                    with pytest.raises(StorageError):
                        self.backend().load_into(tmp_path, {"a": torch.zeros(3)})
            (tmp_path / file).write_text(before)
        assert self.backend().load(tmp_path)["a"].tolist() == [1, 1, 1]
