"""A loose plugin file with back ends that take their time, or never return."""

from __future__ import annotations

import os
import time

from rlcore_plugin_torch.checkpointer import TorchCheckpointer

from rlcore import Component, hookimpl


class Crawling(TorchCheckpointer):
    """Writes a file a little at a time, for longer than anything else may stand still."""

    saves = 0

    def save(self, folder, tensors):
        Crawling.saves += 1
        if Crawling.saves == 2:
            with (folder / "more").open("wb", buffering=0) as stream:
                for _ in range(12):
                    stream.write(b"0")
                    time.sleep(0.5)
        super().save(folder, tensors)


class Stuck(TorchCheckpointer):
    """Never returns from its second save."""

    saves = 0

    def save(self, folder, tensors):
        Stuck.saves += 1
        super().save(folder, tensors)
        if Stuck.saves == 2:
            time.sleep(600)


class SlowSync(TorchCheckpointer):
    """On a disk where the first sync takes longer than anything else may stand still."""

    def __init__(self, config, context):
        super().__init__(config, context)
        self._synced, self._sync = False, os.fsync
        os.fsync = self.sync

    def sync(self, descriptor):
        if not self._synced and os.readlink(f"/proc/self/fd/{descriptor}").endswith("tensors.pt"):
            self._synced = True
            time.sleep(6)
        self._sync(descriptor)


@hookimpl
def provide_components():
    kinds = {"crawling": Crawling, "stuck": Stuck, "slow-sync": SlowSync}
    return [Component("checkpointer", name, kind) for name, kind in kinds.items()]
