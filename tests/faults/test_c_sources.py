"""Source files that a run was made with, edited between its checkpoint and its resume."""

from __future__ import annotations

import sys
import textwrap
from importlib import invalidate_caches

import gymnasium
import pytest
from rlcore_plugin_testing import make_run
from rlcore_plugin_testing.faults.bits import forge

from rlcore.checkpoints.manifest import scan
from rlcore.state import sources

HOOK = """
    from rlcore import Component, hookimpl
    from shaping import factor

    class Halve:
        def __init__(self, config, context):
            pass

        @hookimpl
        def batch_process(self, batch):
            return batch.set(("next", "reward"), batch["next", "reward"] * factor())

    @hookimpl
    def provide_components():
        return [Component("hook", "halve", Halve)]
"""
HELPER = "def factor():\n    return 1.0\n"
ENV = """
    import gymnasium
    import numpy as np
    import physics

    class Line(gymnasium.Env):
        observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
        action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.place = self.np_random.normal(size=1)
            return self.place, {}

        def step(self, action):
            self.place = self.place + action * physics.SPEED
            return self.place, 1.0, bool(abs(self.place) > 5), False, {}
"""
MAKER = """
    import gymnasium
    from lines import Line

    gymnasium.register("Line-v0", "lines:Line")
"""
LOGGER = """
    from rlcore import Component, hookimpl
    from rlcore_plugin_testing.toy_parts import ToyLogger

    @hookimpl
    def provide_components():
        return [Component("logger", "lines", ToyLogger)]
"""


class Project:
    """A run with a plugin, a loose hook file with a helper beside it, a logger, and an env beside the config."""

    def __init__(self, site, folder):
        self.site, self.folder = site, folder
        site.add("rlcore-plugin-halve", "halve_plugin", HOOK.replace("shaping", "factors"))
        site.add("rlcore-plugin-lines", "lines_plugin", LOGGER)
        self.files = {name: site.folder / f"{name}.py" for name in ("factors", "shaping", "physics", "lines", "maker")}
        self.files["hooks"] = folder / "hooks.py"
        self.files |= {name: site.folder / f"{name}.py" for name in ("halve_plugin", "lines_plugin")}
        texts = {"factors": HELPER, "shaping": HELPER, "physics": "SPEED = 1.0\n"}
        texts |= {"lines": ENV, "maker": MAKER, "hooks": HOOK.replace("halve", "double")}
        for name, text in texts.items():
            self.files[name].write_text(textwrap.dedent(text))
        self.build().trainer.train()

    def edit(self, name):
        """Add a line to a file, as an editor does."""
        path = self.files[name]
        path.write_text(path.read_text() + "\nEDITED = True\n")

    def build(self, *overrides, resume=False):
        """Build the run as a new process does: nothing of the project is imported yet."""
        for name in self.files:
            sys.modules.pop(name, None)
        gymnasium.registry.pop("Line-v0", None)
        invalidate_caches()
        sources._hash_of_plugin.cache_clear()
        sections = {
            "plugins": {"files": [str(self.folder / "hooks.py")]},
            "env": {"use": "gymnasium", "id": "maker:Line-v0"},
            "hook": [{"use": "halve"}, {"use": "hooks:double"}],
            "logger": [{"use": "lines"}],
            "evaluator": [],
        }
        return make_run(*overrides, sections=sections, folder=self.folder, resume=resume)

    def resume(self):
        """Resume to twice the frames, and return the reasons that the manifest gives."""
        run = self.build("run.total_frames=128", resume=True)
        run.trainer.train()
        return run.trainer.parts.store.entries()[-1].manifest["inexact"]


@pytest.fixture
def project(site, tmp_path):
    made = Project(site, tmp_path)
    yield made
    for name in made.files:  # else workers of a later run in this process import a plugin whose files are gone
        sys.modules.pop(name, None)


def test_sources_that_stayed_are_no_reason(project, caplog):
    assert project.resume() == []
    assert "exact = false" not in caplog.text


@pytest.mark.parametrize(
    ("edited", "named"),
    [
        ("hooks", "hooks.py"),
        ("shaping", "shaping.py"),
        ("halve_plugin", "rlcore-plugin-halve"),
        ("factors", "factors.py"),
        ("maker", "maker.py"),
        ("lines", "lines.py"),
        ("physics", "physics.py"),
    ],
)
def test_an_edited_source_is_named_and_the_run_is_no_longer_called_exact(project, edited, named, caplog):
    project.edit(edited)
    reason = f"the source of {named} is not what the checkpoint was made with"
    assert project.resume() == [reason]
    assert f"exact = false: {reason}" in caplog.text


def test_an_edited_logger_changes_no_result(project):
    project.edit("lines_plugin")
    assert project.resume() == []


def test_a_checkpoint_without_sources_is_taken_as_it_is(project):
    *_, newest = scan(project.folder / "toy" / "checkpoints").entries
    forge(newest.path, domain=sources.without_sources(newest.manifest["domain"]))
    assert project.resume() == []
