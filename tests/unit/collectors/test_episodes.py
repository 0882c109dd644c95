"""Returns and lengths of episodes that go over the ends of batches."""

from __future__ import annotations

import numpy as np

from rlcore.collectors import episodes
from rlcore.collectors.episodes import EpisodeCounter, Finished


def batch(rewards, ends, mask=None):
    reward = np.array(rewards, dtype=np.float32).T
    done = np.zeros(reward.shape, dtype=bool)
    for env, times in enumerate(ends):
        done[times, env] = True
    return reward, done, np.ones(reward.shape, dtype=bool) if mask is None else np.array(mask).T


def test_episodes_go_on_over_batches():
    counter = EpisodeCounter(2)
    assert counter.take(*batch([[1, 2, 3], [4, 5, 6]], [[1], []])) == [Finished(1, 0, 3.0, 2)]
    assert counter.returns.tolist() == [3.0, 15.0]
    assert counter.lengths.tolist() == [1, 3]
    assert counter.take(*batch([[1, 1, 1], [1, 1, 1]], [[0, 2], [0]])) == [
        Finished(0, 0, 4.0, 2),
        Finished(0, 1, 16.0, 4),
        Finished(2, 0, 2.0, 2),
    ]


def test_masked_steps_do_not_count():
    counter = EpisodeCounter(1)
    assert counter.take(*batch([[1, 7, 1]], [[2]], [[True, False, True]])) == [Finished(2, 0, 2.0, 2)]


def test_a_reset_begins_new_episodes():
    counter = EpisodeCounter(1)
    counter.take(*batch([[1, 1]], [[]]))
    counter.reset()
    assert counter.take(*batch([[5]], [[0]])) == [Finished(0, 0, 5.0, 1)]


def test_few_steps_are_counted_with_the_bits_of_many(monkeypatch):
    generator = np.random.default_rng(1)
    few, many = EpisodeCounter(3), EpisodeCounter(3)
    found = 0
    for _ in range(50):
        steps = int(generator.integers(1, 12))
        reward = generator.normal(size=(steps, 3)).astype(np.float32)
        mask = generator.random((steps, 3)) > 0.2
        done = generator.random((steps, 3)) < 0.2
        with monkeypatch.context() as patched:
            ended = few.take(reward, done, mask)
            patched.setattr(episodes, "_FEW", 0)
            assert ended == many.take(reward, done, mask)
        found += len(ended)
        assert few.returns.tobytes() == many.returns.tobytes()
        assert few.lengths.tobytes() == many.lengths.tobytes()
    assert found > 50
