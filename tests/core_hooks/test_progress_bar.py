"""The hook `progress-bar`."""

from rlcore_plugin_reports.curves import read_metrics

from rlcore import hookimpl


class Shows:
    @hookimpl
    def pre_steps_log(self):
        return {"answer": 42.0, "log_pbar": True}


def test_the_progress_bar_shows_the_run_and_the_metrics_that_ask_for_it(build, capsys):
    run = build([Shows()], hook=[{"use": "progress-bar"}], evaluator={"use": "episodes", "episodes": 1, "every": 32})
    run.trainer.train()
    last = capsys.readouterr().err.split("\r")[-1]
    for part in ("tiny: 100%", "96/96", "answer 42", "return ", "length ", "lr 3.00e-04", "evaluation ", "frames/s"):
        assert part in last


def test_the_progress_bar_of_a_stopped_run_does_not_pretend(build, capsys):
    class Stop:
        @hookimpl
        def post_steps(self, trainer):
            trainer.request_stop("enough")

    build([Stop()], hook=[{"use": "progress-bar"}]).trainer.train()
    assert "tiny:  33%" in capsys.readouterr().err.split("\r")[-1]


def test_the_bar_and_the_log_of_a_run_that_a_hook_stops_have_what_came_in(build, capsys):
    """Before the first interval of the metrics, as the first hook of a user may do it."""

    class Stop:
        @hookimpl
        def post_steps(self, trainer):
            trainer.request_stop("enough")

    sections = {"hook": [{"use": "progress-bar"}], "logger": [{"use": "csv"}], "metrics": {"every": 1_000}}
    run = build([Shows(), Stop()], write=True, **sections)
    run.trainer.train()
    assert "answer 42" in capsys.readouterr().err.split("\r")[-1]
    curves = read_metrics(run.folder)
    assert curves["answer"] == {32: 42.0}
    assert curves["progress/updates"] == {32: 4.0}


def test_a_bar_for_terminals_only_is_silent_elsewhere(build, capsys):
    build(hook=[{"use": "progress-bar", "always": False}]).trainer.train()
    assert "frames/s" not in capsys.readouterr().err
    build(hook=[{"use": "progress-bar"}]).trainer.train()
    assert "frames/s" in capsys.readouterr().err
