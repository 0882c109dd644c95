"""A point that is to be moved to the middle."""

import gymnasium
from rlcore_plugin_device import FunctionalEnv

from rlcore import Component, hookimpl


class Reach(FunctionalEnv):
    observation_space = gymnasium.spaces.Box(-2, 2, (2,))
    action_space = gymnasium.spaces.Box(-1, 1, (2,))
    max_episode_steps = 20

    def initial(self, random):
        return {"position": random.uniform(-1, 1, 2)}

    def transition(self, state, action, random):
        return {"position": (state["position"] + 0.1 * action).clamp(-2, 2)}

    def observation(self, state):
        return state["position"]

    def reward(self, state, action, next_state):
        return -next_state["position"].norm(dim=-1)

    def terminal(self, state):
        return state["position"].norm(dim=-1) < 0.1


@hookimpl
def provide_components():
    return [Component("env", "reach", Reach)]
