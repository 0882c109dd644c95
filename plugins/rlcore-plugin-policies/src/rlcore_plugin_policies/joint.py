"""One tensor of what several policies have, each in its own rows, and what one of them has of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from rlcore.errors import PluginError
from rlcore_plugin_policies.shares import Shares

if TYPE_CHECKING:
    from torch import Tensor

Form = tuple[tuple[int, ...], torch.dtype]


def form_of(value: Tensor, dim: int) -> Form:
    """Return shape and dtype of a row of a tensor whose rows are those of dimension `dim`."""
    return tuple(value.shape[dim + 1 :]), value.dtype


class Joint:
    """Puts tensors of several policies into one and takes them out again, to the bit.

    Where their shapes differ, a row of the joint tensor begins with the elements of its own and ends in zeros.

    Args:
        shares: which rows are whose.
        forms: shape and dtype of a row, by policy; one without a form has zeros.
        shape: of a row of the joint tensor; default: that of all policies, or one as wide as the widest.
        dtype: of the joint tensor; default: one that holds all of theirs.
    """

    def __init__(
        self,
        shares: Shares,
        forms: Mapping[str, Form],
        shape: tuple[int, ...] | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        shapes = [shape for shape, _ in forms.values()]
        common = shapes[0] if len(set(shapes)) == 1 else (max(map(math.prod, shapes)),)
        self._shares = shares
        self._forms = dict(forms)
        self._shape = common if shape is None else shape
        self._dtype = dtype or _common([dtype for _, dtype in forms.values()])

    def put(self, values: Mapping[str, Tensor], num_envs: int, dim: int) -> Tensor:
        """Return one tensor of those of the policies.

        Args:
            values: by policy, with its own envs in dimension `dim`; a policy may be missing, and has zeros then.
            num_envs: of all policies.
            dim: of the envs; those before it are the same for all.

        Raises:
            PluginError: a policy gives rows of another form than it did when the run was built.
        """
        one = next(iter(values.values()))
        joint = torch.zeros((*one.shape[:dim], num_envs, *self._shape), dtype=self._dtype, device=one.device)
        for name, value in values.items():
            if form_of(value, dim) != self._forms.get(name):
                form = form_of(value, dim)
                raise PluginError(f"policy {name!r} gives rows of {form}, and gave {self._forms.get(name)} before")
            into = joint
            if value.shape[dim + 1 :] != self._shape:
                value = value.reshape(*value.shape[: dim + 1], -1)
                into = joint.narrow(-1, 0, value.shape[-1])
            into.index_copy_(dim, self._shares.rows(name, num_envs, one.device), value.to(self._dtype))
        return joint

    def take(self, name: str, joint: Tensor, dim: int) -> Tensor:
        """Return what one policy has of a joint tensor, a copy with its own envs in dimension `dim`."""
        part = joint.index_select(dim, self._shares.rows(name, joint.shape[dim], joint.device))
        shape, dtype = self._forms.get(name, (self._shape, self._dtype))
        if shape != self._shape:
            part = part.narrow(-1, 0, math.prod(shape)).reshape(*part.shape[: dim + 1], *shape)
        return part.to(dtype)


def _common(dtypes: list[torch.dtype]) -> torch.dtype:
    """Return a dtype that holds the values of all of these as they are."""
    common = dtypes[0]
    for dtype in dtypes[1:]:
        mixed = dtype.is_floating_point != common.is_floating_point
        common = torch.float64 if mixed else torch.promote_types(common, dtype)
    return common
