"""A real Ray in a network namespace with the loopback interface alone, and commands that run there."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from rlcore_plugin_testing.train_command import CARTPOLE, TrainCommand

FOLDER = Path(__file__).parent
CONFIG = {
    **CARTPOLE,
    "run": {**CARTPOLE["run"], "total_frames": 8192},
    "checkpoint": {**CARTPOLE["checkpoint"], "every": 2048},
}
RANKS = {"use": "ray", "count": 2}
_ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": "5" * 64,
    "OMP_NUM_THREADS": "1",
}


class Namespace:
    """A network of its own, with the loopback interface alone, for as long as it is open."""

    def __init__(self):
        self.holder = subprocess.Popen(
            ["unshare", "-rn", "bash", "-c", "ip link set lo up && echo up && exec sleep infinity"],
            stdout=subprocess.PIPE,
        )
        assert self.holder.stdout.readline() == b"up\n"
        self._network = os.readlink(f"/proc/{self.holder.pid}/ns/net")

    def start(self, command, environment=(), stderr=subprocess.STDOUT, **settings):
        inside = ["nsenter", "-t", str(self.holder.pid), "-U", "-n", "--preserve-credentials", "--"]
        return subprocess.Popen(
            [*inside, *command], env={**_ENVIRONMENT, **dict(environment)}, stderr=stderr, **settings
        )

    def processes(self, named=""):
        """Return the numbers of the processes inside whose command line has a text, in order."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                inside = entry.name.isdecimal() and os.readlink(entry / "ns/net") == self._network
                if inside and named.encode() in (entry / "cmdline").read_bytes().replace(b"\0", b" "):
                    found.append(int(entry.name))
        return sorted(set(found) - {self.holder.pid})

    def listening(self):
        """Return the addresses at which something listens inside."""
        lines = [
            line.split()
            for name in ("tcp", "tcp6")
            for line in Path(f"/proc/{self.holder.pid}/net/{name}").read_text().splitlines()[1:]
        ]
        words = [local.partition(":")[0] for _, local, _, state, *_ in lines if state == "0A"]
        # an address of IPv4 may stand there as one of IPv6
        plain = [word.removeprefix("0000000000000000FFFF0000") for word in words]
        return [socket.inet_ntoa(bytes.fromhex(word)[::-1]) if len(word) == 8 else word for word in plain]

    def close(self):
        for number in self.processes():
            with suppress(OSError):
                os.kill(number, signal.SIGKILL)
        self.holder.kill()
        self.holder.wait()


class Ray:
    """Nodes of one Ray, each as `ray start` begins it."""

    def __init__(self, namespace, *options):
        self.namespace = namespace
        self.folder = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True)
        self.address = "127.0.0.1:6399"
        head = ("--head", "--port=6399", f"--temp-dir={self.folder.name}", "--num-cpus=2")
        self.nodes = [self.add(*head, *options)]

    def add(self, *options):
        own = ("--include-dashboard=false",) if "--head" in options else (f"--address={self.address}",)
        settings = ("--node-ip-address=127.0.0.1", "--object-store-memory=100000000", "--block", "--log-style=record")
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *own, *settings, *options]
        return self.namespace.start(command, stdout=subprocess.DEVNULL, start_new_session=True)

    def close(self):
        for node in self.nodes:
            with suppress(OSError):
                os.killpg(node.pid, signal.SIGKILL)
            node.wait()
        self.folder.cleanup()


def run_inside(tests, *options, seconds=300):
    """Run a file of tests of this folder where a Ray of its own is, and see that they pass.

    Args:
        tests: name of the file.
        options: of the Ray.
        seconds: that they may take.
    """
    namespace = Namespace()
    try:
        ray = Ray(namespace, *options)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", str(FOLDER / tests)]
        process = namespace.start(command, {"RLCORE_TEST_RAY": ray.address}, stdout=subprocess.PIPE, text=True)
        output, _ = process.communicate(timeout=seconds)
        ray.close()
    finally:
        namespace.close()
    assert process.returncode == 0, output


class Trained(TrainCommand):
    """The command `rlcore train` in a namespace."""

    def __init__(self, namespace, folder, *options, ranks=RANKS, **sections):
        self._namespace = namespace
        values = {**CONFIG, **{key: {**CONFIG.get(key, {}), **keys} for key, keys in sections.items()}, "ranks": ranks}
        super().__init__(folder, values, *options, start=namespace.start)

    def ranks(self):
        """Return the processes of the ranks."""
        return self._namespace.processes("ray::RankActor")
