"""What is published where, and what is lent; the generator of the reference holds the file against the plugins."""

import importlib
import re
import sys
from pathlib import Path

import pytest

import rlcore
from rlcore import algorithms, buffers, collectors, envs, helpers, learners, loggers
from rlcore.config.policies import SEVERAL
from rlcore.errors import MissingPluginError
from rlcore.plugins.catalogue import PUBLISHED, Published
from rlcore.plugins.known import lend, lent_to, published

# names that no package of the core offers: it takes them itself where a user asks for what they do
ASKED_FOR = [
    ("rlcore.cli", "train_seeds", "rlcore train --seeds"),
    ("rlcore.config", "is_example", "the examples"),
    ("rlcore_plugin_agents", "agent_html", "the picture of an agent"),
    ("rlcore_plugin_presets", "read_metrics", "the reading of curves"),
    ("rlcore.envs", "OnLeaf", "[[transform]] leaf"),
    ("rlcore.run", "JointModel", SEVERAL),
    ("rlcore.run", "JointParts", SEVERAL),
    ("rlcore.run", "assigned", SEVERAL),
    ("rlcore.run", "divided", "[ranks]"),
    ("rlcore.run", "plot_runs", "the drawing of curves"),
    ("rlcore.scripts", "OptimizerOfPolicy", "rlcore.scripts.OptimizerOfPolicy"),
    ("rlcore.scripts", "loss_of_policies", "Trainer(loss_module={policy: loss})"),
    ("rlcore.training", "gathered", "rlcore.training.gathered"),
    ("rlcore.training", "merged", "a row over several ranks"),
]
PLUGINS = Path(__file__).parents[3] / "plugins"
COMPONENTS = [(kind, name) for one in PUBLISHED.values() for kind, names in one.components.items() for name in names]


def test_no_two_plugins_publish_one_name():
    """One plugin may have a model and a loss of one name."""
    names = [
        {name for of_kind in published.components.values() for name in of_kind} for published in PUBLISHED.values()
    ]
    assert sum(map(len, names)) == len(set().union(*names))


@pytest.mark.parametrize(
    "package",
    [rlcore, algorithms, buffers, collectors, envs, helpers, loggers, learners],
    ids=lambda package: package.__name__,
)
def test_what_is_lent_comes_from_the_module_of_the_row(package):
    assert lent_to(package.__name__)
    for name, (plugin, module) in lent_to(package.__name__).items():
        value, home = getattr(package, name), f"rlcore_plugin_{plugin}.{module}"
        assert value is getattr(importlib.import_module(home), name)
        # a name of a column, and another name for what is elsewhere, do not say where they are from
        elsewhere = "builtins", "typing", "tensordict.nn.probabilistic"
        assert isinstance(value, str) or value.__module__ in (home, *elsewhere)


def test_the_packages_that_lend_on_are_these():
    assert {package for one in PUBLISHED.values() for package in one.lends} == {
        "rlcore",
        "rlcore.algorithms",
        "rlcore.buffers",
        "rlcore.collectors",
        "rlcore.helpers",
        "rlcore.learners",
        "rlcore.loggers",
        *(package for package, _, _ in ASKED_FOR),
    }


@pytest.mark.parametrize(("package", "name", "need"), ASKED_FOR)
def test_what_the_core_asks_a_plugin_for_says_what_to_install_without_it(package, name, need, monkeypatch):
    plugin, module = lent_to(package)[name]
    home = f"rlcore_plugin_{plugin}"
    assert lend(package, name, need) is getattr(importlib.import_module(f"{home}.{module}"), name)
    for imported in [*filter(lambda one: one.partition(".")[0] == home, sys.modules), home]:
        monkeypatch.setitem(sys.modules, imported, None)
    with pytest.raises(
        MissingPluginError, match=f"^{re.escape(need)} is provided by rlcore-plugin-{plugin}, which is not inst"
    ):
        lend(package, name, need)


@pytest.mark.parametrize("package", [algorithms, helpers], ids=lambda package: package.__name__)
def test_a_package_that_is_lent_as_a_whole_lists_its_names_and_says_what_to_install(package, monkeypatch):
    home = "rlcore_plugin_torchrl"
    for imported in [*filter(lambda one: one.partition(".")[0] == home, sys.modules), home]:
        monkeypatch.setitem(sys.modules, imported, None)
    assert sorted(package.__all__) == sorted(dir(package)) == sorted(lent_to(package.__name__))
    for name in package.__all__:
        says = (
            f"^{package.__name__}.{name} is provided by rlcore-plugin-torchrl, .*: pip install rlcore-plugin-torchrl$"
        )
        with pytest.raises(MissingPluginError, match=says):
            getattr(package, name)
        with pytest.raises(AttributeError, match=f"has no attribute '{name}x'; did you mean '"):
            getattr(package, f"{name}x")


@pytest.mark.parametrize(("kind", "name"), [("model", "q-network"), ("env", "gymnasium"), ("logger", "csv")])
def test_a_published_component_can_be_had_without_a_config(kind, name):
    component = published(kind, name)
    assert callable(component.target())
    assert hasattr(component.schema(), "model_fields")
    assert str(component) == f"{kind} {name!r} ({component.owner.distribution} {rlcore.__version__})"


def test_a_plugin_that_lacks_a_package_names_the_package(monkeypatch):
    monkeypatch.setitem(PUBLISHED, "broken", Published({"loss": ["lost"]}))
    monkeypatch.setitem(sys.modules, "absent", None)
    monkeypatch.setattr(importlib, "import_module", lambda name: __import__("absent.part"))
    with pytest.raises(
        MissingPluginError, match=r"loss 'lost', of rlcore-plugin-broken, needs absent, .*install absent"
    ):
        published("loss", "lost")


def test_a_name_that_nobody_lends_is_an_attribute_error_with_the_nearest_that_is_lent():
    with pytest.raises(AttributeError, match="module 'rlcore' has no attribute 'VideoRecoder'; did you mean 'VideoRec"):
        lend("rlcore", "VideoRecoder")
