"""A pickle is read as records, and nothing of it runs."""

import pickle

import numpy as np
import pytest
from rlcore_plugin_import.pickle_records import Name, Record, read_records
from rlcore_plugin_import.pickled_arrays import NUMPY_NAMES, array_of

from rlcore.errors import StorageError

VALUES = [None, True, False, 0, 255, -70_000, 2**80, 1.5, "text", b"bytes", (), (1,), (1, 2, 3, 4), [1, [2]], {"a": {}}]


def read(data, *allowed):
    return read_records(data, (*NUMPY_NAMES, *allowed), "the file")


@pytest.mark.parametrize("protocol", range(3, 6))
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_plain_values(value, protocol):
    assert read(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(3, 6))
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "u1", "b1", ">f8"])
def test_arrays(dtype, protocol):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    for one in (array, array.T, array[0, 0]):
        read_one = array_of(read(pickle.dumps(one, protocol)), "it")
        assert np.array_equal(read_one, one)
        assert read_one.dtype == np.dtype(dtype).newbyteorder("=")


def test_a_name_is_noted_and_not_imported():
    assert read(b"cno_such_package\nName\n.", "no_such_package.Name") == Name("no_such_package.Name")


def test_an_object_is_noted_and_not_made():
    record = read(b"cpackage\nKind\n(I1\ntR}Va\nI2\nsb.", "package.Kind")
    assert isinstance(record, Record)
    assert (record.made_by.text, record.arguments, record.fields) == ("package.Kind", (1,), {"a": 2})


@pytest.mark.parametrize(
    "data",
    [
        b"cos\nsystem\n(S'true'\ntR.",  # a function of the system
        b"\x80\x04\x8c\x02os\x8c\x06system\x93.",
        b"(S'true'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'true'\no.",  # OBJ
        b"\x80\x02\x82\x01.",  # EXT1
        b"Pid\n.",  # PERSID
        b"I1\nQ.",  # BINPERSID
        b"I1\n)R.",  # a call of no name
        b"I1\n}b.",  # a state for no object
        b"R.",
        b"t.",
        b"h\x05.",
        b"0.",
        b"I1\n",
        b"I1\nI2\n.",
        b".",
        b"",
        b"\xff",
        b"](I1\nu.",
    ],
)
def test_everything_else_is_refused(data):
    with pytest.raises(StorageError):
        read(data)


def test_an_endless_pickle_is_refused(monkeypatch):
    monkeypatch.setattr("rlcore_plugin_import.pickle_records._MOST_OPERATIONS", 10)
    with pytest.raises(StorageError, match="more than 10 operations"):
        read(b"]" * 20 + b".")


@pytest.mark.parametrize("shape", [(3,), (-1,), (2, 2), ("a",), (10**12,)])
def test_an_array_whose_bytes_are_not_those_of_its_shape(shape):
    dtype = Record(Name("numpy.dtype"), ("f8", False, True))
    record = Record(Name("numpy._core.multiarray._reconstruct"), (), (1, shape, dtype, False, bytes(16)))
    with pytest.raises(StorageError):
        array_of(record, "it")


def test_an_array_of_objects_is_refused():
    with pytest.raises(StorageError):
        array_of(read(pickle.dumps(np.array([None, 1], dtype=object), 4)), "it")
