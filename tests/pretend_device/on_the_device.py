"""What runs on the pretend device; in a process of its own, which `test_pretend_device.py` starts.

python -m pytest -p rlcore_plugin_testing.pretend_device tests/pretend_device/on_the_device.py
"""

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_gradient.paces import every_of
from rlcore_plugin_presets.presets import presets
from rlcore_plugin_testing import pretend_device
from rlcore_plugin_testing.pretend_device import NAME, MixedDevicesError, counted
from rlcore_plugin_testing.toy import ToyEnv

from rlcore.config.file import read
from rlcore.config.sections import validate
from rlcore.errors import ConfigError
from rlcore.loggers.metrics import Last, Metrics
from rlcore.run.build import build
from rlcore.types.progress import Every, Progress

# what makes the run of a preset small, where it has such a key
SMALL = {
    "run": {"total_frames": 64, "total_updates": 64, "name": "small"},
    "model": {"hidden": [8], "random_frames": 8, "dynamics_hidden": [8], "width": 8, "critic_width": 8},
    "collector": {"frames_per_batch": 16},
    "buffer": {
        "epochs": 2,
        "minibatch_size": 8,
        "capacity": 64,
        "warmup_frames": 16,
        "updates_per_batch": 2,
        "sequence_length": 4,
        "burn_in": 2,
        "overlap": 2,
        "real_share": 0.25,
        "dynamics_every": 16,
        "rollouts_every": 16,
        "rollouts": 16,
    },
    "evaluator": {"every": 32, "episodes": 2},
    "metrics": {"every": 16},
    "checkpoint": {"every": 32},
}
ALWAYS = ("name",)

# those of images need an env that has them
PRESETS = [preset for preset in presets() if preset.about.env_key != "game"]


def values_of(preset, data=None):
    """Return the config of a preset, made small, on an env that needs nothing but the core.

    One that learns from a dataset finds it in the folder `data`.
    """
    values = {name: value for name, value in preset.values.items() if name not in ("preset", "logger", "env", "hook")}
    actions = "discrete" if preset.about.actions == "discrete" else "bounded"
    if values.get("collector", {}).get("use") == "device":
        values["env"] = {**preset.values["env"], "num_envs": 2}  # an env of tensors
    else:
        values["env"] = {"use": "testing:toy", "actions": actions}
    if "num_workers" in values.get("collector", ()):
        values["collector"] = {"frames_per_batch": 16}  # processes of workers have no such device
    for section, keys in SMALL.items():
        known = values.get(section, {})
        # a key that says none, such as burn_in = 0, means it
        known.update({key: value for key, value in keys.items() if known.get(key) or key in ALWAYS})
    for optimizer in values["optimizer"]:
        if "every" in optimizer:  # so that each of them steps in so short a run
            optimizer["every"] = min(optimizer["every"], 2)
    if "path" in values["buffer"]:
        values["buffer"] |= {"path": str(data), "updates_per_iteration": 16}
        write_data(data, actions)
    return values


def write_data(folder, actions):
    """Write a dataset of a few random episodes of that env."""
    spec, generator = ToyEnv(ToyEnv.Config(actions=actions), None).spec, np.random.default_rng(1)
    spaces = spec.observation_space, spec.action_space
    spaces[1].seed(1)
    episodes = [
        Episode(
            observations=generator.random((9, *spaces[0].shape), np.float32),
            actions=np.array([spaces[1].sample() for _ in range(8)]),
            rewards=generator.random(8),
            terminations=np.arange(8) == 7,
            truncations=np.zeros(8, bool),
        )
        for _ in range(4)
    ]
    write_dataset(folder, spaces, episodes, {})


def run_of(values, resume=False, folder=None, device=NAME, hooks=()):
    values["run"]["folder"] = str(folder or "")
    config = validate(replace(read(values), path=Path("small.toml")))
    config = replace(config, run=config.run.model_copy(update={"device": device}))
    return build(config, write=folder is not None, resume=resume, hooks=hooks)


def tensors_of(state):
    if isinstance(state, torch.Tensor):
        yield state
    elif isinstance(state, dict | list | tuple):
        for value in state.values() if isinstance(state, dict) else state:
            yield from tensors_of(value)


def watch(part, method):
    """Count what the calls of a method copy; returns a list with one entry for each call."""
    found, original = [], getattr(part, method)

    def called(*args, **kwargs):
        with counted() as copies:
            result = original(*args, **kwargs)
        found.append((copies.to_host, copies.to_device, copies.waits))
        return result

    setattr(part, method, called)
    return found


def test_the_device_is_another_one():
    """Else the tests below would prove nothing."""
    there, here = torch.ones(3, device=NAME), torch.ones(3)
    assert there.device == torch.device(NAME, 0)
    for mixed in (
        lambda: there + here,
        lambda: torch.nn.Linear(3, 1)(there),
        lambda: torch.rand(3, generator=torch.Generator(NAME)),
        lambda: torch.rand(3, generator=torch.Generator(), device=NAME),
        lambda: torch.stack([there[0], here[0]]),
        lambda: there.gather(0, torch.zeros(1, dtype=torch.int64)),
    ):
        with pytest.raises(MixedDevicesError, match=r"two devices|generator"):
            mixed()
    with pytest.raises((RuntimeError, TypeError)):
        there.numpy()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_copies_are_counted(mode):
    with mode():
        there = torch.ones(3, device=NAME)
        for waits, expected in (
            (lambda: there.cpu(), (1, 0, 0)),
            (lambda: there.to("cpu", torch.float64), (1, 0, 0)),
            (lambda: there.tolist(), (1, 0, 0)),
            (lambda: float(there[0]), (1, 0, 0)),
            (lambda: bool((there > 0).all()), (1, 0, 0)),
            (lambda: torch.zeros(3).copy_(there), (1, 0, 0)),
            (lambda: torch.zeros(3).to(NAME), (0, 1, 0)),
            (lambda: there.copy_(torch.zeros(3)), (0, 1, 0)),
            (lambda: there[there > 0], (0, 0, 1)),
            (lambda: there.nonzero(), (0, 0, 1)),
            (lambda: (there + 1).exp_().sum(), (0, 0, 0)),
        ):
            with counted() as copies:
                waits()
            assert (copies.to_host, copies.to_device, copies.waits) == expected


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.name)
def test_an_algorithm_learns_and_resumes(preset, tmp_path):
    """All that it has is on the device, and no update after the first waits for it."""
    values = values_of(preset, tmp_path / "data")
    first = run_of(values, folder=tmp_path).trainer
    first.stop_at = 32
    first.train()
    trainer = run_of(values, folder=tmp_path, resume=True).trainer
    updates = watch(trainer.parts.learner, "update")
    trainer.train()
    assert trainer.progress.now == 64
    kept = {name: part for name, part in trainer.parts.stateful.items() if name.startswith(("model", "loss", "optim"))}
    assert len(kept) > 1
    for name, part in kept.items():
        for tensor in tensors_of(part.state_dict()):
            counts = name.startswith("optimizer") and tensor.dim() == 0  # torch's RAdam counts its steps on the host
            assert counts or tensor.device.type == NAME, f"{name} has a tensor on {tensor.device}"
            assert bool(torch.isfinite(tensor).all())
    # what a first step of each optimizer finds out is found out with the first steps
    first = max(every_of(optimizer) for optimizer in trainer.parts.learner.optimizers.values())
    assert len(updates) > first
    # torch's other optimizers have no kernel that skips a step that is not finite: the host has to ask
    asking = sum(
        type(optimizer) not in (torch.optim.Adam, torch.optim.AdamW)
        for optimizer in trainer.parts.learner.optimizers.values()
    )
    for to_host, to_device, waits in updates[first:]:
        assert to_host <= asking
        assert (to_device, waits) == (0, 0)


@pytest.mark.parametrize("name", ["ppo-generic", "dqn-generic"])
def test_exact_counts(name):
    (preset,) = (found for found in presets() if found.name == name)
    trainer = run_of(values_of(preset)).trainer
    parts = trainer.parts
    acting = watch(parts.collector._acting, "act")
    collected = watch(parts.collector, "collect")
    updates, ended = watch(parts.learner, "update"), watch(parts.learner, "end_iteration")
    rows = watch(parts.metrics, "write")
    fed = watch(parts.buffer, "feedback")
    trainer.train()
    steps, leaves = 8, 8  # of a batch: of each of two envs, entries
    assert acting == [(1, 1, 0)] * steps * 4, "the observation there, the action back"
    assert [host for host, _, _ in collected] == [steps] * 4
    assert all(steps < there <= steps + leaves for _, there, _ in collected)
    assert set(updates[1:]) == {(0, 0, 0)}
    assert set(fed) == {(0, 0, 0)}
    assert ended == [(1, 0, 0)] * 4, "whether all steps were finite"
    assert all(host <= 1 for host, _, _ in rows), "one table for each row of metrics"
    assert sum(host for host, _, _ in rows) == 4


def test_three_optimizers_are_asked_at_once_whether_their_steps_were_finite():
    optimizers = [
        {"use": "adam", "name": name, "parameters": [name], "losses": [f"loss_{name}"], "every": every}
        for name, every in (("critics", 1), ("actor", 2), ("temperature", 2))
    ]
    values = {
        "run": {"total_frames": 64, "name": "small"},
        "env": {"use": "testing:toy", "actions": "bounded"},
        "model": {"use": "sac:actor-critic", "hidden": [8], "random_frames": 8},
        "loss": {"use": "sac"},
        "optimizer": optimizers,
        "collector": {"frames_per_batch": 2},
        "buffer": {"use": "replay", "capacity": 64, "minibatch_size": 8, "updates_per_batch": 1, "warmup_frames": 16},
    }
    trainer = run_of(values).trainer
    updates, ended = watch(trainer.parts.learner, "update"), watch(trainer.parts.learner, "end_iteration")
    trainer.train()
    assert set(updates[2:]) == {(0, 0, 0)}
    assert set(ended[:-1]) == {(0, 0, 0)}
    assert ended[-1] == (1, 0, 0), "with the row at the end"


ON_POLICY = {
    "ppo": {"model": {"use": "mlp", "hidden": [8]}, "loss": {"use": "ppo"}},
    "ppo with memory": {
        "model": {"use": "recurrent:lstm", "encoder_hidden": [8], "size": 8},
        "loss": {"use": "ppo"},
        "buffer": {"use": "rollout-sequences", "epochs": 2, "sequence_length": 8, "minibatch_size": 16},
    },
    "pqn": {"model": {"use": "pqn:normed-q-network", "hidden": [8]}, "loss": {"use": "pqn"}},
}


def on_policy(sections):
    return {
        "run": {"total_frames": 512, "name": "small"},
        "env": {"use": "torch-envs", "id": "CartPole-v1", "num_envs": 4},
        "estimator": {"use": "ppo:gae"},
        "optimizer": [{"use": "adam"}],
        "collector": {"use": "device", "frames_per_batch": 64},
        "buffer": {"epochs": 2, "minibatch_size": 16},
        "metrics": {"every": 256},
        "checkpoint": {"every": 512},
        **sections,
    }


def weights_of(trainer):
    return {name: value.cpu() for name, value in trainer.parts.stateful["model"].state_dict().items()}


@pytest.mark.parametrize("sections", ON_POLICY.values(), ids=ON_POLICY)
def test_an_iteration_on_the_device_never_waits_for_it(sections):
    """Nothing is copied to the host but for a row of metrics; bits and rows are those of the run on the CPU."""
    trainers = [run_of(on_policy(sections), device=device).trainer for device in (NAME, "cpu")]
    iterations, rows = watch(trainers[0], "_iteration"), []
    for trainer in trainers:
        trainer.train()
        rows.append({name: value for name, value in trainer.metrics.latest.items() if not name.startswith("time/")})
    quiet, asked = iterations[1:3] + iterations[4:7], (iterations[3], iterations[7])
    assert set(quiet) == {(0, 0, 0)}, "copies to the host, copies to the device, waits"
    assert set(asked) == {(3, 0, 0)}, "whether all was finite, the episodes, and the row"
    assert rows[0]["episode/length"] == rows[1]["episode/length"] > 1
    assert rows[0] == rows[1]
    there, here = map(weights_of, trainers)
    assert all(torch.equal(there[name], here[name]) for name in here)


def test_episodes_that_nobody_asked_for_yet_go_through_a_checkpoint(tmp_path):
    """A run that stops between two rows tells of them after it was resumed, as one that did not stop."""
    values = on_policy(ON_POLICY["ppo"]) | {"logger": [{"use": "csv"}]}
    tables = []
    for name, stops in (("cut", [128, 320]), ("whole", [])):
        for stop in (*stops, 512):
            trainer = run_of(values, folder=tmp_path / name, resume=stop != 128 and bool(stops)).trainer
            for progress in trainer:
                if progress.frames == stop:
                    trainer.request_stop("between two rows")
        with (tmp_path / name / "small" / "metrics.csv").open() as stream:
            tables.append([{key: row[key] for key in row if "time/" not in key} for row in csv.DictReader(stream)])
    assert tables[0] == tables[1]
    assert {row["frames"] for row in tables[0]} == {"256", "512"}


def with_transitions(algorithm, **buffer):
    """Return the config of an off-policy run on envs of tensors, whose ring is full after a third of it."""
    actor_critic = {"use": "sac:actor-critic", "hidden": [8], "random_frames": 40}
    sections = {
        "sac": {"model": actor_critic, "loss": {"use": "sac"}},
        "td3": {"model": {**actor_critic, "actor": "deterministic"}, "loss": {"use": "sac:td3"}},
        "discrete-sac": {
            "model": {**actor_critic, "use": "sac:discrete-actor-critic"},
            "loss": {"use": "sac:discrete-sac"},
        },
        "dqn": {"model": {"use": "dqn:q-network", "hidden": [8]}, "loss": {"use": "dqn"}},
    }
    env = "Pendulum-v1" if algorithm in ("sac", "td3") else "CartPole-v1"
    return {
        "run": {"total_frames": 320, "name": "small"},
        "env": {"use": "torch-envs", "id": env, "num_envs": 4},
        **sections[algorithm],
        "optimizer": [{"use": "adam"}],
        "collector": {"use": "device", "frames_per_batch": 16},
        "metrics": {"every": 320},
        "buffer": {
            **{"use": "replay", "capacity": 100, "minibatch_size": 8, "updates_per_batch": 4, "warmup_frames": 32},
            **buffer,
        },
    }


@pytest.mark.parametrize("n_steps", [1, 3])
@pytest.mark.parametrize(
    ("algorithm", "buffer"),
    [*((name, "replay") for name in ("sac", "td3", "discrete-sac", "dqn")), ("dqn", "replay:prioritized")],
)
def test_transitions_stay_on_the_device(algorithm, buffer, n_steps):
    """They are written, sampled and trained on there; weights are those of the same run on the CPU."""
    values = with_transitions(algorithm, use=buffer, n_steps=n_steps)
    trainers = [run_of(values, device=device).trainer for device in (NAME, "cpu")]
    iterations = watch(trainers[0], "_iteration")
    for trainer in trainers:
        trainer.train()
    # the first ones find out what is so in all, and the last one asks whether all was finite, and for the episodes
    assert len(iterations) == 20
    assert set(iterations[2:-1]) == {(0, 0, 0)}, "copies to the host, copies to the device, waits"
    there, here = (trainer.parts.buffer.state_dict()["ring"] for trainer in trainers)
    assert there["rows"].device.type == NAME
    assert torch.equal(there["rows"].cpu(), here["rows"])
    # sums over rows are rounded by where these lie in memory, of several steps by more
    tolerance = {"rtol": 1e-6, "atol": 1e-7} if n_steps == 1 else {"rtol": 1e-4, "atol": 1e-5}
    there, here = (trainer.parts.stateful["model"].state_dict() for trainer in trainers)
    for name in here:
        torch.testing.assert_close(there[name].cpu(), here[name], **tolerance)


@pytest.mark.parametrize("n_steps", [1, 3])
def test_a_full_ring_goes_on_after_a_resume(n_steps, tmp_path):
    """To the bit, from the middle of the ring and of episodes."""
    values = with_transitions("sac", n_steps=n_steps)
    whole = run_of(values, folder=tmp_path / "whole").trainer
    whole.train()
    first = run_of(values, folder=tmp_path / "cut").trainer
    first.stop_at = 176
    first.train()
    assert first.parts.buffer.write_count % 100 not in (0, 99)
    assert first.parts.buffer.write_count > 100
    second = run_of(values, folder=tmp_path / "cut", resume=True).trainer
    second.train()
    for part in ("model", "buffer", "collector"):
        states = [list(tensors_of(trainer.parts.stateful[part].state_dict())) for trainer in (whole, second)]
        assert len(states[0]) == len(states[1]) > 0
        assert all(torch.equal(one.cpu(), two.cpu()) for one, two in zip(*states, strict=True))


def test_a_ring_that_the_device_has_no_memory_for_is_refused_before_the_first_frame():
    values = with_transitions("sac", capacity=10**12)
    with pytest.raises(ConfigError, match=r"rows of at least 24 bytes take 22,351\.7 GiB, and pretend.* has .*memmap"):
        run_of(values)


def test_a_row_of_metrics_is_one_copy():
    def made(device):
        metrics, generator = Metrics(Every(1)), np.random.default_rng(0)
        for _ in range(5):
            numbers = torch.from_numpy(generator.normal(size=3)).float().to(device)
            metrics.add({"a": numbers[0], "b": numbers, "c": 3.0, "d": Last(numbers[1])})
        metrics.add({"a": 7, "counts": torch.tensor([2**40 + 1], device=device)})
        return metrics

    here, there = made("cpu"), made(NAME)
    with counted() as copies:
        there.write(Progress(1))
    here.write(Progress(1))
    assert here.latest == there.latest
    assert (copies.to_host, copies.waits) == (1, 0)
    here, there = made("cpu"), made(NAME)
    with counted() as copies:
        saved = there.state_dict()
    np.testing.assert_equal(saved, here.state_dict())
    assert copies.to_host == 1


def test_install_may_be_called_again():
    pretend_device.install()
    assert torch.ones(1, device=NAME).cpu().item() == 1
