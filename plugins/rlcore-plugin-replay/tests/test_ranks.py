"""Several processes that train together: as many minibatches for each, with rows where there are any."""

import pytest
import torch
from rlcore_plugin_replay.buffer import ReplayBuffer
from rlcore_plugin_replay.prioritized import PrioritizedReplayBuffer
from rlcore_plugin_testing.ranks import in_ranks
from tensordict import TensorDict

from rlcore import Context, Progress
from rlcore.types import RunInfo


def batch():
    flags = {name: torch.zeros(1, 4, 1, dtype=torch.bool) for name in ("done", "terminated", "truncated")}
    following = TensorDict({"observation": torch.ones(1, 4, 2), "reward": torch.ones(1, 4, 1), **flags}, [1, 4])
    return TensorDict({"observation": torch.zeros(1, 4, 2), "next": following}, [1, 4])


@pytest.mark.parametrize("kind", [ReplayBuffer, PrioritizedReplayBuffer])
def test_a_rank_whose_buffer_is_empty_joins_the_others_without_rows(kind):
    def iterations(group):
        context = Context(RunInfo("run", 1, 100), torch.device("cpu"), Progress(100), "buffer", "replay", group=group)
        buffer = kind(kind.Config(minibatch_size=4, updates_per_batch=3, warmup_frames=0), context)
        sizes = []
        for filled in (False, group.rank == 1, True):
            if filled:
                buffer.add(batch())
            sizes.append([])
            for minibatch in buffer.minibatches(batch()):
                sizes[-1].append(minibatch.size)
                values = {"td_error": torch.ones(4, 1)} if minibatch.size else {"grad_norm": torch.ones(())}
                buffer.feedback(minibatch, values)
        return sizes

    assert in_ranks(2, iterations) == [[[], [0] * 3, [4] * 3], [[], [4] * 3, [4] * 3]]
