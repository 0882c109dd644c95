"""The batch of each policy: its own rows of that of all, with what it sees and does as it is without the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlcore.errors import ConfigError
from rlcore_plugin_policies.joint import Joint, form_of
from rlcore_plugin_policies.model import JointPolicy
from rlcore_plugin_policies.shares import Shares

if TYPE_CHECKING:
    from tensordict import TensorDict

    from rlcore.types import Key


class OwnBatches:
    """Takes the batches of policies out of the batches of all.

    Args:
        shares: which rows are whose.
        policy: of all; knows how it joins what the policies see, do and say.
        num_envs: of all policies.
    """

    def __init__(self, shares: Shares, policy: JointPolicy, num_envs: int) -> None:
        self.shares = shares
        self._policy = policy
        self._num_envs = num_envs

    def of(self, name: str, batch: Any) -> TensorDict:
        """Return the batch `[env, time]` of one policy, new, laid out in memory as collectors lay out theirs.

        Raises:
            ConfigError: the batch is not of all envs, so that nobody knows whose its rows are.
        """
        from tensordict import TensorDict

        if batch is None or batch.batch_size[0] != self._num_envs:
            raise ConfigError(
                "[collector] gives batches of some of the envs, or none at all, and several policies ([model.NAME]) "
                'need those of all: set use = "local"'
            )
        joint = self._joint()
        rows = self.shares.rows(name, self._num_envs, batch.get(("next", "reward")).device)
        part = TensorDict({}, batch_size=[len(rows), batch.batch_size[1]])
        for key in batch.keys(include_nested=True, leaves_only=True):
            by_time = batch.get(key).transpose(0, 1)
            values = joint[key].take(name, by_time, 1) if key in joint else by_time.index_select(1, rows)
            part.set(key, values.transpose(0, 1))
        return part

    def put(self, batch: TensorDict, key: Key, values: dict[str, Any]) -> None:
        """Set an entry of the batch of all from those of the policies, `[env, time, ...]`."""
        forms = {name: form_of(value, 1) for name, value in values.items()}
        by_time = {name: value.transpose(0, 1) for name, value in values.items()}
        batch.set(key, Joint(self.shares, forms).put(by_time, self._num_envs, 1).transpose(0, 1))

    def _joint(self) -> dict[Key, Joint]:
        policy = self._policy
        joint: dict[Key, Joint] = {"observation": policy.observation, ("next", "observation"): policy.observation}
        return {**joint, "action": policy.action, **policy.described}
