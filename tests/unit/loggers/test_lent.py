"""The loggers without a config: class names, `get_logger` and `generate_exp_name`, as plugins lend them."""

import re
import subprocess
import sys

import pytest
import torch
from rlcore_plugin_spool.logger import SpoolingLogger
from rlcore_plugin_torchrl.helpers.loggers import _OF_TYPE
from tensordict import TensorDict

from rlcore import loggers
from rlcore.errors import PluginError
from rlcore.plugins.known import lent_to


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("CSVLogger", "rlcore_plugin_csv.logger"),
        ("TensorboardLogger", "rlcore_plugin_tensorboard.logger"),
        ("WandbLogger", "rlcore_plugin_wandb.logger"),
        ("MLFlowLogger", "rlcore_plugin_mlflow.logger"),
        ("TrackioLogger", "rlcore_plugin_trackio.logger"),
    ],
)
def test_every_class_comes_from_its_plugin(name, module):
    assert getattr(loggers, name).__module__ == module
    assert name in dir(loggers)


def test_a_class_of_a_plugin_that_is_not_installed_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rlcore_plugin_wandb.logger", None)
    with pytest.raises(
        PluginError, match=r"WandbLogger is provided by rlcore-plugin-wandb.*pip install rlcore-plugin-"
    ):
        _ = loggers.WandbLogger


def test_a_misspelt_class_is_told_the_nearest():
    with pytest.raises(AttributeError, match="did you mean 'WandbLogger'"):
        _ = loggers.WandBLogger


def test_the_module_is_light_and_names_import_no_back_end():
    code = (
        "import sys, rlcore.loggers as l; l.WandbLogger, l.MLFlowLogger; "
        "print([n for n in ('torch', 'wandb', 'mlflow', 'tensorboard') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_names_of_experiments_are_unique():
    names = {loggers.generate_exp_name("ppo", "cartpole") for _ in range(10)}
    assert len(names) == 10
    assert all(re.fullmatch(r"ppo_cartpole_[0-9a-f]{8}_\d\d_\d\d_\d\d-\d\d_\d\d_\d\d", name) for name in names)


@pytest.mark.parametrize("nothing", ["", None])
def test_no_type_gives_no_logger(nothing):
    assert loggers.get_logger(nothing, "folder", "trial") is None


def test_there_is_a_type_for_every_logger_that_is_lent():
    lent = {plugin: name for name, (plugin, _) in lent_to("rlcore.loggers").items() if plugin != "torchrl"}
    assert lent == _OF_TYPE


def test_an_unknown_type_is_refused():
    with pytest.raises(PluginError, match="did you mean 'tensorboard'"):
        loggers.get_logger("tensorbord", "folder", "trial")


def test_get_logger_writes_where_it_is_told(tmp_path):
    for kind in ("csv", "tensorboard"):
        logger = loggers.get_logger(kind, str(tmp_path), f"trial-{kind}")
        logger.log_scalar("loss", 1.0, 5)
        logger.close()
    assert (tmp_path / "trial-csv" / "metrics.csv").read_text() == "frames,key,value\n5,loss,1.0\n"
    assert list((tmp_path / "trial-tensorboard").glob("events*"))


def test_get_logger_passes_arguments_on(tmp_path):
    wandb = loggers.get_logger("wandb", str(tmp_path), "trial", wandb_kwargs={"offline": True, "video_fps": 7})
    assert (wandb.log_dir, wandb.video_fps) == (str(tmp_path), 7)
    mlflow = loggers.get_logger("mlflow", str(tmp_path), "trial")
    assert mlflow.log_dir == f"sqlite:///{tmp_path / 'mlflow.db'}"
    uri = "http://127.0.0.1:9"
    assert loggers.get_logger("mlflow", str(tmp_path), "t", mlflow_kwargs={"tracking_uri": uri}).log_dir == uri


LOGGERS = {
    "CSVLogger": lambda folder: {"log_dir": folder},
    "TensorboardLogger": lambda folder: {"log_dir": folder},
    "WandbLogger": lambda folder: {"offline": True, "save_dir": folder, "log_env_packages": False},
    "MLFlowLogger": lambda folder: {"tracking_uri": f"sqlite:///{folder}/mlflow.db", "spool": folder / "spool"},
}
NESTED = TensorDict({"loss": torch.tensor([0.5]), "grad": {"norm": torch.tensor(2, dtype=torch.int64)}}, [])
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", LOGGERS)
def test_metrics_may_be_a_tensordict_and_come_back_as_numbers(tmp_path, monkeypatch, name, device):
    monkeypatch.setattr(SpoolingLogger, "start", lambda self: None)  # what is written is what counts here
    logger = getattr(loggers, name)("trial", **LOGGERS[name](tmp_path))
    assert logger.log_metrics(NESTED.to(device), 5) == {"loss": 0.5, "grad/norm": 2.0}
    assert logger.log_metrics(NESTED.to(device), 6, keys_sep=".") == {"loss": 0.5, "grad.norm": 2.0}
    logger.shutdown()


def test_loggers_of_one_name_share_no_spool_whatever_their_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [
        loggers.WandbLogger("trial", True, tmp_path),
        loggers.WandbLogger("trial", True, tmp_path),
        loggers.MLFlowLogger("trial", f"sqlite:///{tmp_path / 'mlflow.db'}"),
        loggers.get_logger("mlflow", str(tmp_path), "trial"),
        loggers.get_logger("wandb", str(tmp_path), "trial", wandb_kwargs={"offline": True}),
    ]
    assert len({logger.spool.folder.name for logger in made}) == len(made)
    assert {logger.spool.folder.resolve().parent for logger in made} == {tmp_path / "spool"}
    assert not (tmp_path / "spool").exists(), "nothing is made before something is logged"
