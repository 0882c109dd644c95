"""Several processes that train together: the command that starts them, and what can be seen of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from rlcore_plugin_testing.train_command import CARTPOLE, TrainCommand, children

CONFIG = {
    **CARTPOLE,
    # so many that a fast machine is still training when a test acts after the first checkpoints
    "run": {**CARTPOLE["run"], "total_frames": 8_192},
    "evaluator": {"use": "episodes", "every": 512, "episodes": 1},
    "ranks": {"count": 2},
}


class Trained(TrainCommand):
    """The command `rlcore train` of a config with ranks.

    Args:
        folder: for the config and the run.
        options: of the command.
        name: of the run.
        under: the module that starts the command as each rank, with its options; empty where rlcore starts the ranks.
        output: file for what is printed.
        sections: change sections of the config; None takes a key away.
    """

    def __init__(self, folder, *options, name="ranks", under=(), output="", **sections):
        changed = {
            key: {**CONFIG.get(key, {}), **new} if isinstance(new, dict) else new for key, new in sections.items()
        }
        values = {**CONFIG, **changed}
        if values["env"]["use"] == "testing:faulty":
            del values["env"]["id"]
        values["run"] = {key: value for key, value in values["run"].items() if value is not None} | {"name": name}
        super().__init__(folder, values, *options, under=under, output=output)
        self._under = bool(under)

    def ranks(self):
        """Return the processes of the ranks, in their order."""
        with suppress(OSError, IndexError):
            return children(self.process.pid if self._under else children(self.process.pid)[0])
        return []


def runs(process):
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False
