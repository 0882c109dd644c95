"""`rlcore init`: what is written trains, and nothing that was there is written over."""

import io
import shlex
import subprocess
import sys

import gymnasium
import pytest
from rlcore_plugin_presets.example import examples
from rlcore_plugin_presets.presets import presets

from rlcore import load_config
from rlcore.cli import command_line as cli
from rlcore.config.file import read

FEW = ("run.total_frames=256", "metrics.every=128", "evaluator.episodes=1")
FEW_UPDATES = (
    "run.total_updates=16",
    "metrics.every=8",
    "evaluator.every=16",
    "evaluator.episodes=1",
    "checkpoint.every=16",
    "buffer.minibatch_size=16",
    "buffer.updates_per_iteration=8",
)
FEW_OF = {
    "rollout": ["collector.frames_per_batch=256", "buffer.epochs=1"],
    "replay": [
        "collector.frames_per_batch=64",
        "buffer.warmup_frames=64",
        "buffer.updates_per_batch=2",
        "buffer.minibatch_size=16",
    ],
}
FEW_OF["replay:prioritized"] = FEW_OF["replay:sequences"] = FEW_OF["replay"]
FEW_OF["imagined-replay"] = [
    *FEW_OF["replay"],
    "buffer.dynamics_every=256",
    "buffer.dynamics_max_epochs=4",
    "buffer.rollouts_every=256",
    "buffer.rollouts=100",
    "model.dynamics_hidden=[16]",
]
FEW_OF["datasets:dataset"] = []
FEW_OF["imagined-dataset"] = [
    "buffer.dynamics_max_epochs=4",
    "buffer.rollouts_every=8",
    "buffer.rollouts=100",
    "model.dynamics_hidden=[16]",
]
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


def few_of(values):
    """Return changes that make a run of a preset short."""
    few = [*(FEW_UPDATES if "total_updates" in values["run"] else FEW), *FEW_OF[values["buffer"].get("use", "rollout")]]
    if "evaluator" in values:
        few += ["evaluator.max_episode_steps=20"]
    if values["env"]["use"] == "pettingzoo":
        few += ["collector.frames_per_batch=258"]
    if values.get("collector", {}).get("use", "").startswith("parallel:"):
        few += ["collector.start_method=fork"]  # the server of other workers imports torch once more
    if values["model"]["use"] == "dreamer":
        few += ["buffer.sequence_length=8", "buffer.overlap=4"]
    if values["model"]["use"] == "tdmpc2":  # else hundreds of plans in every step of an evaluation
        few += ["model.samples=8", "model.prior_samples=2", "model.elites=2", "model.iterations=1"]
    # so few updates that the turn of an optimizer may never come, which is refused
    return few + [f"optimizer.{one['name']}.every=2" for one in values["optimizer"] if one.get("every", 1) > 2]


@pytest.mark.parametrize("preset", presets(), ids=lambda preset: preset.name)
def test_what_every_preset_writes_trains(preset, rlcore, tmp_path):
    env = "" if preset.env_id is None else f"--env {preset.env_id}"
    rlcore(f"init {preset.name} {env} --name few")
    values = read(tmp_path / "few.toml").values
    few = few_of(values)
    if "path" in values["buffer"]:
        rlcore(f"data record few.toml --random --episodes 3 --out {values['buffer']['path']}")
    if preset.about.env_key == "game":
        few += [*FEW_PIXELS, *(["buffer.capacity=1_000"] if "capacity" in values["buffer"] else [])]  # else 7 GB
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


def test_an_id_without_a_version_is_the_newest(rlcore):
    printed = rlcore("init dqn --env CartPole")
    assert "(preset dqn-classic-control)" in printed
    assert "  to fit the env: [env] id = 'CartPole-v1'\n" in printed
    assert "no problems found" in rlcore("config check dqn-CartPole.toml")


def test_data_that_are_not_there_are_told_before_the_next_command(rlcore):
    printed = rlcore("init bc --env FrozenLake-v1")
    assert "  to fit the env: [[transform]] use = 'transforms:flatten'\n" in printed
    assert "before it trains: 'data/episodes' is no dataset: there is no such folder; rlcore data record RUN" in printed
    assert "before it trains" not in rlcore("init ppo --env CartPole-v1")


MY_ENVS = """
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple

SEEN = {
    "Bits": MultiBinary(5),
    "Numbers": MultiDiscrete([3, 4]),
    "Bytes": Box(0, 255, (84, 84, 3), np.uint8),
    "Floats": Box(0, 255, (84, 84), np.float32),
    "Cubes": Box(0, 255, (40, 40, 40), np.uint8),
    "Camera": Dict(camera=Box(0, 255, (40, 40, 3), np.uint8), place=Box(-1, 1, (2,), np.float32)),
    "Deep": Dict(inner=Tuple([Discrete(3), Box(-1, 1, (2, 2))]), said=Text(8)),
}
ACTED = {
    "Bits": MultiBinary(3), "Numbers": MultiDiscrete([2, 3]), "Steps": Box(-2, 2, (2,), np.int64), "Two": Discrete(2)
}


class Any(gymnasium.Env):
    def __init__(self, seen, acted):
        self.observation_space, self.action_space, self.count = SEEN[seen], ACTED[acted], 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.count = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.count += 1
        return self.observation_space.sample(), 1.0, self.count >= 9, False, {}


for seen in SEEN:
    for acted in ACTED:
        gymnasium.register(f"{seen}{acted}-v0", Any, kwargs={"seen": seen, "acted": acted})
"""
FLAT = [{"use": "transforms:flatten"}]
NATURE = "rlcore_plugin_cnn.bodies:NatureCNN"


@pytest.fixture
def my_envs(tmp_path):
    (tmp_path / "my_envs.py").write_text(MY_ENVS)
    path, registered = list(sys.path), set(gymnasium.registry)
    yield
    sys.modules.pop("my_envs", None)
    sys.path[:] = path
    for env_id in set(gymnasium.registry) - registered:
        del gymnasium.registry[env_id]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ppo --env my_envs:BitsTwo-v0", {"transform": FLAT}),
        ("dqn --env my_envs:NumbersTwo-v0", {"transform": FLAT}),
        ("dqn --env my_envs:BytesTwo-v0", {"model": {"encoder": NATURE}}),
        ("ppo --env my_envs:BytesBits-v0", {"model": {"encoder": NATURE}, "absent": "running-observation-norm"}),
        ("dqn --env my_envs:FloatsTwo-v0", {"model": {"encoder": NATURE, "encoder_kwargs": {"divisor": 255.0}}}),
        ("ppo --env my_envs:CubesTwo-v0", {"model": {"encoder": NATURE, "encoder_kwargs": {"layout": "last"}}}),
        ("ppo --env my_envs:CameraTwo-v0", {"absent": "running-observation-norm"}),
        (
            "recurrent-ppo --env my_envs:DeepNumbers-v0",
            {"env": {"wrappers": [{"use": "FilterObservation", "filter_keys": ["inner"]}]}, "transform": FLAT},
        ),
        ("ppo --env my_envs:NumbersSteps-v0", {"transform": [{"use": "transforms:action-scale"}, *FLAT]}),
        ("crossq --env my_envs:BitsSteps-v0", {"transform": [{"use": "transforms:action-scale"}, *FLAT]}),
        ("sac --env my_envs:BytesSteps-v0", {"transform": [{"use": "transforms:action-scale"}]}),
        ("ppo --env mpe2.simple_spread_v3", {"env": {"use": "pettingzoo", "num_envs": 6}}),
        ("pqn --env MinAtar/Seaquest-v1", {"model": {"layout": "last"}}),  # as many channels as rows
    ],
)
def test_a_config_gets_what_the_spaces_need(line, expected, rlcore, tmp_path, my_envs):
    rlcore(f"init {line} --name few")
    text = (tmp_path / "few.toml").read_text()
    values = read(tmp_path / "few.toml").values
    assert expected.pop("absent", "nothing") not in text
    assert values.get("transform", [])[: len(expected.get("transform", []))] == expected.pop("transform", [])
    for section, keys in expected.items():
        assert keys.items() <= values[section].items()
    assert "no problems found" in rlcore("config check few.toml")
    few = few_of(values) if "capacity" not in values["buffer"] else [*few_of(values), "buffer.capacity=1_000"]
    rlcore(f"train few.toml --quiet {' '.join(f'--set {change}' for change in few)}")


def test_modules_beside_the_config_are_found_and_no_others(rlcore, tmp_path, my_envs):
    (tmp_path / "configs").mkdir()
    told = rlcore("init ppo --env my_envs:BitsTwo-v0 --output configs/mine.toml", code=2)
    assert "a module of your own, my_envs.py, lies beside the config" in told
    (tmp_path / "my_envs.py").rename(tmp_path / "configs/my_envs.py")
    rlcore("init ppo --env my_envs:BitsTwo-v0 --output configs/mine.toml")
    assert "can be built" in rlcore("train configs/mine.toml --dry-run")


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
        ("init dqn --env Pendulum-v1", "; for those: rlcore init ppo --env Pendulum-v1, or any of a2c, appo, "),
        ("init ppo --env Pusher-v4", "is only supported on `mujoco<3`"),
        ("init ppo --env pettingzoo.no_v1", "It names a module with parallel_env"),
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
    module, _, rest = read(tmp_path / name).values["env"].get("id", "").partition(":")
    if rest:  # another test of this process may have imported a module of this name
        assert (tmp_path / f"{module}.py").is_file()
    else:
        assert load_config(tmp_path / name).run.name


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
