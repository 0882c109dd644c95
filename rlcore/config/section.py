"""One validated section of a config, tied to the component that its `use` names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from rlcore.config.policies import AGENTS, POLICY
from rlcore.plugins.component import COMPONENT_SECTIONS
from rlcore.plugins.registry import Provided


@dataclass(frozen=True)
class Section:
    """One validated component section.

    Attributes:
        label: where it stands, such as `loss` or `hook.1`.
        name: name of the component instance, unique in its kind.
        provided: the component, with its owner.
        config: the validated keys.
        required: of a logger: whether a failure at its start ends the run.
        leaf: of a transform: of the observations that it changes; None where these are one array.
        policy: whose part it is; empty where a run has one policy, or the part is that of all.
        agents: of the model of a policy: the names of the agents that it acts for.
    """

    label: str
    name: str
    provided: Provided
    config: BaseModel
    required: bool = False
    leaf: str | None = None
    policy: str = ""
    agents: tuple[str, ...] = ()

    def dump(self) -> dict[str, Any]:
        """Return the section as it can be written into a resolved config."""
        use = self.provided.use
        common: dict[str, Any] = {"required": True} if self.required else {}
        common |= {} if self.leaf is None else {"leaf": self.leaf}
        common |= {AGENTS: list(self.agents)} if self.agents else {}
        common |= {POLICY: self.policy} if self.policy and COMPONENT_SECTIONS[self.provided.component.kind][1] else {}
        return {"use": use, "name": self.name, **common, **self.config.model_dump(mode="json", exclude_none=True)}
