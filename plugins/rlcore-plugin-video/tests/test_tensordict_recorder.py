"""The recorder of steps: what it keeps, and that what it writes can be read without running code."""

import logging

import pytest
import torch
from rlcore_plugin_video.tensordict_recorder import TensorDictRecorder, load_tensordict
from tensordict import TensorDict

import rlcore
from rlcore import ConfigError, RlcoreError, StorageError


def step(number):
    entries = {"observation": torch.full((2, 3), float(number)), "next": {"reward": torch.full((2, 1), -float(number))}}
    return TensorDict(entries, batch_size=[2])


def recorded(recorder, count):
    for number in range(count):
        given = step(number)
        assert recorder(given) is given
    return recorder


def numbers(path):
    return load_tensordict(path)["observation"][:, 0, 0].tolist()


def test_it_is_a_name_of_rlcore():
    assert rlcore.TensorDictRecorder is TensorDictRecorder


def test_a_dump_holds_the_steps_as_they_were(tmp_path):
    path = recorded(TensorDictRecorder(tmp_path / "new" / "run", skip=1), 4).dump("a")
    assert path == tmp_path / "new" / "run_a_tensordict.t"
    found = load_tensordict(path)
    assert found.batch_size == (3, 2)
    expected = TensorDict.stack([step(number) for number in (1, 2, 3)])
    assert set(found.keys(True, True)) == {"observation", ("next", "reward")}
    assert (found == expected).all()


def test_the_reset_is_left_out_and_every_fourth_step_kept(tmp_path):
    assert numbers(recorded(TensorDictRecorder(tmp_path / "run"), 10).dump()) == [1, 5, 9]
    assert numbers(recorded(TensorDictRecorder(tmp_path / "run", skip_reset=False), 10).dump()) == [0, 4, 8]


def test_a_dump_forgets_and_starts_over(tmp_path):
    recorder = recorded(TensorDictRecorder(tmp_path / "run", skip=2), 6)
    assert recorder.dump("a").name == "run_a_tensordict.t"
    assert recorder.dump("b") is None
    assert numbers(recorded(recorder, 4).dump("b")) == [1, 3]
    assert numbers(tmp_path / "run_a_tensordict.t") == [1, 3, 5]


def test_only_the_entries_asked_for_are_kept(tmp_path):
    recorder = recorded(TensorDictRecorder(tmp_path / "run", skip=1, in_keys=[("next", "reward")]), 3)
    assert list(load_tensordict(recorder.dump()).keys(True, True)) == [("next", "reward")]
    with pytest.raises(RlcoreError, match=r"no_such.*; there is: 'observation', \('next', 'reward'\)"):
        recorded(TensorDictRecorder(tmp_path / "run", skip=1, in_keys=["no_such"]), 2)


def test_what_is_kept_does_not_follow_the_tensors(tmp_path):
    recorder = TensorDictRecorder(tmp_path / "run", skip_reset=False, skip=1)
    reused = step(7)
    recorder(reused)
    reused.zero_()
    assert numbers(recorder.dump()) == [7]


def test_steps_beyond_the_most_are_dropped_and_it_says_so_once(tmp_path, caplog):
    recorder = TensorDictRecorder(tmp_path / "run", skip=1, max_steps=2)
    with caplog.at_level(logging.WARNING):
        recorded(recorder, 6)
    assert len(caplog.records) == 1
    assert "keeps 2 steps and drops the others" in caplog.text
    assert numbers(recorder.dump()) == [1, 2]


def test_steps_of_two_forms_are_an_error_that_loses_nothing(tmp_path):
    recorder = recorded(TensorDictRecorder(tmp_path / "run", skip=1), 2)
    recorder(TensorDict({"other": torch.zeros(2)}, batch_size=[2]))
    with pytest.raises(RlcoreError, match="the steps are not of one form"):
        recorder.dump()
    assert len(recorder._steps) == 2


def test_a_file_that_cannot_be_written_is_an_error_that_loses_nothing(tmp_path):
    (tmp_path / "taken").write_text("a file")
    recorder = recorded(TensorDictRecorder(tmp_path / "taken" / "run", skip=1), 3)
    with pytest.raises(StorageError, match=r"run_tensordict.t' cannot be written"):
        recorder.dump()
    (tmp_path / "taken").unlink()
    assert numbers(recorder.dump()) == [1, 2]


@pytest.mark.parametrize("argument", [{"skip": 0}, {"max_steps": 0}])
def test_numbers_must_be_positive(tmp_path, argument):
    with pytest.raises(ConfigError, match="must be positive"):
        TensorDictRecorder(tmp_path / "run", **argument)
