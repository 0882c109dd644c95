"""What is kept of an episode: rlpyt's trajectory infos, made from the batches that were collected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any


class TrajInfo:
    """The figures of one episode, by attribute or as `info["Length"]`.

    A subclass adds attributes; those that begin with `_` are not logged.

    Attributes:
        Length: steps.
        Return: the sum of the rewards.
        NonzeroRewards: how many rewards were not 0.
        DiscountedReturn: the sum of the discounted rewards.
        _discount: set by the runner, that of the algorithm.
    """

    _discount: float = 1.0

    def __init__(self) -> None:
        self.Length = 0
        self.Return = 0.0
        self.NonzeroRewards = 0
        self.DiscountedReturn = 0.0
        self._cur_discount = 1.0

    def step(self, observation: Any, action: Any, reward: float, done: bool, agent_info: Any, env_info: Any) -> None:
        """Take in one step of the env.

        Args:
            observation: before the step, as the policy saw it: an array.
            action: an array.
            reward: as the learner gets it.
            done: whether the episode ended.
            agent_info: None.
            env_info: at the last step of an episode the mapping that the env gave, and as `episode_return` the sum of
                the env's own rewards; else None.
        """
        self.Length += 1
        self.Return += reward
        self.NonzeroRewards += reward != 0
        self.DiscountedReturn += self._cur_discount * reward
        self._cur_discount *= self._discount

    def terminate(self, observation: Any) -> TrajInfo:
        """Return what is logged of the episode, after its last step."""
        return self

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __setitem__(self, name: str, value: Any) -> None:
        vars(self)[name] = value

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def keys(self) -> Iterable[str]:
        """Return the names of all figures."""
        return vars(self).keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and figures."""
        return vars(self).items()


class AtariTrajInfo(TrajInfo):
    """With the score of the game, which is the return before rewards are clipped."""

    def __init__(self) -> None:
        super().__init__()
        self.GameScore = 0.0

    def step(self, observation: Any, action: Any, reward: float, done: bool, agent_info: Any, env_info: Any) -> None:
        """Take in one step; the last one has the score."""
        super().step(observation, action, reward, done, agent_info, env_info)
        if env_info is not None:
            self.GameScore = env_info["episode_return"]


def logged(info: TrajInfo) -> dict[str, float]:
    """Return what is logged of a trajectory info."""
    return {name: float(value) for name, value in vars(info).items() if not name.startswith("_")}


def evaluated(lengths: Sequence[int], returns: Sequence[float]) -> list[TrajInfo]:
    """Return the trajectory infos of an evaluation, which have these two figures alone."""
    infos = [TrajInfo() for _ in lengths]
    for info, length, return_ in zip(infos, lengths, returns, strict=True):
        vars(info).clear()
        info.Length, info.Return = length, float(return_)
    return infos
