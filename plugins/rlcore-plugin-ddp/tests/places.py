"""A launcher that places ranks: each in a process that sees nothing of the command but files, which are its mailbox."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import tempfile
import traceback
from pathlib import Path

from pydantic import BaseModel
from rlcore_plugin_ddp.launchers import PlacingLauncher, RankEnd
from rlcore_plugin_ddp.processes import Processes

from rlcore import Component, hookimpl


class Files:
    """A mailbox of files."""

    def __init__(self, folder):
        self._folder = folder

    def put(self, name, content):
        file = self._file(name)
        part = file.with_name(f"{file.name}.{os.getpid()}")
        part.write_bytes(content)
        part.replace(file)

    def get(self, name):
        try:
            return self._file(name).read_bytes()
        except FileNotFoundError:
            return None

    def take(self, name):
        content = self.get(name)
        self._file(name).unlink(missing_ok=True)
        return content

    def _file(self, name):
        return self._folder / name.replace("/", "-")


class Places(PlacingLauncher):
    class Config(BaseModel, extra="forbid"):
        pass

    def __init__(self, config, context):
        self._meeting = Processes(Processes.Config(), context)
        self._running = {}
        self._folders = []

    def connect(self, count):
        self._count = count

    def open(self, count, generation, deadline):
        self._meeting.open(count, generation, deadline)
        self._folders.append(Path(tempfile.mkdtemp(prefix="places-")))

    def join(self, rank):
        return self._meeting.join(rank)

    def place(self, waiting):
        waiting()
        return Files(self._folders[-1])

    def begin(self, program):
        sent = pickle.dumps(program)
        for rank in range(self._count):
            child = os.fork()
            if not child:
                self._be(rank, pickle.loads(sent))
            self._running[child] = rank

    def _be(self, rank, program):
        code = 1
        try:
            code = program(rank, Files(self._folders[-1]), self._meeting)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def ended(self):
        ends = [os.waitpid(child, os.WNOHANG) for child in self._running]
        return [RankEnd(self._running.pop(child), os.waitstatus_to_exitcode(status)) for child, status in ends if child]

    def kill(self):
        for child in self._running:
            os.kill(child, signal.SIGKILL)

    def close(self):
        for folder in self._folders:
            shutil.rmtree(folder)


@hookimpl
def provide_components():
    return [Component("launcher", "places", Places, summary="places ranks in processes of this host")]
