"""mask_batch drops padding."""

from rlcore import mask_batch


def test_valid_steps_stay_in_one_dimension(batch, masked):
    whole = masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]])
    assert mask_batch(whole)["number"].tolist() == [0, 1, 3]


def test_a_batch_without_a_mask_comes_back_as_it_is(batch):
    whole = batch(2, 3)
    assert mask_batch(whole) is whole


def test_the_trainer_goes_on_with_the_valid_steps(batch, masked, make_trainer):
    sizes = []
    trainer = make_trainer([masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]])])
    trainer.register_op("batch_process", mask_batch)
    trainer.register_op("pre_steps_log", lambda batch: sizes.append(list(batch.batch_size)))
    trainer.train()
    assert sizes == [[3]]
    assert trainer.collected_frames == 3
