"""The core and seven plugins, those that a run cannot be without, are enough; the others are not missed."""

import subprocess

import pytest

from tests.fresh_venv import ROOT, FreshVenv, build_wheels, environment

# what steps and learns; an environment, a model, a loss, a back end of checkpoints, a logger
PLUGINS = ("rollout", "gradient", "gymnasium", "mlp", "ppo", "torch", "csv")
CONFIG = """
[run]
name = "{name}"
seed = 3
total_frames = 8_192
device = "cpu"

[env]
use = "gymnasium"
id = "CartPole-v1"
num_envs = 4

[model]
use = "mlp"

[loss]
use = "ppo"

[estimator]
use = "gae"

[[optimizer]]
use = "adam"

[collector]
frames_per_batch = 256

[buffer]
epochs = 2
minibatch_size = 64

[evaluator]
use = "episodes"
every = 2_048
episodes = 2

[metrics]
every = 256

[[logger]]
use = "csv"

[checkpoint]
every = 256
"""


@pytest.fixture(scope="module")
def venv(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    wheels = build_wheels([ROOT, *(ROOT / "plugins" / f"rlcore-plugin-{name}" for name in PLUGINS)], folder)
    venv = FreshVenv(folder / "venv")
    venv.install(*wheels.iterdir())
    return venv


@pytest.mark.slow
def test_a_run_trains_is_killed_and_goes_on_to_the_bit(venv, tmp_path):
    for name in ("whole", "killed"):
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(name=name))
    venv.run("rlcore", "train", "whole.toml", "--quiet", cwd=tmp_path)
    runs = tmp_path / "runs"
    venv.kill_once_saved(runs / "killed", "killed.toml", "--quiet", cwd=tmp_path)
    venv.run("rlcore", "train", "killed.toml", "--resume", cwd=tmp_path)
    assert (runs / "whole/metrics.csv").read_text().splitlines()[-1].startswith("8192,")
    for file in ("metrics.csv", "evaluations.csv"):
        assert (runs / "whole" / file).read_bytes() == (runs / "killed" / file).read_bytes()


@pytest.mark.slow
def test_the_algorithms_of_scripts_name_what_brings_them(venv, tmp_path):
    code = "import rlcore\ntry:\n    rlcore.PPO\nexcept rlcore.PluginError as error:\n    print(error)"
    assert "pip install rlcore-plugin-presets" in venv.run("python", "-c", code, cwd=tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "plugin"),
    [
        (("report", "runs/whole"), "reports"),
        (("ckpt", "verify", "runs/whole"), "reports"),
        (("evaluate", "runs/whole"), "agents"),
        (("prove", "whole.toml"), "testing"),
        (("plugins", "new", "mine", "--kind", "env"), "testing"),
        (("init", "ppo", "--env", "CartPole-v1"), "presets"),
        (("sync", "runs/whole"), "spool"),
        (("train", "whole.toml", "--set", "learner.compile=true"), "compile"),
        (("train", "whole.toml", "--set", "ranks.count=2"), "ddp"),
    ],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_what_is_not_there_is_named_with_what_brings_it(arguments, plugin, venv, tmp_path):
    (tmp_path / "whole.toml").write_text(CONFIG.format(name="whole"))
    done = subprocess.run(
        venv.command("rlcore", *arguments), cwd=tmp_path, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert f"pip install rlcore-plugin-{plugin}" in done.stderr
    assert "Traceback" not in done.stderr


SCRIPT = """
import sys

import torch
from tensordict import TensorDict

import rlcore


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, batch):
        return {"loss": self.layer(batch["observation"]).square().mean()}


def make_trainer(count):
    loss = Loss()
    batches = [TensorDict({"observation": torch.ones(4, 2)}, [4]) for _ in range(count)]
    trainer = rlcore.Trainer(
        collector=batches, total_frames=12, loss_module=loss, optimizer=torch.optim.Adam(loss.parameters()),
        optim_steps_per_batch=1, progress_bar=False, save_trainer_file="saved",
    )
    trainer.register_op("pre_steps_log", lambda batch: {"mean": batch["observation"].mean()})
    return trainer


trained = make_trainer(3)
trained.train()
again = make_trainer(0).load_from_file("saved")
assert torch.equal(again.loss_module.layer.weight, trained.loss_module.layer.weight)
assert again.collected_frames == 12
assert not [name for name in sys.modules if name.startswith("rlcore_plugin_torchrl")]
for ask in (lambda: rlcore.LogScalar, lambda: rlcore.Trainer(collector=None, total_frames=1, log_timings=True)):
    try:
        ask()
    except rlcore.PluginError as error:
        print(error)
"""


@pytest.mark.slow
def test_a_script_trains_and_loads_and_is_told_what_brings_the_hook_objects(venv, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    missing = "is provided by rlcore-plugin-torchrl, which is not installed: pip install rlcore-plugin-torchrl"
    said = venv.run("python", "script.py", cwd=tmp_path)
    assert said.splitlines() == [f"rlcore.LogScalar {missing}", f"Trainer(log_timings=True) {missing}"]
