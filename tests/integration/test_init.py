"""`rlcore init`: what is written trains, and nothing that was there is written over."""

import io
import shlex
import subprocess
import sys

import pytest

from rlcore import load_config
from rlcore.cli import command_line as cli
from rlcore.cli.init_example import examples
from rlcore.config.file import read
from rlcore.presets.catalogue import presets

FEW = ("run.total_frames=512", "metrics.every=256", "evaluator.episodes=2")
FEW_UPDATES = (
    "run.total_updates=16",
    "metrics.every=8",
    "evaluator.every=16",
    "evaluator.episodes=2",
    "checkpoint.every=16",
    "buffer.minibatch_size=16",
    "buffer.updates_per_iteration=8",
)
FEW_OF = {
    "rollout": ["collector.frames_per_batch=256", "buffer.epochs=1"],
    "replay": ["collector.frames_per_batch=256", "buffer.warmup_frames=256", "buffer.updates_per_batch=2"],
}
FEW_OF["replay:prioritized"] = FEW_OF["replay:sequences"] = FEW_OF["replay"]
FEW_OF["imagined-replay"] = [
    *FEW_OF["replay"],
    "buffer.dynamics_every=256",
    "buffer.rollouts_every=256",
    "buffer.rollouts=100",
    "model.dynamics_hidden=[16]",
]
FEW_OF["datasets:dataset"] = []
FEW_OF["imagined-dataset"] = ["buffer.rollouts_every=8", "buffer.rollouts=100", "model.dynamics_hidden=[16]"]
FEW_OF["rollout-sequences"] = [*FEW_OF["rollout"], "buffer.minibatch_size=64"]
FEW_PIXELS = ["env.num_envs=2", "env.max_frames=100", "env.noop_max=0", "buffer.minibatch_size=32"]


@pytest.fixture
def rlcore(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def command(line, code=0):
        assert cli.main(shlex.split(line)) == code, capsys.readouterr()
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return command


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_what_every_preset_writes_trains(preset, rlcore, tmp_path):
    env = "" if preset.env_id is None else f"--env {preset.env_id}"
    rlcore(f"init {preset.name} {env} --name few")
    values = read(tmp_path / "few.toml").values
    buffer = values["buffer"].get("use", "rollout")
    few = [*(FEW_UPDATES if "total_updates" in values["run"] else FEW), *FEW_OF[buffer]]
    # so few updates that the turn of an optimizer may never come, which is refused
    few += [f"optimizer.{one['name']}.every=2" for one in values["optimizer"] if one.get("every", 1) > 2]
    if "path" in values["buffer"]:
        rlcore(f"data record few.toml --random --episodes 3 --out {values['buffer']['path']}")
    if preset.about.env_key == "game":
        few += [*FEW_PIXELS, *(["buffer.capacity=1_000"] if buffer == "replay" else [])]  # else a file of 7 GB
    changes = " ".join(f"--set {change}" for change in few)
    rlcore(f"train few.toml --quiet {changes}")
    assert (tmp_path / "runs/few/metrics.csv").stat().st_size


def test_it_says_what_to_type_next(rlcore):
    printed = rlcore("init ppo --env CartPole-v1")
    assert "wrote ppo-CartPole-v1.toml" in printed
    assert "measured: CartPole-v1" in printed
    for line in printed.partition("next:")[2].strip().splitlines():
        cli.parser().parse_args(shlex.split(line)[1:])
    assert "no problems found" in rlcore("config check ppo-CartPole-v1.toml")


def test_what_does_not_train_as_it_is_says_why(rlcore):
    printed = rlcore("init ppo --env FrozenLake-v1")
    assert "it does not train as it is: [transform] running-observation-norm needs observations in a Box" in printed
    assert "does not train" not in rlcore("init ppo --env CartPole-v1")


def test_a_file_that_is_there_is_left_as_it_is(rlcore, tmp_path):
    (tmp_path / "mine.toml").write_text("mine")
    told = rlcore("init ppo --env CartPole-v1 --name mine", code=2)
    assert "'mine.toml' exists already and is left as it is" in told
    assert (tmp_path / "mine.toml").read_text() == "mine"
    rlcore("init ppo --env CartPole-v1 --name mine --output configs/mine.toml")
    assert read(tmp_path / "configs/mine.toml").values["run"]["name"] == "mine"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("init", "rlcore init ppo --env CartPole-v1"),
        ("init ppo", "needs an environment: rlcore init ppo --env "),
        ("init pop --env CartPole-v1", "did you mean 'ppo'"),
        ("init ppo --env CartPol-v1", "CartPole"),
        ("init ppo --env CartPole-v1 --name a/b", "cannot be that of a folder"),
        ("init ppo --env CartPole-v1 --output /proc/no/such.toml", "cannot be written"),
    ],
)
def test_what_cannot_be_is_one_error_and_no_file(line, told, rlcore, tmp_path):
    said = rlcore(line, code=2)
    assert told in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_on_a_terminal_it_asks_for_what_was_not_said(rlcore, tmp_path, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stdin", Terminal("dqn\nCartPole-v1\n\n"))
    assert "algorithm (a2c, appo, " in rlcore("init")
    assert read(tmp_path / "dqn-CartPole-v1.toml").values["loss"]["use"] == "dqn"
    monkeypatch.setattr(sys, "stdin", Terminal("dqn\n"))
    assert "nothing was answered" in rlcore("init", code=2)


def test_the_list_shows_for_what_each_is(rlcore):
    printed = rlcore("init --list")
    for preset in presets():
        assert f"  {preset.name}: {preset.about.summary}" in printed


@pytest.mark.parametrize(
    "line", ["init ppo --env CartPole-v1", "train few.toml", "config check few.toml", "evaluate runs/few"]
)
def test_without_torch_there_is_one_message(line, tmp_path):
    (tmp_path / "few.toml").write_text('[run]\ntotal_frames = 5\n[env]\nuse = "gymnasium"\n[model]\nuse = "mlp"\n')
    code = "import sys; sys.modules['torch'] = None; from rlcore.cli.command_line import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *shlex.split(line)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: rlcore {line.split()[0]} needs PyTorch, which is not installed here: pip ")
    assert done.stderr.count("\n") == 1


# the examples


@pytest.mark.parametrize("name", [name for name in examples() if name.endswith(".toml")])
def test_an_example_is_written_with_all_that_it_names_and_loads(name, rlcore, tmp_path):
    told = rlcore(f"init --example {name.removesuffix('.toml')}")
    assert told.startswith(f"wrote {name}")
    assert load_config(tmp_path / name).run.name
    module, _, rest = read(tmp_path / name).values["env"].get("id", "").partition(":")
    assert not rest or (tmp_path / f"{module}.py").is_file()


@pytest.mark.parametrize(
    ("name", "others", "following"),
    [
        ("ppo-cartpole", [], "rlcore train ppo-cartpole.toml"),
        ("ppo-two-arms-lstm", ["two_arms.py"], "rlcore train ppo-two-arms-lstm.toml"),
        ("bc-cartpole", ["dqn-cartpole.toml"], "as the first lines of bc-cartpole.toml say"),
        ("train_from_python.py", ["ppo-cartpole.toml"], "as the first lines of train_from_python.py say"),
    ],
)
def test_an_example_brings_the_others_that_it_names(name, others, following, rlcore, tmp_path):
    assert rlcore(f"init --example {name}").split("next:")[1].strip() == following
    assert {path.name for path in tmp_path.iterdir()} - set(others) in ({name}, {f"{name}.toml"})
    assert all((tmp_path / other).read_text() == examples()[other] for other in others)


def test_an_example_that_is_there_is_not_written_over_and_what_it_names_stays(rlcore, tmp_path):
    (tmp_path / "two_arms.py").write_text("mine")
    assert rlcore("init --example ppo-two-arms-lstm").startswith("wrote ppo-two-arms-lstm.toml\n")
    assert (tmp_path / "two_arms.py").read_text() == "mine"
    assert "exists already" in rlcore("init --example ppo-two-arms-lstm", code=2)


def test_an_unknown_example_is_answered_with_all(rlcore):
    told = rlcore("init --example ppo-cartpol", code=2)
    assert "did you mean 'ppo-cartpole'" in told
    assert "sac-pendulum" in told


def test_a_config_that_is_not_there_and_is_an_example_is_answered_with_the_command(rlcore):
    told = rlcore("train examples/ppo-cartpole.toml", code=2)
    assert "rlcore init --example ppo-cartpole writes it here" in told
    assert "--example" not in rlcore("train mine.toml", code=2)
