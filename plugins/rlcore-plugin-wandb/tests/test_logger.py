"""The Weights & Biases logger: keys, what outlives a crash, and loggers without a config."""

import json
import os
import random
import threading
import time
from datetime import datetime

import numpy as np
import pytest
from rlcore_plugin_spool.contracts import wait_until_sent
from rlcore_plugin_testing import make_run
from rlcore_plugin_wandb.log_server import WandbLogServer
from rlcore_plugin_wandb.logger import WandbLogger

from rlcore.errors import ConfigError, RlcoreError

from .reading import offline, whole_rows

KEY = "0123456789" * 4


def test_a_key_is_a_reference_and_written_nowhere(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    section = {"use": "wandb", "mode": "offline", "api_key": {"env": "MY_KEY"}}
    make_run(folder=tmp_path, sections={"logger": [section]}).trainer.train()
    assert "MY_KEY" in (tmp_path / "toy" / "config.toml").read_text()
    assert wait_until_sent(tmp_path / "toy", 60)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.suffix == ".wandb" for file in files)
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_a_key_that_is_not_set_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    section = {"use": "wandb", "api_key": {"env": "MY_KEY"}}
    with pytest.raises(ConfigError, match="environment variable 'MY_KEY'"):
        make_run(folder=tmp_path, sections={"logger": [section]})


def test_without_a_key_the_run_is_written_offline_and_nobody_is_asked(tmp_path, caplog):
    logger = WandbLogger("trial", save_dir=tmp_path, log_env_packages=False)
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert "no API key" in caplog.text
    assert [(step, name, value) for _, step, name, value in whole_rows(tmp_path)] == [(0, "a", 1.0)]
    assert logger.unsent == 1, "it was to go to a server"


def test_an_offline_run_that_ended_with_its_process_is_written_again(tmp_path, monkeypatch):
    monkeypatch.delenv("WANDB_SERVICE", raising=False)  # W&B's own process of other tests, which outlives this logger's
    logger = WandbLogger("trial", True, tmp_path, process=True, log_env_packages=False)
    for step in range(5):
        logger.log_scalar("a", float(step), step)
    logger.log_image("b", np.zeros((3, 4, 4), np.uint8), 5)
    assert logger.catch_up(60)
    (place,) = (tmp_path / "wandb").glob("offline-run-*")
    process = logger._sender._process
    process.kill()  # what W&B has not written is lost
    process.wait()
    logger.close()
    assert logger.unsent == 6
    again = WandbLogger("trial", True, tmp_path, spool=logger.spool.folder, log_env_packages=False)
    again.log_scalar("a", 6.0, 6)
    assert again.catch_up(60)
    again.close()
    assert again.unsent == 0
    found = [(step, name) for _, step, name, _ in whole_rows(tmp_path)]
    assert found == [*((step, "a") for step in range(5)), (5, "b"), (6, "a")]
    assert not place.exists()
    assert not list((tmp_path / "spool").rglob("*.png")), "kept until it was confirmed, and removed then"


def test_a_run_opened_twice_in_one_second_has_two_folders(tmp_path):
    time.sleep(1 - time.time() % 1)  # W&B names folders by the second
    killed = tmp_path / "wandb" / f"offline-run-{datetime.now():%Y%m%d_%H%M%S}-theid123"
    killed.mkdir(parents=True)
    (killed / "unconfirmed").write_text("the token")
    server = WandbLogServer(str(tmp_path), True, None, None, False, {})
    server.connect("theid123", "the token", "")
    assert server.disconnect()
    (place,) = (tmp_path / "wandb").glob("offline-run-*")
    assert place != killed


def test_loggers_that_share_a_folder_leave_each_other_alone(tmp_path):
    first, second = (WandbLogger(name, True, tmp_path, log_env_packages=False) for name in ("one", "two"))
    first.log_scalar("a", 1.0, 1)
    assert first.catch_up(60)
    second.log_scalar("b", 2.0, 2)
    assert second.catch_up(60)
    for logger in (first, second):
        logger.close()
    found = {(step, name, value) for _, step, name, value in whole_rows(tmp_path)}
    assert found == {(1, "a", 1.0), (2, "b", 2.0)}


def test_a_logger_of_its_own(tmp_path):
    logger = WandbLogger("trial", True, tmp_path, "theid123", "games", tags=["one"])
    assert (logger.exp_name, logger.log_dir) == ("trial", str(tmp_path))
    assert (logger.experiment.id, logger.experiment.project, logger.experiment.tags) == ("theid123", "games", ("one",))
    logger.close()
    configs = [r.config.update for _, r in offline(tmp_path) if r.WhichOneof("record_type") == "config"]
    env = next(json.loads(update.value_json) for updates in configs for update in updates if update.key == "env")
    assert env["packages"]["wandb"]
    with pytest.raises(ConfigError, match="two names of one folder"):
        WandbLogger("trial", save_dir="a", log_dir="b")


def test_there_is_no_experiment_of_another_process(tmp_path):
    logger = WandbLogger("trial", True, tmp_path, process=True, log_env_packages=False)
    with pytest.raises(RlcoreError, match="process=False"):
        _ = logger.experiment
    logger.close()


@pytest.mark.parametrize("process", [True, False])
def test_the_global_generators_and_the_environment_are_left_alone(tmp_path, process):
    random.seed(1), np.random.seed(1)
    before = random.getstate(), np.random.get_state()[1].copy(), dict(os.environ), threading.excepthook
    logger = WandbLogger("trial", True, tmp_path, log_env_packages=False, process=process)
    logger.log_scalar("a", 1.0)
    assert logger.catch_up(60)
    logger.close()
    assert random.getstate() == before[0]
    assert np.array_equal(np.random.get_state()[1], before[1])
    changed = {name for name in {*os.environ, *before[2]} if os.environ.get(name) != before[2].get(name)}
    assert not changed, changed
