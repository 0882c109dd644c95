"""A recording whose process was killed within a line: readers leave that line out, and a resume writes it again."""

import pytest
import tomli_w
from rlcore_plugin_testing.faults.recorder import compare, iterations, read
from rlcore_plugin_testing.small_run import TOY_CONFIG

from rlcore import StorageError, build, load_config

TORN = '{"frames": 64, "observ'


@pytest.fixture
def train(tmp_path):
    """Train a run of toy parts with a recorder; it has four iterations."""

    def run(name, resume=False, until=64):
        path = tmp_path / f"{name}.toml"
        hook = {"use": "testing:recorder", "path": str(tmp_path / f"{name}.jsonl")}
        settings = {**TOY_CONFIG["run"], "name": name, "folder": str(tmp_path / "runs"), "total_frames": 64}
        path.write_text(tomli_w.dumps({**TOY_CONFIG, "run": settings, "hook": [hook], "checkpoint": {"every": 16}}))
        trainer = build(load_config(path), resume=resume).trainer
        trainer.stop_at = until
        trainer.train()
        return tmp_path / f"{name}.jsonl"

    return run


def test_a_line_that_a_process_was_killed_in_is_written_again_by_the_next_one(train):
    whole = train("whole")
    torn = train("torn", until=32)
    before = read(torn)
    with torn.open("a") as stream:
        stream.write(TORN)
    assert read(torn) == before
    assert iterations(torn) == [16, 32]
    train("torn", resume=True)
    assert compare(whole, torn).equal


def test_a_line_that_is_damaged_within_is_an_error(tmp_path):
    (tmp_path / "a.jsonl").write_text(f'{TORN}\n{{"frames": 64}}\n')
    with pytest.raises(StorageError, match="cannot be read"):
        read(tmp_path / "a.jsonl")
