"""Provenance: the record in a manifest of the run, the config and the libraries that made a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from rlcore.state.ranks import own_name

if TYPE_CHECKING:
    from rlcore.state.snapshot import Snapshot


@dataclass(frozen=True)
class Provenance:
    """Record of where the state of a checkpoint comes from.

    Attributes:
        owners: component name to the distribution that wrote its state.
        observers: the components that watch a run and do not change it.
        run_id: made once for each run; empty for a script, whose folders of checkpoints belong to no run.
        config: of the run, resolved; empty for a script.
        config_hash: over the keys of the config that change results.
        versions: of the installed distributions that the run uses.
        domain: machine, libraries and sources that the bits of a run depend on, see `state/exactness.py`.
        env: spaces and counts of the env, see `envs/spec_records.py`; empty where they cannot be recorded.
        data: path to checksum of each data set that the run learns from; empty where it learns from none.
        inexact: why a resume from here does not give the bits of an uninterrupted run; empty when it does.
        metadata: returns further entries of a script, as JSON; called at every save.
    """

    owners: Mapping[str, str] = field(default_factory=dict)
    observers: tuple[str, ...] = ()
    run_id: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    config_hash: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    domain: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, str] = field(default_factory=dict)
    inexact: tuple[str, ...] = ()
    metadata: Callable[[], Mapping[str, Any]] | None = None

    def with_reasons(self, reasons: Iterable[str]) -> Provenance:
        """Return this provenance with further reasons in `inexact`, each once."""
        return replace(self, inexact=tuple(dict.fromkeys([*self.inexact, *reasons])))

    def with_observers(self, names: Iterable[str]) -> Provenance:
        """Return this provenance with other observers."""
        return replace(self, observers=tuple(names))

    def in_manifest(self, snapshot: Snapshot) -> dict[str, Any]:
        """Return the entries of a manifest about the provenance and the hashes of a snapshot."""
        from rlcore.state.snapshot import training_digest  # imports torch, which listing checkpoints does without

        digests = snapshot.digests()
        observers = [name for name in snapshot.tree if own_name(name) in self.observers]
        return {
            "run_id": self.run_id,
            "config": dict(self.config),
            "config_hash": self.config_hash,
            "owners": {name: self.owners.get(own_name(name), "") for name in snapshot.tree},
            "observers": observers,
            "versions": dict(self.versions),
            "domain": dict(self.domain),
            "exact": not self.inexact,
            "inexact": list(self.inexact),
            "sizes": {
                name: sum(snapshot.tensors[tensor].nbytes for tensor in snapshot.names[name]) for name in snapshot.tree
            },
            "digests": digests,
            "digest": training_digest(digests, observers),
            **({"env": dict(self.env)} if self.env else {}),
            **({"data": dict(self.data)} if self.data else {}),
            **({} if self.metadata is None else {"metadata": dict(self.metadata())}),
        }
