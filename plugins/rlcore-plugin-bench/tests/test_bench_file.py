"""The bench file: what its tables mean together, and what is refused before anything runs."""

import contextlib
import io
import sys
from pathlib import Path

import pytest
import tomli_w
from rlcore_plugin_bench.bench_file import read_bench
from rlcore_plugin_bench.row import rows_of
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore.cli.command_line import main

SHARED = """
[bench]
seeds = [1, 2]

[method.ours]
config = "toy.toml"
set = ["a=1"]

[method.peer]
command = ["peer.py", "{seed}"]
seeds = [2, 3]

[method.paper]
source = "a paper"
values = [1, 2.5]

[task.one]
set = ["b=2"]

[task.two]
methods = ["ours"]

[task.two.method.ours]
set = ["c=3"]

[task.two.method.other]
preset = "ppo"
"""


def test_methods_of_all_tasks_are_changed_by_a_task_and_the_sides_take_turns(tmp_path):
    path = tmp_path / "file.toml"
    path.write_text(SHARED)
    file = read_bench(path)
    one, two = (dict(file.methods_of(task)) for task in ("one", "two"))
    assert list(one) == ["ours", "peer", "paper"]
    assert list(two) == ["ours", "other"]
    assert one["ours"].set == ["a=1", "b=2"]
    assert two["ours"].set == ["a=1", "c=3"]
    assert [one[name].kind for name in one] == ["rlcore", "peer", "published"]
    rows = [str(row) for row in rows_of(file)]
    assert rows[:4] == ["one/ours/1", "one/ours/2", "one/peer/2", "one/peer/3"]
    assert rows[4:] == ["two/ours/1", "two/other/1", "two/ours/2", "two/other/2"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[task.a]", "task.a: has no method"),
        ("[task.a]\nscor = 1", "task.a.scor: unknown key"),
        ("[task.a.method.b]", "task.a.method.b: has none of config, preset, command, source"),
        ('[task.a.method.b]\nconfig = "c"\nsource = "d"', "config and source exclude each other"),
        ('[task.a.method.b]\nsource = "d"', "source: has neither values nor a mean"),
        ('[task.a.method.b]\nsource = "d"\nmean = 1\nvalues = [1]', "mean: leave it out"),
        ("[task.a.method.b]\ncommand = []", "command: is empty"),
        ('[task.a.method.b]\nconfig = "c"\nenv = "E"', "env: belongs to a method with `preset`"),
        ('[task.a]\nmethods = ["our"]\n[method.ours]\nconfig = "c"', "there is no [method.our]; did you mean 'ours'?"),
        ('[task."../a".method.b]\nconfig = "c"', "is to be that of a folder"),
        ('[task.a.method.b]\nconfig = "c"\n[bench]\nseeds = []', "bench.seeds: "),
        ("[task", "not valid TOML"),
    ],
)
def test_what_does_not_fit_is_refused_and_named(text, said, tmp_path, refused):
    path = tmp_path / "file.toml"
    path.write_text(text)
    assert said in refused("bench", "list", path)


def test_a_row_with_a_wrong_config_is_refused_before_any_run_begins(write_bench, tmp_path, refused):
    wrong = {"method": {"ours": {"config": "toy.toml", "set": ["optimizer.lrate=1"]}}}
    right = {"method": {"ours": {"config": "toy.toml"}}}
    said = refused("bench", "run", write_bench(right=right, wrong=wrong))
    assert "wrong/ours/1: " in said
    assert "lrate" in said
    assert not (tmp_path / "runs").exists()


def test_a_command_without_its_script_is_refused(write_bench, refused):
    said = refused("bench", "run", write_bench(toy={"method": {"peer": {"command": ["gone.py"]}}}))
    assert "toy/peer/1: command: there is no file '" in said
    assert "gone.py'" in said


def test_rows_and_interpreters_that_are_not_there_are_refused(write_bench, refused):
    path = write_bench()
    assert "--rows 'toy/our/*' fits no row; a row is TASK/METHOD/SEED, such as toy/ours/1" in refused(
        "bench", "run", path, "--rows", "toy/our/*"
    )
    assert "--python 'peers=gone' is not NAME=PATH" in refused("bench", "run", path, "--python", "peers=gone")
    assert "is no time such as 45s" in _usage("bench", "run", path, "--max-time", "soon")


def _usage(*arguments):
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream), contextlib.suppress(SystemExit):
        main([str(argument) for argument in arguments])
    return stream.getvalue()


def test_the_file_of_the_readme_is_one(tmp_path, monkeypatch, capsys):
    """With a config and a script where it names them."""
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    text = readme.partition("```text\n# pendulum.toml\n")[2].partition("```")[0]
    # the peer need not be installed
    (tmp_path / "pendulum.toml").write_text(text.replace('["stable-baselines3", "torch"]', '["torch"]'))
    (tmp_path / "mine.toml").write_text(tomli_w.dumps({**TOY_CONFIG, "env": {"use": "gymnasium", "id": "Pendulum-v1"}}))
    (tmp_path / "sb3.py").write_text("")
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "list", "pendulum.toml", "--python", f"peers={sys.executable}"]) == 0
    assert "9 open" in capsys.readouterr().out
