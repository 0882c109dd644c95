"""Which seeds there are, and what their folders leave to do."""

from __future__ import annotations

import json
import time

import pytest
from rlcore_plugin_reports.seeds.plan import plan, seeds_of

from rlcore import ConfigError
from rlcore.files import Lock


def folder_of(place, number, **status):
    folder = place.with_name(f"{place.name}-seed-{number}")
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("[run]\n")
    if status:
        (folder / "status.json").write_text(json.dumps(status))
    return folder


def test_seeds_are_counted_from_the_first_or_listed():
    assert seeds_of("3", first=7) == [7, 8, 9]
    assert seeds_of("1,2,5", first=7) == [1, 2, 5]
    assert seeds_of("4,", first=7) == [4]


@pytest.mark.parametrize("text", ["", "0", "-1", "1,-2", "two", "1.5", ","])
def test_what_names_no_seeds_is_refused(text):
    with pytest.raises(ConfigError, match=r"--seeds .*: a number of seeds, such as 5, or the seeds themselves"):
        seeds_of(text, first=1)


def test_a_seed_that_is_named_twice_is_refused():
    with pytest.raises(ConfigError, match="--seeds 1,2,1: 1 is there twice"):
        seeds_of("1,2,1", first=1)


def test_folders_that_are_there_are_refused_all_at_once(tmp_path):
    place = tmp_path / "runs" / "ppo"
    for number in (1, 3):
        folder_of(place, number)
    with pytest.raises(ConfigError, match=r"ppo-seed-1, .*ppo-seed-3 exist already; continue with --resume"):
        plan(place, [1, 2, 3], target=100, resume=False)
    assert not place.with_name("ppo-seed-2").exists()


def test_a_resume_goes_on_with_what_is_unfinished(tmp_path):
    place = tmp_path / "ppo"
    folder_of(place, 1, state="done", frames=100)
    folder_of(place, 2, state="stopped-resumable", frames=60)
    folder_of(place, 3, state="failed", frames=100)
    seeds = plan(place, [1, 2, 3, 4], target=100, resume=True)
    assert [(seed.number, seed.goes_on, seed.finished) for seed in seeds] == [
        (1, True, True),
        (2, True, False),
        (3, True, False),
        (4, False, False),
    ]
    assert not plan(place, [1], target=200, resume=True)[0].finished, "there is more to do"
    assert plan(place, [2], target=50, resume=True)[0].finished, "--until was reached"


def test_a_folder_in_use_and_one_that_is_no_run_are_refused(tmp_path):
    place = tmp_path / "ppo"
    folder = folder_of(place, 1)
    lock = Lock(folder)
    try:
        began = time.monotonic()
        with pytest.raises(ConfigError, match="ppo-seed-1: another process works there"):
            plan(place, [1], target=100, resume=True, patience=0.3)
        assert time.monotonic() - began >= 0.3
    finally:
        lock.release()
    (folder / "config.toml").unlink()
    with pytest.raises(ConfigError, match=r"ppo-seed-1 holds no config.toml"):
        plan(place, [1], target=100, resume=True)
