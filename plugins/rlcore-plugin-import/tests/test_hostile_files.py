"""Files that were made to harm, or are damaged, are refused: nothing of them runs, and nothing is written."""

import io
import json
import pickle
import zipfile

import pytest
import torch
from rlcore_plugin_import.importing import import_model

from rlcore.errors import RlcoreError

from .written_models import POLICY, archive, members, pickled, saved


class Runs:
    """Its pickle makes a file when it is loaded."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return open, (str(self.marker), "w")


@pytest.fixture
def refused(workdir):
    """Import a file; return why it is refused, and see that nothing came of it."""

    def refuse(path, env="CartPole-v1", **options):
        before = sorted(workdir.rglob("*"))
        with pytest.raises(RlcoreError) as error:
            import_model(path, env, **options)
        assert sorted(workdir.rglob("*")) == before
        return str(error.value)

    return refuse


def without(parts, *names):
    return {name: content for name, content in parts.items() if name not in names}


@pytest.mark.parametrize("key", ["policy_class", "observation_space", "action_space"])
def test_a_pickle_that_would_run_code_in_the_settings(workdir, refused, key):
    code = pickle.dumps(Runs(workdir / "ran"))
    path = archive(workdir / "model.zip", members(**{key: pickled(code)}))
    assert "open'" in refused(path)


def test_what_is_not_read_never_runs(workdir):
    code = pickle.dumps(Runs(workdir / "ran"))
    path = archive(workdir / "model.zip", members(ep_info_buffer=pickled(code), learning_rate=pickled(code)))
    import_model(path, "CartPole-v1")
    assert not (workdir / "ran").exists()


@pytest.mark.parametrize("name", ["policy.pth", "policy.optimizer.pth", "pytorch_variables.pth"])
def test_a_pickle_that_would_run_code_among_the_tensors(workdir, refused, name):
    parts = {**members(), name: saved({"a": Runs(workdir / "ran")})}
    assert f"{name} has something else than tensors" in refused(archive(workdir / "model.zip", parts))


@pytest.mark.parametrize("name", ["../policy.pth", "/tmp/policy.pth", "a/../../policy.pth", "..\\policy.pth"])
def test_a_member_outside_of_the_archive(workdir, refused, name):
    assert "lies outside of the archive" in refused(archive(workdir / "model.zip", {**members(), name: b""}))


def test_two_members_of_one_name(workdir, refused):
    path = archive(workdir / "model.zip", members())
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate"):
        file.writestr("policy.pth", b"")
    assert "two members 'policy.pth'" in refused(path)


def test_a_compressed_member(workdir, refused):
    path = archive(workdir / "model.zip", {**members(), "zeros": bytes(10_000_000)}, zipfile.ZIP_DEFLATED)
    assert "is compressed" in refused(path)


def test_a_member_that_claims_a_huge_size(workdir, refused):
    path = archive(workdir / "model.zip", members())
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (0xFFFFFFF0).to_bytes(4, "little")
    path.write_bytes(data)
    assert "claim more bytes" in refused(path)


@pytest.mark.parametrize("name", ["data", "policy.pth", "policy.optimizer.pth"])
def test_a_missing_member(workdir, refused, name):
    assert name in refused(archive(workdir / "model.zip", without(members(), name)))


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
def test_a_truncated_file(workdir, refused, part):
    path = archive(workdir / "model.zip", members())
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    assert "no zip archive, or damaged" in refused(path)


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"\xff\xfe", b'{"policy_kwargs": 1}'])
def test_settings_that_are_none(workdir, refused, content):
    assert "its member data" in refused(archive(workdir / "model.zip", {**members(), "data": content}))


@pytest.mark.parametrize("settings", [{"n_steps": -1}, {"n_steps": "many"}, {"num_timesteps": 1.5}, {"gamma": [1]}])
def test_numbers_that_are_none(workdir, refused, settings):
    assert next(iter(settings)) in refused(archive(workdir / "model.zip", members(**settings)))


@pytest.mark.parametrize("shape", [(8, 5), (4, 8), (8,), (0, 4)])
def test_a_tensor_of_another_shape(workdir, refused, shape):
    parts = members()
    state = {**state_of(parts), "mlp_extractor.policy_net.0.weight": torch.zeros(shape)}
    refused(archive(workdir / "model.zip", {**parts, "policy.pth": saved(state)}))


def test_a_tensor_that_claims_numbers_it_does_not_have(workdir, refused):
    state = {**state_of(members()), "mlp_extractor.policy_net.0.weight": torch.zeros(1, 1).expand(10**6, 10**6)}
    path = archive(workdir / "model.zip", {**members(), "policy.pth": saved(state)})
    assert "over 1 numbers" in refused(path)


def test_a_weight_that_is_not_finite(workdir, refused):
    state = {**state_of(members()), "action_net.bias": torch.tensor([0.0, float("nan")])}
    assert "not finite" in refused(archive(workdir / "model.zip", {**members(), "policy.pth": saved(state)}))


def test_a_tensor_that_no_network_has(workdir, refused):
    state = {**state_of(members()), "my_layer.weight": torch.zeros(2, 2)}
    assert "my_layer.weight" in refused(archive(workdir / "model.zip", {**members(), "policy.pth": saved(state)}))


def test_moments_of_another_shape(workdir, refused):
    parts = members()
    optimizer = torch.load(zipfile_bytes(parts["policy.optimizer.pth"]), weights_only=True)
    optimizer["state"][0]["exp_avg"] = torch.zeros(3)
    path = archive(workdir / "model.zip", {**parts, "policy.optimizer.pth": saved(optimizer)})
    assert "exp_avg of actor.network.layers.0.weight is [3]" in refused(path)


def test_unknown_classes_are_named(workdir, refused):
    path = archive(workdir / "model.zip", members(policy_class=pickled(b"cmy_package\nMyPolicy\n.")))
    assert "my_package.MyPolicy" in refused(path)
    path = archive(workdir / "model.zip", members(policy_kwargs={"my_key": 1}))
    assert "policy_kwargs my_key" in refused(path)
    kwargs = {"activation_fn": "<class 'torch.nn.modules.activation.Mish'>"}
    assert "activation Mish" in refused(archive(workdir / "model.zip", members(policy_kwargs=kwargs)))
    kwargs = {"optimizer_class": "<class 'torch.optim.radam.RAdam'>"}
    assert "optimizer 'radam'" in refused(archive(workdir / "model.zip", members(policy_kwargs=kwargs)))
    kwargs = {"features_extractor_class": "<class 'my_package.MyExtractor'>"}
    assert "my_package.MyExtractor" in refused(archive(workdir / "model.zip", members(policy_kwargs=kwargs)))


def test_another_env(workdir, refused):
    box = b"cgymnasium.spaces.discrete\nDiscrete\n)\x81}(Vn\nK\x03Vstart\nK\x00V_shape\n)ub."
    path = archive(workdir / "model.zip", members(action_space=pickled(box)))
    assert "actions in Discrete(n 3" in refused(path)


def test_no_file_and_no_name(workdir, refused):
    assert "there is no file" in refused(workdir / "none.zip")
    path = archive(workdir / "my model.zip", members())
    assert "cannot be called 'my model'" in refused(path)


def state_of(parts):
    return torch.load(zipfile_bytes(parts["policy.pth"]), weights_only=True)


def zipfile_bytes(data):
    return io.BytesIO(data)


def test_the_policy_is_known_by_its_name_alone():
    assert json.loads(members()["data"])["policy_class"] == pickled(POLICY)
