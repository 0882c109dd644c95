"""The zip archive that `model.save` of Stable-Baselines3 writes: its settings that can be read, and its tensors."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torch import Tensor

from rlcore.errors import ConfigError, StorageError
from rlcore_plugin_import.archive import as_state_dict, load_tensors, members_of, read_file
from rlcore_plugin_import.pickle_records import Name, Record, read_records
from rlcore_plugin_import.pickled_arrays import NUMPY_NAMES, SPACE_NAMES, array_of

_SERIALIZED: Final = ":serialized:"
_SB3, _CONTRIB = "stable_baselines3", "sb3_contrib"
# policies by name, with the algorithms that have them
_POLICIES: Final = {
    f"{_SB3}.common.policies.ActorCriticPolicy": ("PPO", "A2C", "TRPO"),
    f"{_CONTRIB}.common.maskable.policies.MaskableActorCriticPolicy": ("MaskablePPO",),
    f"{_CONTRIB}.common.recurrent.policies.RecurrentActorCriticPolicy": ("RecurrentPPO",),
    f"{_SB3}.dqn.policies.DQNPolicy": ("DQN",),
    f"{_CONTRIB}.qrdqn.policies.QRDQNPolicy": ("QRDQN",),
    f"{_SB3}.sac.policies.SACPolicy": ("SAC",),
    f"{_SB3}.td3.policies.TD3Policy": ("TD3", "DDPG"),
    f"{_CONTRIB}.tqc.policies.TQCPolicy": ("TQC",),
    f"{_CONTRIB}.crossq.policies.CrossQPolicy": ("CrossQ",),
    f"{_CONTRIB}.ars.policies.ARSPolicy": ("ARS",),
    f"{_CONTRIB}.ars.policies.ARSLinearPolicy": ("ARS",),
}
# names of the pickles that are read: spaces and how often to train
_NAMES: Final = (
    *NUMPY_NAMES,
    *SPACE_NAMES,
    *_POLICIES,
    f"{_SB3}.common.type_aliases.TrainFreq",
    f"{_SB3}.common.type_aliases.TrainFrequencyUnit",
)
_KWARGS: Final = (
    *("activation_fn", "net_arch", "optimizer_class", "optimizer_kwargs", "log_std_init", "ortho_init", "n_critics"),
    *("n_quantiles", "normalize_images", "share_features_extractor", "lstm_hidden_size", "n_lstm_layers", "use_sde"),
    *("shared_lstm", "enable_critic_lstm", "squash_output", "with_bias", "batch_norm_momentum", "batch_norm_eps"),
    *("renorm_warmup_steps", "features_extractor_class", "features_extractor_kwargs"),
)


@dataclass(frozen=True)
class SavedModel:
    """A model of Stable-Baselines3.

    Attributes:
        algorithm: name of its class.
        data: its settings; those that are no JSON have what could be read of them.
        tensors: of the policy, by name.
        optimizers: states of the optimizers by name, such as `policy.optimizer`.
        variables: further tensors, such as the logarithm of SAC's temperature.
        what: it is, for messages.
    """

    algorithm: str
    data: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    optimizers: Mapping[str, Mapping[str, Any]]
    variables: Mapping[str, Tensor]
    what: str

    def number(self, key: str, default: float = 0) -> Any:
        """Return a number of the settings.

        Raises:
            StorageError: it is none.
        """
        value = self.data.get(key, default)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
            return default if value is None else value
        raise StorageError(f"{self.what}: {key} is no number")

    def whole(self, key: str, default: int = 0) -> int:
        """Return a whole number of the settings, which is not negative.

        Raises:
            StorageError: it is none.
        """
        value = self.number(key, default)
        if not isinstance(value, int) or value < 0:
            raise StorageError(f"{self.what}: {key} = {value} is no whole number")
        return value

    def schedule(self, key: str) -> float | None:
        """Return the number of a schedule that is constant; None for others, and where there is none."""
        value = self.data.get(key)
        if isinstance(value, int | float):
            return float(value)
        text = str(value.get("value_schedule", "")) if isinstance(value, Mapping) else ""
        matched = re.fullmatch(r"ConstantSchedule\(val=([-+.0-9e]+)\)", text)
        return float(matched[1]) if matched else None

    def policy_keyword(self, key: str, default: Any = None) -> Any:
        """Return an argument of the policy; text for what is no JSON."""
        return self.data["policy_kwargs"].get(key, default)

    def records(self, key: str) -> Any:
        """Return a setting that was pickled as records; None where it was not.

        Raises:
            StorageError: it has a name or an operation that is not read.
        """
        return _records(self.data, key, self.what)

    def space(self, key: str) -> dict[str, Any]:
        """Return what the file says of a space: its kind, and its fields as numbers and arrays; empty for nothing."""
        record = self.records(key)
        if not isinstance(record, Record):
            return {}
        fields: dict[str, Any] = {"kind": record.made_by.text.rpartition(".")[2]}
        for name in ("low", "high", "n", "start", "nvec", "_shape"):
            value = record.fields.get(name)
            if isinstance(value, Record | int):
                fields[name] = array_of(value, f"{self.what}: {key}")
            elif isinstance(value, tuple):
                fields[name] = value
        return fields


def _records(data: Mapping[str, Any], key: str, what: str) -> Any:
    """Return a setting that was pickled as records; None where it was not.

    Raises:
        StorageError: it has a name or an operation that is not read.
    """
    value = data.get(key)
    if not isinstance(value, Mapping) or not isinstance(value.get(_SERIALIZED), str):
        return None
    try:
        pickled = base64.b64decode(value[_SERIALIZED], validate=True)
    except ValueError as error:
        raise StorageError(f"{what}: {key} is damaged: {error}") from None
    return read_records(pickled, _NAMES, f"{what}: {key}")


def read_sb3(path: Path) -> SavedModel:
    """Read a model; no byte of it is unpickled.

    Raises:
        ConfigError: there is no such file, or the model is of a class or has a setting that cannot be taken along.
        StorageError: the file is damaged, or no model of Stable-Baselines3.
    """
    what = repr(str(path))
    members = members_of(read_file(path), what)
    lacking = [name for name in ("data", "policy.pth") if name not in members]
    if lacking:
        raise StorageError(f"{what} is no model of Stable-Baselines3: it has no member {' and no '.join(lacking)}")
    data = _settings(members["data"], what)
    states = {
        name[:-4]: load_tensors(content, f"{what}: {name}") for name, content in members.items() if _is_state(name)
    }
    variables = states.pop("pytorch_variables", None) or {}
    tensors = as_state_dict(states.pop("policy"), f"{what}: policy.pth")
    return SavedModel(
        _algorithm(data, tensors, what),
        data,
        tensors,
        {name: state for name, state in states.items() if isinstance(state, Mapping)},
        as_state_dict(variables, f"{what}: pytorch_variables.pth") if variables else {},
        what,
    )


def _is_state(name: str) -> bool:
    return name.endswith(".pth") and "/" not in name


def _settings(content: bytes, what: str) -> dict[str, Any]:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise StorageError(f"{what}: its member data is no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("policy_kwargs"), dict):
        raise StorageError(f"{what}: its member data is not that of a model of Stable-Baselines3")
    keywords = data["policy_kwargs"]
    kept = {key: value for key, value in keywords.items() if key not in (":type:", _SERIALIZED)}
    unknown = [key for key in kept if key not in _KWARGS]
    if unknown:
        raise ConfigError(f"{what}: policy_kwargs {', '.join(unknown)} cannot be taken along: no network here has them")
    data["policy_kwargs"] = {key: _plain(value) for key, value in kept.items()}
    return data


def _plain(value: Any) -> Any:
    """Return what a text says that Stable-Baselines3 wrote of a value; other values as they are."""
    if not isinstance(value, str):
        return value
    words: dict[str, Any] = {"True": True, "False": False, "None": None}
    return words.get(value, value)


def _algorithm(data: Mapping[str, Any], tensors: Mapping[str, Tensor], what: str) -> str:
    """Return the algorithm, by the class of its policy and by what one alone has.

    Raises:
        ConfigError: nothing here knows the policy.
    """
    try:
        policy = _records(data, "policy_class", what)
        reason = ""
    except StorageError as error:
        policy, reason = None, f": {error}"
    if not isinstance(policy, Name) or policy.text not in _POLICIES:
        raise ConfigError(
            f"{what}: its policy is of a class that is not known here{reason}; known are {', '.join(sorted(_POLICIES))}"
        )
    algorithms = _POLICIES[policy.text]
    if "cg_max_steps" in data:
        return "TRPO"
    if algorithms[0] == "PPO":
        return "PPO" if "clip_range" in data else "A2C"
    if algorithms[0] == "TD3":
        return "TD3" if any(name.startswith("critic.qf1.") for name in tensors) else "DDPG"
    return algorithms[0]
