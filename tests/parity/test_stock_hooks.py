"""The stock hooks do to the same data what those of TorchRL do."""

from __future__ import annotations

import inspect

import pytest
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule

import rlcore
from rlcore.loggers.metrics import Last

trainers = pytest.importorskip("torchrl.trainers")

SAME_NAMES = [
    "BatchSubSampler",
    "ClearCudaCache",
    "CountFramesLog",
    "DefaultOptimizationStepper",
    "EarlyStopping",
    "LRSchedulerHook",
    "LogScalar",
    "LogTiming",
    "LogValidationReward",
    "OptimizerHook",
    "ReplayBufferTrainer",
    "RewardNormalizer",
    "SelectKeys",
    "TargetNetUpdaterHook",
    "UTDRHook",
    "UpdateWeights",
    "ValueEstimatorHook",
]
MASK = [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]


def theirs(name):
    """The hook of TorchRL."""
    from torchrl.trainers import trainers as module

    return getattr(module, name)


def both(name):
    return theirs(name), getattr(rlcore, name)


def plain(found):
    """What was logged as numbers."""
    values = {key: value.value if isinstance(value, Last) else value for key, value in (found or {}).items()}
    return {key: float(value) for key, value in values.items()}


def same(left, right):
    assert left.batch_size == right.batch_size
    assert set(left.keys(True, True)) == set(right.keys(True, True))
    for key in left.keys(True, True):
        assert torch.equal(left[key], right[key]), key


def arguments_of(kind):
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return {p.name: (p.default, p.kind is p.KEYWORD_ONLY) for p in parameters}


@pytest.mark.parametrize("name", SAME_NAMES)
def test_arguments_have_the_same_names_places_and_defaults(name):
    expected, found = (arguments_of(kind) for kind in both(name))
    added = {"BatchSubSampler": ["generator"]}.get(name, [])
    changed = {"LogValidationReward": ["exploration_type"]}.get(name, [])
    assert list(found) == [*expected, *added]
    assert {key: found[key] for key in expected if key not in changed} == {
        key: value for key, value in expected.items() if key not in changed
    }


@pytest.mark.parametrize("size", [(6,), (2, 5)])
def test_select_keys(batch, size):
    same(*(kind(["action", ("next", "reward")])(batch(*size)) for kind in both("SelectKeys")))


def test_mask_batch(batch):
    same(*(function(batch(2, 5, mask=MASK)) for function in both("mask_batch")))
    same(*(function(batch(2, 5)) for function in both("mask_batch")))


@pytest.mark.parametrize("mask", [None, MASK])
def test_count_frames(batch, mask):
    hooks = [kind(frame_skip=3, log_pbar=True) for kind in both("CountFramesLog")]
    for seed in range(3):
        found = [plain(hook(batch(2, 5, seed=seed, mask=mask))) for hook in hooks]
        assert found[0] == found[1]
    assert hooks[0].state_dict() == hooks[1].state_dict()


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("reduction", ["mean", "sum", "min", "max"])
@pytest.mark.parametrize("arguments", [{}, {"key": "number", "logname": "n", "log_pbar": True, "include_std": False}])
def test_log_scalar(batch, mask, reduction, arguments):
    found = [plain(kind(reduction=reduction, **arguments)(batch(2, 5, mask=mask))) for kind in both("LogScalar")]
    assert found[0] == found[1]


@pytest.mark.parametrize("mask", [None, MASK])
def test_reward_normalizer(batch, mask):
    hooks = [kind(decay=0.9, scale=2.0) for kind in both("RewardNormalizer")]
    for seed in range(4):
        drawn = []
        for hook in hooks:
            hook.update_reward_stats(batch(2, 5, seed=seed, mask=mask))
            drawn.append(hook.normalize_reward(batch(7, seed=seed + 10)))
        same(*drawn)
    expected = hooks[0].state_dict()["_reward_stats"]
    found = hooks[1].state_dict()
    assert {**found["statistics"], "decay": found["decay"]} == dict(expected)


def test_batch_sub_sampler_of_steps(batch):
    drawn = []
    for kind in both("BatchSubSampler"):
        torch.manual_seed(5)
        drawn.append(kind(4)(batch(10)))
    same(*drawn)


@pytest.mark.parametrize(("size", "mask"), [((4, 5), None), ((2, 2, 5), None), ((2, 5), [[1] * 5] * 2)])
def test_batch_sub_sampler_of_whole_trajectories(batch, size, mask):
    drawn = []
    for kind in both("BatchSubSampler"):
        torch.manual_seed(5)
        drawn.append(kind(30)(batch(*size, mask=mask)))
    same(*drawn)


@pytest.mark.parametrize("mask", [None, MASK])
@pytest.mark.parametrize("least", [0, 2])
def test_batch_sub_sampler_of_windows_has_the_same_sizes(batch, mask, least):
    drawn = [kind(12, 2, least)(batch(2, 5, mask=mask)) for kind in both("BatchSubSampler")]
    assert drawn[0].batch_size == drawn[1].batch_size
    for windows in drawn:
        number = windows["number"]
        assert torch.equal(number[:, 1:], number[:, :-1] + 1)


def starts(kind, whole):
    torch.manual_seed(0)
    return set(kind(2000, 2)(whole)["number"][:, 0].tolist())


def test_difference_the_last_window_of_a_trajectory_is_drawn_too(batch):
    """TorchRL draws a beginning below its last place, so a trajectory's last step is never trained on."""
    expected, found = (starts(kind, batch(1, 5)) for kind in both("BatchSubSampler"))
    assert expected == {0, 1, 2}
    assert found == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "arguments",
    [{}, {"flatten_tensordicts": True}, {"max_dims": [-1, 7]}],
    ids=["as it is", "flat", "padded"],
)
@pytest.mark.parametrize("mask", [None, MASK])
def test_replay_buffer_extend(batch, arguments, mask):
    stored = [kind(new_buffer(), **arguments).extend(batch(2, 5, mask=mask)) for kind in both("ReplayBufferTrainer")]
    same(*map(without_truncated, stored))


def without_truncated(batch):
    """A batch without the flag that is marked otherwise on purpose, see below."""
    return batch.exclude(("next", "truncated"))


def new_buffer(**arguments):
    from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer

    return TensorDictReplayBuffer(storage=LazyTensorStorage(50), batch_size=4, **arguments)


def test_replay_buffer_sample_and_state(batch):
    drawn = []
    for kind in both("ReplayBufferTrainer"):
        hook, resumed = kind(new_buffer(), flatten_tensordicts=True), kind(new_buffer())
        hook.extend(batch(2, 5))
        resumed.load_state_dict(hook.state_dict())
        torch.manual_seed(1)
        drawn.append([hook.sample(None), resumed.sample(None), kind(hook.replay_buffer, batch_size=2).sample(None)])
    for expected, found in zip(*drawn, strict=True):
        same(without_truncated(expected), without_truncated(found))


def test_replay_buffer_iterated(batch):
    from torchrl.data import SamplerWithoutReplacement

    taken = []
    for kind in both("ReplayBufferTrainer"):
        hook = kind(new_buffer(sampler=SamplerWithoutReplacement()), flatten_tensordicts=True, iterate=True)
        hook.extend(batch(2, 4))
        torch.manual_seed(1)
        numbers = []
        for _ in range(6):
            try:
                numbers.append(hook.sample(None)["number"].tolist())
            except StopIteration:
                numbers.append("end")
        taken.append(numbers)
    assert [len(part) if part != "end" else part for part in taken[1]] == [4, 4, "end"] * 2
    assert taken[0] == taken[1]


class Told:
    """A buffer that keeps the priorities that it is told."""

    def __init__(self, sampler=None):
        self.sampler = sampler
        self.told = []

    def extend(self, batch):
        pass

    def sample(self, batch_size=None):
        pass


def test_replay_buffer_priorities(batch):
    from torchrl.data import PrioritizedSampler

    class ToldBatches(Told):
        def update_tensordict_priority(self, batch):
            self.told.append(batch)

    sampler = PrioritizedSampler.__new__(PrioritizedSampler)  # its trees need an extension that may not be built
    told = []
    for kind in both("ReplayBufferTrainer"):
        buffer, drawn = ToldBatches(sampler), batch(3)
        kind(buffer).update_priority(drawn)
        told.append(buffer.told == [drawn])
        with pytest.raises((ValueError, rlcore.HookError), match=r"[Pp]rioritized"):
            kind(Told(sampler))
    assert told == [True, True]


def test_difference_only_the_last_step_of_a_row_is_marked_as_truncated(batch):
    """TorchRL indexes the last dimension, which is the one of size 1 of a flag, and so marks every step."""
    marks = []
    for kind in both("ReplayBufferTrainer"):
        stored = kind(new_buffer(), flatten_tensordicts=True).extend(batch(2, 3))
        marks.append(stored["next", "truncated"].reshape(-1).tolist())
    assert marks == [[True] * 6, [False, False, True] * 2]


def test_difference_the_batch_of_the_collector_is_not_marked(batch):
    """TorchRL marks the batch that it is handed, which may be storage that a collector writes into again."""
    marked = []
    for kind in both("ReplayBufferTrainer"):
        whole = batch(2, 5)
        kind(new_buffer(), flatten_tensordicts=True).extend(whole)
        marked.append(bool(whole["next", "truncated"].any()))
    assert marked == [True, False]


@pytest.mark.parametrize("clipping", [(True, None), (True, 0.1), (False, 0.1)])
@pytest.mark.parametrize("name", ["OptimizerHook", "DefaultOptimizationStepper"])
def test_optimizer_hook_and_default_stepper(batch, make_trainer, clipping, name):
    weights, norms = [], []
    for library, kind in zip(("torchrl", "rlcore"), both(name), strict=True):
        loss = make_trainer(library, []).loss_module
        optimizer = torch.optim.SGD(loss.parameters(), lr=0.1, momentum=0.9)
        trainer = make_trainer(
            library, [], loss_module=loss, optimizer=optimizer, clip_grad_norm=clipping[0], clip_norm=clipping[1]
        )
        hook = kind(trainer.optimizer, ["loss_value"]) if name == "OptimizerHook" else kind(["loss_value"])
        for seed in range(4):
            if name == "OptimizerHook":
                found = hook(loss(batch(8, seed=seed)), *clipping, 0)["grad_norm_0"]
            else:
                found = hook.step(trainer, batch(8, seed=seed))["grad_norm"]
            norms.append(float(found))
        weights.append(loss.layer.weight.detach())
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-6)
    assert norms[:4] == pytest.approx(norms[4:], rel=1e-5)


@pytest.mark.parametrize("name", ["OptimizerHook", "DefaultOptimizationStepper"])
def test_empty_loss_components_are_refused(name):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])
    for kind, error in zip(both(name), (ValueError, rlcore.HookError), strict=True):
        arguments = (optimizer, []) if name == "OptimizerHook" else ([],)
        with pytest.raises(error, match="empty"):
            kind(*arguments)


@pytest.mark.parametrize("interval", ["batch", "optim"])
def test_lr_scheduler(batch, make_trainer, interval):
    rates = []
    for library, kind in zip(("torchrl", "rlcore"), both("LRSchedulerHook"), strict=True):
        seen = []
        loss = make_trainer(library, []).loss_module
        optimizer = torch.optim.SGD(loss.parameters(), lr=1.0)
        trainer = make_trainer(library, [batch(4)] * 3, loss_module=loss, optimizer=optimizer, optim_steps_per_batch=2)
        kind(torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5), interval).register(trainer)
        record = lambda batch, seen=seen, optimizer=optimizer: seen.append(optimizer.param_groups[0]["lr"])  # noqa: E731
        trainer.register_op("post_optim_log", record)
        trainer.register_op("post_steps_log", record)
        trainer.train()
        rates.append(seen)
    assert rates[0] == rates[1]
    assert len(set(rates[1])) > 3


@pytest.mark.parametrize(
    ("values", "arguments"),
    [
        ([1, 2, 2, 2, 2, 2], {}),
        ([3, 2, 3, 3, 1, 3, 3, 3], {"mode": "min"}),
        ([1.0, 1.2, 1.4, 1.6], {"min_delta": 0.3}),
        ([1, 1, 1, 1, 1, 1], {"wait_for": 30}),
        ([1, 2, float("nan"), 4], {}),
        ([1, 2, float("nan"), 4, 5], {"check_finite": False}),
    ],
)
def test_early_stopping(batch, make_trainer, values, arguments):
    found = []
    for library, kind in zip(("torchrl", "rlcore"), both("EarlyStopping"), strict=True):
        trainer = make_trainer(library, [batch(10)] * len(values))
        taken = iter(values)
        trainer.register_op("post_steps_log", lambda batch, taken=taken: {"score": next(taken)})
        hook = kind(monitor="score", **{"wait_for": 0, "patience": 20, **arguments})
        hook.register(trainer)
        trainer.train()
        state = hook.state_dict()
        frame = state.get("_last_improvement_frame", state.get("last_improvement_frame"))
        found.append((trainer.collected_frames, state["best_score"], frame, state["stop_reason"] is None))
    assert found[0] == found[1]


def test_difference_early_stopping_waits_for_its_metric(batch, make_trainer):
    """TorchRL raises when the metric was not logged by the first call, also while `wait_for` lasts."""
    for library, kind in zip(("torchrl", "rlcore"), both("EarlyStopping"), strict=True):
        trainer = make_trainer(library, [batch(10)] * 2)
        kind(monitor="later").register(trainer)
        if library == "torchrl":
            with pytest.raises(RuntimeError, match="could not find monitored metric"):
                trainer.train()
        else:
            trainer.train()
            assert trainer.collected_frames == 20


@pytest.mark.parametrize(("interval", "unit"), [(1, "batches"), (2, "batches"), (3, "optim_steps")])
def test_update_weights(batch, make_trainer, interval, unit):
    found = []
    for library, kind in zip(("torchrl", "rlcore"), both("UpdateWeights"), strict=True):
        trainer = make_trainer(library, [batch(4)] * 5, optim_steps_per_batch=2)
        sent = []

        class Receiver:
            def update_policy_weights_(self, *arguments, trainer=trainer, sent=sent):
                sent.append((trainer.collected_frames, arguments))

        getter = None if interval == 1 else (lambda: "weights")
        hook = kind(Receiver(), interval, getter, interval_unit=unit, trainer=trainer)
        hook.register(trainer)
        trainer.train()
        found.append((sent, hook.state_dict()))
    assert found[0] == found[1]
    assert found[1][0]


def test_update_weights_by_a_map(make_trainer):
    found = []
    for library, kind in zip(("torchrl", "rlcore"), both("UpdateWeights"), strict=True):
        trainer = make_trainer(library, [])

        class Receiver:
            def update_policy_weights_(self, weights_dict):
                found.append(weights_dict["policy"])

        kind(Receiver(), weight_update_map={"policy": "loss_module.layer"}, trainer=trainer)()
    same(*found)


def test_value_estimator(batch, make_trainer):
    from torchrl.objectives.value import GAE

    estimates = []
    for library, kind in zip(("torchrl", "rlcore"), both("ValueEstimatorHook"), strict=True):
        torch.manual_seed(0)
        critic = TensorDictModule(torch.nn.Linear(3, 1), in_keys=["observation"], out_keys=["state_value"])
        seen = []
        whole = batch(2, 5)
        whole["next"].update({"observation": whole["observation"] + 1, "terminated": whole["next", "done"].clone()})
        trainer = make_trainer(library, [whole], num_epochs=2)
        hook = kind(GAE(gamma=0.99, lmbda=0.95, value_network=critic))
        hook.register(trainer)
        trainer.register_op("post_loss", lambda sub_batch, seen=seen: seen.append(sub_batch["advantage"].clone()))
        trainer.train()
        estimates.append(torch.stack(seen))
        assert hook(None) is None
    torch.testing.assert_close(*estimates, rtol=0, atol=0)


def counting_env():
    """An env of TorchRL with episodes of three steps and rewards that grow, without randomness."""
    from torchrl.data import Bounded, Composite, Unbounded
    from torchrl.envs import EnvBase

    class Counting(EnvBase):
        def __init__(self):
            super().__init__(batch_size=[])
            self.observation_spec = Composite(observation=Unbounded((3,)))
            self.action_spec = Bounded(-10, 10, (1,))
            self.reward_spec = Unbounded((1,))
            self.count = 0
            self.was_closed = 0

        def _reset(self, tensordict):
            self.count = 0
            return TensorDict({"observation": torch.zeros(3)})

        def _step(self, tensordict):
            self.count += 1
            done = torch.tensor([self.count >= 3])
            reward = tensordict["action"] + self.count
            observation = torch.full((3,), float(self.count))
            return TensorDict({"observation": observation, "reward": reward, "done": done, "terminated": done})

        def _set_seed(self, seed):
            pass

        def close(self, **arguments):
            self.was_closed += 1

    return Counting()


def rollouts(kind, env, **arguments):
    """The hook of a library over an env, with a policy that is deterministic."""
    from torchrl.envs import TransformedEnv

    torch.manual_seed(0)
    policy = TensorDictModule(torch.nn.Linear(3, 1), in_keys=["observation"], out_keys=["action"])
    return kind(
        record_frames=8,
        environment=TransformedEnv(env),
        policy_exploration=policy,
        **{"record_interval": 2, **arguments},
    )


@pytest.mark.parametrize("frame_skip", [1, 4])
def test_log_validation_reward(frame_skip):
    hooks = [rollouts(kind, counting_env(), frame_skip=frame_skip) for kind in both("LogValidationReward")]
    for _ in range(4):
        expected, found = (hook(None) for hook in hooks)
        assert (expected is None) == (found is None)
        assert plain(expected) == pytest.approx(plain(found), rel=1e-5)
    assert hooks[0].state_dict()["_count"] == hooks[1].state_dict()["count"] == 4


def test_difference_the_policy_is_evaluated_without_exploring_by_default():
    """TorchRL's text says so, and its code explores."""
    expected, found = (arguments_of(kind)["exploration_type"][0] for kind in both("LogValidationReward"))
    assert (expected.name, found.name) == ("RANDOM", "DETERMINISTIC")


def test_difference_the_env_is_closed_at_the_end_and_not_after_each_call():
    """TorchRL closes it at every call, due or not."""
    closed = []
    for kind in both("LogValidationReward"):
        env = counting_env()
        hook = rollouts(kind, env, record_interval=10)
        for _ in range(3):
            hook(None)
        closed.append(env.was_closed)
    assert closed == [3, 0]


def test_target_net_updater(batch, make_trainer):
    """TorchRL registers it at `post_steps`, though its text says `post_optim`, where it is here."""
    from torchrl.objectives import DQNLoss, SoftUpdate

    targets = []
    for library, kind in zip(("torchrl", "rlcore"), both("TargetNetUpdaterHook"), strict=True):
        torch.manual_seed(0)
        from torchrl.modules import QValueActor

        loss = DQNLoss(
            QValueActor(torch.nn.Linear(3, 2), in_keys=["observation"], action_space="categorical"),
            delay_value=True,
            action_space="categorical",
        )
        updater = SoftUpdate(loss, eps=0.5)
        with torch.no_grad():
            for parameter in loss.parameters():
                parameter.add_(1.0)
        trainer = make_trainer(library, [batch(4)] * 2, optim_steps_per_batch=1)
        kind(updater).register(trainer, "target")
        trainer.train()
        targets.append([value.clone() for value in loss.target_value_network_params.values(True, True)])
    for expected, found in zip(*targets, strict=True):
        assert torch.equal(expected, found)


def test_utd_ratio(make_trainer):
    class Buffer:
        write_count, batch_size = 30, 8
        minibatches = None  # of rlcore, so that batches are not drawn by hooks

    found = []
    for library, kind in zip(("torchrl", "rlcore"), both("UTDRHook"), strict=True):
        trainer = make_trainer(library, [], replay_buffer=Buffer())
        if library == "torchrl":
            trainer._optim_count = 15
        else:
            trainer.progress.updates = 15
        found.append(plain(kind(trainer)()))
    assert found[0] == found[1] == {"utd_ratio": 4.0, "write_count": 30, "update_count": 15, "log_pbar": 0.0}


def test_clear_cuda_cache(monkeypatch):
    cleared = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: cleared.append(True))
    counts = []
    for kind in both("ClearCudaCache"):
        hook = kind(3)
        for _ in range(7):
            hook()
        counts.append((len(cleared), hook.state_dict()))
        cleared.clear()
    assert counts[0] == counts[1] == (2, {"count": 7})


def test_log_timing_uses_the_same_names(batch, make_trainer):
    from torchrl._utils import timeit

    timeit.erase()
    names = []
    for library, kind in zip(("torchrl", "rlcore"), both("LogTiming"), strict=True):

        def measured(batch):
            return None

        measured.__qualname__ = "measured"
        trainer = make_trainer(library, [batch(4)])
        trainer.register_op("batch_process", measured)
        hook = kind(prefix="spent")
        hook.register(trainer)
        trainer.train()
        names.append({key for key in hook(None) if "measured" in key})
    assert names[0] == names[1] == {"spent/hook/measured"}
