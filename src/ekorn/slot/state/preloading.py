"""Reads the state of subtasks that a slot will host after a rescale, while its present subtasks run.

Only files of a completed checkpoint are read. A deployment uses what was read only if the files of the checkpoint that
it restores begin with those files (`PreloadedTables`), and drops the rest. So the result does not depend on what became
of the running attempt.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from ekorn.clock import Clock
from ekorn.faults import point
from ekorn.keygroups import KeyGroupRange
from ekorn.slot_protocol.preload_plan import PreloadPlan
from ekorn.state.keyed_backend import RestoredTable
from ekorn.state.restored_tables import PreloadedTables, ReadTables, read_tables
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.file_store import FileStore, open_files

__all__ = ["PreloadedState", "ReadThrottle", "free_memory_share"]

_log = logging.getLogger(__name__)


class _NotWanted(Exception):
    """The state is no longer wanted."""


class PreloadedState:
    """The state that one slot has read in advance. Thread-safe."""

    def __init__(self, slot: int) -> None:
        self._slot = slot
        self._lock = threading.Lock()
        self._wanted: PreloadPlan | None = None  # what is being read, or was read
        self._tables: dict[tuple[str, KeyGroupRange], PreloadedTables] = {}  # by operator id and key groups
        self.used = 0  # number of operators that were restored with what was read in advance

    def read(self, plan: PreloadPlan, pause: Callable[[], None]) -> None:
        """Read state, in place of what was read before. Returns early when it is no longer wanted.

        Args:
            plan: What to read.
            pause: Called between any two pieces of a file. What it raises ends the reading.

        Raises:
            CorruptFileError: A file is missing or damaged.
        """
        with self._lock:
            self._wanted, self._tables = plan, {}

        def pause_if_wanted() -> None:
            if self._wanted is not plan:
                raise _NotWanted
            pause()

        found: dict[tuple[str, KeyGroupRange], PreloadedTables] = {}
        try:
            for restored, key_groups in plan.operators:
                point("preload", self._slot)
                store = open_files(plan.directory)
                found[restored.operator_id, key_groups] = PreloadedTables(restored, store, key_groups, pause_if_wanted)
        except _NotWanted:
            return
        with self._lock:
            if self._wanted is plan:
                self._tables = found

    def take(self, directory: str | None) -> ReadTables:
        """Return what reads the state of a deployment, with what was read in advance. What is still read is dropped.

        Args:
            directory: Where the files of the deployment are.
        """
        with self._lock:
            wanted, tables = self._wanted, self._tables
            self._wanted, self._tables = None, {}
        if not tables or wanted is None or wanted.directory != directory:
            return read_tables

        def read(restored: OperatorRestore, store: FileStore, key_groups: KeyGroupRange) -> Iterable[RestoredTable]:
            preloaded = tables.pop((restored.operator_id, key_groups), None)
            found = preloaded.read_on(restored, store) if preloaded is not None else None
            if found is not None:
                self.used += 1
                return found
            _log.info("slot %d reads all state of operator %s", self._slot, restored.label)
            return read_tables(restored, store, key_groups)

        return read


LEAST_FREE_SHARE = 0.1


class ReadThrottle:
    """Throttles a thread that reads state beside user code: it sleeps as long as it has read, and spares memory.

    Args:
        clock: The clock.
        free_share: Returns the share of the memory that is free; None if that is not known.
    """

    def __init__(self, clock: Clock, free_share: Callable[[], float | None] | None = None) -> None:
        self._clock = clock
        self._free_share = free_share or free_memory_share
        self._since = clock.monotonic()

    def pause(self) -> None:
        """Sleep as long as the caller has worked since the last call.

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
