"""`rlcore env check`: what it finds in envs that are right, and in envs that are not."""

import pytest

MODULE = """
import gymnasium as gym
import numpy as np


class Line(gym.Env):
    def __init__(self, wrong="", dtype=np.float32):
        self.observation_space = gym.spaces.Box(-10, 10, (1,), dtype)
        self.action_space = gym.spaces.Discrete(2)
        self.wrong, self.dtype = wrong, dtype

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        self.place = float(self.np_random.integers(-1, 2))
        return self.seen(), {}

    def seen(self):
        noise = np.random.random() if self.wrong == "seed" else 0.0
        return np.array([self.place + noise] * (2 if self.wrong == "shape" else 1), self.dtype)

    def step(self, action):
        self.place += 1.0 if action else -1.0
        ended = abs(self.place) > 5 and self.wrong != "endless"
        self.place = max(-9.0, min(9.0, self.place))
        return self.seen(), 0.0 if self.wrong == "endless" else self.place, ended, False, {"is_success": self.place > 5}


for wrong in ("", "seed", "shape", "endless"):
    gym.register(f"Line{wrong.capitalize()}-v0", Line, kwargs={"wrong": wrong})
gym.register("LineDouble-v0", Line, kwargs={"dtype": np.float64}, max_episode_steps=50)
"""


@pytest.fixture
def check(cli, workdir):
    """Check an env of a module in the working directory; return what was done, and the findings by their subject."""
    (workdir / "lines.py").write_text(MODULE)

    def run(*arguments):
        done = cli("env", "check", *arguments, "--steps", 300)
        found = {}
        for line in done.out.splitlines()[:-1]:
            kind, _, rest = line.partition(" ")
            about, _, text = rest.strip().partition(": ")
            found.setdefault(about, (kind, text))
        return done, found

    return run


def test_an_env_that_is_right_passes(check):
    done, found = check("lines:Line-v0")
    assert done.code == 0
    assert {kind for kind, _ in found.values()} == {"ok"}
    assert set(found) == {"gymnasium", "form", "seeds", "dtype", "ends", "rewards", "infos", "saved state", "speed"}
    assert found["infos"][1] == "at the ends of episodes: is_success (bool)"
    assert "steps per second" in found["speed"][1]
    assert done.out.splitlines()[-1] == "problems: 0, advice: 0"


PROBLEM, ADVICE = (3, "PROBLEM"), (0, "advice")


@pytest.mark.parametrize(
    ("name", "about", "outcome", "words"),
    [
        ("LineSeed", "form", PROBLEM, "seed everything random in reset"),
        ("LineSeed", "gymnasium", PROBLEM, "non-deterministic"),
        ("LineShape", "form", PROBLEM, "shape"),
        ("LineDouble", "dtype", ADVICE, "float64: networks train in float32"),
        ("LineEndless", "ends", ADVICE, "no episode ended in 300 random steps, and there is no limit"),
        ("LineEndless", "rewards", ADVICE, "every reward was 0: nothing tells good actions from bad ones"),
    ],
)
def test_a_finding_is_named_and_only_a_problem_is_the_exit_code(name, about, outcome, words, check):
    done, found = check(f"lines:{name}-v0")
    assert (done.code, found[about][0]) == outcome
    assert words in found[about][1]


def test_the_env_of_a_config_is_checked_whatever_else_is_wrong_in_it(check, write_config):
    done, found = check("--config", write_config(env={"num_envs": 2}, loss={"clpi": 1}))
    assert done.code == 0, done.err
    assert found["saved state"][0] == "ok"


def test_what_cannot_be_checked_is_one_error(check, cli):
    assert "needs an ID, such as CartPole-v1, or --config CONFIG" in check()[0].err
    done, _ = check("CartPoel-v1")
    assert done.code == 2
    assert "CartPole" in done.err
    assert "'absent.toml' does not exist" in check("--config", "absent.toml")[0].err
