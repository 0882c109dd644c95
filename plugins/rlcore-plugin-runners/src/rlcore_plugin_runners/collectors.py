"""rlpyt's collectors by name: scripts hand them to samplers, which collect by collectors of rlcore."""

from __future__ import annotations

import logging
from typing import ClassVar, Final

from rlcore.errors import ConfigError

log = logging.getLogger(__name__)


class BaseCollector:
    """A name that samplers take for `CollectorCls`; nothing is made of it.

    Attributes:
        mid_batch_reset: whether an env begins its next episode within a batch.
        where: the samplers that take it: those that act in workers, in the process of the learner, or either.
    """

    mid_batch_reset: ClassVar[bool] = True
    where: ClassVar[str] = ""


class CpuResetCollector(BaseCollector):
    """Acts in workers; the next episode begins at once."""

    where = "cpu"


class CpuWaitResetCollector(CpuResetCollector):
    """The same here: no step is left empty, as episodes begin at once."""

    mid_batch_reset = False


class GpuResetCollector(BaseCollector):
    """Acts for all workers in the process of the learner; the next episode begins at once."""

    where = "gpu"


class GpuWaitResetCollector(GpuResetCollector):
    """The same here: no step is left empty, as episodes begin at once."""

    mid_batch_reset = False


class SerialEvalCollector(BaseCollector):
    """Plays whole episodes."""


class CpuEvalCollector(BaseCollector):
    """Plays whole episodes."""


class GpuEvalCollector(BaseCollector):
    """Plays whole episodes."""


_EVALUATE: Final = (SerialEvalCollector, CpuEvalCollector, GpuEvalCollector)


def check_collector(name: str, kind: type | None, where: str) -> None:
    """Refuse a collector of a script's own, and one of other samplers; say where episodes begin otherwise.

    Args:
        name: of the argument.
        kind: the class; None for that of the sampler.
        where: the sampler acts.

    Raises:
        ConfigError: it is refused.
    """
    if kind is None:
        return
    evaluates = name.startswith("eval")
    if not isinstance(kind, type) or kind.__module__ != __name__ or issubclass(kind, _EVALUATE) != evaluates:
        raise ConfigError(
            f"{name} = {getattr(kind, '__name__', kind)}: the sampler's class says how it collects, and nobody would "
            "call a class of your own. What an episode is told of goes into TrajInfoCls, what batches become into a "
            "hook at batch_process; leave it out"
        )
    assert issubclass(kind, BaseCollector)
    if kind.where not in ("", where):
        raise ConfigError(f"{name} = {kind.__name__} acts elsewhere than this sampler; leave it out")
    if not kind.mid_batch_reset:
        log.info("%s = %s: episodes begin at once here, and no step of a batch is left empty", name, kind.__name__)
