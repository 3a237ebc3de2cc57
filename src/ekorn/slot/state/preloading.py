"""State that a slot reads for subtasks which it will host after a rescale, while the subtasks of today run.

Nothing here comes from running subtasks: what is read are files of a completed checkpoint. A deployment uses it only
where the files of the checkpoint that it restores begin with those that were read (`PreloadedTables`), and drops all
else. So it makes no difference what became of the attempt meanwhile.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable

from ekorn.faults import point
from ekorn.keygroups import KeyGroupRange
from ekorn.slot_protocol.preload_plan import PreloadPlan
from ekorn.state.keyed_backend import RestoredTable
from ekorn.state.restored_tables import PreloadedTables, ReadTables, read_tables
from ekorn.state.snapshots import OperatorRestore
from ekorn.storage.file_store import FileStore, open_files

__all__ = ["PreloadedState"]

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
