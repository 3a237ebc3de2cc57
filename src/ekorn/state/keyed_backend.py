"""The seam of keyed state: what the heap backend and the RocksDB backend both implement.

A state descriptor decides how the values of a state are kept: see `declared.py` and `codecs.py`. If the type of
restored values has changed, `evolution/restore_checks.py` converts or refuses them. Each of these modules says how a
backend uses it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from ekorn.errors import NoCurrentKey
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.keygroups import KeyGroupRange
from ekorn.state.canonical_format import TableEntries, encode_payloads
from ekorn.state.declared import Declaration
from ekorn.state.snapshots import KeyedFiles, OperatorRestore, StateFile, StateInfo
from ekorn.state.table import Table
from ekorn.state.timers import TimerQueue
from ekorn.storage.file_store import FileStore
from ekorn.types.type_information import TypeInformation


class _NoKey:
    """Take the place of the current key while there is none; raise `NoCurrentKey` when used as a key."""

    def __hash__(self) -> int:
        raise NoCurrentKey()

    def __reduce__(self) -> str:
        return "NO_KEY"


NO_KEY = _NoKey()


class RestoredTable(NamedTuple):
    """The entries of one state as read from a checkpoint, in the form in which a heap table keeps them."""

    info: StateInfo
    entries: dict[Any, Any]


RestoredTables = dict[str, RestoredTable]
"""Restored tables by the name of the state."""

Translate = Callable[[RestoredTables], None]
"""Change restored tables in place."""


class SnapshotTarget(Protocol):
    """Write the files of one subtask's snapshot, and name them."""

    bytes_written: int
    payload_bytes: int  # a state that is larger is cut into several files of about this size

    def shared(self, label: str) -> str:
        """Return a new name below `shared/`, never used before."""

    def exclusive(self, label: str) -> str:
        """Return a new name below `chk-n/`, never used before."""

    def write(self, path: str, payload: bytes) -> StateFile:
        """Write a state file durably; a small payload is kept inline instead."""


def write_tables(
    tables: Iterable[TableEntries], target: SnapshotTarget, new_name: Callable[[str], str]
) -> tuple[StateFile, ...]:
    """Write entries in the canonical format, in files of bounded size; no file if there are no entries."""
    files: list[StateFile] = []
    for payload in encode_payloads(tables, payload_bytes=target.payload_bytes):
        files.append(target.write(new_name("keyed"), payload))
        del payload  # released before the next payload is built
    return tuple(files)


class CapturedState(Protocol):
    """The result of the synchronous part of a snapshot. `write` may run on another thread."""

    key_groups: KeyGroupRange  # the key groups of the subtask, which sets them before `write`

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write the captured entries and return all files that the state now consists of."""


class KeyedStates(ABC):
    """Hand out the states of one scope: per key, or per key and window."""

    @abstractmethod
    def state(self, descriptor: StateDescriptor) -> Any:
        """Return the handle of the state that a descriptor declares, of any kind in `kinds.py`.

        Raises:
            StateError: A state of this name is declared differently.
        """


class KeyedStateBackend(KeyedStates):
    """Keyed state of one operator in one subtask.

    `cell[0]` is the current key in the form of `keygroups.state_key`. The operator sets it before it calls user code,
    and state handles read it: one list store per record, and no call. `window_cell[0]` is likewise the current
    (key, window) of the states from `in_windows`, with the window as a built-in value.
    """

    def __init__(self) -> None:
        self.cell: list[Any] = [NO_KEY]
        self.window_cell: list[Any] = [NO_KEY]
        self.every_record: list[Callable[[], object]] = []  # the cleanup of expiring states, called with every record
        self.key_type: TypeInformation | None = None  # the declared key type of the stream; set before `restore`
        self.kept_on_heap: frozenset[str] = frozenset()  # states that no backend keeps on disk; set before `restore`
        self.queryable: dict[str, StateDescriptor] = {}  # by the name under which clients read the state

    def native_metrics(self) -> dict[str, Callable[[], int]]:
        """Return the readers of the store's own metrics that the job asks for, by metric name."""
        return {}

    @abstractmethod
    def in_windows(self, prefix: str) -> KeyedStates:
        """Return states with an entry per key and window; their names in a checkpoint begin with the prefix."""

    @abstractmethod
    def keys(self, state_name: str) -> Iterator[Any]:
        """Yield the keys (as the user gave them) that have an entry in a state."""

    @abstractmethod
    def keys_of(self, state_names: Collection[str]) -> Iterator[Any]:
        """Yield each key that has an entry in one of some states per key.

        Each key comes once, in the form of `cell`.
        """

    @abstractmethod
    def entries(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        """Yield the keys and values of a state in the form of docs/formats/heap-state.md, expired entries included."""

    @abstractmethod
    def entry(self, state_name: str, key: Any) -> Any:
        """Return the value of a key in a state per key, both in the form of tables; None if there is none.

        Expired values are included. Nothing is changed, and nothing enters the dictionaries in front of RocksDB.
        """

    @abstractmethod
    def declaration(self, state_name: str) -> Declaration:
        """Return the declaration of a state that the program has asked for."""

    @abstractmethod
    def has_entries(self, state_name: str) -> bool:
        """Return whether a state of this name was restored or written and is not empty."""

    @property
    @abstractmethod
    def tracked(self) -> bool:
        """Whether changes are tracked. They are tracked if there are checkpoints."""

    @abstractmethod
    def adopt(self, table: Table) -> None:
        """Add a table of the operator itself and load what was restored for it.

        Such a table stays on the heap with every backend, unless it is a `FrontTable`.
        """

    @abstractmethod
    def timers(self, name: str, *, windowed: bool) -> TimerQueue:
        """Return the timers of the operator in one time domain, with those that were restored.

        Args:
            name: The name of the state in checkpoints.
            windowed: Whether a timer belongs to a key and a window, and not to a key alone.
        """

    @abstractmethod
    def on_heap(self) -> dict[str, Collection[Any]]:
        """Return the entries that are on the heap, by the name of their state. Any thread may look at their number."""

    def end_epoch(self) -> None:
        """Do the work that is due once per epoch, after the last record of the epoch."""

    @abstractmethod
    def drop_all(self) -> None:
        """Remove every entry of every state."""

    @abstractmethod
    def snapshot(self, checkpoint_id: int) -> CapturedState:
        """Capture what a checkpoint writes. The cost grows with the changes since the last completed checkpoint."""

    @abstractmethod
    def full_snapshot(self, checkpoint_id: int) -> CapturedState:
        """Capture every entry for a savepoint, in the canonical format that all backends read.

        The snapshot refers to no earlier file, and all its files have `exclusive` names. It does not change the
        backend: the next `snapshot` builds on the same files as without it.
        """

    def native_snapshot(self, checkpoint_id: int) -> CapturedState:
        """Capture every entry as `full_snapshot` does, in the format that this backend writes and reads fastest."""
        return self.full_snapshot(checkpoint_id)

    @abstractmethod
    def snapshot_completed(self, checkpoint_id: int) -> None:
        """Let later snapshots build on the files of a completed checkpoint."""

    @abstractmethod
    def restore(
        self,
        restored: OperatorRestore,
        store: FileStore,
        key_groups: KeyGroupRange,
        translate: Translate | None = None,
    ) -> None:
        """Read the entries of a range of key groups. Called once, before any state is asked for.

        `translate` may change the restored tables before the backend takes them over. The RocksDB backend passes only
        the tables that it keeps on the heap, the heap backend passes all tables.
        """

    @abstractmethod
    def undeclared(self) -> tuple[str, ...]:
        """Return the names of restored states that the job has not asked for yet."""

    @abstractmethod
    def infos(self) -> tuple[StateInfo, ...]:
        """Return a description of every state."""

    def close(self) -> None:
        """Release memory and files."""
