"""Ranks that were started one by one begin only if all of them can, with the same config, in the same folder."""

from __future__ import annotations

from rlcore_plugin_ddp.ranks.launch import read_launch, write_launch
from rlcore_plugin_ddp.ranks.same import OtherRankError, check_all_can, check_same_config, check_same_folder
from rlcore_plugin_testing.ranks import in_ranks
from rlcore_plugin_testing.small_run import make_config

from rlcore.errors import ConfigError, EnvError
from rlcore.run_folder.run_id import new_id, write_id


def said(check):
    """Return what each of three ranks raises in a check, with its exit code; None for one that goes on."""

    def act(group):
        try:
            check(group)
        except ConfigError as error:
            return type(error), error.exit_code, str(error)
        return None

    return in_ranks(3, act)


def test_ranks_with_the_same_config_go_on(tmp_path):
    configs = [make_config("ranks.count=3", folder=tmp_path) for _ in range(3)]
    assert said(lambda group: check_same_config(configs[group.rank], group)) == [None] * 3


def test_what_differs_is_named_by_the_first_with_both_values():
    configs = [make_config("ranks.count=3", f"run.seed={seed}") for seed in (5, 5, 6)]
    first, *others = said(lambda group: check_same_config(configs[group.rank], group))
    assert first[:2] == (ConfigError, 2)
    assert "rank 2 has another config" in first[2]
    assert "run.seed = 6 there, 5 on rank 0" in first[2]
    assert others == [(OtherRankError, 2, "rank 0 cannot begin")] * 2


def test_all_end_with_the_exit_code_of_the_one_that_cannot():
    codes = [0, EnvError.exit_code, 0]
    found = said(lambda group: check_all_can(group, codes[group.rank]))
    assert found == [(OtherRankError, 3, "rank 1 cannot begin"), None, (OtherRankError, 3, "rank 1 cannot begin")]


def test_a_host_that_sees_another_folder_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("rlcore_plugin_ddp.ranks.same._SEEN", 0.2)
    folders = [tmp_path / name for name in ("shared", "other", "absent")]
    for folder in folders[:2]:
        folder.mkdir()
        write_id(folder, new_id())
    assert said(lambda group: check_same_folder(folders[0], group)) == [None] * 3
    first, second, third = said(lambda group: check_same_folder(folders[group.rank], group))
    assert first is None
    assert "of rank 1 is not that of rank 0: its run_id is another" in second[2]
    assert "of rank 2 is not that of rank 0: it is not there" in third[2]


def test_a_folder_says_which_start_of_ranks_it_belongs_to(tmp_path):
    assert read_launch(tmp_path / "absent") == read_launch(tmp_path) == ""
    write_launch(tmp_path, "torchrun 7")
    assert read_launch(tmp_path) == "torchrun 7"
