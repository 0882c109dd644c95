"""SelectKeys keeps what it is told."""

import pytest

from rlcore import HookError, SelectKeys


@pytest.mark.parametrize("size", [(4,), (2, 4)])
def test_only_the_named_entries_stay(batch, size):
    whole = batch(*size)
    kept = SelectKeys(["action", ("next", "reward")])(whole)
    assert set(kept.keys(True, True)) == {"action", ("next", "reward")}
    assert kept.batch_size == whole.batch_size
    assert kept["action"] is whole["action"], "nothing is copied"
    assert "observation" in whole, "the batch handed in stays as it is"


def test_a_bare_string_is_refused():
    with pytest.raises(HookError, match="keys = 'action': expected a sequence of keys"):
        SelectKeys("action")


def test_a_missing_entry_names_the_hook_the_point_and_what_there_is(batch, make_trainer):
    trainer = make_trainer([batch(4)])
    SelectKeys(["actoin"]).register(trainer)
    with pytest.raises(HookError, match="SelectKeys: the batch has no entry 'actoin'; did you mean 'action'") as raised:
        trainer.train()
    assert "it has observation, action, number, ('next', 'reward')" in str(raised.value)
    assert raised.value.__notes__[0] == "raised by hook 'select_keys' (this script) at point 'batch_process'"


def test_a_name_is_used_once_and_nothing_is_registered_under_a_taken_one(batch, make_trainer):
    seen = []
    trainer = make_trainer([batch(4)])
    SelectKeys(["action", "observation"]).register(trainer)
    with pytest.raises(HookError, match="the name 'select_keys' is taken by a SelectKeys"):
        SelectKeys(["observation"]).register(trainer)
    trainer.register_op("post_steps_log", lambda batch: seen.append(set(batch.keys())))
    trainer.train()
    assert seen == [{"action", "observation"}]


def test_later_hooks_and_the_loss_see_the_selected_entries(batch, make_trainer):
    seen = []
    trainer = make_trainer([batch(4)])
    SelectKeys(["observation"]).register(trainer)
    trainer.register_op("process_optim_batch", lambda sub_batch: seen.append(set(sub_batch.keys())))
    trainer.train()
    assert seen == [{"observation"}]
