"""Affinity codes, variants, and runs of a script side by side."""

import json

import pytest
from rlcore_plugin_runners import (
    PPO,
    AsyncCpuSampler,
    AsyncRl,
    FfAgent,
    VariantLevel,
    affinity_from_code,
    encode_affinity,
    get_n_run_slots,
    gym_make,
    load_variant,
    logger_context,
    make_affinity,
    make_variants,
    prepend_run_slot,
    quick_affinity_code,
    run_experiments,
    update_config,
)

from rlcore.errors import ConfigError, RlcoreError


@pytest.fixture
def machine(monkeypatch):
    """A machine of 48 CPUs."""
    for module in ("affinity", "affinity_codes"):
        monkeypatch.setattr(f"rlcore_plugin_runners.{module}.allowed", lambda: list(range(48)))


def cpus(affinity):
    return affinity["master_cpus"], affinity["workers_cpus"], affinity["cuda_idx"]


def test_arguments_of_affinities(machine):
    assert cpus(make_affinity(n_cpu_core=4, cpu_per_run=2, run_slot=1)) == ([2, 3], [2, 3], None)
    assert cpus(make_affinity(n_cpu_core=2, hyperthread_offset=24)) == ([0, 24, 1, 25], [[0, 24], [1, 25]], None)
    assert cpus(make_affinity(n_cpu_core=4, cpu_per_run=2, n_socket=2, run_slot=1)) == ([24, 25], [24, 25], None)
    assert cpus(make_affinity(n_cpu_core=3, cpu_reserved=1)) == ([0, 1, 2], [1, 2], None)
    shared = [make_affinity(n_cpu_core=8, n_gpu=2, contexts_per_gpu=2, run_slot=slot) for slot in range(4)]
    assert [affinity.cuda_idx for affinity in shared] == [0, 1, 0, 1]
    assert make_affinity(n_cpu_core=2, alternating=True).workers_cpus == [0, 1, 0, 1]
    with pytest.raises(AttributeError, match="no 'gpus'"):
        _ = shared[0].gpus


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sample_gpu_per_run": 1}, "act on the CPU"),
        ({"n_gpu": 4, "gpu_per_run": 2, "contexts_per_gpu": 2}, "shares none of them"),
        ({"n_cpu_core": 3, "n_socket": 2}, "n_cpu_core = 3 on 2 sockets"),
        ({"n_cpu_core": 2, "cpu_reserved": 2}, "cpu_reserved = 2"),
    ],
)
def test_what_no_machine_gives_is_refused(machine, arguments, message):
    with pytest.raises(ConfigError, match=message):
        make_affinity(**arguments)


def test_codes(machine):
    code = encode_affinity(n_cpu_core=4, cpu_per_run=2, set_affinity=False)
    assert code == "4cpu_0gpu_2cpr_0saf"
    assert get_n_run_slots(code) == 2
    assert affinity_from_code(prepend_run_slot(1, code)) == make_affinity(
        1, n_cpu_core=4, cpu_per_run=2, set_affinity=False
    )
    assert affinity_from_code("0slt_2cpu_0gpu_1cpr_0hto_1skt").master_cpus == [0]  # as rlpyt writes them
    assert quick_affinity_code(n_parallel=3, use_gpu=False) == "48cpu_0gpu_16cpr"
    for wrong in ("4cpu_2xyz", "cpu"):
        with pytest.raises(ConfigError, match="no number with one of slt, cpu"):
            affinity_from_code(wrong)
    with pytest.raises(ConfigError, match="say n_parallel"):
        quick_affinity_code(use_gpu=False)
    with pytest.raises(ConfigError, match="no n_core"):
        encode_affinity(n_core=2)


def test_affinity_of_optimizer_and_sampler():
    sampler = AsyncCpuSampler(gym_make, {"id": "CartPole-v1"}, 8, 4, max_decorrelation_steps=0)
    parts = {
        "optimizer": [{"cpus": [0], "torch_threads": 2}],
        "sampler": {"workers_cpus": [0, 0]},
        "set_affinity": False,
    }
    config = AsyncRl(PPO(), FfAgent(), sampler, 64, affinity=parts).config()
    assert (config["collector"]["num_workers"], config["run"]["threads"]) == (2, 2)
    with pytest.raises(ConfigError, match="2 optimizers"):
        AsyncRl(PPO(), FfAgent(), sampler, 64, affinity={**parts, "optimizer": parts["optimizer"] * 2})


LEVELS = (
    VariantLevel([("algo", "lr"), ("sampler", "batch_B")], [(1, 2), (3, 4)], ["a", "b"]),
    VariantLevel([("env", "game")], [("pong",), ("qbert",)], ["pong", "qbert"]),
)


def test_variants_are_all_combinations():
    variants, folders = make_variants(*LEVELS)
    assert folders == ["a/pong", "a/qbert", "b/pong", "b/qbert"]
    assert variants[2] == {"algo": {"lr": 3}, "sampler": {"batch_B": 4}, "env": {"game": "pong"}}
    default = {"algo": {"lr": 0, "eps": 9}, "sampler": {"batch_B": 0}, "env": {"game": ""}}
    assert update_config(default, variants[2])["algo"] == {"lr": 3, "eps": 9}
    assert default["algo"]["lr"] == 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_variants(LEVELS[0]._replace(dir_names=["a", "a"])), "a folder twice: a, a"),
        (lambda: make_variants(LEVELS[0]._replace(values=[(1,), (2,)])), "2 keys, 2 combinations of"),
        (lambda: update_config({"a": 1}, {"b": 2}), "sets 'b', which the settings do not have: a"),
        (lambda: update_config({"a": 1}, {"a": {}}), "'a' is 1 in the settings"),
        (lambda: load_variant("nowhere"), "there is no nowhere/variant_config.json"),
        (lambda: run_experiments("nowhere.py", "2cpu_0gpu_1cpr", "t", 1, [{}], ["a"]), "no script 'nowhere.py'"),
        (lambda: run_experiments(__file__, "2cpu_0gpu_1cpr", "t", 1, [{}], []), "1 variants, 0 log_dirs"),
    ],
)
def test_refuses(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


SCRIPT = """
import json, sys
from pathlib import Path
code, folder, run_id, common, own = sys.argv[1:]
Path(folder, f"run_{run_id}.json").write_text(json.dumps([code, common, own]))
sys.exit(int(own == "fails"))
"""


def test_runs_of_a_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    variants, folders = make_variants(LEVELS[1])
    code = encode_affinity(n_cpu_core=1)
    keys = {"variants": variants, "log_dirs": folders, "common_args": ["x"]}
    with pytest.raises(RlcoreError, match=r"2 of 4 runs failed: run 0 in .*qbert ended with exit code 1; run 1"):
        run_experiments("script.py", code, "title", 2, runs_args=[["works"], ["fails"]], **keys)
    (title,) = (tmp_path / "data/local").glob("*/*/title")
    assert load_variant(title / "qbert") == {"env": {"game": "qbert"}}
    assert json.loads((title / "pong/run_1.json").read_text()) == ["0slt_1cpu_0gpu_1cpr", "x", "works"]
    assert (title / "num_launched.txt").read_text() == "4 of 4\n"
    assert (title / "experiments_tree.txt").read_text() == "pong\nqbert\n"


def test_a_folder_of_an_experiment_gets_no_second_date(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with logger_context("data/local/20200101/000000/title/a", 3, "name") as context:
        assert str(context.folder) == "data/local/20200101/000000/title/a/run_3"
    stamps = set()
    for _ in range(3):  # within a second
        with logger_context("title", 0, "name") as context:
            stamps.add(context.folder.parts[3])
    assert len(stamps) == 3
