"""Episodes that a model of the world imagines, beside the real ones: the interface of such models, and the film."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import torch

import rlcore
from rlcore.envs import TransformedEnv
from rlcore.errors import ConfigError
from rlcore.types import offers
from rlcore_plugin_agents.exploration import ExplorationType, set_exploration_type
from rlcore_plugin_agents.rollout import rollout
from rlcore_plugin_agents.side_by_side import drawn, joined
from rlcore_plugin_agents.stage import Stage

if TYPE_CHECKING:
    from tensordict import TensorDict
    from torch import Tensor

# steps that a model sees before it goes on alone, as in the figures of Dreamer's papers
SHOWN: Final = 5
# a step is slow enough to be looked at
_FPS: Final = 15
# steps of a video, as its pictures are held in memory; several episodes share them
_MOST: Final = 1_000


class Imagines(Protocol):
    """A model that predicts observations: `rlcore watch --imagined` puts them beside the real ones.

    Called in `plugins/rlcore-plugin-agents/src/rlcore_plugin_agents/imagining.py`:

        real, imagined = model.imagine(observation, action, shown, generator)
    """

    def imagine(
        self, observation: Tensor, action: Tensor, shown: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor]:
        """Return what was seen in an episode, and what the model predicts in its place.

        Where an observation is not shown, the prediction follows from those that were shown before, and from the
        actions in between.

        Args:
            observation: from the beginning of an episode on, as the transforms left it, `[time, *shape]`.
            action: that the policy took after each, `[time, *action]`.
            shown: which observations the model sees, bool `[time]`; the first is one.
            generator: the only source of randomness.

        Returns:
            Both in one form: `[time, size]` for vectors, `[time, channel, height, width]` between 0 and 1 for images.
        """
        ...


class _Played(TransformedEnv):
    """Shows rewards as they are; transforms may change those of a batch."""

    def batch(self, batch: TensorDict) -> TensorDict:
        """Return the batch."""
        return batch


class Filmed(NamedTuple):
    """The steps of an episode beside those that were imagined.

    Attributes:
        real: as `Imagines.imagine` returns them.
        imagined: likewise.
        total: of the rewards.
    """

    real: Tensor
    imagined: Tensor
    total: float


def film_imagined(stage: Stage, seeds: range, file: Path, steps: int) -> Iterator[tuple[int, float, int]]:
    """Play one episode after another, and write each beside what the model imagines; yield seed, return and length.

    The model sees `SHOWN` steps, imagines so many, sees the next ones, and so on. Episodes that have more
    than 1,000 steps together are cut.

    Raises:
        ConfigError: the model imagines no observations.
        StorageError: the video cannot be written.
    """
    model = stage.context.model
    if not offers(model, Imagines):
        raise ConfigError(
            f"--imagined: a {type(model).__name__} has no method imagine(observation, action, shown, generator), by "
            "which it would predict observations; world models with a decoder have it, as the model dreamer; leave "
            "--imagined out to see the real episodes"
        )
    pictures: list[Tensor] = []
    with closing(_Played(stage.env(1), stage.context.transforms)) as env:
        for seed in seeds:
            longest = max(1, min(env.spec.max_episode_steps or _MOST, _MOST // len(seeds)))
            shown = torch.arange(longest) % (SHOWN + steps) < SHOWN
            filmed = _episode(model, env, seed, shown, stage.context.device)
            shown = shown[: len(filmed.real)]
            paint = drawn if filmed.real.ndim == 2 else joined
            pictures.extend(paint(filmed.real, filmed.imagined, shown))
            yield seed, filmed.total, len(shown)
    rlcore.write_mp4(file, torch.stack(pictures), _FPS)


def _episode(model: Any, env: _Played, seed: int, shown: Tensor, device: torch.device) -> Filmed:
    """Play an episode without exploration, of at most as many steps as `shown` has, and let the model imagine it."""
    with set_exploration_type(ExplorationType.DETERMINISTIC):
        batch = rollout(env, len(shown), model.policy, seed=seed, device=device)
    observation, action = batch["observation"][0], batch["action"][0]
    generator = torch.Generator(device).manual_seed(seed)
    with torch.inference_mode():
        real, imagined = model.imagine(observation, action, shown[: len(action)].to(device), generator)
    return Filmed(real.cpu(), imagined.cpu(), float(batch["next", "reward"].sum()))
