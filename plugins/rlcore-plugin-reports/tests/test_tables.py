"""Tables that were changed after they were written: whatever reads them says so, and the run is still shown."""

from __future__ import annotations

import json
import shutil

import pytest
from rlcore_plugin_reports.curves import read_metrics
from rlcore_plugin_reports.tables import differences
from rlcore_plugin_testing.small_run import make_run

from rlcore.cli.command_line import main
from rlcore.errors import ConfigError

CHANGED = "is not what it was at the checkpoint: some of it was changed since (frame 64)"


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder of a run at its end."""
    run = make_run(sections={"logger": [{"use": "csv"}]}, folder=tmp_path_factory.mktemp("done"))
    run.trainer.train()
    return run.folder


@pytest.fixture
def copy(done, tmp_path):
    return shutil.copytree(done, tmp_path / "runs" / "toy")


def flip(file):
    content = bytearray(file.read_bytes())
    content[-3] ^= 1  # a digit of the last figure
    file.write_bytes(content)


def cut(file):
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 3 // 4])


@pytest.mark.parametrize("name", ["metrics.csv", "evaluations.csv", "timings.csv"])
@pytest.mark.parametrize(
    ("damage", "said"),
    [(flip, CHANGED), (cut, "at the checkpoint; the rest of them is lost"), (lambda file: file.unlink(), "is gone")],
)
def test_every_command_that_reads_a_changed_table_says_so(name, damage, said, copy, tmp_path, capsys, caplog):
    damage(copy / name)
    (sentence,) = differences(copy)
    assert str(copy / name) in sentence
    assert said in sentence
    read_metrics(copy)
    assert sentence in caplog.text
    assert main(["runs", str(copy.parent), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["data"]["runs"][0]["differences"] == [sentence]
    for command in (["runs", str(copy.parent)], ["compare", str(copy)]):
        assert main(command) == 0
        assert sentence in capsys.readouterr().out, command
    caplog.clear()
    assert main(["plot", str(copy), "--output", str(tmp_path / "plot.png")]) == 0
    assert sentence in caplog.text
    assert main(["report", str(copy), "--output", str(tmp_path / "page.html")]) == 0
    assert sentence in (tmp_path / "page.html").read_text()


def test_a_run_that_is_whole_or_goes_on_has_no_difference(copy, caplog):
    with (copy / "metrics.csv").open("a") as file:
        file.write("72,episode/return,1.0\n7")  # after the newest checkpoint
    assert differences(copy) == []
    assert read_metrics(copy)["episode/return"][72] == 1.0
    assert not caplog.records


def test_a_run_whose_checkpoints_do_not_know_its_tables_can_be_read(copy):
    shutil.rmtree(copy / "checkpoints")
    flip(copy / "metrics.csv")
    assert differences(copy) == []
    assert read_metrics(copy)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"evaluations": 3}', b'{"evaluations": {"written": "x"}}'])
def test_a_checkpoint_that_cannot_say_it_is_named(content, copy):
    (newest,) = [path for path in (copy / "checkpoints").iterdir() if path.name.startswith("000000000064")]
    (newest / "state.json").write_bytes(content)
    (sentence,) = differences(copy)
    assert f"{newest / 'state.json'} cannot be read" in sentence
    assert "whether the tables of the run are whole is not known" in sentence


def test_a_link_in_the_place_of_a_table_is_named(copy, tmp_path):
    (copy / "metrics.csv").rename(tmp_path / "elsewhere.csv")
    (copy / "metrics.csv").symlink_to(tmp_path / "elsewhere.csv")
    assert "is a link, which is not followed" in differences(copy)[0]
    with pytest.raises(ConfigError, match=r"metrics\.csv' cannot be read"):
        read_metrics(copy)
