"""Lines about runs: written over on a terminal, one for each change elsewhere."""

from __future__ import annotations

import io
import json

import pytest
from rlcore_plugin_reports.seeds.child import Child
from rlcore_plugin_reports.seeds.display import Display, state_of
from rlcore_plugin_reports.seeds.plan import Seed


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def make_child(tmp_path):
    """Make a run that has ended with a code, or has not begun."""

    def make(number, code=None, *, frames=0, finished=False, state="done", log=""):
        folder = tmp_path / f"run-seed-{number}"
        folder.mkdir()
        child = Child(Seed(number, folder, goes_on=True, finished=finished), list, {})
        child.code, child.frames = code, frames
        (folder / "status.json").write_text(json.dumps({"state": state, "frames": frames}))
        (folder / "output.log").write_text(log)
        return child

    return make


def test_each_change_is_a_line(make_child):
    stream = io.StringIO()
    done, waiting = make_child(1, 0, frames=1000), make_child(12)
    display = Display([done, waiting], 1000, stream)
    display.show()
    display.show()
    assert stream.getvalue() == "seed  1  done       1,000 of 1,000 frames\n"
    waiting.code = 4
    (waiting.seed.folder / "output.log").write_text("device cpu\nerror: the loss is nan\n  in ppo\n")
    display.show()
    assert stream.getvalue().splitlines()[1:] == [
        "seed 12  failed         0 of 1,000 frames  error: the loss is nan",
    ]


def test_a_terminal_has_its_lines_written_over(make_child, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("LINES", "10")
    stream = Terminal()
    first, second = make_child(1, 0, frames=5), make_child(2)
    display = Display([first, second], 10, stream)
    display.show()
    drawn = stream.getvalue()
    assert drawn == "seed 1  done        5 of 10 frames\x1b[K\nseed 2  waiting  \x1b[K\n".replace(
        "waiting  ", "waiting  "
    )
    display.show()
    assert stream.getvalue() == drawn, "nothing changed"
    second.code, second.score = 0, 123456.0
    display.show()
    again = stream.getvalue()[len(drawn) :]
    assert again.startswith("\x1b[2Fseed 1")
    assert max(len(line) for line in again.replace("\x1b[2F", "").replace("\x1b[K", "").splitlines()) < 40


def test_states_are_told_from_codes_and_files(make_child):
    assert state_of(make_child(1)) == "waiting"
    assert state_of(make_child(2, finished=True)) == "done"
    assert state_of(make_child(3, 0, state="stopped-resumable")) == "stopped", "by --until"
    assert state_of(make_child(4, 143)) == "failed", "somebody else stopped it"
    asked = make_child(5, 143)
    asked.asked = True
    assert state_of(asked) == "stopped"
    killed = make_child(6, -9)
    assert (state_of(killed), killed.how_it_ended()) == ("failed", "was killed by SIGKILL (perhaps for lack of memory)")


def test_tables_say_how_far_a_run_is(make_child):
    child = make_child(1, frames=64)
    rows = "".join(
        f"{frames},{key},{frames / 2}\n" for frames in range(0, 3000, 4) for key in ("loss", "episode/return")
    )
    (child.seed.folder / "metrics.csv").write_text(f"frames,key,value\n{rows}99999,lo")
    episodes = "".join(f"{frames},{10**9 + seed},{frames + seed},1\n" for frames in (0, 2000) for seed in range(90))
    (child.seed.folder / "evaluations.csv").write_text("frames,seed,return,length\n" + episodes)
    child.read_files()
    assert child.frames == 2996, "a row that is being written does not count, nor a part of one"
    assert child.score == 2000 + 44.5
