"""The numbers of a whole run are divided among its ranks, or the run is refused before anything begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rlcore_plugin_ddp.ranks.shares import divided
from rlcore_plugin_testing.small_run import make_config

from rlcore.cli import command_line as cli
from rlcore.errors import ConfigError
from rlcore.run.build import build

ENVS = {"env": {"use": "testing:toy", "num_envs": 4}}


def test_each_rank_has_its_share_of_what_is_the_whole_runs():
    config = make_config(sections=ENVS)
    own = divided(config, 2)
    assert own.one("env").config.num_envs == 2
    assert own.one("collector").config.frames_per_batch == 8
    assert own.one("buffer").config.minibatch_size == 4
    assert own.one("buffer").config.epochs == config.one("buffer").config.epochs
    assert config.one("env").config.num_envs == 4  # what is written and compared stays the whole run's


def test_the_capacity_of_a_replay_buffer_is_divided():
    replay = {"buffer": {"use": "replay", "capacity": 1000, "minibatch_size": 16}}
    own = divided(make_config(sections={**ENVS, **replay}), 2)
    assert own.one("buffer").config.capacity == 500


def test_a_component_says_which_of_its_keys_are_divided():
    config = make_config(sections=ENVS)
    entry = config.one("buffer")
    component = replace(entry.provided.component, of_whole_run=("epochs",))
    config.sections["buffer"] = [replace(entry, provided=replace(entry.provided, component=component))]
    whole, own = config.one("buffer").config, divided(config, 2).one("buffer").config
    assert own.epochs == whole.epochs // 2
    assert own.minibatch_size == whole.minibatch_size


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (3, ("[env] num_envs = 4", "3 ranks", "set it to 3 or 6", "[collector] frames_per_batch = 16", "15 or 18")),
        (8, ("[env] num_envs = 4", "set it to 8")),
    ],
)
def test_what_cannot_be_divided_is_refused_with_the_nearest_that_can(count, words):
    with pytest.raises(ConfigError) as refused:
        divided(make_config(sections=ENVS), count)
    for word in words:
        assert word in str(refused.value)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("ranks.count=0", "[ranks] count"),
        ("ranks.count=-1", "greater than or equal to 1"),
        ("ranks.count=two", "[ranks] count"),
        ("ranks.deadline=0", "[ranks] deadline"),
        ("ranks.deadline=inf", "[ranks] deadline"),
        ("ranks.restarts=-1", "[ranks] restarts"),
        ("ranks.use=torchrn", "[ranks] use: unknown launcher 'torchrn'"),
        ("ranks.cuont=2", "did you mean 'count'"),
        ("rank.count=2", "did you mean 'ranks'"),
    ],
)
def test_a_section_that_does_not_fit_is_refused(override, words):
    with pytest.raises(ConfigError) as refused:
        make_config(override, sections=ENVS)
    assert words in str(refused.value)


def test_a_config_without_the_section_has_none():
    config = make_config()
    assert config.ranks is None
    assert "ranks" not in config.resolved()


def test_ranks_need_the_command_that_starts_them(tmp_path):
    with pytest.raises(ConfigError, match="rlcore train"):
        build(make_config("ranks.count=2", sections=ENVS, folder=tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_dry_run_builds_the_share_of_a_rank(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = make_config("ranks.count=2", sections={**ENVS, "logger": []}).raw.values
    import tomli_w

    (tmp_path / "c.toml").write_text(tomli_w.dumps(text))
    assert cli.main(["train", "c.toml", "--dry-run"]) == 0
    assert cli.main(["train", "c.toml", "--dry-run", "--set", "ranks.count=3"]) == 2
    assert "3 ranks" in capsys.readouterr().err
