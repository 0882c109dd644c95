"""Priorities decide how often a transition is sampled, and weights take that back."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from rlcore_plugin_replay.host_tree import HostSumTree
from rlcore_plugin_replay.priorities import HostPriorities, TensorPriorities
from rlcore_plugin_replay.prioritized import PrioritizedReplayBuffer
from rlcore_plugin_replay.sum_tree import SumTree, write_sums_in_one_order
from rlcore_plugin_testing import make_trainer
from rlcore_plugin_testing.compare import difference
from tensordict import TensorDict

from rlcore.errors import ConfigError, RlcoreError

DRAWS = 200_000


def filled(count=50, **settings):
    buffer = PrioritizedReplayBuffer.of(seed=1, **{"capacity": 64, **settings})
    buffer.extend(TensorDict({"number": torch.arange(count)}, [count]))
    return buffer


def shares(buffer, count=50):
    return torch.bincount(buffer.sample(DRAWS)["index"], minlength=count).double() / DRAWS


def on_cpu(size):
    return SumTree(size, torch.device("cpu"))


class InTensors:
    """The tree of host memory, spoken to in tensors."""

    def __init__(self, size):
        self.tree = HostSumTree(size)

    def __getitem__(self, index):
        return torch.from_numpy(self.tree[index.numpy()])

    def __setitem__(self, index, values):
        self.tree[index.numpy()] = values.numpy()

    def draw(self, uniform):
        return torch.from_numpy(self.tree.draw(uniform.numpy()))


@pytest.mark.parametrize("kind", [on_cpu, InTensors])
@pytest.mark.parametrize("size", [1, 5, 32, 33, 1024, 5000, 40_000])
def test_the_tree_draws_what_a_search_in_the_running_sum_draws(size, kind):
    generator = torch.Generator().manual_seed(size)
    values = torch.rand(size, generator=generator, dtype=torch.float64)
    values[torch.rand(size, generator=generator) < 0.3] = 0.0
    values[0] = 0.5
    tree = kind(size)
    for places in torch.randperm(size, generator=generator).split(max(7, size // 100)):
        tree[places] = values[places]
    assert torch.equal(tree[torch.arange(size)], values)
    uniform = torch.rand(1000, generator=generator, dtype=torch.float64)
    running = values.cumsum(0)
    expected = torch.searchsorted(running, uniform * running[-1], right=True)
    drawn = tree.draw(uniform)
    assert (drawn == expected).float().mean() > 0.999, "but for the last bits of sums"
    assert (values[drawn] > 0).all()


@pytest.mark.parametrize("kind", [on_cpu, InTensors])
def test_the_ends_of_the_range_are_drawn_from_what_has_a_priority(kind):
    tree = kind(2000)
    tree[torch.tensor([700, 1300])] = torch.tensor([0.1, 0.2], dtype=torch.float64)
    assert tree.draw(torch.tensor([0.0, 1 - 2.0**-53], dtype=torch.float64)).tolist() == [700, 1300]


def test_sums_off_the_cpu_never_fall_and_stay_where_a_number_is_zero():
    generator = torch.Generator().manual_seed(1)
    numbers = torch.rand(1000, 32, generator=generator, dtype=torch.float64) ** 20  # far apart, so that sums round
    numbers[torch.rand(1000, 32, generator=generator) < 0.3] = 0.0
    edges = torch.zeros(1000, 33, dtype=torch.float64)
    write_sums_in_one_order(numbers, edges[:, 1:])
    torch.testing.assert_close(edges[:, 1:], numbers.cumsum(1), rtol=1e-14, atol=0)
    widths = edges.diff(dim=1)
    assert (widths >= 0).all()
    assert (widths[numbers == 0] == 0).all()


def test_priorities_decide_how_often_a_transition_is_drawn():
    buffer = filled(alpha=0.7)
    errors = torch.linspace(-2.0, 3.0, 50)
    buffer.update_priority(torch.arange(50), errors)
    wanted = (errors.abs().double() + 1e-8) ** 0.7
    torch.testing.assert_close(shares(buffer), wanted / wanted.sum(), atol=1e-3, rtol=0)


def test_without_alpha_all_are_drawn_alike():
    buffer = filled(alpha=0.0)
    buffer.update_priority(torch.arange(50), torch.linspace(0.1, 30.0, 50))
    torch.testing.assert_close(shares(buffer), torch.full((50,), 0.02, dtype=torch.float64), atol=1e-3, rtol=0)


def test_weights_take_the_bias_back():
    buffer = filled(alpha=1.0, beta=1.0)
    buffer.update_priority(torch.arange(50), torch.linspace(1.0, 5.0, 50))
    samples = buffer.sample(DRAWS)
    weight = samples["priority_weight"]
    assert weight.shape == (DRAWS, 1)
    assert weight.max() == 1.0
    corrected = np.bincount(samples["index"], weights=weight.squeeze(-1))
    np.testing.assert_allclose(corrected / corrected.sum(), 0.02, atol=1e-3)


def test_beta_says_how_much_of_it():
    for beta in (0.0, 0.5):
        buffer = filled(alpha=1.0, beta=beta)
        buffer.update_priority(torch.arange(50), torch.linspace(1.0, 5.0, 50))
        samples = buffer.sample(1000)
        priority = torch.linspace(1.0, 5.0, 50)[samples["index"]]
        torch.testing.assert_close(samples["priority_weight"].squeeze(-1), (priority / priority.min()) ** -beta)


def test_a_new_transition_has_the_highest_priority_so_far():
    buffer = filled(count=10, alpha=1.0)
    buffer.update_priority(torch.arange(10), torch.full((10,), 2.0))
    buffer.update_priority(torch.arange(10), torch.full((10,), 0.5))
    buffer.extend(TensorDict({"number": torch.arange(1)}, [1]))
    torch.testing.assert_close(shares(buffer, 11)[10], torch.tensor(2 / 7, dtype=torch.float64), atol=3e-3, rtol=0)


def test_priorities_are_taken_from_samples():
    buffer = filled(count=3, alpha=1.0)
    samples = TensorDict({"index": torch.tensor([0, 1, 2]), "td_error": torch.tensor([[1.0], [-2.0], [5.0]])}, [3])
    buffer.update_priority(samples)
    torch.testing.assert_close(shares(buffer, 3), torch.tensor([1, 2, 5]).double() / 8, atol=3e-3, rtol=0)


def test_an_error_that_is_not_finite_counts_as_the_highest():
    buffer = filled(count=3, alpha=1.0)
    buffer.update_priority(torch.tensor([0, 1, 2]), torch.tensor([3.0, float("nan"), float("inf")]))
    torch.testing.assert_close(shares(buffer, 3), torch.tensor([3, 1, 1]).double() / 5, atol=3e-3, rtol=0)


def test_overwritten_transitions_lose_their_priority():
    buffer = filled(count=64, alpha=1.0)
    buffer.update_priority(torch.arange(64), torch.full((64,), 0.001))
    buffer.extend(TensorDict({"number": torch.arange(100, 132)}, [32]))
    assert (buffer.sample(1000)["number"] >= 100).float().mean() > 0.99


@pytest.mark.parametrize("priority", [None, torch.ones(3)])
def test_each_place_needs_a_priority(priority):
    with pytest.raises(RlcoreError, match="each of the 2 places"):
        filled().update_priority(torch.tensor([0, 1]), priority)


def test_a_loss_without_td_errors_is_refused():
    buffer = filled()
    (minibatch,) = buffer.minibatches(None)
    with pytest.raises(ConfigError, match="td_error"):
        buffer.feedback(minibatch, {"loss_q": torch.tensor(1.0)})


def test_updates_without_the_loss_of_the_critics_leave_priorities_alone():
    """The critics step at every third update: SAC computes no errors at the others."""
    actor = {
        "use": "adam",
        "name": "actor",
        "parameters": ["actor", "temperature"],
        "losses": ["loss_actor", "loss_temperature"],
        "every": 2,
    }
    critics = {"use": "adam", "name": "critics", "parameters": ["critics"], "losses": ["loss_critics"], "every": 3}
    sections = {
        "env": {"use": "testing:toy", "actions": "bounded"},
        "model": {"use": "sac:actor-critic", "hidden": [8]},
        "loss": {"use": "sac"},
        "estimator": None,
        "optimizer": [actor, critics],
        "buffer": {
            "use": "replay:prioritized",
            "capacity": 60,
            "minibatch_size": 8,
            "updates_per_batch": 2,
            "warmup_frames": 0,
        },
    }
    changes = []
    trainer = make_trainer(sections=sections)
    feedback, priorities = trainer.buffer.feedback, trainer.buffer._priorities

    def watched(minibatch, values):
        before = deepcopy(priorities.state_dict())
        feedback(minibatch, values)
        changes.append(difference(before, priorities.state_dict()) is not None)

    trainer.buffer.feedback = watched
    trainer.train()
    assert len(changes) >= 6
    assert changes == [not (number + 1) % 3 for number in range(len(changes))]


def test_a_loss_that_never_gives_td_errors_is_refused_before_the_first_frame():
    with pytest.raises(ConfigError, match=r"\[buffer\] use: prioritized needs a loss that returns 'td_error'"):
        make_trainer(sections={"loss": {"use": "ppo"}, "buffer": {"use": "replay:prioritized"}})


def test_feedback_sets_the_priorities_of_the_minibatch():
    buffer = filled(alpha=1.0, minibatch_size=200)
    (minibatch,) = buffer.minibatches(None)
    error = (minibatch["number"] == 7).float().unsqueeze(-1) * 100
    buffer.feedback(minibatch, {"td_error": error})
    assert set(minibatch["number"].tolist()) == set(range(50)), "200 samples of 50 have each one"
    assert shares(buffer)[7] > 0.999


def test_places_without_transitions_are_refused():
    for places in ([0, 50], [-1, 3]):
        with pytest.raises(RlcoreError, match=r"and there are transitions from 0 to 49"):
            filled().update_priority(torch.tensor(places), torch.ones(2))


@pytest.mark.parametrize("capacity", [20, 5000])
def test_priorities_in_host_memory_are_those_of_tensors(capacity):
    """Over the end of the ring, with the same samples and weights; either takes the state of the other."""
    both = [HostPriorities(capacity, 0.7, 1e-8), TensorPriorities(capacity, 0.7, 1e-8, torch.device("cpu"))]
    generator, first = torch.Generator().manual_seed(1), 0
    for count in (7, 9, 1, 13):
        index, errors = torch.randint(first + count, (40,), generator=generator) % capacity, torch.rand(40, 1)
        errors[3] = float("nan")
        index = index.unique()
        for priorities in both:
            priorities.begin(first % capacity, count)
            priorities.set(index, errors[: len(index)])
        first += count
        host, tensors = (priorities.state_dict() for priorities in both)
        torch.testing.assert_close(host, tensors)
        both[0].load_state_dict(tensors)
        both[1].load_state_dict(host)
        one, two = (priorities.draw(100, torch.Generator().manual_seed(2), 0.5) for priorities in both)
        assert torch.equal(one[0], two[0])
        torch.testing.assert_close(one[1], two[1])
