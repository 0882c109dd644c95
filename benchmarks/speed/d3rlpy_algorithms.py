"""d3rlpy's algorithms with the sizes and rates of rlcore's tasks: two layers of 256, 256 transitions, 3e-4."""

from __future__ import annotations

from typing import Any

from d3rlpy.algos import BCConfig, CQLConfig, DiscreteCQLConfig, IQLConfig, TD3PlusBCConfig
from d3rlpy.models import VectorEncoderFactory

WIDE = VectorEncoderFactory([256, 256])
ONE = {"encoder_factory": WIDE, "learning_rate": 3e-4}
BOTH = {
    "actor_encoder_factory": WIDE,
    "critic_encoder_factory": WIDE,
    "actor_learning_rate": 3e-4,
    "critic_learning_rate": 3e-4,
    "batch_size": 256,
}


def algorithm_of(name: str, **settings: Any) -> Any:
    """Return an algorithm on the CPU; CQL without its multiplier, as the others are measured."""
    if name in ("bc", "bc10"):
        config: Any = BCConfig(**ONE, batch_size=256, **settings)
    elif name == "discrete-cql":
        config = DiscreteCQLConfig(**ONE, batch_size=64, **settings)
    elif name == "iql":
        config = IQLConfig(**BOTH, value_encoder_factory=WIDE, **settings)
    elif name == "cql":
        config = CQLConfig(**BOTH, temp_learning_rate=3e-4, alpha_learning_rate=0.0, n_action_samples=10, **settings)
    else:
        config = TD3PlusBCConfig(**BOTH, **settings)
    return config.create(device="cpu:0")
