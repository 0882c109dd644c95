"""C: what a resume restores, judged by the recorder; and that each state is needed, by leaving it out."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pytest
from rlcore_plugin_testing.faults.chain import run_chain
from rlcore_plugin_testing.faults.killer import Strike
from rlcore_plugin_testing.faults.recorder import compare, iterations, read
from rlcore_plugin_testing.toy_parts import ToyCheckpointer

from rlcore.checkpoints.store import Store

PARTS = {"plugins": {"files": [str(Path(__file__).with_name("parts.py"))]}}


def manifests(job):
    """Return frame to manifest, the latest of a frame."""
    paths = (job.folder / "checkpoints").glob("[0-9]*/manifest.json")
    found = sorted((json.loads(path.read_text()) for path in paths), key=lambda manifest: manifest["time"])
    return {manifest["progress"]["frames"]: manifest for manifest in found}


def newest_state(job):
    """Return the state of the latest checkpoint of a run that saves with the toy back end."""
    return Store(job.folder / "checkpoints", ToyCheckpointer(None, None), "toy").load_newest()[1]


def killed(jobs, references, equal, base="toy", count=7, **sections):
    """Kill a run in the middle of an update, resume it, and compare all that can be compared."""
    job, reference = jobs.make("killed", base, **sections), references.reference(base, **sections)
    assert jobs.run(job, Strike(point="post_optim", count=count)).struck
    assert jobs.run(job).code == 0
    equal(job, reference)
    found, wanted = (list(manifests(other).values())[-1] for other in (job, reference))
    assert found["digest"] == wanted["digest"]
    return job, found


def test_c1_global_generators(jobs, references, equal):
    """Python, NumPy and torch: a hook draws from each in every iteration."""
    killed(jobs, references, equal, **PARTS, hook=[{"use": "noise"}])


def test_c1_generators_of_components(jobs, references, equal):
    """The collector's and the buffer's own: without their state actions and minibatches differ."""
    reference = references.reference()
    for name, what in (("collector", "actions"), ("buffer", "updates")):
        job = jobs.make(f"fresh-{name}")
        assert jobs.run(job, Strike(point="post_steps_log", count=2)).struck
        assert jobs.run(job, options=("--fresh", name)).code == 0
        assert what in compare(reference.recording, job.recording).differences[0].what


ENVS = {
    "CartPole": {"id": "CartPole-v1"},
    "CartPole, two": {"id": "CartPole-v1", "num_envs": 2},
    "CartPole, native": {"id": "CartPole-v1", "num_envs": 4, "vectorization": "native"},
    "Pendulum": {"id": "Pendulum-v1"},
    "MuJoCo": {"id": "InvertedDoublePendulum-v5"},
}


@pytest.mark.parametrize("env", ENVS)
def test_c3_c4_environments_go_on_in_the_middle_of_their_episodes(jobs, references, equal, env):
    _, manifest = killed(jobs, references, equal, "ppo", env=ENVS[env], run={"total_frames": 320})
    assert manifest["exact"], manifest["inexact"]


@pytest.mark.parametrize("in_background", [False, True], ids=["in the loop", "in the background"])
@pytest.mark.parametrize("backend", ["testing:toy", "torch", "torchsnapshot", "dcp"])
def test_every_back_end_resumes_exactly(jobs, references, equal, backend, in_background):
    killed(jobs, references, equal, "ppo", checkpoint={"use": backend, "async": in_background})


def test_c5_an_environment_that_cannot_go_on_says_so(jobs):
    sections = {**PARTS, "env": {"use": "gymnasium", "id": "Measured-v0"}, "run": {"total_frames": 320}}
    job = jobs.make("measured", "ppo", quiet=False, **sections)
    attempt = jobs.run(job, Strike(point="post_optim", count=7))
    assert attempt.struck
    assert "exact = false: env 'Measured-v0'" in attempt.output, "said before the first frame"
    again = jobs.run(job)
    assert again.code == 0, again.output
    assert "1 running episodes are dropped" in again.output
    assert all(not manifest["exact"] and manifest["inexact"] for manifest in manifests(job).values())


def test_c7_partial_trajectories(jobs, references, equal):
    """Batches end in the middle of episodes; without the collector's state they start over, which the recorder sees."""
    job = jobs.make("killed")
    assert jobs.run(job, Strike(point="post_optim", count=7)).struck
    episodes = newest_state(job)["collector"]["episodes"]
    assert (episodes["lengths"] > 0).any()
    assert (episodes["returns"] > 0).any()
    assert jobs.run(job).code == 0
    equal(job, references.reference())


OPTIMIZERS = {
    "adamw": [{"use": "adamw", "lr": 1e-2, "weight_decay": 0.1}],
    "momentum": [{"use": "sgd", "lr": 1e-2, "momentum": 0.9}],
    "two": [
        {"use": "adam", "name": "actor", "parameters": ["actor"], "losses": ["loss_actor"]},
        {"use": "sgd", "name": "critic", "parameters": ["critic"], "losses": ["loss_critic"], "momentum": 0.5},
    ],
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_c10_optimizers(jobs, references, equal, optimizer):
    killed(jobs, references, equal, optimizer=OPTIMIZERS[optimizer])


REPLAY = {
    "uniform": {},
    "wrapped": {"capacity": 100},
    "mapped": {"capacity": 100, "storage": "memmap"},
    "prioritized": {"use": "replay:prioritized", "capacity": 100, "n_steps": 3},
}


@pytest.mark.parametrize("buffer", REPLAY)
def test_c8_contents_position_priorities_and_samples_of_a_replay_buffer(jobs, references, equal, buffer):
    """The position of the target networks in their interval too: the kill falls between two of their updates."""
    killed(jobs, references, equal, "dqn", count=24, buffer=REPLAY[buffer])


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
def test_c10_schedules_follow_the_frames_of_the_whole_run(jobs, references, equal, schedule):
    killed(jobs, references, equal, scheduler=[{"use": schedule}])


def test_c11_running_normalisers(jobs, references, equal):
    killed(jobs, references, equal, transform=[{"use": "testing:toy"}])


def test_c11_fitted_normalisers(jobs, references, equal):
    killed(jobs, references, equal, "ppo", transform=[{"use": "observation-norm", "frames": 64}])


def test_c12_counters(jobs, references, equal):
    """As many evaluations and log rows as without the kill, and equal counters, down to the last."""
    sections = {"evaluator": {"every": 24}, "metrics": {"every": 24}}
    job, manifest = killed(jobs, references, equal, **sections)
    reference = references.reference(**sections)
    wanted = list(manifests(reference).values())[-1]
    assert manifest["progress"] == wanted["progress"]
    for name in ("progress", "evaluations", "checkpoints"):
        assert manifest["digests"][name] == wanted["digests"][name], name
    evaluations = [[line["frames"] for line in read(j.recording) if "evaluation" in line] for j in (job, reference)]
    assert evaluations[0] == sorted(evaluations[0])
    assert set(evaluations[0]) == set(evaluations[1])


def test_c13_rows_written_after_the_checkpoint_are_cut(jobs, references, equal):
    """Rows that a killed process wrote beyond its checkpoint are there once at the end."""
    sections = {"checkpoint": {"every": 64}, "metrics": {"every": 16}, "evaluator": {"every": 1000}}
    job = jobs.make("killed", **sections)
    # a row reaches the file in the thread of its logger: it is there when the next save waits for it
    assert jobs.run(job, Strike(event=3, only="os.mkdir")).struck
    saved = newest_state(job)["logger.csv"]["position"]["metrics"]
    assert (job.folder / "metrics.csv").stat().st_size > saved
    assert jobs.run(job).code == 0
    equal(job, references.reference(**sections))


def test_c14_a_hook_that_hides_its_state_is_found(jobs, references):
    sections = {**PARTS, "hook": [{"use": "hidden"}]}
    job = jobs.make("hidden", **sections)
    assert jobs.run(job, Strike(point="post_steps_log", count=2)).struck
    assert jobs.run(job).code == 0
    found = compare(references.reference(**sections).recording, job.recording)
    assert "rewards" in found.differences[0].what
    assert "observations" not in found.differences[0].what, "what the hook does not touch is equal at first"


def test_c14_a_hook_that_declares_its_state_is_restored(jobs, references, equal):
    killed(jobs, references, equal, **PARTS, hook=[{"use": "declared"}])


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ("metrics.every=32", True),
        ("checkpoint.keep_last=5", True),
        ("optimizer.0.lr=0.5", False),
        ("buffer.epochs=3", False),
        ("run.seed=9", False),
        ("env.num_envs=4", False),
    ],
)
def test_c16_what_may_change_on_resume(jobs, change, allowed):
    job = jobs.make("changed")
    assert jobs.run(job, Strike(point="post_optim", count=7)).struck
    before = iterations(job.recording)
    attempt = jobs.run(job, options=("--set", change))
    if allowed:
        assert attempt.code == 0, attempt.output
    else:
        assert attempt.code == 2
        key = change.partition("=")[0].replace(".0.", ".")
        assert key.rpartition(".")[2] in attempt.output
        assert "--accept-changes" in attempt.output
        assert iterations(job.recording) == before


def stops(count):
    return [Strike(point="post_steps_log", number=signal.SIGTERM)] * count


def test_c17_twelve_resumes_of_resumes(jobs, references, equal):
    sections = {"run": {"total_frames": 16 * 14}}
    job = jobs.make("chain", **sections)
    attempts = run_chain(jobs.launcher, job, stops(12), seconds=60)
    assert [len(attempt.trained) for attempt in attempts] == [1] * 12 + [2]
    assert equal(job, references.reference(**sections)).repeated == 0


@pytest.mark.slow
def test_c17_fifty_resumes_of_resumes(jobs, references, equal):
    sections = {"base": "ppo", "run": {"total_frames": 64 * 60}}
    job = jobs.make("chain", **sections)
    attempts = run_chain(jobs.launcher, job, stops(50), seconds=60)
    assert [len(attempt.trained) for attempt in attempts] == [1] * 50 + [10]
    assert equal(job, references.reference(**sections)).repeated == 0


RICH = {
    **PARTS,
    "hook": [{"use": "noise"}, {"use": "declared"}, {"use": "testing:toy", "name": "count"}],
    "transform": [{"use": "testing:toy"}],
    "metrics": {"every": 48},
    "evaluator": {"every": 1000},
    "checkpoint": {"every": 32, "keep_last": 100},
    "run": {"total_frames": 128},
}
# the save of frame 64 begins, which has flushed the row of frame 48; the run goes on from frame 32
IN_A_SAVE = Strike(event=4, only="os.mkdir")
NOT_NEEDED = {
    "checkpoints": "the best evaluation so far decides only what is saved",
    "evaluations": "the latest and the best are shown, not trained with",
}


def needed(manifests_):
    """Return the components whose state changed between frame 0 and the end."""
    first, last = manifests_[0]["digests"], list(manifests_.values())[-1]["digests"]
    return [name for name in last if first[name] != last[name]]


def fails_without(jobs, reference, name, number):
    """Resume with `name` left out; return whether the recorder or the bytes of the metrics say so."""
    job = jobs.make(f"fresh-{number}", **RICH)
    assert jobs.run(job, IN_A_SAVE).struck
    attempt = jobs.run(job, options=("--fresh", name))
    if attempt.code:
        return True
    same_rows = (job.folder / "metrics.csv").read_bytes() == (reference.folder / "metrics.csv").read_bytes()
    return not (compare(reference.recording, job.recording).equal and same_rows)


def test_every_state_that_changes_is_needed(jobs, references):
    """Leaving any one out shows; those for which it does not are listed, each with its reason."""
    reference = references.reference(**RICH)
    changed = needed(manifests(reference))
    assert {"model", "optimizer.adam", "collector", "buffer", "generators", "progress", "hook.declared"} <= set(changed)
    unnoticed = {name for number, name in enumerate(changed) if not fails_without(jobs, reference, name, number)}
    assert unnoticed == set(changed) & set(NOT_NEEDED)


def test_without_leaving_anything_out_the_same_kill_does_not_show(jobs, references, equal):
    job = jobs.make("whole", **RICH)
    assert jobs.run(job, IN_A_SAVE).struck
    assert jobs.run(job).code == 0
    equal(job, references.reference(**RICH))


def test_kills_at_random_points_leave_the_rich_run_equal(jobs, references, equal):
    draw = random.Random(5)
    strikes = [Strike(point="post_optim", count=draw.randint(1, 9)) for _ in range(6)]
    job = jobs.make("chain", **RICH)
    assert all(attempt.struck for attempt in run_chain(jobs.launcher, job, strikes, seconds=60)[:-1])
    equal(job, references.reference(**RICH))


# every part of Rainbow but its distributions, which are quantiles
NOISY_QUANTILES = {
    "model": {"use": "dqn:q-network", "hidden": [16], "quantiles": 5, "duelling": True, "noisy": True},
    "loss": {"use": "dqn:qr-dqn", "double": True, "target_interval": 7},
    "buffer": {"use": "replay:prioritized", "n_steps": 3, "gamma": 0.99},
    "scheduler": [{"use": "linear", "target": "buffer.beta", "final": 2.0}],
}


@pytest.mark.slow
@pytest.mark.parametrize("storage", ["memory", "memmap"])
def test_kills_at_random_points_leave_the_noisy_prioritized_quantiles_equal(jobs, references, equal, storage):
    draw = random.Random(7)
    strikes = [Strike(point="post_optim", count=draw.randint(1, 12)) for _ in range(12)]
    sections = {**NOISY_QUANTILES, "buffer": {**NOISY_QUANTILES["buffer"], "storage": storage}}
    job = jobs.make("chain", "dqn", **sections)
    assert sum(attempt.struck for attempt in run_chain(jobs.launcher, job, strikes, seconds=60)) >= 5
    equal(job, references.reference("dqn", **sections))
