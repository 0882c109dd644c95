"""What a checkpoint back end must keep: tensors come back to the bit, and reading them runs no code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest
import torch
from torch import Tensor

from rlcore.errors import StorageError
from rlcore.types import Checkpointer, defines
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.contracts.base import ComponentContract
from rlcore_plugin_testing.small_run import make_run

# Loads with every lookup of a class by an unpickler forbidden, in a process of its own since hooks stay for good.
_AUDITED: Final = """
import sys
from pathlib import Path
from rlcore.types.context import Context
from rlcore.plugins.host import PluginHost

plugin, name, folder = sys.argv[1:]
host = PluginHost()
host.load(plugin)
provided = host.registry.find("checkpointer", f"{plugin}:{name}")
backend = provided.build(provided.schema().model_validate({}), Context.alone("test"))

def forbid(event, arguments):
    if event.startswith("pickle."):
        raise RuntimeError(f"{event} {arguments}: loading a checkpoint unpickles")

sys.addaudithook(forbid)
loaded = backend.load(Path(folder))
assert float(loaded["model/weight"].sum()) == 6.0, loaded
"""


def cases() -> dict[str, dict[str, Tensor]]:
    """Return named groups of tensors that a back end must be able to carry."""
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    odd = torch.tensor([float("nan"), float("inf"), -0.0, 1e-45])
    whole = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
    every = (*whole, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128)
    return {
        "nothing": {},
        "types": {f"entry/{dtype}": torch.tensor([[0, 1, 2], [3, 1, 0]]).to(dtype) for dtype in every},
        "scalars": {f"step/{dtype}": torch.tensor(1).to(dtype) for dtype in every},
        "no elements": {"a": torch.empty(0), "b": torch.empty(3, 0, dtype=torch.int64), "c": torch.ones(2)},
        "not contiguous": {"t": base.t(), "strided": base[:, ::2], "expanded": torch.tensor([7.0]).expand(5)},
        "memory formats": {"last": torch.randn(1, 3, 2, 2).to(memory_format=torch.channels_last)},
        "shared storage": {"whole": base, "row": base[1], "again": base, "column": base[:, 2]},
        "views": {"conjugate": torch.tensor([1 + 2j, 3 - 4j]).conj(), "negative": torch.tensor([1 + 2j]).conj().imag},
        "odd numbers": {"odd": odd, "bits": odd.view(torch.int32)},
        "names": {name: torch.ones(1) for name in ("a b/ü.0", "$x", "..", "a/../b", "a", "A", "x" * 300, "1", "")},
        "gradients": {"weight": torch.nn.Parameter(torch.ones(3)), "graph": torch.ones(2, requires_grad=True) * 2},
        "many": {f"layer.{number}": torch.full((2,), float(number)) for number in range(120)},
    }


class CheckpointerContract(ComponentContract):
    """Base of the tests of a checkpoint back end."""

    kind = "checkpointer"

    def backend(self) -> Any:
        """Build the back end."""
        return self.make(self.bench())

    @pytest.mark.parametrize("case", list(cases()))
    def test_tensors_come_back_to_the_bit(self, case: str, tmp_path: Path) -> None:
        """Names, types, shapes and every bit, whatever lies how in memory; read by another instance."""
        tensors = cases()[case]
        before = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        self.backend().save(tmp_path, tensors)
        loaded = dict(self.backend().load(tmp_path))
        where = difference(before, loaded)
        assert where is None, f"saved and loaded tensors differ: {where}"
        where = difference(before, {name: tensor.detach() for name, tensor in tensors.items()})
        assert where is None, f"saving changed a tensor: {where}"

    def test_loaded_tensors_can_be_written_into(self, tmp_path: Path) -> None:
        """An optimizer works on them; the files must stay what was committed."""
        self.backend().save(tmp_path, {"a": torch.ones(4), "b": torch.zeros(2)})
        loaded = self.backend().load(tmp_path)
        for tensor in loaded.values():
            tensor += 5
        again = self.backend().load(tmp_path)
        assert difference(dict(again), {"a": torch.ones(4), "b": torch.zeros(2)}) is None, "writing changed the files"

    def test_shared_storage_is_taken_apart(self, tmp_path: Path) -> None:
        """Two names are two tensors after loading."""
        base = torch.zeros(4)
        self.backend().save(tmp_path, {"a": base, "b": base})
        loaded = self.backend().load(tmp_path)
        loaded["a"].fill_(1.0)
        assert float(loaded["b"].sum()) == 0, "writing into one loaded tensor changes another"

    def test_a_small_view_does_not_save_its_whole_storage(self, tmp_path: Path) -> None:
        """One row of a large buffer is one row on disk."""
        large = torch.zeros(1_000_000)
        self.backend().save(tmp_path, {"row": large[:10]})
        size = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
        assert size < 200_000, f"ten numbers take {size} bytes on disk; copy a view before it is written"

    def test_writes_only_files_into_the_folder(self, tmp_path: Path) -> None:
        """The manifest lists plain files with their checksums."""
        folder = tmp_path / "inside"
        folder.mkdir()
        self.backend().save(folder, {"../escape": torch.ones(2), "/absolute": torch.ones(2)})
        assert [path.name for path in tmp_path.iterdir()] == ["inside"], "something was written outside of the folder"
        assert list(folder.iterdir()), "nothing was written"
        wrong = [path.name for path in folder.iterdir() if path.is_symlink() or not path.is_file()]
        assert not wrong, f"not plain files: {', '.join(wrong)}"
        taken = {"manifest.json", "state.json"} & {path.name for path in folder.iterdir()}
        assert not taken, f"the core writes {', '.join(taken)} itself"

    def test_loading_unpickles_nothing(self, tmp_path: Path) -> None:
        """A checkpoint from elsewhere must not be able to run code."""
        provided = self.provided()
        if provided.owner.distribution == "test":
            pytest.skip("the component is not installed as a plugin")
        weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.backend().save(tmp_path, {"model/weight": weight, "none": torch.empty(0)})
        arguments = [provided.owner.plugin, provided.component.name, str(tmp_path)]
        done = subprocess.run(
            [sys.executable, "-c", _AUDITED, *arguments], capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, f"loading with unpickling forbidden failed:\n{done.stderr}"

    def test_damaged_files_are_an_error_of_storage(self, tmp_path: Path) -> None:
        """The run then falls back to the checkpoint before; any other error would end it."""
        self.backend().save(tmp_path, {"a": torch.ones(50), "b": torch.zeros(3, dtype=torch.int64)})
        files = {path: path.read_bytes() for path in tmp_path.iterdir()}
        for path, content in files.items():
            for damage in (b"", content[: len(content) // 2], content[:1]):
                path.write_bytes(damage)
                self._check_refused(tmp_path, f"{path.name} cut to {len(damage)} bytes")
            path.unlink()
            self._check_refused(tmp_path, f"{path.name} missing")
            path.write_bytes(content)
        self.backend().load(tmp_path)

    @pytest.mark.parametrize("case", ["types", "scalars", "no elements", "odd numbers", "many"])
    def test_existing_tensors_are_filled(self, case: str, tmp_path: Path) -> None:
        """Only for a back end that restores in place: to the bit, and no other tensor than those."""
        backend = self.backend()
        if not defines(backend, Checkpointer.load_into):
            pytest.skip("the back end does not restore into existing tensors")
        tensors = cases()[case]
        backend.save(tmp_path, tensors)
        into = {name: torch.zeros_like(tensor) for name, tensor in list(tensors.items())[::2]}
        places = {name: tensor.data_ptr() for name, tensor in into.items()}
        backend.load_into(tmp_path, into)
        where = difference({name: tensors[name] for name in into}, into)
        assert where is None, f"saved tensors and those that were filled differ: {where}"
        assert places == {name: tensor.data_ptr() for name, tensor in into.items()}, "a tensor has other memory"
        wrong = {name: torch.zeros((*tensor.shape, 2), dtype=tensor.dtype) for name, tensor in into.items()}
        for refused in ({name: wrong[name]} for name in list(wrong)[:3]):
            with pytest.raises(StorageError):
                backend.load_into(tmp_path, refused)

    def test_a_run_saves_with_it_and_resumes(self, tmp_path: Path) -> None:
        """With one line of a config."""
        if self.provided().owner.distribution == "test":
            pytest.skip("the component is not installed as a plugin")
        sections = {"checkpoint": {"use": self.use, "every": 32}}
        run = make_run(folder=tmp_path, sections=sections)
        run.trainer.train()
        weights = {name: value.clone() for name, value in run.trainer.model.state_dict().items()}
        resumed = make_run("run.total_frames=96", folder=tmp_path, sections=sections, resume=True)
        where = difference(weights, dict(resumed.trainer.model.state_dict()))
        assert where is None, f"the weights at the end of a run, and of its resume, differ: {where}"
        resumed.trainer.train()
        assert resumed.trainer.progress.frames == 96

    def _check_refused(self, folder: Path, damage: str) -> None:
        try:
            self.backend().load(folder)
        except (StorageError, OSError):
            return
        except Exception as error:
            pytest.fail(f"with {damage}, load raises {type(error).__name__} ({error}); raise StorageError")
        pytest.fail(f"with {damage}, load returns tensors as if nothing had happened")
