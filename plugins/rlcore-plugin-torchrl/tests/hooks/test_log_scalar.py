"""LogScalar and its older form LogReward log statistics of entries."""

import pytest
import torch

from rlcore import HookError, LogReward, LogScalar


def values(found):
    return {key: float(value) for key, value in found.items() if key != "log_pbar"}


@pytest.mark.parametrize("size", [(6,), (2, 3)])
@pytest.mark.parametrize(("reduction", "expected"), [("mean", 2.5), ("sum", 15.0), ("min", 0.0), ("max", 5.0)])
def test_each_reduction(batch, size, reduction, expected):
    found = LogScalar("number", "n", reduction=reduction)(batch(*size))
    assert values(found) == {"n": expected, "n_std": pytest.approx(torch.arange(6.0).std().item())}


def test_only_valid_steps_count(batch, masked):
    found = LogScalar("number", "n")(masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]]))
    assert values(found) == {"n": pytest.approx(4 / 3), "n_std": pytest.approx(torch.tensor([0.0, 1, 3]).std().item())}


def test_the_name_is_the_key_unless_given(batch):
    assert set(LogScalar()(batch(2, 3))) == {"('next', 'reward')", "('next', 'reward')_std", "log_pbar"}


def test_there_is_no_deviation_of_one_value_nor_unasked(batch):
    assert set(values(LogScalar("number", "n")(batch(1)))) == {"n"}
    assert set(values(LogScalar("number", "n", include_std=False)(batch(4)))) == {"n"}


def test_flags_can_be_reduced(batch):
    whole = batch(4)
    whole["next", "done"][1] = True
    assert values(LogScalar(("next", "done"), "done", include_std=False)(whole)) == {"done": 0.25}
    assert values(LogScalar(("next", "done"), "done", include_std=False, reduction="max")(whole)) == {"done": 1.0}


def test_without_a_batch_there_is_nothing_to_log():
    assert LogScalar()(None) is None


def test_an_unknown_reduction_is_refused():
    with pytest.raises(HookError, match="reduction = 'maen': expected one of mean, sum, min, max; did you mean 'mean'"):
        LogScalar(reduction="maen")


def test_a_missing_entry_names_what_there_is(batch):
    with pytest.raises(HookError, match=r"LogScalar: the batch has no entry 'reward'.*\('next', 'reward'\)"):
        LogScalar("reward")(batch(4))


def test_a_mask_of_another_shape_is_refused(batch, masked):
    whole = masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]])
    whole["collector"] = whole["collector"].apply(lambda mask: mask.unsqueeze(-1).expand(2, 3, 2), batch_size=[2, 3])
    with pytest.raises(HookError, match=r"'number' has shape \[2, 3\], and the mask of valid steps \[2, 3, 2\]"):
        LogScalar("number")(whole)


def test_a_batch_of_padding_alone_is_refused(batch, masked):
    with pytest.raises(HookError, match="no valid step of which to log 'number'"):
        LogScalar("number")(masked(batch(2, 3), torch.zeros(2, 3)))


def test_values_between_two_writes_are_averaged(batch, make_trainer, rows):
    trainer = make_trainer([batch(4), batch(4)], logger=rows, log_interval=8, total_frames=8)
    LogScalar("number", "n", log_pbar=True, reduction="max").register(trainer)
    trainer.train()
    ((step, row),) = rows.rows
    assert (step, row["n"], row["n/count"]) == (8, 3.0, 2.0)
    assert "log_n" in trainer.app_state
    assert trainer.metrics.on_bar >= {"n"}


def test_the_older_form_logs_the_mean_reward(batch):
    whole = batch(2, 3)
    found = LogReward(log_pbar=True)(whole)
    assert found["log_pbar"] is True
    assert values(found) == {"r_training": pytest.approx(whole["next", "reward"].mean().item())}
    assert values(LogReward("actions", reward_key="action")(whole)) == {
        "actions": pytest.approx(whole["action"].mean().item())
    }
