"""The contract of envs, and the rules of the map."""

from pathlib import Path

import numpy as np
import pytest
import rlcore
from pydantic import ValidationError
from rlcore_plugin_testing.contracts import EnvContract, PluginContract

EXAMPLE = Path(__file__).parents[1] / "example.toml"
UP, RIGHT, DOWN, LEFT = range(4)


class TestPlugin(PluginContract):
    plugin = "gridworld"


class TestGridworld(EnvContract):
    use = "gridworld"
    config = {"num_envs": 2, "map": ["..G"], "limit": 40}
    truncates = {"limit": 1, "map": [".....G"]}

    def cell(self, env, action):
        return int(env.step(np.array([action])).observation[0].argmax())

    def test_walls_and_edges_stop_a_walker(self):
        env = self.env(num_envs=1, map=[".#", "#G"])
        env.reset(seed=0)
        assert [self.cell(env, action) for action in (UP, RIGHT, DOWN, LEFT)] == [0, 0, 0, 0]

    def test_moves_go_where_they_say(self):
        env = self.env(num_envs=1, map=[".##", "#.#", "##G"])
        cells = set()
        for seed in range(20):
            cells.add(int(env.reset(seed=seed)[0].argmax()))
        assert cells == {0, 4}, "a walker starts in every free cell"
        env = self.env(num_envs=1, map=["...", "..#", "#G#"])
        env.reset(seed=0)
        for action, expected in ((LEFT, None), (LEFT, None), (UP, 0), (RIGHT, 1), (RIGHT, 2), (LEFT, 1), (DOWN, 4)):
            cell = self.cell(env, action)
            assert expected is None or cell == expected

    def test_the_goal_pays_and_terminates(self):
        env = self.env(num_envs=1, map=[".G"])
        env.reset(seed=0)
        step = env.step(np.array([RIGHT]))
        assert (float(step.reward[0]), bool(step.terminated[0])) == (1.0, True)
        assert step.final_observation[0].tolist() == [0.0, 1.0]

    @pytest.mark.parametrize("rows", [[".G", "."], [".."], ["GG."], ["G#"], ["x.G"]])
    def test_what_is_no_map_is_refused(self, rows):
        with pytest.raises(ValidationError, match="a map has"):
            self.settings(map=rows)


def test_the_example_learns(tmp_path):
    trainer = rlcore.build(rlcore.load_config(EXAMPLE, [f"run.folder='{tmp_path}'"])).trainer
    trainer.train()
    assert trainer.last_evaluation.mean_return > 0.85
