"""Envs that remember earlier episodes, each in a way of its own."""

import itertools
import random
from collections import deque
from dataclasses import dataclass, field

import gymnasium
import numpy as np


class Line(gymnasium.Env):
    """A walk of at most 12 steps; subclasses add what they remember to rewards and lengths."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.normal(), 0
        self.begin()
        return np.array([self.place]), {}

    def step(self, action):
        self.place += self.np_random.normal() + action
        self.time += 1
        reward = self.reward()
        return np.array([self.place]), float(reward), self.time >= self.length(), False, self.info()

    def begin(self):
        """Remember that an episode began."""

    def reward(self):
        return self.place

    def length(self):
        return 12

    def info(self):
        return {}


class RewardByEpisodes(Line):
    episodes = 0

    def begin(self):
        self.episodes += 1

    def reward(self):
        return self.place * self.episodes


class LengthByEpisodes(RewardByEpisodes):
    def length(self):
        return 5 + self.episodes % 9


class NoiseEveryFiftySteps(Line):
    steps = 0

    def reward(self):
        self.steps += 1
        return self.place + (self.np_random.normal() if self.steps % 50 == 0 else 0)


class BestSoFar(Line):
    def __init__(self):
        self.best = np.array([-np.inf])

    def reward(self):
        beaten = self.place > self.best[0]
        self.best[0] = max(self.best[0], self.place)
        return 10.0 if beaten else 0.0


class LongCounter(Line):
    """Nothing to be seen for a thousand steps."""

    def __init__(self):
        self.counts = {"steps": 0}

    def reward(self):
        self.counts["steps"] += 1
        return self.place * (self.counts["steps"] > 1000)


class Visits(Line):
    """A bonus for places that were not often visited."""

    def __init__(self):
        self.visits = {}

    def reward(self):
        here = (round(self.place), self.time)
        self.visits[here] = self.visits.get(here, 0) + 1
        return 1 / self.visits[here]


class OwnNoise(Line):
    """Uses generators that no reset seeds."""

    def __init__(self):
        self.noises = [np.random.default_rng(3), random.Random(4)]

    def reward(self):
        return self.place + self.noises[0].normal() + self.noises[1].random()


@dataclass
class Statistics:
    recent: deque = field(default_factory=lambda: deque(maxlen=7))
    seen: set = field(default_factory=set)
    level: np.float32 = field(default_factory=lambda: np.float32(1))


class Adaptive(Line):
    """Keeps statistics in an object, and another name for a part of it."""

    def __init__(self):
        self.statistics = Statistics()
        self.recent = self.statistics.recent

    def reward(self):
        self.recent.append(self.place)
        self.statistics.seen.add(str(round(self.place)))
        self.statistics.level *= np.float32(1.001)
        return sum(self.recent) * self.statistics.level + len(self.statistics.seen)


class Closure(Line):
    """Remembers in a variable of a function."""

    def __init__(self):
        count = 0

        def counted():
            nonlocal count
            count += 1
            return count

        self.counted = counted

    def reward(self):
        return self.place * self.counted()


class Iterating(Line):
    """Has an iterator, which cannot be put back."""

    def __init__(self):
        self.numbers = itertools.count()
        self.factor = 0

    def begin(self):
        self.factor = next(self.numbers)

    def reward(self):
        return self.place * self.factor


class Recording(Line):
    """Makes an object for every episode, which nobody else could make."""

    def __init__(self):
        self.records = []

    def begin(self):
        self.records.append(Statistics())

    def reward(self):
        return self.place * len(self.records)


class InTheClass(Line):
    total = 0

    def reward(self):
        InTheClass.total += 1
        return self.place * InTheClass.total


STEPS = 0


class InTheModule(Line):
    def reward(self):
        global STEPS
        STEPS += 1
        return self.place * STEPS


class OnlyInInfos(Line):
    """Counts what nothing but the info of an end shows."""

    def __init__(self):
        self.tallies = [0, 0.5]

    def info(self):
        self.tallies[0] += self.place > 0
        return {"tally": self.tallies[0]}


class ForgetsForInfos(gymnasium.Wrapper):
    """Has a state of its own, and leaves out what only infos show."""

    def __init__(self, env):
        super().__init__(env)
        self.total, self.ends = 0.0, 0

    def step(self, action):
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.total += reward
        self.ends += terminated
        return observation, self.total, terminated, truncated, {**info, "ends": self.ends}

    def state_dict(self):
        return {"total": self.total}

    def load_state_dict(self, state):
        self.total = state["total"]


class Hoarder(Line):
    """Remembers more than anybody would save."""

    at_once = 200

    def __init__(self):
        self.all = []

    def reward(self):
        self.all += [[self.place] for _ in range(self.at_once)]
        return self.place * len(self.all)


class SlowHoarder(Hoarder):
    at_once = 20


class Lucky(Line):
    """Changes once, which no short trial shows, and then only its rewards."""

    luck = 0.0

    def begin(self):
        if self.np_random.random() < 0.08:
            self.luck = 1.0

    def reward(self):
        return self.place + self.luck


REMEMBERING = (
    *(RewardByEpisodes, LengthByEpisodes, NoiseEveryFiftySteps, BestSoFar, LongCounter, Visits, OwnNoise, Adaptive),
    *(Closure, Iterating, Recording, InTheClass, InTheModule, OnlyInInfos, Hoarder),
)
RESTORED = REMEMBERING[:9]
REFUSED = {
    "Iterating": "numbers",
    "Recording": "records",
    "InTheClass": "InTheClass.total",
    "InTheModule": "STEPS",
    "Hoarder": "all",
}


def register():
    """Register every env of this file."""
    for kind in (*REMEMBERING, SlowHoarder, Lucky):
        gymnasium.register(f"remembering/{kind.__name__}-v0", kind)
    gymnasium.register("remembering/ForgetsForInfos-v0", lambda: ForgetsForInfos(Line()))
