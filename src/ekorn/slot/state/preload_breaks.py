"""The breaks of a thread that reads state beside user code: it leaves half of the time and some memory to others."""

from __future__ import annotations

from collections.abc import Callable

from ekorn.clock import Clock

__all__ = ["Breaks", "free_memory_share"]

LEAST_FREE_SHARE = 0.1


class Breaks:
    """Breaks between the pieces of work of one thread. They are as long as the work.

    Args:
        clock: The clock.
        free_share: Returns the share of the memory that is free; None if that is not known.
    """

    def __init__(self, clock: Clock, free_share: Callable[[], float | None] | None = None) -> None:
        self._clock = clock
        self._free_share = free_share or free_memory_share
        self._since = clock.monotonic()

    def pause(self) -> None:
        """Take a break.

        Raises:
            MemoryError: Too little memory is free to go on.
        """
        free = self._free_share()
        if free is not None and free < LEAST_FREE_SHARE:
            raise MemoryError(f"only {free:.0%} of the memory is free")
        self._clock.sleep(self._clock.monotonic() - self._since)
        self._since = self._clock.monotonic()


def free_memory_share(root: str = "") -> float | None:
    """Return the share of the memory that is free, of this machine or of the control group that this process is in.

    Args:
        root: The folder in which the system's files are looked for.

    Returns:
        The smaller one; None if the system does not tell.
    """
    shares = [share for share in (_of_machine(root), _of_group(root)) if share is not None]
    return min(shares, default=None)


def _of_machine(root: str) -> float | None:
    found = _numbers(f"{root}/proc/meminfo")
    total, available = found.get("MemTotal:"), found.get("MemAvailable:")
    return available / total if total and available is not None else None


def _of_group(root: str) -> float | None:
    """Return the share of what cgroup v2 grants. Files that were read and can be read again count as free."""
    path = next((line[3:].strip() for line in _lines(f"{root}/proc/self/cgroup") if line.startswith("0::")), None)
    if path is None:
        return None
    folder = f"{root}/sys/fs/cgroup{path.rstrip('/')}"
    most, used = (next(iter(_lines(f"{folder}/{name}")), "").strip() for name in ("memory.max", "memory.current"))
    if not most.isdecimal() or not used.isdecimal() or most == "0":
        return None  # there is no limit, or no such file
    cached = _numbers(f"{folder}/memory.stat").get("inactive_file", 0)
    return (int(most) - int(used) + cached) / int(most)


def _numbers(path: str) -> dict[str, int]:
    """Return the second word of each line by the first one."""
    words = [line.split() for line in _lines(path)]
    return {first: int(second) for first, second, *_ in (each for each in words if len(each) > 1) if second.isdecimal()}


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readlines()
    except OSError:  # not Linux, or not shown to this process
        return []
