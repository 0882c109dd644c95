"""Settings of networks under RLlib's names, as keys of a section of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

from rlcore.errors import NotSupportedError, did_you_mean
from rlcore_plugin_learners.recorded import Recorded


@dataclass
class DefaultModelConfig(Recorded):
    """Networks of the modules that are built by default: an MLP for the actor, and one for the critic.

    Attributes:
        fcnet_hiddens: sizes of the layers.
        fcnet_activation: between them.
        head_fcnet_hiddens: sizes of further layers.
        vf_share_layers: refused when True: the critic has layers of its own.
    """

    fcnet_hiddens: list[int] = field(default_factory=lambda: [256, 256])
    fcnet_activation: str = "tanh"
    head_fcnet_hiddens: list[int] = field(default_factory=list)
    vf_share_layers: bool = False


def as_section(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a `[model]` section; those under RLlib's names are renamed.

    Raises:
        NotSupportedError: a setting of RLlib that no key stands for.
    """
    known = [entry.name for entry in fields(DefaultModelConfig)]
    if not set(config) & set(known):
        return dict(config)
    for name in config:
        if name not in known:
            raise NotSupportedError(f"model_config: there is no {name!r}{did_you_mean(name, known)} beside {known[0]}")
    theirs = DefaultModelConfig(**config)
    if theirs.vf_share_layers:
        raise NotSupportedError("model_config: vf_share_layers=True; actor and critic have layers of their own here")
    return {"hidden": [*theirs.fcnet_hiddens, *theirs.head_fcnet_hiddens], "activation": theirs.fcnet_activation}


def after(own: dict[str, Any], model_config: Any) -> Any:
    """Return settings of a model with those of the algorithm in front of them."""
    if not own:
        return model_config
    is_described = is_dataclass(model_config) and not isinstance(model_config, type)
    return own | (asdict(model_config) if is_described else dict(model_config))
