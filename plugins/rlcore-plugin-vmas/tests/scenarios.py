"""Scenarios for tests: agents on a line, who reach its end at different times."""

import torch
from vmas.simulator.core import Agent, Landmark, Sphere, World
from vmas.simulator.scenario import BaseScenario


class Line(BaseScenario):
    """Each world ends by itself after a number of steps that it draws; it keeps whatever scenarios may keep."""

    def make_world(self, batch_dim, device, **kwargs):
        self.uneven = kwargs.pop("uneven", False)
        assert not kwargs, f"unknown: {sorted(kwargs)}"
        world = World(batch_dim, device)
        for number in range(2):
            world.add_agent(Agent(f"agent_{number}", shape=Sphere(0.05), collide=False))
        world.add_landmark(Landmark("goal", collide=False))
        self.masses = torch.rand(batch_dim, device=device)  # drawn before the first reset
        self.age = torch.zeros(batch_dim, dtype=torch.int64, device=device)
        return world

    def reset_world_at(self, env_index=None):
        assert env_index is None
        worlds = self.world.batch_dim
        self.left = torch.randint(2, 9, (worlds,), device=self.world.device)
        self.age.zero_()
        self.wind = float(torch.rand(()))  # blows in all worlds
        self.memory = {"seen": [self.age, torch.zeros(worlds, device=self.world.device)], 3: (self.left, "name")}
        self.target = self.world.landmarks[0]
        for agent in self.world.agents:
            agent.set_pos(torch.rand(worlds, 2, device=self.world.device), batch_index=None)

    def pre_step(self):
        self.age += 1  # `memory` holds the same tensor
        self.last = self.world.agents[0]

    def observation(self, agent):
        kept = [self.age, self.memory["seen"][0], self.memory["seen"][1], self.left, self.memory[3][0], self.masses]
        width = 1 if self.uneven and agent.name == "agent_1" else 2
        kept += [torch.full_like(self.masses, self.wind)]
        observation = torch.cat([torch.stack(kept, -1).float(), agent.state.pos[:, :width]], -1)
        self.memory["seen"][1] += 0.5
        return observation

    def reward(self, agent):
        return agent.state.pos[:, :1] + torch.rand(1, device=self.world.device)

    def done(self):
        return self.age >= self.left


class Forgetful(Line):
    """Keeps a number where nobody finds it."""

    def make_world(self, batch_dim, device, **kwargs):
        count = 0

        def counted():
            nonlocal count
            count += 1
            return count

        self.counted = counted
        return super().make_world(batch_dim, device, **kwargs)

    def reward(self, agent):
        return super().reward(agent) + self.counted()


class Hiding(Line):
    """Keeps an iterator, which cannot be saved."""

    def make_world(self, batch_dim, device, **kwargs):
        self.numbers = iter(range(10**9))
        return super().make_world(batch_dim, device, **kwargs)


class NoScenario:
    """None of VMAS."""
