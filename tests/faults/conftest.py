"""Jobs: small configs with the recorder and the killer in them, a launcher for the whole module, and references."""

from __future__ import annotations

import copy

import pytest
import tomli_w
from rlcore_plugin_testing.faults.chain import Job, run_once
from rlcore_plugin_testing.faults.recorder import compare
from rlcore_plugin_testing.small_run import TOY_CONFIG

PPO = {
    "run": {"seed": 3, "total_frames": 320, "device": "cpu"},
    "env": {"use": "gymnasium", "id": "CartPole-v1"},
    "model": {"use": "mlp", "hidden": [16]},
    "loss": {"use": "ppo"},
    "estimator": {"use": "gae"},
    "optimizer": [{"use": "adam", "lr": 3e-3}],
    "scheduler": [{"use": "cosine"}],
    "collector": {"frames_per_batch": 64},
    "buffer": {"epochs": 2, "minibatch_size": 32},
    "evaluator": {"use": "episodes", "every": 192, "episodes": 1},
    "metrics": {"every": 128},
    "logger": [{"use": "csv"}],
    "checkpoint": {"use": "torch", "every": 64},
}
DQN = {
    **PPO,
    "run": {**PPO["run"], "total_frames": 640},
    "model": {"use": "dqn:q-network", "hidden": [16]},
    "loss": {"use": "dqn", "target_interval": 7},
    "estimator": None,
    "buffer": {"use": "replay", "capacity": 1000, "minibatch_size": 16, "updates_per_batch": 4, "warmup_frames": 64},
}
TOY = {**TOY_CONFIG, "checkpoint": {"use": "testing:toy", "every": 16}, "logger": [{"use": "csv"}]}
BASES = {"ppo": PPO, "dqn": DQN, "off-policy": {**DQN, "model": {}, "loss": {}}, "toy": TOY}


class Jobs:
    """Makes jobs in one folder; equal configs share an uninterrupted run."""

    def __init__(self, folder, launcher):
        self.folder, self.launcher = folder, launcher
        self._references = {}

    def make(self, name, base="toy", events=None, quiet=True, **sections):
        """Write the config of a run `name`; `events` is the file for its file events.

        One that is quiet prints errors alone, and draws no curves at its end.
        """
        values = copy.deepcopy(dict(BASES[base]))
        for section, change in sections.items():
            if isinstance(change, dict) and isinstance(values.get(section), dict):
                values[section] = {**values[section], **change}
            else:
                values[section] = change
        values = {section: value for section, value in values.items() if value not in (None, [])}
        recording, plan = self.folder / f"{name}.jsonl", self.folder / f"{name}.plan"
        values["run"] = {**values["run"], "name": name, "folder": str(self.folder / "runs")}
        values["hook"] = [
            *values.get("hook", []),
            {"use": "testing:recorder", "path": str(recording), "times": str(recording.with_suffix(".times"))},
            {"use": "testing:killer", "plan": str(plan), **({"events": str(self.folder / events)} if events else {})},
        ]
        config = self.folder / f"{name}.toml"
        config.write_text(tomli_w.dumps(values))
        return Job(config, self.folder / "runs" / name, recording, plan, ("--quiet",) if quiet else ())

    def run(self, job, strike=None, **options):
        """Run one process of a job."""
        return run_once(self.launcher, job, strike, seconds=120, **options)

    def reference(self, base="toy", **sections):
        """Return the uninterrupted run of a config; each is trained once."""
        key = repr((base, sorted(sections.items())))
        if key not in self._references:
            job = self.make(f"reference-{len(self._references)}", base, **sections)
            attempt = self.run(job)
            assert attempt.code == 0, attempt.output
            self._references[key] = job
        return self._references[key]


@pytest.fixture(scope="package")
def references(tmp_path_factory, launcher):
    """The uninterrupted runs that several tests compare with."""
    return Jobs(tmp_path_factory.mktemp("references"), launcher)


@pytest.fixture
def jobs(tmp_path, launcher):
    """Jobs of this test alone."""
    return Jobs(tmp_path, launcher)


@pytest.fixture
def equal():
    """Assert that a job's recording equals that of its reference, and that the metrics have the same bytes."""

    def check(job, reference):
        comparison = compare(reference.recording, job.recording)
        assert comparison.equal, "\n".join(map(str, comparison.differences[:10]))
        found, wanted = ((other.folder / "metrics.csv").read_bytes() for other in (job, reference))
        assert found == wanted
        return comparison

    return check


@pytest.fixture
def stopped(cli, write_config):
    """Train the tiny run up to its middle, and return its config."""

    def train(**sections):
        path = write_config(**sections)
        outcome = cli("train", path, "--until", "32")
        assert outcome.code == 0, outcome.err
        return path

    return train
