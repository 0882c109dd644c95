"""A loose plugin file with an env that does, at one step, what no env should."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import itertools
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import threading
import time

import gymnasium
import numpy as np

from rlcore import hookimpl
from rlcore.types.heart import Heart


class Bad(gymnasium.Env):
    """Counts the steps of all its instances in this process, so that the env of training is the one that fails."""

    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)
    made = 0

    def __init__(self, how="none", at=60):
        Bad.made += 1
        self.how, self.at, self.steps, self.armed = how, at, 0, Bad.made == 1

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        if self.armed and self.steps == self.at and self.how != "none":
            getattr(self, self.how)()
        return np.zeros(1, np.float32), 1.0, self.steps % 7 == 0, False, {}

    def hold_the_gil(self):
        sum(itertools.repeat(0, 10**12))  # in C, and no signal wakes it

    def hold_the_gil_until_a_signal(self):
        ctypes.PyDLL(None).sleep(600)

    def end_without_a_word(self):
        os._exit(0)

    def kill(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def stop_the_group(self):
        os.killpg(0, signal.SIGSTOP)

    def leave_a_thread(self):
        threading.Thread(target=time.sleep, args=(600,), name="forgotten").start()

    def leave_a_handler(self):
        atexit.register(forgotten_handler)

    def leave_a_child(self):
        context = multiprocessing.get_context("fork")
        context.Process(target=time.sleep, args=(600,), name="forgotten child").start()

    def fork_a_sleeper(self):
        pid = os.fork()
        if pid == 0:
            while True:
                time.sleep(600)
        print("forked", pid, flush=True)

    def fork_into_the_loop(self):
        os.fork()

    def start_a_child_that_beats(self):
        child = multiprocessing.get_context("fork").Process(target=self.make_another)
        child.start()
        child.join(30)
        print("child ended with", child.exitcode, flush=True)

    def make_another(self):
        for heart in gc.get_objects():
            if Heart in type(heart).__mro__:
                heart.beats += 1

    def fork_and_quit(self):
        if os.fork() == 0:
            sys.exit(0)

    def remove_the_folder(self):
        shutil.rmtree("runs")
        self.sleep()

    def use_up_the_files(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        self.sleep()

    def sleep(self):
        time.sleep(600)

    def swallow(self):
        while True:
            with contextlib.suppress(BaseException):
                time.sleep(60)


def forgotten_handler():
    time.sleep(600)


gymnasium.register("Bad-v0", Bad)


@hookimpl
def provide_components():
    return []
