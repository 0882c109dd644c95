"""What cannot be is an error that says what to do, before the first frame."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from rlcore_plugin_jax.env import Config, make
from rlcore_plugin_testing.contracts import EnvContract

from rlcore.errors import ConfigError, StorageError
from rlcore.types import Context

needs_jax = pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
needs_gymnax = pytest.mark.skipif(find_spec("gymnax") is None, reason="gymnax is not installed")


@pytest.fixture(autouse=True)
def own_envs(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def made(env_id="jax_envs:Drift", device="cpu", **keys):
    return make(Config(id=env_id, **keys), Context.alone("tests", device=device))


def test_without_jax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ConfigError, match=r"use = 'jax' needs JAX, .*pip install 'rlcore\[jax\]'"):
        made()


@needs_jax
def test_without_gymnax_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnax", None)
    with pytest.raises(ConfigError, match=r"looked for in gymnax, .*pip install 'rlcore\[jax\]'.*'module:make'"):
        made("CartPole-v1")


@needs_gymnax
def test_an_unknown_id_or_argument_is_refused():
    with pytest.raises(ConfigError, match=r"no such env; did you mean 'CartPole-v1'\?; there are CartPole-v1, "):
        made("CartPol-v1")
    with pytest.raises(ConfigError, match=r"cannot be made: .*nowhere"):
        made("CartPole-v1", kwargs={"nowhere": 1})


@needs_jax
def test_a_gpu_that_jax_cannot_use_is_told():
    import jax

    if jax.default_backend() != "cpu":
        pytest.skip("this JAX has a GPU")
    with pytest.raises(
        ConfigError, match=r"on cuda:0, and this JAX cannot use a GPU .*pip install 'jax\[cuda\d+\]', or"
    ):
        made(device="cuda:0")
    with pytest.raises(ConfigError, match=r"on meta, and JAX shares tensors with torch on the CPU and on CUDA"):
        made(device="meta")


@needs_jax
@pytest.mark.parametrize(
    ("env_id", "kwargs", "expected"),
    [
        ("jax_envs:Wrapper", {}, "Wrapper has neither gymnax's .* wrappers, hides the last observation"),
        ("jax_envs:dict", {}, "has no 'dict'"),
        ("jax_envs:fails", {}, "cannot be made: OSError: no simulator here"),
        ("jax_envs:Params", {}, "class Params has neither"),
        ("jax_envs:Brax", {"resets": True}, "Brax begins the next episode itself"),
        ("jax_envs:OtherState", {}, r"\.moved is uint32 \[\] when an episode begins, and float32 \[\] after a step"),
        ("jax_envs:OtherShape", {}, r"an observation has the shape \[2\], and its space \[3\]"),
        ("jax_envs:TwoRewards", {}, r"reward has the shape \[2\] for one env"),
        ("jax_envs:Untraceable", {}, "cannot be traced by JAX: TracerBoolConversionError"),
        ("jax_envs:Parts", {}, "an observation has"),
    ],
)
def test_an_env_of_another_form_is_refused(env_id, kwargs, expected):
    with pytest.raises(ConfigError, match=expected):
        made(env_id, kwargs=kwargs)


@needs_jax
@pytest.mark.parametrize("use", ["parallel:workers", "parallel:central"])
def test_forked_workers_are_refused(use):
    """They would stand still."""
    pytest.importorskip("rlcore_plugin_parallel")
    with pytest.raises(ConfigError, match=r"start_method = 'fork': the envs 'jax_envs:Drift' cannot .* as JAX steps "):
        run_with({"use": use, "frames_per_batch": 64, "start_method": "fork"})


@needs_jax
@pytest.mark.slow
def test_workers_that_start_otherwise_collect_what_one_process_does():
    pytest.importorskip("rlcore_plugin_parallel")
    one = run_with({"use": "local", "frames_per_batch": 64}).trainer.collector.collect()
    collector = run_with({"use": "parallel:workers", "frames_per_batch": 64, "processes": "always"}).trainer.collector
    two = collector.collect().clone()
    collector.close()
    assert torch.equal(one["next", "observation"], two["next", "observation"])


def run_with(collector):
    around = {
        "model": {"use": "mlp", "hidden": [8]},
        "loss": {"use": "ppo"},
        "estimator": {"use": "gae"},
        "collector": collector,
    }
    return EnvContract.of("jax", {"id": "jax_envs:Drift", "num_envs": 4}, around).run()


@needs_jax
def test_a_state_of_another_env_is_refused():
    env, other = made("jax_envs:Drift", num_envs=2), made("jax_envs:Brax", num_envs=2)
    env.reset_tensors(0)
    with pytest.raises(StorageError, match=r"another form than this env: .*state\.info\.rng, .*state\.position"):
        other.load_state_dict(env.state_dict())
    with pytest.raises(StorageError, match=r"another form than this env: key, length, "):
        made("jax_envs:Drift", num_envs=3).load_state_dict(env.state_dict())
