"""The contracts of the plugin, of the model for every kind of action space and every key, and of its distributions."""

import torch
from rlcore_plugin_mlp.distributions import Categorical, Normal, TanhNormal
from rlcore_plugin_mlp.numbered import Bernoulli, MultiCategorical, ShiftedCategorical
from rlcore_plugin_mlp.partly_bounded import PartlyBoundedNormal
from rlcore_plugin_testing.contracts import DistributionContract, ModelContract, PluginContract


class TestPlugin(PluginContract):
    plugin = "mlp"


class TestBoundedActions(ModelContract):
    use = "mlp"
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestUnboundedActions(ModelContract):
    use = "mlp"
    config = {"hidden": [16], "activation": "relu", "initialisation": "orthogonal"}


class TestStateDependentExploration(ModelContract):
    use = "mlp"
    config = {"hidden": [8], "sde": True, "sde_every": 3, "log_std": -1.0}
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestStateDependentExplorationOfABatch(ModelContract):
    use = "mlp"
    config = {"actor_hidden": [16, 8], "critic_hidden": [], "sde": True}
    around = {"env": {"use": "testing:toy-dict", "actions": "bounded"}}


class TestNumberedActions(ModelContract):
    use = "mlp"
    config = {"parts": ["actor", "critic", "q_values"], "hidden": [8, 8, 8], "activation": "silu"}
    around = {"env": {"use": "testing:toy", "actions": "numbered"}}


class TestSeveralChoices(ModelContract):
    use = "mlp"
    around = {"env": {"use": "testing:toy", "actions": "choices"}}


class TestBits(ModelContract):
    use = "mlp"
    around = {"env": {"use": "testing:toy", "actions": "bits"}}


class TestAnEncoderForEachLeaf(ModelContract):
    use = "mlp"
    config = {
        "parts": ["actor", "critic", "q_values"],
        "share_encoder": True,
        "encoders": {"frame": {"hidden": [6, 4]}, "state": {"encoder": "torch.nn:Identity"}},
    }
    around = {"env": {"use": "testing:toy-dict", "actions": "discrete"}}


class TestMaskedChoices(ModelContract):
    use = "mlp"
    around = {"env": {"use": "testing:toy-dict", "actions": "choices"}}


class TestMaskedBits(ModelContract):
    use = "mlp"
    config = {"share_encoder": True, "encoders": {"frame": {"hidden": [6]}}}
    around = {"env": {"use": "testing:toy-dict", "actions": "bits"}}


class TestBoundedActionsWithSteadyDeviations(ModelContract):
    use = "mlp"
    config = {"log_std": -0.5}
    around = {"env": {"use": "testing:toy", "actions": "bounded"}}


class TestUnboundedActionsWithSteadyDeviations(ModelContract):
    use = "mlp"
    config = {"log_std": 0.0, "hidden": []}


class TestCategorical(DistributionContract):
    discrete = 4
    parameters = [[0.0, 0.0, 0.0, 0.0], [2.0, -1.0, 0.5, 0.0], [0.0, 5.0, 0.0, -3.0]]
    extremes = [[80.0, -80.0, 0.0, 0.0], [-1000.0, -1000.0, -1000.0, 1000.0]]

    def distribution(self):
        return Categorical(4)


class _OneColumn:
    """A distribution of actions `[..., 1]` as one of actions `[...]`, as the contract has discrete ones."""

    def __init__(self, inner):
        self.inner = inner
        self.num_parameters, self.noise, self.entropy = inner.num_parameters, inner.noise, inner.entropy

    def sample(self, parameters, noise):
        return self.inner.sample(parameters, noise).squeeze(-1).long()

    def mode(self, parameters):
        return self.inner.mode(parameters).squeeze(-1).long()

    def log_prob(self, parameters, action):
        return self.inner.log_prob(parameters, action.unsqueeze(-1))

    def log_prob_and_entropy(self, parameters, action):
        return self.inner.log_prob_and_entropy(parameters, action.unsqueeze(-1))


class TestShiftedCategorical(TestCategorical):
    def distribution(self):
        return ShiftedCategorical(4, 0)


class TestMultiCategorical(TestCategorical):
    def distribution(self):
        return _OneColumn(MultiCategorical([4]))


class TestBernoulli(DistributionContract):
    discrete = 2
    parameters = [[0.0], [1.5], [-3.0]]
    extremes = [[100.0], [-1000.0]]

    def distribution(self):
        return _OneColumn(Bernoulli((1,)))


class TestNormal(DistributionContract):
    parameters = [[0.0, 0.54], [1.5, -1.0], [-3.0, 1.5]]
    extremes = [[1000.0, 5.0], [0.0, -30.0]]

    def distribution(self):
        return Normal(1)


class TestNormalWithLogScales(DistributionContract):
    parameters = [[0.0, 0.0], [1.5, -1.0], [-3.0, 0.5]]
    extremes = [[1000.0, 2.0], [0.0, -10.0]]

    def distribution(self):
        return Normal(1, log_scale=True)


class TestTanhNormalWithLogScales(DistributionContract):
    parameters = [[0.0, -1.0], [0.5, -1.5], [-1.0, -0.7]]
    extremes = [[30.0, 0.0], [-30.0, 1.0], [0.0, 2.0], [0.0, -10.0]]
    bounds = (-1.0, 1.0)
    bounded = True

    def distribution(self):
        return TanhNormal(torch.tensor([-1.0]), torch.tensor([1.0]), log_scale=True)


class TestTanhNormal(DistributionContract):
    parameters = [[0.0, -0.5], [0.5, -1.5], [-1.0, -0.5]]
    extremes = [[30.0, 0.0], [-30.0, 3.0], [0.0, 10.0], [0.0, -30.0]]
    bounds = (-1.0, 1.0)
    bounded = True

    def distribution(self):
        return TanhNormal(torch.tensor([-1.0]), torch.tensor([1.0]))


class TestTanhNormalOfOtherBounds(DistributionContract):
    parameters = [[0.0, -0.5], [0.5, -1.5], [-1.0, -0.5]]
    extremes = [[30.0, 0.0], [-30.0, 3.0]]
    bounds = (-0.5, 2.0)
    bounded = True

    def distribution(self):
        return TanhNormal(torch.tensor([-0.5]), torch.tensor([2.0]))


class TestBoundedBelow(DistributionContract):
    parameters = [[0.0, 0.54], [1.5, -1.0], [-1.0, 1.0]]
    extremes = [[1000.0, 5.0], [-1000.0, 5.0], [0.0, -30.0]]
    bounds = (0.5, 20.0)
    entropy_tolerance = 0.02

    def distribution(self):
        return PartlyBoundedNormal(torch.tensor([0.5]), torch.tensor([torch.inf]))


class TestBoundedAbove(DistributionContract):
    parameters = [[0.0, 0.54], [1.5, -1.0], [-1.0, 1.0]]
    extremes = [[1000.0, 5.0], [-1000.0, 5.0], [0.0, -30.0]]
    bounds = (-20.0, -1.5)

    def distribution(self):
        return PartlyBoundedNormal(torch.tensor([-torch.inf]), torch.tensor([-1.5]))
