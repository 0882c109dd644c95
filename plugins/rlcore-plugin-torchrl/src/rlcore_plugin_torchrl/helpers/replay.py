"""A replay buffer from settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.run import published
from rlcore_plugin_torchrl.helpers.settings import setting

if TYPE_CHECKING:
    import torch
    from rlcore_plugin_replay.buffer import ReplayBuffer


def make_replay_buffer(device: torch.device | str, cfg: object) -> ReplayBuffer:
    """Return a replay buffer in a mapped file: uniform, or prioritized with alpha 0.7 and beta 0.5.

    Args:
        device: where samples go.
        cfg: settings, of which all have defaults: `buffer_size` (1,000,000 transitions), `prb` (False; True for a
            prioritized one), `buffer_scratch_dir` (None; the folder of the file, by default that for temporary
            files), `batch_size` (256), `seed` (0). `buffer_prefetch` is not used: a sample is one gather of packed
            rows.

    Raises:
        PluginError: rlcore-plugin-replay is not installed.
    """
    shared = {
        "device": device,
        "seed": setting(cfg, "seed", 0),
        "folder": setting(cfg, "buffer_scratch_dir", None),
        "capacity": setting(cfg, "buffer_size", 1_000_000),
        "minibatch_size": setting(cfg, "batch_size", 256),
        "storage": "memmap",
    }
    if setting(cfg, "prb", False):
        prioritized: Any = published("buffer", "prioritized").target()
        return prioritized.of(**shared, alpha=0.7, beta=0.5)  # type: ignore[no-any-return]
    uniform: Any = published("buffer", "replay").target()
    return uniform.of(**shared)  # type: ignore[no-any-return]
