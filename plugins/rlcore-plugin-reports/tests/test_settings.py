"""Settings of runs: their labels, and the keys in which their configs differ."""

import pytest
from rlcore_plugin_reports.html.settings import differences, settings
from rlcore_plugin_reports.run_files import RunFiles

CONFIG = """
optimizer = [{{ use = "core:adam", lr = {lr} }}]
[run]
name = "{name}"
seed = {seed}
[env]
id = "{env}"
kwargs = {{}}
[versions]
torch = "{name}"
"""


@pytest.fixture
def made(tmp_path):
    def make(*each):
        runs = []
        for number, (lr, env) in enumerate(each):
            folder = tmp_path / f"run{number}"
            folder.mkdir()
            (folder / "config.toml").write_text(CONFIG.format(name=folder.name, seed=number, lr=lr, env=env))
            runs.append(RunFiles(folder))
        return settings(runs)

    return make


def test_seeds_are_one_setting(made):
    (only,) = made((0.1, "A"), (0.1, "A"))
    assert (only.name, len(only.runs)) == ("run", 2)
    assert differences([only]) == {}


def test_a_name_says_what_differs(made):
    assert [each.name for each in made((0.1, "A"), (0.2, "A"))] == ["lr=0.1", "lr=0.2"]


def test_differences_are_by_key_and_leave_out_what_is_no_choice(made):
    assert differences(made((0.1, "A"), (0.2, "B"))) == {"optimizer.0.lr": ["0.1", "0.2"], "env.id": ["A", "B"]}


def test_runs_without_a_config_have_their_names(tmp_path):
    runs = [RunFiles(tmp_path / name) for name in ("one", "two")]
    assert [each.name for each in settings(runs)] == ["one", "two"]
