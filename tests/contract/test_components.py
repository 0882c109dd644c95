"""The components of the core keep the contracts of their kinds; and nothing in this repository goes without one."""

import importlib
import json
import tomllib
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from rlcore_plugin_testing.contracts import (
    CheckpointerContract,
    CollectorContract,
    ComponentContract,
    DataBufferContract,
    DistributionContract,
    EnvContract,
    EstimatorContract,
    EvaluatorContract,
    HookContract,
    LearnerContract,
    LoggerContract,
    LossContract,
    ModelContract,
    OptimizerContract,
    PluginContract,
    RolloutBufferContract,
    RolloutSequencesContract,
    SchedulerContract,
    TransformContract,
)
from rlcore_plugin_testing.contracts.data import collected
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.toy import ToyDistribution

from rlcore.plugins.host import PluginHost

ROOT = Path(__file__).parents[2]
TREE = [ROOT / "pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
BATCH_KEYS = [
    *("observation", "action", "sample_log_prob"),
    *(["next", name] for name in ("observation", "reward", "done", "terminated", "truncated")),
]
SEQUENCES = {"buffer": {"use": "rollout-sequences", "minibatch_size": 8, "sequence_length": 4}}
SEEING_DICTS = {"model": {"use": "mlp", "hidden": [8]}}
TOY_ENDS = {"terminates": {"ends": ["terminated"]}, "truncates": {"ends": ["truncated"]}}
OF_A_STOCK_HOOK = {"transient": ("_trainer",)}  # the hook is told of its trainer again


def lines_of_toy_logger(self, folder):
    return [tuple(json.loads(line)) for line in (folder / "toy.jsonl").read_text().splitlines()]


def toy_normal(self):
    return ToyDistribution(gymnasium.spaces.Box(-np.inf, np.inf, (1,)))


def toy_categorical(self):
    return ToyDistribution(gymnasium.spaces.Discrete(3))


def with_actions(actions):
    return {"env": {"use": "testing:toy", "actions": actions}}


# name of the suite: (contract, what stands in it)
SUITES = {
    "Core": (PluginContract, {"plugin": "core"}),
    "LocalCollector": (CollectorContract, {"use": "local", "config": {"frames_per_batch": 14}}),
    "RolloutSequences": (
        RolloutSequencesContract,
        {
            "use": "rollout-sequences",
            "config": {"minibatch_size": 8, "sequence_length": 4},
            "around": {"model": {"use": "testing:toy-memory"}},
        },
    ),
    "RolloutBuffer": (RolloutBufferContract, {"use": "rollout", "config": {"minibatch_size": 8}}),
    "FillingRolloutBuffer": (
        RolloutBufferContract,
        {"use": "rollout", "config": {"minibatch_size": 8, "remainder": "fill"}},
    ),
    # beside the buffer that it is for
    "NoCollector": (
        ComponentContract,
        {"kind": "collector", "use": "none", "around": {**COLLECTS_NOTHING, "buffer": {"use": "testing:toy-data"}}},
    ),
    "ToyData": (DataBufferContract, {"use": "testing:toy-data"}),
    "GradientLearner": (LearnerContract, {"use": "gradient"}),
    "ClippingGradientLearner": (LearnerContract, {"use": "gradient", "config": {"max_grad_norm": 0.5}}),
    "EpisodeEvaluator": (EvaluatorContract, {"use": "episodes", "config": {"episodes": 4}}),
    "Adam": (OptimizerContract, {"use": "adam", "config": {"lr": 1e-2}}),
    "AdamW": (OptimizerContract, {"use": "adamw", "config": {"lr": 1e-2, "weight_decay": 0.01}}),
    "SGD": (OptimizerContract, {"use": "sgd", "config": {"lr": 1e-2, "momentum": 0.9}}),
    **{
        name: (OptimizerContract, {"use": name.lower()})
        for name in ("Adadelta", "Adafactor", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
    },
    "Linear": (SchedulerContract, {"use": "linear"}),
    "Cosine": (SchedulerContract, {"use": "cosine"}),
    "ProgressBar": (HookContract, {"use": "progress-bar", "transient": ("_bar", "_shown_at")}),
    "ConsoleTable": (HookContract, {"use": "console-table", "transient": ("_shown_at",)}),
    "Health": (HookContract, {"use": "health", "transient": ("_looked_at",)}),
    "RewardClip": (HookContract, {"use": "reward-clip", "config": {"limit": 0.5}}),
    # stock hooks
    "BatchSubSampler": (HookContract, {"use": "batch-sub-sampler", "config": {"batch_size": 5}, **OF_A_STOCK_HOOK}),
    "ClearCudaCache": (HookContract, {"use": "clear-cuda-cache", "config": {"interval": 2}, **OF_A_STOCK_HOOK}),
    "CountFramesLog": (HookContract, {"use": "count-frames-log", **OF_A_STOCK_HOOK}),
    "LogScalar": (HookContract, {"use": "log-scalar", **OF_A_STOCK_HOOK}),
    "LogTiming": (HookContract, {"use": "log-timing", **OF_A_STOCK_HOOK}),
    "RewardNormalizer": (HookContract, {"use": "reward-normalizer", **OF_A_STOCK_HOOK}),
    "EarlyStopping": (
        HookContract,
        {"use": "early-stopping", "config": {"monitor": "evaluation/return", "patience": 1000}, **OF_A_STOCK_HOOK},
    ),
    "UpdateWeights": (
        HookContract,
        {"use": "update-weights", "config": {"interval": 3}, "transient": ("trainer", "_progress")},
    ),
    # toy parts, and the parts of the fault tools
    "Testing": (PluginContract, {"plugin": "testing"}),
    "ToyEnv": (EnvContract, {"use": "testing:toy", **TOY_ENDS}),
    "NextStepToyEnv": (
        EnvContract,
        {
            "use": "testing:toy",
            "config": {"reset_mode": "next_step", "num_envs": 3},
            "around": {"collector": {"frames_per_batch": 24}},
            **TOY_ENDS,
        },
    ),
    "ToyDictEnv": (EnvContract, {"use": "testing:toy-dict", "around": SEEING_DICTS, **TOY_ENDS}),
    "ToyDictEnvWithChoices": (
        EnvContract,
        {
            "use": "testing:toy-dict",
            "config": {"actions": "choices", "reset_mode": "next_step"},
            "around": SEEING_DICTS,
            **TOY_ENDS,
        },
    ),
    "ToyDictEnvWithBits": (
        EnvContract,
        {"use": "testing:toy-dict", "config": {"actions": "bits"}, "around": SEEING_DICTS, **TOY_ENDS},
    ),
    "FaultyEnvWithoutAFault": (EnvContract, {"use": "testing:faulty", **TOY_ENDS}),
    "FaultyHookWithoutAFault": (HookContract, {"use": "testing:faulty"}),
    "ToyModel": (ModelContract, {"use": "testing:toy"}),
    "DiscreteToyModel": (ModelContract, {"use": "testing:toy", "around": with_actions("discrete")}),
    "BoundedToyModel": (ModelContract, {"use": "testing:toy", "around": with_actions("bounded")}),
    "ToyMemoryModel": (ModelContract, {"use": "testing:toy-memory", "around": SEQUENCES}),
    "DiscreteToyMemoryModel": (
        ModelContract,
        {"use": "testing:toy-memory", "around": {**SEQUENCES, **with_actions("discrete")}},
    ),
    "ToyNormal": (
        DistributionContract,
        {"parameters": [[0.0], [-3.0], [1.5]], "extremes": [[1e4]], "distribution": toy_normal},
    ),
    "ToyCategorical": (
        DistributionContract,
        {
            "discrete": 3,
            "parameters": [[0.0, 0.0, 0.0], [2.0, -1.0, 0.5]],
            "extremes": [[100.0, 0.0, -100.0]],
            "distribution": toy_categorical,
        },
    ),
    "ToyTransform": (TransformContract, {"use": "testing:toy"}),
    "ToyEstimator": (EstimatorContract, {"use": "testing:toy"}),
    "ToyLoss": (LossContract, {"use": "testing:toy"}),
    "ToyHook": (HookContract, {"use": "testing:toy"}),
    "ToyLogger": (LoggerContract, {"use": "testing:toy", "read_back": lines_of_toy_logger}),
    "ToyCheckpointer": (CheckpointerContract, {"use": "testing:toy"}),
    "Killer": (
        HookContract,
        # the counts are of this process
        {"use": "testing:killer", "config": {"plan": "/nonexistent/plan.json"}, "transient": ("_counts",)},
    ),
}
for _name, (_contract, _attributes) in SUITES.items():
    globals()[f"Test{_name}"] = type(f"Test{_name}", (_contract,), {**_attributes, "__module__": __name__})


# suites that need more than attributes


class TestRecorder(HookContract):
    use = "testing:recorder"
    transient = ("_batch", "_ended")  # of the running iteration

    @pytest.fixture(autouse=True)
    def _elsewhere(self, tmp_path_factory, monkeypatch):
        path = tmp_path_factory.mktemp("recorder") / "lines"
        monkeypatch.setattr(type(self), "config", {"path": str(path)})


class TestSelectKeys(HookContract):
    use = "select-keys"
    config = {"keys": BATCH_KEYS}
    transient = ("_trainer",)

    def test_batches_stay_whole(self):
        """All but what is not named: that is dropped, as it should be."""
        _, trainer = self.in_a_run()
        batch = collected(trainer.hooks.hooks[0].instance.context)
        changed = trainer.hooks.batch_process(batch.clone().set("further", batch["action"]), trainer)
        assert changed.batch_size == batch.batch_size
        named = {key if isinstance(key, str) else tuple(key) for key in BATCH_KEYS}
        assert set(changed.keys(True, True)) == named


class TestEarlyStoppingThatStops(HookContract):
    use = "early-stopping"
    config = {"monitor": "progress/updates", "mode": "min", "patience": 16}
    transient = ("_trainer",)

    def test_runs_and_resumes_in_a_small_run(self, tmp_path):
        """Stopped in the middle and resumed, it stops where the run without a stop does, and stays stopped."""
        whole = self.run(folder=tmp_path / "whole").trainer
        whole.train()
        assert (whole.progress.frames, whole.stop_reason[:26]) == (48, "metric 'progress/updates' ")
        first = self.run(folder=tmp_path / "parts").trainer
        first.stop_at = 32
        first.train()
        second = self.run(folder=tmp_path / "parts", resume=True).trainer
        second.train()
        assert (second.progress.frames, second.stop_reason) == (48, whole.stop_reason)
        third = self.run(folder=tmp_path / "parts", resume=True).trainer
        third.train()
        assert (third.progress.frames, third.stop_reason) == (48, whole.stop_reason), "it decides the same again"
        longer = self.run(folder=tmp_path / "longer").trainer
        longer.load_state_dict(third.state_dict())
        longer.hooks.hooks[-1].instance.patience = 1000
        longer.train()
        assert (longer.progress.frames, longer.stop_reason) == (64, None), "unless it is told to wait longer"


# nothing goes without


def entry_points(pyproject):
    return list(tomllib.loads(pyproject.read_text())["project"]["entry-points"]["rlcore"])


PLUGINS = [name for pyproject in TREE for name in entry_points(pyproject)]


@pytest.fixture(scope="module")
def suites():
    """Every contract suite of the repository: those here, and those of the plugins."""
    files = [Path(__file__), *sorted(ROOT.glob("plugins/*/tests/test_contracts.py"))]
    modules = [importlib.import_module(".".join(file.relative_to(ROOT).with_suffix("").parts)) for file in files]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    return [value for value in classes if value.__name__.startswith("Test")]


@pytest.fixture(scope="module")
def host():
    return PluginHost()


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_component_has_a_contract_test(plugin, suites, host):
    if not host.is_installed(plugin):
        pytest.skip(f"plugin {plugin!r} is not installed")
    host.load(plugin)
    tested = {(s.kind, s.use) for s in suites if issubclass(s, ComponentContract)}
    provided = [entry.component for entry in host.registry.provided if entry.owner.plugin == plugin]
    missing = [
        f"{part.kind} {part.name!r}"
        for part in provided
        if not tested & {(part.kind, part.name), (part.kind, f"{plugin}:{part.name}")}
    ]
    assert not missing, (
        f"these components of plugin {plugin!r} have no contract test: {', '.join(missing)}; write a subclass of "
        "the suite of their kind in tests/test_contracts.py of the plugin"
    )


@pytest.mark.parametrize("plugin", PLUGINS)
def test_every_plugin_has_a_contract_test(plugin, suites):
    tested = {suite.plugin for suite in suites if issubclass(suite, PluginContract)}
    assert plugin in tested, f"plugin {plugin!r} has no subclass of PluginContract in its tests"
