"""The life of a process as seen from outside: its start, whether a signal has stopped it, and how it ended.

Read from `/proc`, so on another system than Linux nothing is known. The companion imports this, so it imports little.
"""

from __future__ import annotations

import os
import signal


def signal_name(number: int) -> str:
    """Return the name of a signal; signals of real time have none."""
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def how_it_ended(code: int | None) -> str:
    """Return in words how a process ended.

    Args:
        code: its exit code, or minus the number of the signal that killed it; None where nobody can know it.
    """
    if code is None:
        return "ended without a word: it was killed, or something in it called os._exit"
    if code >= 0:
        return f"ended with exit code {code}"
    why = " (perhaps for lack of memory)" if code == -signal.SIGKILL else ""
    return f"was killed by {signal_name(-code)}{why}"


def stat_of(pid: int | str) -> list[str]:
    """Return the fields of `/proc/PID/stat` from the state on; empty where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:  # the name before the state may hold spaces and parentheses
            return stream.read().decode(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []


def started(pid: int) -> str:
    """Return the start time of a process, which a later process of the same number has not; empty after its end."""
    fields = stat_of(pid)
    return fields[19] if fields and fields[0] not in "ZX" else ""


def stopped(pid: int) -> bool:
    """Return whether a signal or a debugger has stopped a process."""
    return stat_of(pid)[:1] in (["T"], ["t"])


def catches(pid: int, number: int) -> bool:
    """Return whether a process handles a signal; without a handler the signal would end it."""
    try:
        with open(f"/proc/{pid}/status") as stream:
            lines = [line for line in stream if line.startswith("SigCgt:")]
    except OSError:
        return False
    return any(int(line.split()[1], 16) >> (number - 1) & 1 for line in lines)


def exit_of(pid: int) -> int | None:
    """Return the exit code of a process, or minus the number of a signal, before its parent has asked for it.

    Returns:
        None where the process is there, or its parent has asked.
    """
    fields = stat_of(pid)
    return os.waitstatus_to_exitcode(int(fields[-1])) if fields[:1] == ["Z"] else None
