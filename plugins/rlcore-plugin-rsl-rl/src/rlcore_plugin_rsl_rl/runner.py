"""`OnPolicyRunner`: rsl_rl's call, its config and its files; the training is rlcore's."""

from __future__ import annotations

import copy
import logging
import os
import weakref
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

import rlcore
from rlcore.errors import ConfigError
from rlcore_plugin_rsl_rl import saved as files
from rlcore_plugin_rsl_rl.groups import names_of
from rlcore_plugin_rsl_rl.handed_over import handing_over
from rlcore_plugin_rsl_rl.made import check_interface
from rlcore_plugin_rsl_rl.networks import Actor
from rlcore_plugin_rsl_rl.train_cfg import read
from rlcore_plugin_rsl_rl.translated import logging_sections, sections_of

log = logging.getLogger(__name__)


class Algorithm(NamedTuple):
    """What scripts ask `runner.alg` for.

    Attributes:
        actor: the network that acts.
        critic: the network of the values.
        optimizers: of both, by name.
    """

    actor: Any
    critic: Any
    optimizers: dict[str, torch.optim.Optimizer]

    @property
    def learning_rate(self) -> float:
        """The rate of the next step."""
        return float(self.optimizers["actor"].param_groups[0]["lr"])

    def get_policy(self) -> Any:
        """Return the network that acts."""
        return self.actor


class InferencePolicy(nn.Module):
    """Observations by group to the likeliest actions, `[env, action]`.

    Args:
        actor: its network.
        groups: that it sees.
    """

    is_recurrent = False

    def __init__(self, actor: Actor, groups: list[str]) -> None:
        super().__init__()
        self.obs_normalizer, self.mlp = actor.obs_normalizer, actor.mlp
        self._groups = groups

    @torch.no_grad()
    def forward(self, observations: Any) -> Tensor:
        """Return the actions for a TensorDict of groups."""
        return self.of_numbers(torch.cat([observations[name] for name in self._groups], -1))

    def of_numbers(self, numbers: Tensor) -> Tensor:
        """Return the actions for the groups side by side."""
        return self.mlp(self.obs_normalizer(numbers.float()))  # type: ignore[no-any-return]

    def reset(self, dones: Tensor | None = None) -> None:
        """Do nothing: there is no memory."""


class OnPolicyRunner:
    """Trains in an env of rsl_rl with its config dictionary.

    Args:
        env: a `VecEnv`; it is neither seeded nor reset nor closed.
        train_cfg: of rsl_rl 5, or with `policy` in the place of `actor` and `critic`.
        log_dir: where `model_*.pt` are written, and the run folder `rlcore` with checkpoints and metrics; None for
            nothing.
        device: of the training.

    Raises:
        ConfigError: a key of the dictionary has no counterpart here, or the env is no `VecEnv`.

    Attributes:
        env: as given.
        cfg: as given.
        device: as given.
        alg: the networks and the optimizers.
        trainer: rlcore's.
        config: the sections that it was built of, as a TOML file would have them.
        current_learning_iteration: the latest iteration.
    """

    def __init__(self, env: Any, train_cfg: dict[str, Any], log_dir: str | None = None, device: str = "cpu") -> None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            raise ConfigError("OnPolicyRunner trains in one process; for several write a config, with [ranks] in it")
        self.env, self.cfg, self.device = env, train_cfg, device
        self._cfg = cfg = read(train_cfg)
        check_interface(env, "OnPolicyRunner: env")
        groups = names_of(env.get_observations())
        sections = sections_of(cfg, env.num_envs, groups, device, torch.get_num_threads())
        self._log_dir = None if log_dir is None else Path(log_dir)
        if self._log_dir is not None:
            self._log_dir.mkdir(parents=True, exist_ok=True)
            sections |= logging_sections(cfg)
            sections["hook"] += [
                {"use": "core:console-table", "keys": ["episode/", "Episode/", "train/", "lr", "perf/"]}
            ]
        self.config = sections
        place = None if self._log_dir is None else self._log_dir / "rlcore"
        with handing_over(env):
            run = rlcore.build(rlcore.load_config(sections), write=place is not None, place=place)
        trainer: Any = run.trainer
        self.trainer = trainer
        self.alg = Algorithm(trainer.model.actor, trainer.model.critic, trainer.learner.optimizers)
        self.current_learning_iteration = 0
        self._seen = sections["model"].get("actor_observations", sections["env"]["groups"])
        self._iterations = iter(trainer)
        weakref.finalize(self, self._iterations.close)  # the loggers, at the end of the script at the latest

    def learn(self, num_learning_iterations: int, init_at_random_ep_len: bool = False) -> None:
        """Train for so many iterations more.

        Args:
            num_learning_iterations: how many.
            init_at_random_ep_len: let the envs be anywhere in their episodes, as far as their clocks say.
        """
        if init_at_random_ep_len:
            lengths = self.env.episode_length_buf
            self.env.episode_length_buf = torch.randint_like(lengths, high=int(self.env.max_episode_length))
        first = self.current_learning_iteration
        for number, _ in enumerate(islice(self._iterations, num_learning_iterations), start=first):
            self.current_learning_iteration = number
            if self._log_dir is not None and number % self._cfg.save_interval == 0:
                self.save(str(self._log_dir / f"model_{number}.pt"))
        if self._log_dir is not None:
            self.save(str(self._log_dir / f"model_{self.current_learning_iteration}.pt"))
            self.trainer.save()

    def save(self, path: str, infos: dict[str, Any] | None = None) -> None:
        """Write the weights, the state of the optimizers and the iteration, as rsl_rl does."""
        state = files.saved(self.trainer.model, self.alg.optimizers)
        torch.save({**state, "iter": self.current_learning_iteration, "infos": infos}, path)

    def load(
        self, path: str, load_cfg: dict[str, bool] | None = None, strict: bool = True, map_location: str | None = None
    ) -> Any:
        """Read what `save` of this runner, or that of rsl_rl, has written; return the infos.

        Args:
            path: of the file.
            load_cfg: which of `actor`, `critic`, `optimizer` and `iteration` to take; all without it.
            strict: whether the weights must be those of all layers.
            map_location: of `torch.load`.

        Raises:
            ConfigError: `load_cfg` names something else.
            StorageError: the file is of other networks.
        """
        taken = dict.fromkeys(("actor", "critic", "optimizer", "iteration"), True) if load_cfg is None else load_cfg
        if others := [name for name, on in taken.items() if on and name not in _LOADED]:
            raise ConfigError(f"load_cfg: there is no {others[0]!r} here; there are {', '.join(_LOADED)}")
        given = torch.load(path, weights_only=True, map_location=map_location or self.device)
        for part in ("actor", "critic"):
            if taken.get(part):
                network = getattr(self.alg, part)
                files.load_weights(network, given[f"{part}_state_dict"], strict, f"{path}: {part}_state_dict")
        if taken.get("optimizer"):
            files.load_optimizers(self.trainer.model, self.alg.optimizers, given["optimizer_state_dict"])
        if taken.get("iteration"):
            self.current_learning_iteration = given["iter"]
        self.trainer.learner.follow()
        return given["infos"]

    def get_inference_policy(self, device: str | None = None) -> InferencePolicy:
        """Return what maps observations to the likeliest actions; on another device it is a copy."""
        policy = InferencePolicy(self.alg.actor, self._seen)
        if device is None or torch.device(device).type == torch.device(self.device).type:
            return policy
        return copy.deepcopy(policy).to(device)

    def add_git_repo_to_log(self, repo_file_path: str) -> None:
        """Do nothing but say so: a run of rlcore records the versions of its plugins, and no repositories."""
        log.warning("add_git_repo_to_log(%r): the state of the repository is not recorded", repo_file_path)


_LOADED = ("actor", "critic", "optimizer", "iteration")
