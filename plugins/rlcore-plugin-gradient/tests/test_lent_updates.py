"""What a learner asks of rlcore-plugin-compile, and what it does where that is not installed."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from rlcore_plugin_testing import make_trainer

from rlcore.errors import ConfigError
from rlcore.plugins import host

PLUGIN = "rlcore_plugin_compile"
PPO = {
    "model": {"use": "mlp", "parts": ["actor", "critic"], "hidden": [8]},
    "estimator": {"use": "gae"},
    "loss": {"use": "ppo"},
}


@pytest.fixture
def without_the_plugin(monkeypatch):
    """Let the plugin be as if it were not installed."""
    others = [plugin for plugin in host.installed() if plugin.name != "compile"]
    monkeypatch.setattr(host, "installed", lambda: others)
    for name in (PLUGIN, f"{PLUGIN}.compiling", f"{PLUGIN}.side_by_side"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without_the_plugin")
@pytest.mark.parametrize("key", ["compile", "parallel"])
def test_a_key_of_what_is_not_installed_is_refused_when_the_run_is_built(key):
    told = rf"\[learner\] {key} = true: .* is provided by rlcore-plugin-compile, .*: pip install rlcore-plugin-compile"
    with pytest.raises(ConfigError, match=told):
        make_trainer(f"learner.{key}=true", sections=PPO)


@pytest.mark.usefixtures("without_the_plugin")
def test_the_command_refuses_it_before_the_first_frame(write_config, cli):
    refused = cli("train", write_config(learner={"use": "gradient", "compile": True}))
    assert refused.code == 2
    assert "pip install rlcore-plugin-compile" in refused.err
    assert "frames/s" not in refused.out + refused.err


def trained():
    trainer = make_trainer(sections=PPO)
    trainer.train()
    assert trainer.progress.updates
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def test_without_it_losses_follow_each_other_and_come_to_the_same_bits(request):
    with_it = trained()
    request.getfixturevalue("without_the_plugin")
    assert all(map(torch.equal, with_it, trained()))


def test_a_run_that_asks_for_none_of_it_imports_none_of_it():
    code = (
        "import sys; from rlcore_plugin_testing import make_trainer\n"
        "for key in ('learner.parallel=false', 'learner.compile=true'):\n"
        f"    make_trainer(key, sections={PPO!r}).learner\n"
        f"    print(any(name.startswith({PLUGIN + '.'!r}) for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[-2:] == ["False", "True"], "what the second asks for is imported with it"


@pytest.mark.parametrize("compiled", ["false", "true"])
def test_the_version_of_the_plugin_belongs_to_a_compiled_run(compiled):
    trainer = make_trainer(f"learner.compile={compiled}", "learner.parallel=false", sections=PPO)
    assert ("rlcore-plugin-compile" in trainer.parts.provenance.versions) == (compiled == "true")
