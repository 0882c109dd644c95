"""`rlcore init` for the environments that can be made here: what it writes can be built, and trains."""

import io
import shlex
import sys

import gymnasium
import pytest
from rlcore_plugin_gymnasium.families import FAMILIES
from rlcore_plugin_gymnasium.registering import register

from rlcore.cli import command_line as cli

# how init says what to do instead, where an environment cannot be made or trained on with the algorithm
REFUSALS = (
    "; for those: rlcore init ",  # its actions are for another algorithm
    "pip install",
    "have been moved to the gymnasium-robotics project",
    "is only supported on `mujoco<3`",
    "is not known to work with",  # versions of what is installed
    "in a class of your own",  # actions that no model has
)
FEW = {
    "ppo": "run.total_frames=512 collector.frames_per_batch=256 buffer.epochs=1 metrics.every=256 evaluator.episodes=1",
    "dqn": (
        "run.total_frames=512 collector.frames_per_batch=256 buffer.warmup_frames=256 buffer.capacity=1_000 "
        "buffer.updates_per_batch=2 metrics.every=256 evaluator.episodes=1"
    ),
}


def one_of_each_kind():
    """Return an id of each class of environments that is registered, or may be: those of Gymnasium and its families."""
    for family in FAMILIES:
        for beginning in family.ids[:1] if family.modules else ():
            try:
                register(f"{beginning}Any-v0")
            except Exception:  # of a library that is broken here; its ids are refused below
                continue
    kinds = {}
    for env_id, spec in sorted(gymnasium.registry.items()):
        # a class itself is what another test registered
        elsewhere = isinstance(spec.entry_point, type) or str(spec.entry_point).startswith("shimmy.atari")
        if ":" not in env_id and not elsewhere:
            kinds.setdefault(str(spec.entry_point), env_id)
    others = ("FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "ALE/Pong-v5", "dm_control/cartpole-swingup-v0")
    return sorted({*kinds.values(), *others, "mpe2.simple_spread_v3", "pettingzoo.butterfly.pistonball_v6"})


@pytest.fixture
def rlcore(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    def command(line):
        code = cli.main(shlex.split(line))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


KINDS = one_of_each_kind()
# an environment is looked into alike for every algorithm; what DQN refuses besides are actions, alike in a family
FAMILY = {env_id.partition("-")[0].partition("/")[0]: env_id for env_id in KINDS}
CASES = [*(("ppo", env_id) for env_id in KINDS), *(("dqn", env_id) for env_id in FAMILY.values())]


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "env_id"), CASES)
def test_what_is_written_can_be_built_or_one_thing_is_said(algorithm, env_id, rlcore, tmp_path):
    code, printed, told = rlcore(f"init {algorithm} --env {env_id} --name few")
    if code:
        assert not list(tmp_path.glob("*.toml"))
        assert any(refusal in told for refusal in REFUSALS), told
        assert told.count("\n") == 1 + told.count("WARNING")
        return
    assert "wrote few.toml" in printed


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
@pytest.mark.parametrize(
    "env_id",
    [
        *("FrozenLake-v1", "Taxi-v4", "CliffWalking-v1", "Blackjack-v1"),
        *("MinAtar/Breakout-v1", "MiniGrid-Empty-5x5-v0", "BabyAI-GoToObj-v0"),
    ],
)
def test_what_is_written_trains(algorithm, env_id, rlcore):
    assert rlcore(f"init {algorithm} --env {env_id} --name few")[0] == 0
    assert rlcore("config check few.toml")[0] == 0
    changes = " ".join(f"--set {change}" for change in FEW[algorithm].split())
    code, _, told = rlcore(f"train few.toml --quiet {changes} --set env.max_episode_steps=50")
    assert code == 0, told
