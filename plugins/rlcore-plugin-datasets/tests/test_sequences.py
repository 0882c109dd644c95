"""Stretches of recorded episodes: where they begin, what is trained on, and how often each step is."""

import numpy as np
import pytest
import torch
from rlcore_plugin_datasets.dataset import write_dataset
from rlcore_plugin_datasets.episode import Episode
from rlcore_plugin_datasets.sequences import DatasetSequences
from rlcore_plugin_testing.contracts.data_buffer import COLLECTS_NOTHING
from rlcore_plugin_testing.small_run import make_run

from rlcore import ConfigError
from rlcore.types import FIRST, MASK, POLICY_STATE

from .test_contracts import SPACES

LENGTHS = (5, 1, 9)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a dataset whose first observed number counts the steps of all episodes, and whose action is the same."""
    place, episodes, count = tmp_path_factory.mktemp("data") / "numbered", [], 0
    for length in LENGTHS:
        numbers = np.arange(count, count + length + 1, dtype=np.float32)
        last = np.arange(length) == length - 1
        seen = np.stack([numbers, numbers * 0, numbers * 0], 1)
        episodes.append(Episode(seen, numbers[:-1, None], np.zeros(length), last, np.zeros(length, bool)))
        count += length
    write_dataset(place, SPACES, episodes, {})
    return place


MEMORY = {
    "model": {"use": "testing:toy-memory"},
    "buffer": {"use": "rollout-sequences", "sequence_length": 4, "minibatch_size": 8},
}


def bench(folder, model=None, **keys):
    sections = {**COLLECTS_NOTHING, "buffer": {"use": "testing:toy-data"}, "hook": [{"use": "testing:toy"}]}
    context = make_run(sections=sections).trainer.hooks.hooks[0].instance.context
    context.built["model"] = model or make_run(sections=MEMORY).trainer.model
    config = DatasetSequences.Config(path=str(folder), **keys)
    return DatasetSequences(config, context.for_component("buffer", "sequences"))


def numbers_of(found):
    return found["observation"][..., 0].int(), found[MASK].squeeze(-1), found[FIRST].squeeze(-1)


def test_stretches_lie_within_an_episode_and_begin_with_the_state_of_its_beginning(folder):
    buffer = bench(folder, minibatch_size=64, sequence_length=4, burn_in=3)
    begins = np.cumsum([0, *LENGTHS[:-1]])
    for found in buffer.minibatches(None):
        number, mask, first = numbers_of(found)
        assert number.shape == mask.shape == first.shape == (7, 64)
        assert found["action"].shape == (7, 64, 1)
        assert (found[POLICY_STATE] == 0).all()
        assert torch.equal(found["action"][..., 0].int(), number)
        assert first[0].all()
        assert not mask[:3].any(), "a step of the burn-in is trained on"
        assert mask.any(0).all(), "a stretch has no step to train on"
        for sequence in range(64):
            own, counted = number[:, sequence], mask[:, sequence]
            (episode,) = {int(np.searchsorted(begins, n, side="right")) - 1 for n in own.tolist()}
            trained = own[counted].tolist()
            assert trained == list(range(trained[0], trained[0] + len(trained)))
            begin, end = begins[episode], begins[episode] + LENGTHS[episode]
            # what is left out at either side is outside of the episode
            assert len(trained) == 4 or trained[0] == begin or trained[-1] == end - 1
            before = own[:3][own[:3] != own[1:4]].tolist() if trained[0] > begin else []
            assert before == list(range(max(begin, trained[0] - 3), trained[0]))


def test_the_state_begins_again_where_the_episode_does(folder):
    buffer = bench(folder, minibatch_size=64, sequence_length=4, burn_in=3)
    for found in buffer.minibatches(None):
        number, mask, first = numbers_of(found)
        for sequence in range(64):
            own = number[:, sequence].tolist()
            trained = own[int(mask[:, sequence].int().argmax())]
            # after the padding by the first step, only the last copy of it is where the episode begins
            if trained in np.cumsum([0, *LENGTHS[:-1]]):
                assert first[int(mask[:, sequence].int().argmax()), sequence]
            assert first[1:, sequence].sum() <= 1


def test_every_step_is_as_likely_as_any_other(folder):
    buffer = bench(folder, minibatch_size=64, sequence_length=4, burn_in=0, updates_per_iteration=32)
    count = torch.zeros(sum(LENGTHS))
    for _ in range(10):
        for found in buffer.minibatches(None):
            number, mask, _ = numbers_of(found)
            count += torch.bincount(number[mask], minlength=sum(LENGTHS))
    expected = count.mean()
    assert ((count - expected).abs() < 6 * expected.sqrt()).all(), count


def test_a_model_without_memory_is_refused(folder):
    with pytest.raises(ConfigError, match="for a policy with a state"):
        bench(folder, model=make_run().trainer.model)
