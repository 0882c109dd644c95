"""The program around the command of a peer: it holds the folder of the row, and notes how the command ended.

The queue may be killed meanwhile; the next one waits for this program and finds what it noted.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from rlcore.files import Lock, replacing
from rlcore.process import end_with_parent

EXIT: Final = "exit.json"
OUTPUT: Final = "output.txt"


def main(arguments: list[str]) -> int:
    """Run a command; its standard output goes into a file of its own, its errors to the log.

    Args:
        arguments: the folder, and the command.
    """
    folder, command = Path(arguments[0]), arguments[1:]
    lock = Lock(folder)
    began = time.monotonic()
    with (folder / OUTPUT).open("wb") as output:
        process = subprocess.Popen(command, stdout=output, preexec_fn=end_with_parent)

    def stop(number: int, frame: Any) -> None:
        process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    code = process.wait()
    if code >= 0:  # one that a signal ended has no end to note
        with replacing(folder / EXIT) as place:
            place.write_text(json.dumps({"code": code, "seconds": round(time.monotonic() - began, 1)}))
    lock.release()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
