"""The contracts of the plugin and of its checkpointer, and metadata that were tampered with."""

import json

import pytest
import torch
from rlcore_plugin_testing.contracts import CheckpointerContract, PluginContract

from rlcore.errors import StorageError


class TestPlugin(PluginContract):
    plugin = "dcp"


class TestDcp(CheckpointerContract):
    use = "dcp"

    def test_metadata_of_another_checkpoint_is_refused(self, tmp_path):
        self.backend().save(tmp_path, {"a": torch.ones(3)})
        before = (tmp_path / "metadata.json").read_text()
        wrong = {
            "shape": [[5], [-1], [3.0], None, [2**62, 4]],
            "dtype": ["float99", "float64", "save", None],
            "chunks": [None, {}, [None], [], 3],
        }
        wrong_chunk = {
            "offsets": [[1], [-1], [0.0], [], [0, 0], None],
            "shape": [[2], [4], [-3], [3.0], None, [3, 1]],
            "file": ["1.bin", "../0.bin", "/dev/zero", "metadata.json", "", None, 3],
            "offset": [4, -1, 0.0, None, 2**70],
            "size": [8, 16, 12.5, None],
        }
        for entry, values, of_chunk in (
            *((entry, values, False) for entry, values in wrong.items()),
            *((entry, values, True) for entry, values in wrong_chunk.items()),
        ):
            for value in values:
                content = json.loads(before)
                (content["a"]["chunks"][0] if of_chunk else content["a"])[entry] = value
                (tmp_path / "metadata.json").write_text(json.dumps(content))
                with pytest.raises(StorageError):
                    self.backend().load(tmp_path)
                with pytest.raises(StorageError):
                    self.backend().load_into(tmp_path, {"a": torch.zeros(3)})
        content = json.loads(before)
        content["a"] = {"dtype": "float32", "shape": [6], "chunks": [content["a"]["chunks"][0]] * 2}
        (tmp_path / "metadata.json").write_text(json.dumps(content))
        with pytest.raises(StorageError, match="names more bytes"):
            self.backend().load(tmp_path)
        (tmp_path / "metadata.json").write_text(before)
        assert self.backend().load(tmp_path)["a"].tolist() == [1, 1, 1]
