"""What a learner promises: its life, its steps, its modules, its state, and several of them as one."""

from itertools import chain

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from rlcore_plugin_learners.batches import TrainingData
from rlcore_plugin_learners.module import ModelRLModule
from rlcore_plugin_testing.compare import difference
from rlcore_plugin_testing.ranks import in_ranks

from rlcore import (
    AlgorithmConfig,
    Columns,
    DefaultModelConfig,
    LearnerGroup,
    MultiAgentBatch,
    MultiRLModule,
    MultiRLModuleSpec,
    PPOConfig,
    RLModule,
    RLModuleSpec,
    SampleBatch,
)
from rlcore.errors import ConfigError, NotSupportedError, NumericalError, StorageError, UnwrittenEntryError
from tests.regression import Linear, Regression, config_of, rows

OBSERVATIONS = Box(-1, 1, (3,), np.float32)


def built(*ids, **settings):
    learner = config_of(*ids, **settings).build_learner()
    learner.build()
    return learner


def cut(batch, *places):
    return {name: column[slice(*places)] for name, column in batch.items()}


def flat(learner, module_id="default_policy"):
    return torch.cat([weight.detach().reshape(-1) for weight in learner.module[module_id].parameters()])


def same(first, second):
    """Compare two states to the bit."""
    assert difference(first, second) is None


def test_nothing_can_be_called_before_build():
    learner = Regression(config_of(), config_of().get_multi_rl_module_spec())
    for call in (lambda: learner.update(rows(4)), learner.get_state, lambda: learner.module):
        with pytest.raises(ValueError, match="Regression is not built: call build"):
            call()


def test_an_update_is_that_of_torch():
    """Epochs, minibatches with a smaller last one, clipping and Adam, written out by hand."""
    learner, batch = built(grad_clip=0.5), rows(10)
    net, moved = torch.nn.Linear(3, 1), learner.get_state()["rl_module"]["default_policy"]
    net.load_state_dict({name.removeprefix("net."): torch.tensor(value) for name, value in moved.items()})
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    errors = []
    for start in (0, 4, 8) * 2:
        obs, target = (torch.tensor(batch[name][start : start + 4]).float() for name in (Columns.OBS, "target"))
        error = (net(obs).squeeze(-1) - target).square().mean()
        optimizer.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        optimizer.step()
        errors.append(error.item())
    results = learner.update(batch, num_epochs=2, minibatch_size=4)["default_policy"]
    torch.testing.assert_close(flat(learner), torch.cat([weight.detach().reshape(-1) for weight in net.parameters()]))
    assert results["total_loss"] == results["error"] == pytest.approx(np.mean(errors))
    assert results["num_module_steps_trained"] == 20


def test_shuffled_epochs_take_every_row_once_and_follow_from_the_seed():
    seen = []

    class Seeing(Regression):
        def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
            seen.append(batch["number"].tolist())
            return super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)

    def order():
        seen.clear()
        learner = config_of(learner_class=Seeing, shuffle_batch_per_epoch=True, num_epochs=2).build_learner()
        learner.build()
        learner.update({**rows(9), "number": np.arange(9)}, minibatch_size=4)
        return [list(chain(*seen[:3])), list(chain(*seen[3:]))]

    first, second = order()
    assert sorted(first) == sorted(second) == list(range(9))
    assert first != second != list(range(9))
    assert order() == [first, second]


def test_episodes_and_several_batches_are_joined():
    whole, batch = built(), rows(10)
    pieces = [cut(batch, 0, 3), cut(batch, 3, 10)]
    whole.update(batch)
    for data in ({"batches": pieces}, {"episodes": pieces}, {"episodes": {"default_policy": pieces}}):
        other = built()
        other.update(**data)
        same(flat(other), flat(whole))


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({}, "one of batch, batches and episodes, and got none"),
        ({"batch": rows(2), "episodes": [rows(2)]}, "got batch and episodes"),
        ({"batch": {}}, "batch is empty"),
        ({"batch": rows(0)}, "batch is empty"),
        ({"episodes": []}, "episodes is empty"),
        ({"batch": {"defualt_policy": rows(2)}}, "'defualt_policy', which is not here; did you mean 'default_policy'"),
        ({"batch": {**rows(2), "target": np.zeros(3)}}, "obs 2, target 3"),
        ({"batch": {**rows(2), "target": 1.0}}, "is a single number"),
        ({"batch": {**rows(2), "more": rows(2)}}, "'more' holds columns, and others are columns"),
        ({"batch": [1, 2]}, "expected columns by name, not list"),
        ({"batch": {"target": ["a"]}}, "is no array of numbers"),
        ({"batch": rows(2), "minibatch_size": 0}, "minibatch_size is 0"),
        ({"batch": rows(2), "num_epochs": 1.5}, "num_epochs is 1.5"),
    ],
)
def test_data_that_cannot_be_trained_on_is_refused(data, told):
    learner = built()
    before = flat(learner)
    with pytest.raises(ValueError, match=told) as raised:
        learner.update(**data)
    assert isinstance(raised.value, ConfigError)
    same(flat(learner), before)
    assert learner.weights_seq_no == 0


def test_a_column_that_the_loss_misses_is_named_and_the_learner_lives_on():
    learner, other = built(), built()
    with pytest.raises(KeyError, match="no column 'target'; it has obs") as raised:
        learner.update({Columns.OBS: rows(4)[Columns.OBS]})
    assert isinstance(raised.value, UnwrittenEntryError)
    assert learner.update(rows(4)) == other.update(rows(4))


def test_a_step_that_is_not_finite_changes_nothing():
    bad = {**rows(4), "target": np.full(4, np.nan)}
    learner = built()
    before = learner.get_state(["rl_module", "optimizer"])
    with pytest.raises(NumericalError, match="1 steps of module 'default_policy'"):
        learner.update(bad)
    after = learner.get_state(["rl_module", "optimizer"])
    same(after["rl_module"], before["rl_module"])
    skipping = built(on_nonfinite="skip")
    assert skipping.update(bad)["default_policy"]["num_skipped_steps"] == 1
    assert skipping.update(rows(4))["default_policy"]["num_skipped_steps"] == 1
    assert not torch.equal(flat(skipping), flat(learner))


def test_what_has_no_gradients_is_done_before_and_after_them():
    told = []

    class Noisy(Regression):
        def before_gradient_based_update(self, *, timesteps):
            told.append(("before", dict(timesteps), flat(self)))

        def after_gradient_based_update(self, *, timesteps):
            super().after_gradient_based_update(timesteps=timesteps)
            told.append(("after", dict(timesteps), flat(self)))

    learner = config_of(learner_class=Noisy).build_learner()
    learner.build()
    learner.update(rows(4), timesteps={"num_env_steps_sampled_lifetime": 250})
    assert [entry[:2] for entry in told] == [
        ("before", {"num_env_steps_sampled_lifetime": 250}),
        ("after", {"num_env_steps_sampled_lifetime": 250}),
    ]
    assert not torch.equal(told[0][2], told[1][2])


def test_learning_rates_follow_sampled_steps():
    learner = built(lr=[[0, 0.1], [100, 0.3], [200, 0.0]])
    rates = [
        learner.update(rows(4), timesteps={"num_env_steps_sampled_lifetime": steps})["default_policy"][
            "default_optimizer_learning_rate"
        ]
        for steps in (0, 50, 100, 150, 500)
    ]
    assert rates == pytest.approx([0.1, 0.2, 0.3, 0.15, 0.0])


@pytest.mark.parametrize("lr", [-1.0, [], [[5, 0.1]], [[0, 0.1], [0, 0.2]], "fast", [[0, "a"]]])
def test_learning_rates_that_are_none_are_refused(lr):
    with pytest.raises(ConfigError, match="lr is "):
        built(lr=lr)


def test_optimizers_are_registered_and_found_by_name():
    class Two(Regression):
        def configure_optimizers_for_module(self, module_id, config):
            net = self.module[module_id].net
            for name, weight in (("weights", net.weight), ("bias", net.bias)):
                optimizer = torch.optim.SGD([weight], lr=0.5)
                self.register_optimizer(module_id=module_id, optimizer_name=name, optimizer=optimizer, params=[weight])

    learner = config_of("a", "b", learner_class=Two).build_learner()
    learner.build()
    assert list(learner.get_optimizers()) == ["a_weights", "a_bias", "b_weights", "b_bias"]
    assert learner.get_optimizer("a", "bias") is dict(learner.get_optimizers_for_module("a"))["bias"]
    before = flat(learner, "a"), flat(learner, "b")
    learner.update({"a": rows(4)})
    assert not torch.equal(flat(learner, "a"), before[0])
    same(flat(learner, "b"), before[1])
    weight = learner.module["a"].net.weight
    for keys, told in [
        ({"optimizer_name": "more"}, "another optimizer steps some"),
        ({"module_id": "c"}, "no module 'c'"),
    ]:
        with pytest.raises(ConfigError, match=told):
            learner.register_optimizer(
                **{"module_id": "a", "optimizer": torch.optim.SGD([weight], lr=1), "params": [weight], **keys}
            )
    with pytest.raises(ConfigError, match="no optimizer 'wieghts'; did you mean 'weights'"):
        learner.get_optimizer("a", "wieghts")


def test_modules_come_and_go():
    learner = built("a")
    spec = RLModuleSpec(Linear)
    learner.add_module(module_id="b", module_spec=spec, config_overrides={"lr": 0.7})
    assert learner.get_optimizer("b").param_groups[0]["lr"] == 0.7
    results = learner.update({"a": rows(4), "b": rows(6, 1)})
    assert [results[name]["num_module_steps_trained"] for name in "ab"] == [4, 6]
    for keys, told in [({"module_id": "b"}, "a module 'b' already"), ({"module_id": "c/d"}, "cannot be the id")]:
        with pytest.raises(ConfigError, match=told):
            learner.add_module(**{"module_spec": spec, **keys})
    learner.remove_module("a", new_should_module_be_updated=["b"])
    assert list(learner.get_state()["optimizer"]) == ["b_default_optimizer"]
    assert not [key for key in learner.get_state()["metrics_logger"] if key.startswith("a/")]
    assert "a" not in learner.update({"b": rows(6, 1)})
    with pytest.raises(ConfigError, match="no module 'a'"):
        learner.remove_module("a")
    assert learner.update(rows(5))["b"]["num_module_steps_trained"] == 5  # columns alone are of the only module


def test_the_only_module_may_be_replaced_in_either_order():
    learner = built("a")
    learner.remove_module("a")
    with pytest.raises(ConfigError, match="'a', which is not here; there are none"):
        learner.update({"a": rows(4)})
    learner.add_module(module_id="b", module_spec=RLModuleSpec(Linear))
    before = flat(learner, "b")
    results = learner.update({"b": rows(4)})
    assert set(results) == {"__all_modules__", "b"}
    assert not torch.equal(flat(learner, "b"), before)
    same(built("a", "b").get_state("rl_module/b"), built("b").get_state("rl_module/b"))


def test_build_again_changes_nothing():
    learner, other = built(), built()
    module = learner.module
    learner.build()
    assert learner.module is module
    assert learner.update(rows(4)) == other.update(rows(4))
    assert not torch.equal(flat(learner), flat(built()))


def test_results_count_rows_in_this_update_and_in_all():
    learner = built("a", "b")
    learner.update({"a": rows(10), "b": rows(4)}, minibatch_size=4)
    results = learner.update({"a": rows(10), "b": rows(4)}, minibatch_size=4, num_epochs=2, num_total_minibatches=5)
    assert {name: results[name] for name in ("__all_modules__",)} == {
        "__all_modules__": {
            "num_module_steps_trained": 26,
            "num_module_steps_trained_lifetime": 40,
            "num_env_steps_trained": 18,
            "num_env_steps_trained_lifetime": 28,
        }
    }
    assert {name: results["a"][name] for name in results["a"] if name.startswith(("num", "w", "module"))} == {
        "num_module_steps_trained": 18,
        "num_module_steps_trained_lifetime": 28,
        "module_train_batch_size_mean": 4,
        "weights_seq_no": 2,
    }


def test_only_the_modules_that_the_config_names_are_trained():
    for trained in (["b"], lambda module_id, batch: module_id == "b"):
        config = config_of("a", "b").multi_agent(policies_to_train=trained)
        learner = config.build_learner()
        learner.build()
        before = flat(learner, "a")
        assert "error" not in learner.update({"a": rows(4), "b": rows(4)}).get("a", {})
        same(flat(learner, "a"), before)


def test_settings_of_one_module_are_for_it_alone():
    told = {}

    class Telling(Regression):
        def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
            told[module_id] = config.learner_config_dict
            return super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)

    overrides = {"a": {"learner_config_dict": {"weight": 2}, "lr": 0.5}}
    config = config_of("a", "b", learner_class=Telling).multi_agent(algorithm_config_overrides_per_module=overrides)
    learner = config.build_learner()
    learner.build()
    learner.update({"a": rows(2), "b": rows(2)})
    assert told == {"a": {"weight": 2}, "b": {}}
    assert [learner.get_optimizer(name).param_groups[0]["lr"] for name in "ab"] == [0.5, 0.1]


def test_a_state_is_chosen_by_paths():
    learner = built("a", "b")
    learner.update({"a": rows(4), "b": rows(4)})
    assert set(learner.get_state("rl_module/a")["rl_module"]) == {"a"}
    several = learner.get_state(["rl_module/b", "optimizer/a_default_optimizer"])
    assert (set(several), set(several["rl_module"]), set(several["optimizer"])) == (
        {"rl_module", "optimizer"}, {"b"}, {"a_default_optimizer"},
    )  # fmt: skip
    without = learner.get_state(not_components=["optimizer", "rl_module/a"])
    assert "optimizer" not in without
    assert set(without["rl_module"]) == {"b"}
    assert all(isinstance(value, np.ndarray) for value in learner.get_state("rl_module/a")["rl_module"]["a"].values())
    for path, told in [("rl_modul", "did you mean 'rl_module'"), ("rl_module/c", "nothing at 'rl_module/c'")]:
        with pytest.raises(ConfigError, match=told):
            learner.get_state(path)


def test_a_state_set_is_the_state_whatever_is_newer():
    learner, going_on = built(), built()
    data = [rows(8, seed) for seed in range(4)]
    keys = {"num_epochs": 2, "minibatch_size": 3, "shuffle_batch_per_epoch": True}
    for batch in data[:2]:
        learner.update(batch, **keys)
        going_on.update(batch, **keys)
    old = learner.get_state()
    learner.update(data[3], **keys)
    learner.set_state(old)
    same(learner.get_state(), old)
    fresh = built()
    fresh.set_state(old)
    for one in (learner, fresh):
        one.update(data[2], **keys)
    going_on.update(data[2], **keys)
    same(learner.get_state(), going_on.get_state())
    same(fresh.get_state(), going_on.get_state())


def test_a_state_of_something_else_is_refused():
    learner = built("a")
    for state, told in [
        ({"rl_modul": {}}, "did you mean 'rl_module'"),
        ({"rl_module": {"b": {}}}, "no module 'b'"),
        ({"rl_module": {"a": {"net.weight": np.zeros((2, 3))}}}, "does not fit Linear"),
        ({"optimizer": {"b": {}}}, "no optimizer 'b'"),
        ({"optimizer": {"a_default_optimizer": {"state": {}, "param_groups": []}}}, "does not fit the optimizer"),
    ]:
        with pytest.raises(ConfigError, match=told):
            learner.set_state(state)


def test_a_state_survives_in_a_folder(tmp_path):
    learner = built("a", "b")
    learner.update({"a": rows(4), "b": rows(4)}, timesteps={"num_env_steps_sampled_lifetime": 9})
    state = learner.get_state()
    assert learner.save_to_path(tmp_path / "kept") == str(tmp_path / "kept")
    learner.update({"a": rows(4, 1)})
    learner.save_to_path(tmp_path / "kept")
    learner.update({"a": rows(4, 2)})
    learner.restore_from_path(tmp_path / "kept", component="rl_module/b")
    learner.save_to_path(tmp_path / "kept", state=state)
    assert len(list((tmp_path / "kept").iterdir())) == 2
    again = type(learner).from_checkpoint(tmp_path / "kept", config_of("a", "b"))
    same(again.get_state(), state)


def test_a_folder_that_is_damaged_or_none_is_refused(tmp_path):
    learner = built()
    with pytest.raises(StorageError, match="no state of a learner"):
        learner.restore_from_path(tmp_path)
    learner.save_to_path(tmp_path)
    (file,) = tmp_path.glob("*.bin")
    content = bytearray(file.read_bytes())
    content[3] ^= 1
    file.write_bytes(content)
    with pytest.raises(StorageError, match="damaged"):
        learner.restore_from_path(tmp_path)


def test_metrics_are_reduced_as_they_were_first_logged():
    learner = built()
    metrics = learner.metrics
    for value in (1.0, 2.0, torch.tensor(6.0)):
        for reduce in ("mean", "sum", "min", "max", "lifetime_sum"):
            metrics.log_value(("all", reduce), value, reduce=reduce)
        metrics.log_value("last", value, window=1)
    assert metrics.peek("last") == 6
    first = metrics.reduce()
    assert first == {"all": {"mean": 3, "sum": 9, "min": 1, "max": 6, "lifetime_sum": 9}, "last": 6}
    metrics.log_value(("all", "lifetime_sum"), 1)
    assert metrics.reduce() == {"all": {"lifetime_sum": 10}, "last": 6}
    with pytest.raises(ConfigError, match="did you mean 'mean'"):
        metrics.log_value("other", 1, reduce="maen")
    with pytest.raises(ConfigError, match="nothing was logged under 'ohter'"):
        metrics.peek("ohter")


def test_ranks_on_parts_of_the_rows_are_one_on_all():
    """Also where a rank has no rows of a module, and where none has for some minibatches."""
    batch = {"a": rows(10), "b": rows(4, 1)}
    shards = [
        {"a": cut(batch["a"], 0, 5)},
        {"a": cut(batch["a"], 5, 10), "b": cut(batch["b"], 0, 4)},
    ]
    alone = built("a", "b")
    for _ in range(3):
        alone.update(batch)

    def train(group):
        learner = Regression(config_of("a", "b"), config_of("a", "b").get_multi_rl_module_spec(), group=group)
        learner.build()
        for _ in range(3):
            learner.update(shards[group.rank])
        learner.update(shards[group.rank], minibatch_size=2, num_epochs=2)
        return learner

    def after_three(group):
        learner = Regression(config_of("a", "b"), config_of("a", "b").get_multi_rl_module_spec(), group=group)
        learner.build()
        for _ in range(3):
            learner.update(shards[group.rank])
        return learner

    for learner in in_ranks(2, after_three):
        for name in "ab":
            torch.testing.assert_close(flat(learner, name), flat(alone, name), rtol=0, atol=1e-6)
    first, second = in_ranks(2, train)
    same(first.get_state(["rl_module", "optimizer"]), second.get_state(["rl_module", "optimizer"]))


def test_what_one_rank_has_that_is_not_finite_changes_none():
    def train(group):
        learner = Regression(config_of(), config_of().get_multi_rl_module_spec(), group=group)
        learner.build()
        before = flat(learner)
        batch = rows(4)
        if group.rank:
            batch["target"][0] = np.inf
        with pytest.raises(NumericalError):
            learner.update(batch)
        same(flat(learner), before)
        learner.update(rows(4))
        return flat(learner)

    same(*in_ranks(2, train))


def ppo_batch(count, seed=0):
    generator = np.random.default_rng(seed)
    return {
        Columns.OBS: generator.normal(size=(count, 3)),
        Columns.ACTIONS: generator.integers(0, 2, count),
        Columns.ACTION_LOGP: np.log(generator.uniform(0.3, 0.7, count)),
        Columns.ADVANTAGES: generator.normal(size=count),
        Columns.VALUE_TARGETS: 9 * generator.normal(size=count),
    }


def ppo_config(**settings):
    config = PPOConfig().environment(observation_space=OBSERVATIONS, action_space=Discrete(2))
    return config.rl_module(model_config={"hidden": [8]}).training(**settings)


def test_the_loss_of_ppo_is_what_its_settings_say():
    learner = ppo_config(entropy_coeff=0.05, vf_loss_coeff=0.5, clip_param=0.2, vf_clip_param=4.0).build_learner()
    learner.build()
    batch = ppo_batch(32)
    model = learner.module["default_policy"].model
    tensors = {name: torch.as_tensor(column) for name, column in batch.items()}
    with torch.no_grad():
        policy = torch.distributions.Categorical(logits=model.actor(tensors[Columns.OBS].float()))
        log_ratio = policy.log_prob(tensors[Columns.ACTIONS]) - tensors[Columns.ACTION_LOGP]
        advantages = tensors[Columns.ADVANTAGES]
        surrogate = torch.minimum(log_ratio.exp() * advantages, log_ratio.exp().clamp(0.8, 1.2) * advantages).mean()
        errors = (model.critic(tensors[Columns.OBS].float()).squeeze(-1) - tensors[Columns.VALUE_TARGETS]).square()
        kl = (log_ratio.exp() - 1 - log_ratio).mean()
        vf_loss, entropy = errors.clamp(max=4).mean(), policy.entropy().mean()
    results = learner.update(batch)["default_policy"]
    assert results["total_loss"] == pytest.approx(float(-surrogate + 0.5 * vf_loss - 0.05 * entropy + 0.2 * kl), 1e-5)
    assert results["policy_loss"] == pytest.approx(-float(surrogate), 1e-5)
    assert results["mean_kl_loss"] == pytest.approx(float(kl), 1e-4)
    assert results["curr_kl_coeff"] == pytest.approx(0.3)  # far from the policy that collected


DISTRIBUTIONS = [
    (Discrete(3), lambda p: torch.distributions.Categorical(logits=p)),
    (Discrete(3, start=2), lambda p: torch.distributions.Categorical(logits=p)),
    (MultiBinary(2), lambda p: torch.distributions.Independent(torch.distributions.Bernoulli(logits=p), 1)),
    (Box(-1, 1, (2,)), lambda p: normal(p)),
    (Box(-np.inf, np.inf, (2,)), lambda p: normal(p)),
    (Box(np.array([-np.inf, 0.0], np.float32), np.array([1.0, 2.0], np.float32)), lambda p: normal(p)),
]


def normal(parameters):
    loc, raw = parameters.chunk(2, -1)
    scale = torch.nn.functional.softplus(raw)
    return torch.distributions.Independent(torch.distributions.Normal(loc, scale + 1e-6), 1)


@pytest.mark.parametrize(("space", "of_torch"), DISTRIBUTIONS, ids=lambda value: str(value)[:20])
def test_the_divergence_of_distributions_is_that_of_torch(space, of_torch):
    module = RLModule(OBSERVATIONS, space)
    family = module.get_train_action_dist_cls()
    first, second = torch.randn(2, 5, family.required_input_dim(), generator=torch.Generator().manual_seed(0))
    given = family.from_logits(first).kl(family.from_logits(second))
    wanted = torch.distributions.kl_divergence(of_torch(first), of_torch(second))
    torch.testing.assert_close(given, wanted, rtol=1e-3, atol=1e-5)


def test_the_divergence_of_several_choices_is_the_sum_of_those_of_each():
    family = RLModule(OBSERVATIONS, MultiDiscrete([2, 3])).get_train_action_dist_cls()
    first, second = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0))
    pairs = zip(first.split([2, 3], -1), second.split([2, 3], -1), strict=True)
    of = torch.distributions.Categorical
    wanted = sum(torch.distributions.kl_divergence(of(logits=a), of(logits=b)) for a, b in pairs)
    torch.testing.assert_close(family.from_logits(first).kl(family.from_logits(second)), wanted)


def test_the_distance_is_exact_where_the_batch_has_what_collected():
    learner = ppo_config().build_learner()
    batch = {**ppo_batch(32), Columns.ACTION_DIST_INPUTS: np.random.default_rng(1).normal(size=(32, 2))}
    before, now = torch.as_tensor(batch[Columns.ACTION_DIST_INPUTS]).float(), torch.as_tensor(batch[Columns.OBS])
    policies = [torch.distributions.Categorical(logits=p) for p in (before, learner_outputs(learner, now.float()))]
    result = learner.update(batch)["default_policy"]["mean_kl_loss"]
    assert result == pytest.approx(float(torch.distributions.kl_divergence(*policies).mean()), rel=1e-5)


def learner_outputs(learner, obs):
    return learner.module["default_policy"].forward_inference({Columns.OBS: obs})[Columns.ACTION_DIST_INPUTS]


def test_the_last_minibatch_decides_on_the_weight_of_the_distance():
    learner = ppo_config(lr=0.1).build_learner()
    batch = {**ppo_batch(8), Columns.ACTION_DIST_INPUTS: np.zeros((8, 2))}
    first = ppo_config(lr=0.1).build_learner().update(batch)["default_policy"]["mean_kl_loss"]
    assert learner.update(batch, num_epochs=8)["default_policy"]["mean_kl_loss"] > 2 * first


def test_the_weight_of_the_entropy_follows_sampled_steps():
    def trained(points):
        learner = ppo_config(entropy_coeff=points).build_learner()
        return learner, [
            learner.update(ppo_batch(16), timesteps={"num_env_steps_sampled_lifetime": steps})["default_policy"]
            for steps in (50, 100, 200)
        ]

    learner, results = trained([[0, 0.1], [100, 0.0]])
    assert [result["curr_entropy_coeff"] for result in results] == pytest.approx([0.05, 0, 0])
    constant = [ppo_config(entropy_coeff=weight).build_learner() for weight in (0.1, 0.05)]
    losses = [other.update(ppo_batch(16))["default_policy"]["total_loss"] for other in constant]
    assert results[0]["total_loss"] == losses[0] != losses[1]
    again = ppo_config(entropy_coeff=[[0, 0.1], [100, 0.0]]).build_learner()
    again.set_state(learner.get_state())
    same(again.update(ppo_batch(16)), learner.update(ppo_batch(16)))


class Valued(RLModule):
    """A policy with a critic in `compute_values`, as RLlib's modules have it."""

    def setup(self):
        self.actor, self.critic = torch.nn.Linear(3, 2), torch.nn.Linear(3, 1)

    def _forward(self, batch):
        return {Columns.ACTION_DIST_INPUTS: self.actor(batch[Columns.OBS]), Columns.EMBEDDINGS: batch[Columns.OBS]}

    def compute_values(self, batch, embeddings=None):
        return self.critic(batch[Columns.OBS] if embeddings is None else embeddings).squeeze(-1)


def test_values_come_from_compute_values_too():
    learner = ppo_config().rl_module(rl_module_spec=RLModuleSpec(Valued)).build_learner()
    before = learner.module["default_policy"].critic.weight.detach().clone()
    assert learner.update(ppo_batch(16))["default_policy"]["vf_loss"] > 0
    assert not torch.equal(learner.module["default_policy"].critic.weight, before)
    changed = type("Changed", (ModelRLModule,), {"compute_values": lambda self, batch, embeddings=None: ZEROS})
    learner = ppo_config().rl_module(rl_module_spec=RLModuleSpec(changed), model_config={"hidden": [8]}).build_learner()
    batch = {**ppo_batch(16), Columns.VALUE_TARGETS: np.ones(16)}
    assert learner.update(batch)["default_policy"]["vf_loss"] == 1


ZEROS = torch.zeros(16)


def test_ranks_agree_on_the_weight_of_the_distance():
    def train(group):
        learner = ppo_config().learner_type()(ppo_config(), ppo_config().get_multi_rl_module_spec(), group=group)
        learner.build()
        batch = ppo_batch(8, seed=group.rank)
        if not group.rank:  # as if its actions came from this very policy
            obs, actions = torch.as_tensor(batch[Columns.OBS]).float(), torch.as_tensor(batch[Columns.ACTIONS])
            actor = learner.module["default_policy"].model.actor
            batch[Columns.ACTION_LOGP] = actor.distribution.log_prob(actor(obs), actions).detach().squeeze(-1)
        learner.update(batch)
        return learner.get_extra_state()

    first, second = in_ranks(2, train)
    assert first == second


def test_a_state_of_ppo_has_the_weight_of_the_distance():
    learner, other = ppo_config().build_learner(), ppo_config().build_learner()
    learner.build()
    other.build()
    learner.update(ppo_batch(16))
    other.set_state(learner.get_state())
    same(other.update(ppo_batch(16, 1)), learner.update(ppo_batch(16, 1)))
    same(other.get_state(), learner.get_state())


@pytest.mark.parametrize(
    ("set_it", "told"),
    [
        (lambda c: c.training(clip_parm=0.1), "no 'clip_parm'; did you mean 'clip_param'"),
        (lambda c: c.training(entropy_coeff=[[5, 0.1]]), "entropy_coeff is "),
        (lambda c: c.training(clip_param=[[0, 0.1], [9, 0.2]]), "clip_param is .* it takes a number"),
        (lambda c: c.learners(num_learners=-1), "num_learners is -1"),
        (lambda c: c.learners(num_learners="two"), "num_learners is 'two'"),
        (lambda c: c.learners(num_gpus_per_learner=2), "0 or 1"),
        (lambda c: LearnerGroup(c.learners(custom_resources_per_learner={"tpu": 1})), "nowhere placed"),
        (lambda c: c.learners(launcher="rya"), "did you mean 'ray'"),
        (lambda c: c.training(grad_clip_by="nrom"), "grad_clip_by is 'nrom'"),
        (lambda c: c.training(grad_clip=-1.0), "grad_clip is -1.0"),
        (lambda c: c.training(on_nonfinite="skipp"), "did you mean 'skip'"),
        (lambda c: c.rl_module(model_config={"hiden": [4]}).build_learner().build(), "did you mean 'hidden'"),
        (lambda c: PPOConfig().build_learner().build(), "no spaces to build a module for"),
    ],
)
def test_settings_that_are_none_are_refused(set_it, told):
    with pytest.raises(ConfigError, match=told):
        set_it(ppo_config())


def test_modules_that_are_built_already_are_taken_as_they_are():
    module = Linear()
    learner = Regression(AlgorithmConfig(), module=module)
    learner.build()
    assert learner.module["default_policy"] is module
    empty = Regression(AlgorithmConfig(), module=MultiRLModule())
    empty.build()
    empty.add_module(module_id="a", module_spec=RLModuleSpec(Linear))
    assert empty.update(rows(4))["a"]["num_module_steps_trained"] == 4


def test_modules_are_kept_in_folders_of_their_own(tmp_path):
    learner = built("a", "b")
    folder = learner.module["a"].save_to_path(tmp_path / "a")
    other = Linear()
    other.restore_from_path(folder)
    same(other.get_state(), learner.module["a"].get_state())
    same(Linear.from_checkpoint(folder).get_state(), other.get_state())
    learner.restore_from_path(folder, component="rl_module/b")
    same(flat(learner, "b"), flat(learner, "a"))
    both = MultiRLModule(rl_module_specs={name: RLModuleSpec(Linear) for name in "ab"})
    both.restore_from_path(learner.module.save_to_path())
    same(both.get_state(), learner.module.get_state())


def test_weights_follow_from_the_seed_and_the_id_alone():
    before = torch.random.get_rng_state()
    both, one = built("a", "b"), built("b")
    assert torch.equal(torch.random.get_rng_state(), before)
    same(flat(both, "b"), flat(one, "b"))
    assert not torch.equal(flat(both, "a"), flat(both, "b"))


@pytest.mark.slow
def test_compiled_updates_are_the_eager_ones():
    """With a smaller last minibatch, another weight of the distance, a state that is set, and several ranks."""

    def trained(compiled, group=None):
        config = ppo_config(grad_clip=0.5).framework(torch_compile_learner=compiled)
        learner = config.learner_type()(config, config.get_multi_rl_module_spec(), group=group)
        learner.build()
        results = []
        for seed in range(3):
            results.append(learner.update(ppo_batch(20, seed), minibatch_size=8, num_epochs=2))
            learner.set_state(learner.get_state())
        return learner, results

    (eager, told), (compiled, told_by_compiled) = trained(False), trained(True)
    torch.testing.assert_close(flat(compiled), flat(eager), rtol=0, atol=1e-5)
    for first, second in zip(told, told_by_compiled, strict=True):
        assert first["default_policy"] == pytest.approx(second["default_policy"], rel=1e-3, abs=1e-5)


@pytest.mark.slow
def test_a_loss_that_is_no_graph_runs_eagerly_and_says_so(caplog):
    class Deciding(Regression):
        def compute_loss_for_module(self, *, module_id, config, batch, fwd_out):
            weight = 2 if batch["target"].sum() > 0 else 1
            loss = super().compute_loss_for_module(module_id=module_id, config=config, batch=batch, fwd_out=fwd_out)
            return weight * loss

    learners = [
        config_of(learner_class=Deciding).framework(torch_compile_learner=compiled).build_learner()
        for compiled in (False, True)
    ]
    for learner in learners:
        learner.build()
        learner.update(rows(4))
    same(flat(learners[0]), flat(learners[1]))
    assert "runs eagerly, as its loss cannot be written down as a graph" in caplog.text


class Dropped(Linear):
    def setup(self):
        super().setup()
        self.dropout = torch.nn.Dropout(0.5)
        self.modes = []

    def _forward(self, batch):
        self.modes.append(self.dropout.training)
        return {"output": self.dropout(self.net(batch[Columns.OBS]))}


def test_layers_with_modes_are_in_training_mode_for_losses_alone():
    learner = AlgorithmConfig(learner_class=Regression).rl_module(rl_module_spec=RLModuleSpec(Dropped)).build_learner()
    learner.build()
    learner.update(batch=rows(8))
    module = learner.module["default_policy"]
    assert module.modes == [True]
    seen = {Columns.OBS: torch.ones(4, 3)}
    assert torch.equal(module.forward_inference(seen)["output"], module.forward_exploration(seen)["output"])


def test_data_may_be_given_as_rllib_has_it():
    whole, batch = built(), rows(10)
    whole.update(batch)
    pieces = [SampleBatch(cut(batch, 0, 3)), SampleBatch(cut(batch, 3, 10))]
    assert [piece.count for piece in pieces] == [len(piece) for piece in pieces] == [3, 7]
    for data in (
        {"batch": SampleBatch(batch)},
        {"batch": SampleBatch(batch).as_multi_agent()},
        {"batch": MultiAgentBatch({"default_policy": batch}, env_steps=10)},
        {"batches": [piece.as_multi_agent() for piece in pieces]},
        {"training_data": TrainingData(batches=pieces)},
        {"data_iterators": [iter(pieces)], "num_iters": 2},
    ):
        other, group = built(), config_of().build_learner_group()
        other.update(**data)
        same(flat(other), flat(whole))
        if "data_iterators" not in data:
            group.update(**data)
            same(group.get_weights()["default_policy"], whole.get_state()["rl_module"]["default_policy"])
    with pytest.raises(ConfigError, match="data_iterators take num_iters"):
        whole.update(data_iterators=[iter(pieces)])


def test_a_state_may_leave_out_what_acting_does_not_need(tmp_path):
    group = ppo_config().build_learner_group()
    weights = group.get_state("learner/rl_module", inference_only=True)["learner"]["rl_module"]["default_policy"]
    assert {name.split(".")[1] for name in weights} == {"actor"}
    assert set(group.get_state("learner/rl_module")) == {"learner"}
    before = group.get_weights()["default_policy"]
    group.set_weights({"default_policy": {name: 0 * value for name, value in weights.items()}})
    after = group.get_weights()["default_policy"]
    assert not after["model.actor.network.layers.0.weight"].any()
    same(after["model.critic.layers.0.weight"], before["model.critic.layers.0.weight"])
    group.restore_from_path(group.save_to_path(), component="learner/rl_module")
    again = LearnerGroup.from_checkpoint(group.save_to_path(tmp_path), ppo_config())
    same(again.get_state(), group.get_state())
    same(LearnerGroup.from_checkpoint(tmp_path).get_state(), group.get_state())


def test_networks_may_be_described_in_the_names_of_rllib():
    for config in (DefaultModelConfig([8], "relu"), {"fcnet_hiddens": [8], "fcnet_activation": "relu"}):
        learner = ppo_config().rl_module(model_config=config).build_learner()
        same(flat(learner), flat(ppo_config().rl_module(model_config=SECTION).build_learner()))
    for config, told in [
        (DefaultModelConfig([8], vf_share_layers=True), "layers of their own"),
        ({"fcnet_hiddens": [8], "use_lstm": True}, "no 'use_lstm'"),
    ]:
        with pytest.raises(NotSupportedError, match=told):
            ppo_config().rl_module(model_config=config).build_learner()


SECTION = {"hidden": [8], "activation": "relu"}


class Supervised(Linear):
    """Computes its own loss."""

    def compute_self_supervised_loss(self, *, learner, module_id, config, batch, fwd_out):
        learner.metrics.log_value((module_id, "own"), 1.0)
        return fwd_out["output"].square().mean()


def test_a_module_may_compute_its_own_loss():
    spec = MultiRLModuleSpec({"a": RLModuleSpec(Linear), "b": RLModuleSpec(Supervised)})
    learner = AlgorithmConfig(learner_class=Regression).rl_module(rl_module_spec=spec).build_learner()
    results = learner.update({"a": rows(4), "b": {Columns.OBS: rows(4)[Columns.OBS]}})
    assert (results["b"]["own"], "error" in results["a"]) == (1, True)


def test_a_batch_of_several_modules_says_of_how_many_steps_it_is():
    batch = MultiAgentBatch({"a": rows(6), "b": rows(2)}, env_steps=8)
    assert (batch.count, batch.env_steps(), batch.agent_steps()) == (8, 8, 8)
    assert built("a", "b").update(batch, num_epochs=2)["__all_modules__"]["num_env_steps_trained"] == 16
