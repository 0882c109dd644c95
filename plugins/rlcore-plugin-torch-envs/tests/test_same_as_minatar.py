"""Each game is MinAtar's, step by step: the original gets the random numbers that the tensors drew."""

import gymnasium
import numpy as np
import pytest
import torch
from rlcore_plugin_device import Random
from rlcore_plugin_torch_envs.env import MINATAR, Config, make

from rlcore.errors import ConfigError
from rlcore.types import Context

minatar = pytest.importorskip("minatar.gym")
if "MinAtar/Breakout-v1" not in gymnasium.registry:
    minatar.register_envs()

NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)
NUM_ENVS = 8
# the methods of the original that draw, and which numbers of a step they get; a new episode has a draw of its own
DRAWS = {
    "Asterix": {"_spawn_entity": slice(0, 3)},
    "Breakout": {},
    "Freeway": {"_randomize_cars": slice(0, 16)},
    "Seaquest": {"_spawn_enemy": slice(0, 3), "_spawn_diver": slice(3, 5)},
    "SpaceInvaders": {},
}


class Playback:
    """What MinAtar asks for random numbers; it gives those that were drawn."""

    def __init__(self):
        self.numbers = []

    def rand(self, count=None):
        taken = self._take(count or 1)
        return float(taken[0]) if count is None else taken

    def randint(self, low, high=None, size=None):
        low, high = (0, low) if high is None else (low, high)
        taken = low + np.floor(self._take(size or 1) * np.float32(high - low)).astype(int)
        return int(taken[0]) if size is None else taken

    def _take(self, count):
        taken, self.numbers = self.numbers[:count], self.numbers[count:]
        assert len(taken) == count, "it asks for more numbers than were drawn"
        return np.array(taken, dtype=np.float32)


class Original:
    """A game of MinAtar that plays back: of a step, of whether the action sticks, and of a new episode."""

    def __init__(self, name):
        self.env = minatar.BaseEnv(**gymnasium.registry[name].kwargs)
        self.game = self.env.game.env
        self.numbers = Playback()
        self.env.game.random = self.game.random = self.numbers
        self.drawn = ()
        for method, part in DRAWS[type_of(name)].items():
            setattr(self.game, method, self._playing(getattr(self.game, method), part))

    def _playing(self, method, part):
        def playing(*args, **kwargs):
            self.numbers.numbers = list(self.drawn[part])
            return method(*args, **kwargs)

        return playing

    def reset(self, drawn):
        self.drawn = self.numbers.numbers = list(drawn)
        return self.env.reset()[0]

    def step(self, action, sticks, drawn):
        self.numbers.numbers, self.drawn = [sticks], drawn
        return self.env.step(action)[:3]

    def actions(self):
        return self.env.action_set


class Drawn:
    """Records what an env draws: whether actions stick, and what comes in a step and with a new episode."""

    def __init__(self, monkeypatch):
        self.calls = []
        uniform = Random.uniform

        def recorded(random, *args, **kwargs):
            numbers = uniform(random, *args, **kwargs)
            self.calls.append(numbers.flatten(1).numpy() if numbers.dim() > 1 else numbers[:, None].numpy())
            return numbers

        monkeypatch.setattr(Random, "uniform", recorded)

    def of_reset(self):
        calls, self.calls = self.calls, []
        return calls[0] if calls else np.zeros((NUM_ENVS, 0))

    def of_step(self, game):
        calls, self.calls = self.calls, []
        none = np.zeros((NUM_ENVS, 0))
        sticks, calls = calls[0][:, 0], calls[1:]
        played = calls.pop(0) if DRAWS[game] else none
        begun = calls.pop(0) if calls else none
        assert not calls
        return sticks, played, begun


def type_of(name):
    return name.removeprefix("MinAtar/").partition("-")[0]


def made(name, **keys):
    return make(Config(id=name, **keys), Context.alone("tests"))


# --- players, who reach what random actions do not: actions of MinAtar by its own attributes


def any_action(game, generator):
    return int(generator.integers(6))


def follow_ball(game, generator):
    """Keep the ball in play for long, so that the bricks come again."""
    if generator.random() < 0.03:
        return any_action(game, generator)
    x, y, way, pos = game.ball_x, game.ball_y, game.ball_dir, game.pos
    goes = 1 if way in (1, 2) else -1
    steps = 9 - y if way >= 2 else 9 + y
    for _ in range(steps - 1):
        x += goes
        if not 0 <= x <= 9:
            x, goes = min(max(x, 0), 9), -goes
    return LEFT if x < pos else RIGHT if x > pos else NOTHING


def cross(game, generator):
    return UP if generator.random() < 0.9 else any_action(game, generator)


def seek_gold(game, generator):
    things = [thing for thing in game.entities if thing is not None]
    if generator.random() < 0.2 or not things:
        return any_action(game, generator)
    if any(not gold and y == game.player_y and abs(x - game.player_x) < 3 for x, y, _, gold in things):
        return UP if game.player_y > 4 else DOWN
    gold = [thing for thing in things if thing[3]]
    if not gold:
        return NOTHING
    x, y = min(gold, key=lambda thing: abs(thing[1] - game.player_y))[:2]
    if y != game.player_y:
        return UP if y < game.player_y else DOWN
    return LEFT if x < game.player_x else RIGHT


def shoot_aliens(game, generator):
    if generator.random() < 0.15:
        return any_action(game, generator)
    if game.e_bullet_map[6:, game.pos].any():
        return LEFT if game.pos > 4 else RIGHT
    if game.alien_map[:, game.pos].any() and game.shot_timer == 0:
        return FIRE
    columns = np.flatnonzero(game.alien_map.any(axis=0))
    nearest = columns[np.abs(columns - game.pos).argmin()]
    return LEFT if nearest < game.pos else RIGHT if nearest > game.pos else NOTHING


def dive(game, generator):
    """Look for divers, shoot what comes, and go up in time; without divers stay at the surface at times."""
    chance = generator.random()
    if chance < 0.15:
        return any_action(game, generator)
    if game.oxygen < 30 or game.diver_count >= 6 or game.diver_count < 0:
        if game.sub_y > 1 or (game.sub_y == 1 and game.diver_count != 0):
            return UP
        if game.diver_count != 0:
            return DOWN if chance < 0.7 else FIRE
    ahead = [
        enemy
        for enemy in game.e_fish + game.e_subs
        if enemy[1] == game.sub_y and (enemy[0] > game.sub_x) == game.sub_or
    ]
    if ahead and game.shot_timer == 0:
        return FIRE
    if any(enemy[1] == game.sub_y and abs(enemy[0] - game.sub_x) < 3 for enemy in game.e_fish + game.e_subs):
        return DOWN if game.sub_y < 5 else UP
    if not game.divers:
        return NOTHING if chance < 0.5 else any_action(game, generator)
    x, y = min(game.divers, key=lambda diver: abs(diver[1] - game.sub_y))[:2]
    if y != game.sub_y:
        return UP if y < game.sub_y and game.sub_y > 1 else DOWN
    return LEFT if x < game.sub_x else RIGHT


def wait_and_shoot(game, generator):
    """Let the sea fill with enemies, and go among them in the end."""
    return NOTHING if generator.random() < 0.85 else any_action(game, generator)


# --- what an episode may begin with, to reach late stages of a game

CROWDED = {"e_spawn_speed": 1, "e_spawn_timer": 0, "move_speed": 2, "diver_count": 3, "d_spawn_timer": 0}
OUT_OF_AIR = {"oxygen": 9, "sub_y": 4, "surface": False}
SIX = {"diver_count": 6, "sub_y": 1, "surface": False, "oxygen": 137}
LAST_ALIEN = np.zeros((10, 10), dtype=bool)
LAST_ALIEN[6, 3] = True
LOW_ALIEN = np.zeros((10, 10), dtype=bool)
LOW_ALIEN[8, 3] = True
ONE_ALIEN = {"alien_map": LAST_ALIEN, "enemy_move_interval": 7, "alien_move_timer": 1}
LANDING = {"alien_map": LOW_ALIEN, "alien_move_timer": 0, "pos": 9}
LAST_BRICK = np.zeros((10, 10), dtype=bool)
LAST_BRICK[2, 5] = True
FASTER = {"spawn_speed": 2, "spawn_timer": 0, "move_speed": 2, "ramp_timer": 3, "ramp_index": 8}

PLAYS = {
    "asterix-v0": ("MinAtar/Asterix-v0", any_action, {}, 300),
    "asterix": ("MinAtar/Asterix-v1", seek_gold, {}, 800),
    "asterix-late": ("MinAtar/Asterix-v1", seek_gold, FASTER, 400),
    "breakout-v0": ("MinAtar/Breakout-v0", any_action, {}, 300),
    "breakout": ("MinAtar/Breakout-v1", follow_ball, {}, 800),
    "breakout-last-brick": ("MinAtar/Breakout-v1", follow_ball, {"brick_map": LAST_BRICK}, 200),
    "freeway-v0": ("MinAtar/Freeway-v0", any_action, {}, 300),
    "freeway": ("MinAtar/Freeway-v1", cross, {}, 600),
    "freeway-end": ("MinAtar/Freeway-v1", cross, {"terminate_timer": 150}, 320),
    "seaquest-v0": ("MinAtar/Seaquest-v0", any_action, {}, 300),
    "seaquest": ("MinAtar/Seaquest-v1", dive, {}, 800),
    "seaquest-air": ("MinAtar/Seaquest-v1", any_action, OUT_OF_AIR, 40),
    "seaquest-crowded": ("MinAtar/Seaquest-v1", wait_and_shoot, CROWDED, 600),
    "seaquest-hunt": ("MinAtar/Seaquest-v1", dive, CROWDED, 800),
    "seaquest-six": ("MinAtar/Seaquest-v1", dive, SIX, 300),
    "space-invaders-v0": ("MinAtar/SpaceInvaders-v0", any_action, {}, 300),
    "space-invaders": ("MinAtar/SpaceInvaders-v1", shoot_aliens, {}, 800),
    "space-invaders-last": ("MinAtar/SpaceInvaders-v1", shoot_aliens, ONE_ALIEN, 200),
    "space-invaders-landing": ("MinAtar/SpaceInvaders-v1", any_action, LANDING, 60),
}


def edited(env, originals, ended, changes):
    """Write the same values into tensors and originals of the envs whose episode begins."""
    state = dict(env.moment.state)
    for name, value in changes.items():
        state[name] = state[name].clone()
        state[name][ended] = torch.as_tensor(value, dtype=state[name].dtype)
        for index in ended:
            setattr(originals[index].game, name, value.astype(float) if isinstance(value, np.ndarray) else value)
    env.moment = env.moment._replace(state=state)


@pytest.mark.parametrize("name", MINATAR)
def test_spaces_and_limit_are_those_of_minatar(name):
    spec, registered = made(name).spec, gymnasium.registry[name]
    original = minatar.BaseEnv(**registered.kwargs)
    assert spec.observation_space == original.observation_space
    assert spec.action_space == original.action_space
    assert spec.max_episode_steps is registered.max_episode_steps is None


@pytest.mark.parametrize("play", PLAYS)
def test_every_step_is_that_of_minatar(play, monkeypatch):
    name, player, changes, steps = PLAYS[play]
    drawn, generator = Drawn(monkeypatch), np.random.default_rng(3)
    env = made(name, num_envs=NUM_ENVS)
    drawn.calls.clear()
    observation = env.reset_tensors(11)
    if len(drawn.calls) > 1:
        drawn.calls = drawn.calls[:1]  # the rest is a step on the side, which holds the form
    begun = drawn.of_reset()
    originals = [Original(name) for _ in range(NUM_ENVS)]
    for index, original in enumerate(originals):
        np.testing.assert_array_equal(observation[index].numpy(), original.reset(begun[index]))
    edited(env, originals, list(range(NUM_ENVS)), changes)
    ends = rewards = stuck = 0
    for _ in range(steps):
        chosen = [player(original.game, generator) for original in originals]
        allowed = originals[0].actions()
        actions = np.array([allowed.index(action) if action in allowed else 0 for action in chosen])
        step = env.step_tensors(torch.from_numpy(actions))
        sticks, played, begun = drawn.of_step(type_of(name))
        ended = []
        for index, original in enumerate(originals):
            expected, reward, terminal = original.step(actions[index], sticks[index], played[index])
            np.testing.assert_array_equal(step.final_observation[index].numpy(), expected)
            assert step.reward[index] == reward
            assert step.terminated[index] == terminal
            if terminal:
                expected = original.reset(begun[index])
                ended.append(index)
            np.testing.assert_array_equal(step.observation[index].numpy(), expected)
            stuck += int(allowed[actions[index]] != original.env.game.last_action)
        edited(env, originals, ended, changes)
        ends, rewards = ends + len(ended), rewards + float(step.reward.sum())
    assert not step.truncated.any()
    assert stuck > 0
    assert ends > 0 or play in ("freeway-v0", "freeway")
    assert rewards > 0 or play in ("freeway-v0", "seaquest-air", "space-invaders-landing")


def test_precision_is_none_of_a_game():
    with pytest.raises(ConfigError, match="precision"):
        made("MinAtar/Breakout-v1", precision="float64")
