"""`make_dreamer`: TorchRL's modules over an env of TorchRL, and a reason where there is none."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from rlcore_plugin_testing.toy import ToyEnv

from rlcore.errors import ConfigError, NotSupportedError
from rlcore.helpers import make_dreamer

envs = pytest.importorskip("torchrl.envs")
mocking = pytest.importorskip("torchrl.testing.mocking_classes")
SMALL = SimpleNamespace(rssm_hidden_dim=8, state_dim=4, mlp_num_units=8)


def test_the_modules_are_those_of_torchrl():
    from torchrl.data import Unbounded
    from torchrl.trainers.helpers.models import make_dreamer as of_torchrl

    primer = envs.TensorDictPrimer(random=False, default_value=0.0, state=Unbounded(4), belief=Unbounded(8))
    env = envs.TransformedEnv(mocking.ContinuousActionConvMockEnv(pixel_shape=[3, 64, 64]), primer)
    weights = []
    for build in (make_dreamer, of_torchrl):
        torch.manual_seed(0)
        parts = build(SMALL, env, "cpu", "action", "state_value", True)
        weights.append([value for part in parts for value in part.state_dict().values() if torch.is_tensor(value)])
    assert len(parts) == 5
    assert len(weights[0]) > 20
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))


def test_what_is_no_env_of_torchrl_is_refused_with_what_there_is():
    toy = ToyEnv(ToyEnv.Config())
    for env, named in ((toy, "ToyEnv"), (None, "None")):
        with pytest.raises(NotSupportedError, match=rf'proof_environment = {named}: .*\[model\] use = "dreamer"'):
            make_dreamer(SMALL, env)
    with pytest.raises(ConfigError, match=r"no state and no belief.*TensorDictPrimer"):
        make_dreamer(SMALL, mocking.ContinuousActionConvMockEnv(pixel_shape=[3, 64, 64]))
