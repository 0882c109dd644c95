"""How much memory this process takes, as Linux counts it."""

from pathlib import Path


def resident(field: str = "VmRSS") -> int:
    """Return the resident memory of this process, in bytes.

    Args:
        field: `VmRSS`, what is resident now, or `VmHWM`, the most that was.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))
