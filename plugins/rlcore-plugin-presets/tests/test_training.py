"""Training in one line: what it gives back, and that its config does the same."""

import signal
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import numpy as np
import pytest

import rlcore
from rlcore import hookimpl
from rlcore.checkpoints.manifest import scan
from rlcore.cli import command_line as cli
from rlcore.errors import ArgumentTypeError, ConfigError, MissingPluginError, PluginError

SMALL = {"epochs": 1, "episodes": 2, "metrics.every": 256, "hidden": [8]}
FRAMES = 512


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def small(**keys):
    return rlcore.PPO("CartPole-v1", overrides=SMALL, **keys)


def digests(run):
    """Return the digest of each part, and of all that is trained, in the latest checkpoint."""
    manifest = scan(run / "checkpoints").entries[-1].manifest
    return {"all": manifest["digest"], "model": manifest["digests"]["model"]}


def test_it_returns_folder_curves_and_agent(folder):
    run = small(seed=3).train(FRAMES, quiet=True)
    assert run.folder.resolve() == folder / "runs/ppo-CartPole-v1"
    assert run.frames == run.length == FRAMES
    assert run.updates > 0
    assert run.stop_reason is None
    assert len(run.last_evaluation.returns) == 2
    assert run.curves.evaluations.frames.tolist() == [0, FRAMES]
    assert run.curves.evaluations.values[-1] == pytest.approx(run.last_evaluation.mean_return)
    assert run.curves.episodes.values.dtype == np.float64
    assert len(run.curves["episode/length"]) == len(run.curves.episodes)
    with pytest.raises(KeyError, match="did you mean 'episode/return'"):
        run.curves["episode/retrun"]
    assert run.agent.act(np.zeros(4, np.float32)) in (0, 1)
    assert run.best_agent.frames in (0, FRAMES)
    assert cli.main(["report", str(run.folder)]) == 0
    assert tomllib.loads((run.folder / "config.toml").read_text())["run"]["seed"] == 3


@pytest.fixture
def no_agents(monkeypatch):
    """An installation without rlcore-plugin-agents."""
    for name in [*sys.modules, "rlcore_plugin_agents"]:
        if name.partition(".")[0] == "rlcore_plugin_agents":
            monkeypatch.setitem(sys.modules, name, None)


def test_without_the_plugin_of_agents_all_but_the_agent_is_there(no_agents):
    run = small().train(FRAMES, quiet=True)
    assert run.frames == FRAMES
    assert len(run.curves.evaluations)
    says = r"rlcore\.load_agent is provided by rlcore-plugin-agents, .*: pip install rlcore-plugin-agents"
    for ask in (lambda: run.agent, lambda: run.best_agent, lambda: rlcore.load_agent(run.folder)):
        with pytest.raises(MissingPluginError, match=says):
            ask()


def test_the_written_config_trains_the_same_weights(folder):
    training = small(seed=5, lr=2e-3, clip_epsilon=0.1)
    training.write_config("same.toml", FRAMES)
    run = training.train(FRAMES, quiet=True)
    for config in ("same.toml", str(run.folder / "config.toml")):
        assert cli.main(["train", config, "--quiet", "--set", "run.name=again"]) == 0
        assert digests(folder / "runs/again") == digests(run.folder)
        (folder / "runs/again").rename(folder / f"of {Path(config).parent.name}")


def test_other_keys_train_other_weights(folder):
    first = small(name="one").train(FRAMES, quiet=True)
    other = small(name="two", lr=2e-3).train(FRAMES, quiet=True)
    assert digests(first.folder)["model"] != digests(other.folder)["model"]


def test_the_written_config_keeps_comments_and_is_not_written_over():
    training = small(name="mine", lr=2e-3)
    path = training.write_config("mine.toml")
    assert "# The clipped surrogate objective." in path.read_text()
    values = tomllib.loads(path.read_text())
    assert (values["run"]["name"], values["optimizer"][0]["lr"], values["buffer"]["epochs"]) == ("mine", 2e-3, 1)
    with pytest.raises(ConfigError, match="exists already"):
        training.write_config("mine.toml")


def test_a_run_without_a_name_gets_the_next_number(folder):
    for _ in range(2):
        small().train(FRAMES, quiet=True)
    assert {path.name for path in (folder / "runs").iterdir()} == {"ppo-CartPole-v1", "ppo-CartPole-v1-2"}


def test_a_run_with_a_name_is_not_written_over(folder):
    small(name="mine").train(FRAMES, quiet=True)
    with pytest.raises(ConfigError, match="exists already"):
        small(name="mine").train(FRAMES, quiet=True)


def test_training_again_goes_on_only_where_it_is_asked_for():
    training = small(name="mine")
    with pytest.raises(ConfigError, match="there is no run"):
        training.train(FRAMES, resume=True)
    training.train(FRAMES, quiet=True)
    with pytest.raises(ConfigError, match="is trained, for 512 frames; go on with"):
        training.train(2 * FRAMES)
    with pytest.raises(ConfigError, match="has 512 frames already"):
        training.train(FRAMES, resume=True)
    assert training.train(2 * FRAMES, resume=True, quiet=True).frames == 2 * FRAMES
    assert small(name="mine").train(3 * FRAMES, resume=True, quiet=True).frames == 3 * FRAMES


def test_a_preset_that_counts_updates_trains_for_so_many(folder):
    def cloned(**keys):
        few = {"evaluator.every": 20, "evaluator.episodes": 2, "metrics.every": 10, "checkpoint.every": 20}
        few |= {"updates_per_iteration": 10, "minibatch_size": 8, "hidden": [8], "path": "data"}
        return rlcore.preset("bc", "CartPole-v1", overrides=few, **keys)

    cloned().write_config("few.toml")
    assert cli.main(["data", "record", "few.toml", "--random", "--episodes", "3", "--out", "data"]) == 0
    training = cloned(name="mine")
    run = training.train(20, quiet=True)
    assert (run.length, run.updates, run.frames) == (20, 20, 0)
    with pytest.raises(ConfigError, match=r"is trained, for 20 updates; go on with train\(MORE_UPDATES_IN_TOTAL"):
        training.train(40)
    with pytest.raises(ConfigError, match="the run has 20 updates already"):
        training.train(20, resume=True)
    with pytest.raises(ArgumentTypeError, match="updates must be a whole number"):
        training.train(0)
    assert training.train(40, resume=True, quiet=True).updates == 40
    assert run.agent.act(np.zeros(4, np.float32)) in (0, 1)


class Interrupts:
    @hookimpl
    def post_steps(self, batch):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("quiet", [True, False])
def test_ctrl_c_saves_the_state_says_how_to_go_on_and_ends_the_script(quiet, caplog):
    with pytest.raises(KeyboardInterrupt) as stopped:
        small(seed=3).train(FRAMES, quiet=quiet, hooks=[Interrupts()])
    told = str(stopped.value)
    assert "TrainedRun('runs/ppo-CartPole-v1', 256 frames" in told
    assert "stopped: SIGINT" in told
    assert "stopped at frame 256, which is saved" in caplog.text, "how to go on is said even where all else is quiet"
    expression = told.partition("go on with ")[2]
    assert expression.startswith("rlcore.PPO('CartPole-v1', seed=3, overrides={")
    run = eval(expression, {"rlcore": rlcore})  # what is said works as it stands
    assert run.frames == FRAMES


def test_ctrl_c_gives_back_the_run_where_somebody_types(monkeypatch, caplog):
    monkeypatch.setattr(sys, "ps1", "In [1]: ", raising=False)
    training = small(name="mine")
    run = training.train(FRAMES, hooks=[Interrupts()])
    assert (run.frames, run.stop_reason) == (256, "SIGINT")
    assert run.agent.act(np.zeros(4, np.float32)) in (0, 1)
    assert "go on with rlcore.PPO('CartPole-v1'" in caplog.text
    assert training.train(FRAMES, resume=True).frames == FRAMES


class FailsOnce:
    def __init__(self):
        self.failures = [OSError("the disk is full")]

    @hookimpl
    def post_steps(self, batch):
        if self.failures:
            raise self.failures.pop()


def test_a_run_that_failed_is_the_one_that_resumes_and_not_an_earlier_one_of_its_name():
    small().train(FRAMES, quiet=True)
    training = small()
    with pytest.raises(OSError, match="full"):
        training.train(FRAMES, quiet=True, hooks=[FailsOnce()])
    assert training.train(2 * FRAMES, resume=True, quiet=True).folder.name == "ppo-CartPole-v1-2"


def test_a_run_that_was_stopped_says_so_where_it_is_begun_again(monkeypatch):
    monkeypatch.setattr(sys, "ps1", "In [1]: ", raising=False)
    training = small(name="mine")
    training.train(FRAMES, quiet=True, hooks=[Interrupts()])
    with pytest.raises(ConfigError, match="was stopped at 256 frames; resume=True goes on with it"):
        training.train(FRAMES)


def test_without_a_terminal_lines_say_how_far_a_run_is(folder):
    """A script in a pipe, which has set up no log: lines come before, during and after the training."""
    code = f"""
    import logging, rlcore
    rlcore.PPO("CartPole-v1", overrides={SMALL}).train({FRAMES})
    assert not logging.getLogger("rlcore").handlers
    rlcore.PPO("CartPole-v1", overrides={SMALL}).train({FRAMES}, quiet=True)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    lines = done.stderr.splitlines()
    for expected in (
        "ppo-CartPole-v1: frame 0: begins; it ends at 512",
        "ppo-CartPole-v1: frame 0: evaluation: mean return",
        "ppo-CartPole-v1: frame 512: checkpoint 0000",
        "TrainedRun('runs/ppo-CartPole-v1', 512 frames",
    ):
        assert sum(line.startswith(expected) for line in lines) == 1, (expected, lines)
    assert not any("ppo-CartPole-v1-2" in line for line in lines), "the second is quiet"


def test_objects_say_what_they_are(folder):
    training = small(name="mine", seed=3)
    assert repr(training).endswith(
        "seed=3, overrides=" + repr(SMALL) + ", name='mine'), preset ppo-classic-control: not trained>"
    )
    run = training.train(FRAMES, quiet=True)
    assert repr(run).startswith("TrainedRun('runs/mine', 512 frames, 2 updates, last evaluation ")
    assert repr(run) in repr(training)
    assert repr(run.agent) == "Agent('CartPole-v1', trained for 512 frames)"
    assert repr(run.curves).startswith("Curves(evaluation/return, evaluation/length, episode/return")
    training.write_config("mine.toml", FRAMES)
    built = rlcore.build(rlcore.load_config("mine.toml"), write=False)
    assert repr(built) == "Run('mine', without a folder, at frame 0 of 512)"
    assert repr(built.trainer) == "Trainer(loss=PPOLoss, collector=LocalCollector, optimizer=Adam, logger=None)"
    built.close()


@pytest.mark.parametrize(
    ("keys", "error", "told"),
    [
        ({"clpi_epsilon": 0.1}, ConfigError, "did you mean 'clip_epsilon'"),
        ({"clip_epsilon": -1}, ConfigError, r"\[loss\] clip_epsilon: Input should be greater than 0"),
        ({"every": 5}, ConfigError, "'every' is a key of several sections"),
        ({"overrides": {"loss.clpi": 1}}, ConfigError, r"\[loss\] clpi: unknown key"),
        ({"lr": None}, ArgumentTypeError, "lr = None cannot be written in a config"),
        ({"name": "a/b"}, ConfigError, "cannot be that of a folder"),
    ],
)
def test_a_wrong_key_is_one_error_before_anything_is_made(keys, error, told, folder):
    with pytest.raises(error, match=told):
        rlcore.PPO("CartPole-v1", **keys)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("frames", [0, -5, 1.5, True, "5"])
def test_frames_are_a_number(frames):
    with pytest.raises(ArgumentTypeError, match="a whole number above 0"):
        small().train(frames)


def test_an_env_is_named_by_its_id():
    import gymnasium

    assert rlcore.PPO(gymnasium.spec("CartPole-v1")).preset.name == "ppo-classic-control"
    for env in (lambda: None, gymnasium.make("CartPole-v1")):
        with pytest.raises(ArgumentTypeError, match=r"must be an id.*gymnasium\.register"):
            rlcore.PPO(env)


def test_a_path_may_change_what_a_section_uses():
    training = rlcore.PPO("CartPole-v1", overrides={"optimizer.use": "sgd"}, momentum=0.9)
    assert tomllib.loads(training.config_text())["optimizer"] == [{"use": "sgd", "momentum": 0.9}]


@pytest.mark.parametrize(
    "algorithm", ["PPO", "A2C", "DQN", "C51", "SAC", "TD3", "DDPG", "CrossQ", "DiscreteSAC", "RecurrentPPO", "R2D2"]
)
def test_each_algorithm_has_its_name(algorithm):
    env = "Pendulum-v1" if algorithm in ("SAC", "TD3", "DDPG", "CrossQ") else "CartPole-v1"
    training = getattr(rlcore, algorithm)(env)
    assert training.preset.about.algorithm.replace("-", "") == algorithm.lower()


def test_any_preset_can_be_named():
    assert rlcore.preset("ppo-generic", "CartPole-v1", gamma=0.9).preset.name == "ppo-generic"
    assert rlcore.preset("recurrent-sac", "Pendulum-v1", cell="gru").preset.name == "recurrent-sac-generic"
    with pytest.raises(PluginError, match="did you mean 'ppo'"):
        rlcore.preset("pop", "CartPole-v1")
