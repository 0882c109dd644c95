"""CountFramesLog counts valid frames."""

from rlcore import CountFramesLog


def test_steps_times_frame_skip_are_added_up(batch):
    hook = CountFramesLog(frame_skip=4)
    assert hook(batch(2, 3))["n_frames"].value == 24
    assert hook(batch(5))["n_frames"].value == 44


def test_padding_does_not_count(batch, masked):
    assert CountFramesLog(2)(masked(batch(2, 3), [[1, 1, 0], [1, 0, 0]]))["n_frames"].value == 6


def test_without_a_batch_there_is_nothing_to_count():
    assert CountFramesLog(1)(None) is None


def test_two_counters_count_apart(batch):
    first, second = CountFramesLog(1), CountFramesLog(1)
    first(batch(4))
    CountFramesLog(1)
    assert (first.frame_count, second.frame_count) == (4, 0)


def test_the_count_goes_on_after_a_resume(batch):
    hook, resumed = CountFramesLog(1), CountFramesLog(1)
    hook(batch(4))
    resumed.load_state_dict(hook.state_dict())
    assert resumed(batch(4))["n_frames"].value == 8


def test_the_last_count_is_written_not_an_average(batch, make_trainer, rows):
    trainer = make_trainer([batch(4)] * 3, logger=rows, log_interval=12, total_frames=12)
    CountFramesLog(1, log_pbar=True).register(trainer)
    trainer.train()
    assert [(step, row["n_frames"]) for step, row in rows.rows] == [(12, 12.0)]
    assert trainer.metrics.on_bar == {"n_frames"}
