"""What the bits of a run depend on: the record, how two records differ, and who is asked."""

from __future__ import annotations

import platform

import pytest
import torch

from rlcore.checkpoints.provenance import Provenance
from rlcore.state.exactness import differences, domain, inexact_device, inexact_parts

CPU = torch.device("cpu")


def test_the_domain_names_what_the_bits_depend_on():
    found = domain(CPU, 3)
    assert found["threads"] == "3"
    assert found["python"] == platform.python_version()
    assert found["torch"] == torch.__version__
    assert found["device"] == "cpu"
    assert set(found) == {"python", "torch", "machine", "cpu", "threads", "device"}
    assert all(isinstance(value, str) for value in found.values())


@pytest.mark.cuda
def test_on_a_gpu_its_name_counts_too():
    found = domain(torch.device("cuda"), 1)
    assert found["device"] == torch.cuda.get_device_name()
    assert found["deterministic"] in ("True", "False")


def test_equal_records_do_not_differ():
    assert differences(domain(CPU, 1), domain(CPU, 1)) == []


def test_each_difference_is_a_reason_with_both_values():
    there, here = {"a": "1", "b": "2", "gone": "3"}, {"a": "1", "b": "5", "new": "4"}
    assert differences(there, here, "the version of ") == [
        "the version of b is 5 here, 2 in the checkpoint",
        "the version of gone is absent here, 3 in the checkpoint",
        "the version of new is 4 here, absent in the checkpoint",
    ]


class Says:
    def __init__(self, reason):
        self.reason = reason

    def inexact(self):
        return self.reason


def test_every_part_that_has_an_answer_is_asked():
    parts = {"a": Says("first"), "b": object(), "c": Says(None), "d": Says("second"), "e": Says("")}
    assert inexact_parts(parts) == ["first", "second"]


def test_a_gpu_without_deterministic_kernels_is_not_exact(monkeypatch):
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: False)
    (reason,) = inexact_device(torch.device("cuda"))
    assert "deterministic algorithms are off" in reason
    assert inexact_device(CPU) == []
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: True)
    assert inexact_device(torch.device("cuda")) == []


def test_an_apple_gpu_is_not_exact():
    assert inexact_device(torch.device("mps")) == ["device mps: torch does not promise the same bits twice there"]


def test_reasons_are_kept_once_and_in_order():
    provenance = Provenance(inexact=("b",)).with_reasons(["a", "b", "c", "a"])
    assert sorted(provenance.inexact) == ["a", "b", "c"]
    assert provenance.with_reasons([]).inexact == provenance.inexact
