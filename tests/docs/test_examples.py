"""Every file in examples/ runs, for a few frames."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rlcore import build, load_config
from rlcore.cli import command_line as cli
from rlcore.config.file import read

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
# a config runs two iterations; what it says of sizes is kept where it costs nothing
FEW = ("collector.frames_per_batch=256", "run.total_frames=512", "metrics.every=256")
# where a step takes long, fewer; the last of two overrides of a key holds
SLOW_STEPS = ("CarRacing", "highway-")
FEWER = (
    "env.max_episode_steps=30",
    "collector.frames_per_batch=32",
    "run.total_frames=64",
    "metrics.every=32",
    "buffer.minibatch_size=16",
)
# one that collects nothing likewise, in updates
FEW_OFFLINE = (
    "buffer.updates_per_iteration=32",
    "run.total_updates=64",
    "metrics.every=32",
    "buffer.minibatch_size=2",
)
# and with each kind of buffer, few updates
FEW_UPDATES = {"rollout": ["buffer.epochs=1"], "replay": ["buffer.warmup_frames=256", "buffer.updates_per_batch=4"]}
FEW_UPDATES |= dict.fromkeys(("replay:prioritized", "replay:sequences"), FEW_UPDATES["replay"])
FEW_UPDATES["rollout-sequences"] = FEW_UPDATES["rollout"]
FEW_UPDATES["replay:hindsight"] = FEW_UPDATES["replay"]
FEW_UPDATES["imagined-replay"] = [*FEW_UPDATES["replay"], "buffer.dynamics_max_epochs=1", "buffer.rollouts=100"]
FEW_UPDATES["mbpo:imagined-dataset"] = [
    *FEW_UPDATES["imagined-replay"][2:],
    "buffer.real_share=0.5",
    "buffer.rollouts_every=32",
]
FEW_UPDATES["datasets:mixed"] = [*FEW_UPDATES["replay"], "buffer.offline_updates=4"]
FEW_OF_MODEL = {
    "tdmpc2": ["model.samples=16", "model.prior_samples=2", "model.elites=4", "model.iterations=2"],
    "dreamer": ["buffer.sequence_length=8", "buffer.overlap=4"],
}
SCRIPTS = {
    "train_from_python.py": ["run.total_frames=512"],
    "rlpyt_runner.py": ["--algo", "ppo", "--n-steps", "2e2"],
    "ppo_tutorial.py": ["--frames", "2000", "--out", "curves.png"],
}
MODULES = {"bit_flip.py", "sighted_envs.py", "two_arms.py"}
LOOSE_FILES = {"my_hooks.py": ["stop-when-solved", "stopwatch"]}


def test_every_example_is_known():
    names = {path.name for path in EXAMPLES.iterdir() if path.suffix in (".toml", ".py")}
    assert names == {path.name for path in EXAMPLES.glob("*.toml")} | set(SCRIPTS) | set(LOOSE_FILES) | MODULES


# what the envs of an example need that the development install may lack, by how `id` begins, or by `use`
LIBRARIES = {
    "atari": "ale_py cv2",
    "envpool": "envpool",
    "LunarLander": "Box2D",
    "CarRacing": "Box2D cv2",
    "MinAtar/": "minatar",
    "MiniGrid-": "minigrid",
    "highway-": "highway_env",
    "PointMaze": "gymnasium_robotics",
    "dm_control/": "shimmy dm_control",
    "mpe2.": "pettingzoo mpe2",
    "vmas": "vmas",
}


# those that take long, as they start processes
SLOW = {"ppo-cartpole-ranks.toml"}
# those that the tests of their plugin train, in a network of their own
ELSEWHERE = {"ppo-cartpole-ray.toml"}


def libraries(env):
    """Return the libraries that an [env] needs; none where Gymnasium is enough."""
    if env["use"] == "torch-envs":  # has the ids of others
        return []
    names = (env["use"], env.get("id", ""))
    found = (needed for begin, needed in LIBRARIES.items() if any(name.startswith(begin) for name in names))
    return next(found, "").split()


def configs():
    """Every config, those of other libraries slow ones: an episode is played to its end, and they may be missing."""
    for path in sorted(set(EXAMPLES.glob("*.toml")) - {EXAMPLES / name for name in ELSEWHERE}):
        needed = libraries(read(path).values["env"])
        missing = [name for name in needed if find_spec(name) is None]
        marks = (pytest.mark.slow, pytest.mark.skipif(bool(missing), reason=f"not installed: {missing}"))
        yield pytest.param(path, marks=marks if needed or path.name in SLOW else (), id=path.name)


def few_updates(buffer):
    """Return overrides of a [buffer] with which few updates follow a batch."""
    few = FEW_UPDATES[buffer.get("use", "rollout")]
    return [few[0], "buffer.replay_ratio=1.0"] if "replay_ratio" in buffer else few


@pytest.mark.parametrize("path", configs())
def test_config_trains_resumes_and_plots(path, tmp_path, monkeypatch, capsys):
    """It stops after its first iteration and goes on to the end, as its metrics do."""
    monkeypatch.chdir(tmp_path)
    values = read(path).values
    collects = "collector" in values
    few = few_updates(values["buffer"]) if collects else FEW_UPDATES.get(values["buffer"]["use"], [])
    total, overrides = (512 if collects else 64), [*(FEW if collects else FEW_OFFLINE), *few]
    if data := values["buffer"].get("path"):
        record = ["data", "record", str(path), "--random", "--episodes", "2", "--out", data]
        assert cli.main(record) == 0, capsys.readouterr().err
    if values.get("collector", {}).get("use", "local").startswith("parallel:"):
        overrides += ["collector.start_method=fork"]
    if "evaluator" in values:
        overrides += ["evaluator.episodes=1", "evaluator.max_episode_steps=50"]
    if values["env"]["use"] == "atari":
        overrides += ["env.max_frames=400", "buffer.minibatch_size=32"]
    if values["env"].get("id", "").startswith(SLOW_STEPS):
        total, overrides = 64, [*overrides, *FEWER]
        if "warmup_frames" in values["buffer"]:
            overrides += ["buffer.warmup_frames=32"]
    if values["buffer"].get("storage") == "memmap":
        overrides += ["buffer.capacity=10_000"]  # its file may lie in memory, and takes all of its room at once
    if values["env"]["use"] == "pettingzoo":
        overrides += ["env.kwargs.max_cycles=40", "evaluator.episodes=4", "buffer.minibatch_size=64"]
    overrides += FEW_OF_MODEL.get(values["model"].get("use"), ())
    if values["buffer"].get("use") == "rollout-sequences":
        overrides += ["buffer.sequence_length=8"]
    if values["env"]["use"] == "vmas":
        overrides += ["env.num_envs=64", "env.kwargs.n_agents=4", "evaluator.episodes=4", "buffer.minibatch_size=64"]
    arguments = [word for override in overrides for word in ("--set", override)]
    train = ["train", str(path), *arguments, "--set", "run.name=few"]
    assert cli.main([*train, "--until", str(total // 2), "--quiet"]) == 0, capsys.readouterr().err
    assert cli.main([*train, "--resume"]) == 0, capsys.readouterr().err
    rows = (tmp_path / "runs/few/metrics.csv").read_text().splitlines()
    assert int(rows[-1].partition(",")[0]) >= total  # the steps in which envpool resets an env are no frames


@pytest.mark.slow
def test_the_dqn_example_learns(tmp_path):
    """Its network balances the pole to the limit of 500 steps at some evaluation; random actions last for some 20.

    A run of 50,000 frames may miss that, and which seed does depends on the last bits of the processor's products.
    """

    def best(seed):
        changes = [f"run.folder='{tmp_path}'", f"run.seed={seed}", f"run.name='dqn-{seed}'"]
        trainer = build(load_config(EXAMPLES / "dqn-cartpole.toml", changes)).trainer
        trainer.train()
        return trainer.best_evaluation.mean_return

    assert any(best(seed) >= 450 for seed in (2, 3, 1))


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_runs(name, tmp_path):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *SCRIPTS[name]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("name", LOOSE_FILES)
def test_loose_file_trains(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = EXAMPLES / "ppo-cartpole.toml"
    hooks = [f"hook.{number}.use={hook}" for number, hook in enumerate(LOOSE_FILES[name], start=1)]
    overrides = [f'plugins.files=["{name}"]', *hooks, *FEW, *FEW_UPDATES["rollout"], "run.name=few"]
    assert load_config(config, overrides).sections["hook"][-1].provided.owner.distribution == name
    arguments = [word for override in overrides for word in ("--set", override)]
    assert cli.main(["train", str(config), *arguments]) == 0, capsys.readouterr().err
