"""`rlcore config schema`: a JSON schema of everything installed, so that an editor completes and checks a config."""

from __future__ import annotations

import argparse
import json
import logging
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from rlcore.cli import Answer, add_json
from rlcore.config.common_keys import DEFAULTS
from rlcore.config.core import CORE_SECTIONS, DEFAULT_USE, DEVICE, SAFE_NAME, CheckpointConfig
from rlcore.config.extending import EXTENDS
from rlcore.config.policies import AGENTS, OF_POLICIES, POLICY
from rlcore.config.sections import REQUIRED
from rlcore.errors import PluginError
from rlcore.plugins.component import COMPONENT_SECTIONS, is_repeated
from rlcore.plugins.host import PluginHost
from rlcore.plugins.registry import Provided

log = logging.getLogger(__name__)

_Parts = tuple[dict[str, Any], dict[str, Any]]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

# a run that learns from data alone may have its spaces from them
_WITHOUT_ENV: Final[dict[str, Any]] = {
    "required": ["run", "buffer", *(name for name in REQUIRED if name != "env")],
    "properties": {"run": {"required": ["total_updates"]}},
}
# a section with a table for each policy
_OF_EACH_POLICY: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": {"type": "object"},
    "minProperties": 1,
}
_AGENTS: Final = {AGENTS: {"type": "array", "items": {"type": "string"}, "minItems": 1}}
_LENGTH: Final = {"oneOf": [{"required": ["total_frames"]}, {"required": ["total_updates"]}]}


@dataclass(frozen=True)
class ConfigSchema:
    """What an editor checks a config by.

    Attributes:
        json_schema: of the dialect 2020-12; without `--json` it is printed alone.
    """

    json_schema: dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add no arguments but `--json`: the schema is of all that is installed."""
    parser.description = "Print a JSON schema of everything installed, for editors."
    add_json(parser, ConfigSchema)


def run(options: argparse.Namespace) -> Answer:
    """Make the schema."""
    schema = config_schema()
    return Answer(ConfigSchema(schema), json.dumps(schema, indent=1) + "\n")


def config_schema() -> dict[str, Any]:
    """Return the schema; a plugin that cannot be imported is left out and named in the log."""
    host = _everything()
    definitions: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    needs: dict[str, Any] = {}
    for name, model in CORE_SECTIONS.items():
        properties[name], needs[name] = _without_required(_keys(model, f"core.{name}", definitions))
    properties["run"]["properties"]["name"]["pattern"] = f"^{SAFE_NAME.pattern}$"
    properties["run"]["properties"]["device"]["pattern"] = f"^({DEVICE.pattern})$"
    needs["run"] |= _LENGTH
    for section, (kind, repeated) in COMPONENT_SECTIONS.items():
        choices = [_component(provided, section, host, definitions) for provided in host.registry.of_kind(kind)]
        if section in OF_POLICIES and not repeated:
            choices.append(_of_policies(choices) if section == "model" else (_OF_EACH_POLICY, _OF_EACH_POLICY))
        for sections, schemas in zip((properties, needs), zip(*choices, strict=True), strict=True):
            one = {"anyOf": [*schemas]}
            sections[section] = (
                {"type": "array", "items": one, "minItems": int(section in REQUIRED)} if repeated else one
            )
    properties[EXTENDS] = {"type": "string", "description": "a config that this one begins with, relative to it"}
    properties[DEFAULTS] = {"type": "object", "description": "keys for every section that has them and says nothing"}
    return {
        "$schema": DIALECT,
        "title": "A config of rlcore",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        # what is missing may be said elsewhere
        "if": {"anyOf": [{"required": [EXTENDS]}, {"required": [DEFAULTS]}]},
        "else": {"properties": needs, "anyOf": [{"required": ["run", *REQUIRED]}, _WITHOUT_ENV]},
        "$defs": definitions,
    }


def _of_policies(models: list[_Parts]) -> _Parts:
    """Return the schema of a section with a model for each policy, and of what each of them needs."""
    loose = [{**model, "properties": {**model["properties"], **_AGENTS}} for model, _ in models]
    needs = [{"type": "object", **need, "required": [*need["required"], AGENTS]} for _, need in models]
    return {**_OF_EACH_POLICY, "additionalProperties": {"anyOf": loose}}, {"additionalProperties": {"anyOf": needs}}


def _everything() -> PluginHost:
    """Import every installed plugin that can be imported."""
    host = PluginHost()
    for name in host.names():
        try:
            host.load(name)
        except PluginError as error:
            log.warning("left out of the schema: %s", error)
    return host


def _component(provided: Provided, section: str, host: PluginHost, definitions: dict[str, Any]) -> _Parts:
    """Return the schema of a section that uses one component, and of what such a section needs."""
    component, plugin = provided.component, provided.plugin
    schema = _keys(provided.schema(), f"{component.kind}.{plugin}.{component.name}", definitions)
    if section == "checkpoint":
        schema["properties"] |= _keys(CheckpointConfig, "core.checkpoint", definitions)["properties"]
    alone = sum(entry.component.name == component.name for entry in host.registry.of_kind(component.kind)) == 1
    names = [f"{plugin}:{component.name}", *([component.name] if alone else [])]
    uses = {"anyOf": [{"enum": names}, {"pattern": f"^{component.name}:."}]} if component.part_key else {"enum": names}
    schema["properties"]["use"] = {"type": "string", **uses, "description": component.summary}
    schema["properties"]["name"] = {"type": "string", "description": "name of the instance"}
    if section == "logger":
        text = "whether a failure at its start ends the run; else the run goes on without it"
        schema["properties"]["required"] = {"type": "boolean", "default": False, "description": text}
    if section == "transform":
        text = "the leaf that it changes, of observations that are dicts"
        schema["properties"]["leaf"] = {"type": "string", "description": text}
    more: Any = schema.get("additionalProperties", False)
    if section in OF_POLICIES and is_repeated(section):
        text = "of a run with several policies: whose it is; default: each has one of its own"
        schema["properties"][POLICY] = {"type": "string", "description": text}
    elif section in OF_POLICIES and section != "model" and not more:
        more = {"type": "object"}  # the keys of one policy
    if component.name != DEFAULT_USE.get(section):
        schema["required"] = ["use", *(key for key in schema.get("required", []) if key != component.part_key)]
    whole = {**schema, "title": f"{component.kind} {component.name}", "additionalProperties": more}
    loose, needs = _without_required(whole)
    is_default = component.name == DEFAULT_USE.get(section)
    return loose, whole if is_default else {**needs, "properties": {"use": uses}}


def _without_required(schema: dict[str, Any]) -> _Parts:
    """Return a schema that refuses only what is wrong, and one that refuses only what is missing."""
    return {key: value for key, value in schema.items() if key != "required"}, {"required": schema.get("required", [])}


def _keys(model: type[BaseModel], place: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON schema of a model; its own definitions move to the common ones, under `place`."""
    schema = model.model_json_schema(ref_template=f"#/$defs/{place}.{{model}}")
    definitions |= {f"{place}.{name}": definition for name, definition in schema.pop("$defs", {}).items()}
    return {"properties": {}, **schema}
