"""A run of several policies asks rlcore-plugin-policies for its parts; one of a single policy does not import it."""

import subprocess
import sys

import pytest
from rlcore_plugin_testing import make_trainer

from rlcore.errors import MissingPluginError
from rlcore.plugins import host

PLUGIN = "rlcore_plugin_policies"
MODEL = {"use": "mlp", "hidden": [8]}
PPO = {"estimator": {"use": "gae"}, "loss": {"use": "ppo"}}
SEVERAL = {**PPO, "model": {"hunters": {**MODEL, "agents": ["hunter_*"]}, "prey": {**MODEL, "agents": ["prey_*"]}}}


@pytest.fixture
def without_the_plugin(monkeypatch):
    """Let the plugin be as if it were not installed."""
    others = [plugin for plugin in host.installed() if plugin.name != "policies"]
    monkeypatch.setattr(host, "installed", lambda: others)
    for name in (PLUGIN, f"{PLUGIN}.parts"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without_the_plugin")
def test_several_policies_are_refused_where_it_is_not_installed():
    told = (
        r"a run of several policies, \[model.NAME\], is provided by rlcore-plugin-policies, which is not installed: "
        "pip install rlcore-plugin-policies"
    )
    with pytest.raises(MissingPluginError, match=told):
        make_trainer(sections=SEVERAL)


def test_a_run_of_one_policy_imports_none_of_it():
    code = (
        "import sys; from rlcore_plugin_testing import make_trainer\n"
        f"make_trainer(sections={{**{PPO!r}, 'model': {MODEL!r}}}).train()\n"
        f"print(any(name.startswith({PLUGIN + '.'!r}) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"
