"""The memory of this process, as Linux counts it."""

from pathlib import Path


def resident_mib(field: str = "VmRSS") -> float:
    """Return the resident memory in MiB: now (`VmRSS`), or the largest so far (`VmHWM`)."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    (found,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(found.split()[1]) / 1024
