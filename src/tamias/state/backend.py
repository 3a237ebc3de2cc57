"""What a keyed state backend is: the seam that the heap and RocksDB stand behind.

How a state's values are kept is decided by its descriptor: `declared.py` and `codecs.py` (what a declared type allows,
serializers of the program's own). What happens to restored values whose type has changed: `restore_checks.py`. Both
say at their beginning how a backend uses them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

from tamias.errors import NoCurrentKey
from tamias.functions.state_descriptors import (
    AggregatingStateDescriptor,
    FoldingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from tamias.functions.state_handles import (
    AggregatingState,
    FoldingState,
    ListState,
    MapState,
    ReducingState,
    ValueState,
)
from tamias.state.snapshots import KeyedFiles, OperatorRestore, StateFile, StateInfo
from tamias.storage.file_store import FileStore
from tamias.types.type_information import TypeInformation

if TYPE_CHECKING:
    from tamias.state.heap.backend import Table


class _NoKey:
    """Stands where the current key goes while there is none; using it as a key says so."""

    def __hash__(self) -> int:
        raise NoCurrentKey()

    def __reduce__(self) -> str:
        return "NO_KEY"


NO_KEY = _NoKey()


Restored = dict[str, tuple[StateInfo, dict[Any, Any]]]
"""Tables as they were read from a checkpoint, by name."""

Translate = Callable[[Restored], None]
"""Changes restored tables in place."""


class SnapshotTarget(Protocol):
    """Where a snapshot writes: the file store, and the names for one subtask's files of one checkpoint."""

    bytes_written: int

    def shared(self, label: str) -> str:
        """A new name below `shared/`, never used before."""

    def exclusive(self, label: str) -> str:
        """A new name below `chk-n/`, never used before."""

    def write(self, path: str, payload: bytes) -> StateFile:
        """Write a state file durably, or keep it inline when it is small."""


class CapturedState(Protocol):
    """The synchronous part of a snapshot: what changed, captured. Writing it may happen on another thread."""

    key_groups: tuple[int, int]  # the first and the last of the subtask; set by it before `write`

    def write(self, target: SnapshotTarget) -> KeyedFiles:
        """Write what was captured and name all files that the state now consists of."""


class KeyedStates(ABC):
    """Hands out the states of one scope: per key, or per key and window."""

    @abstractmethod
    def value_state(self, descriptor: ValueStateDescriptor) -> ValueState[Any]: ...

    @abstractmethod
    def list_state(self, descriptor: ListStateDescriptor) -> ListState[Any]: ...

    @abstractmethod
    def map_state(self, descriptor: MapStateDescriptor) -> MapState[Any, Any]: ...

    @abstractmethod
    def reducing_state(self, descriptor: ReducingStateDescriptor) -> ReducingState[Any]: ...

    @abstractmethod
    def aggregating_state(self, descriptor: AggregatingStateDescriptor) -> AggregatingState[Any, Any]: ...

    @abstractmethod
    def folding_state(self, descriptor: FoldingStateDescriptor) -> FoldingState[Any, Any]: ...


class KeyedStateBackend(KeyedStates):
    """Keyed state of one operator in one subtask.

    `cell[0]` is the current key as `keygroups.state_key` gives it; the operator sets it before calling user code.
    State handles read it there: one list store per record, no call. `window_cell[0]` is likewise the current
    (key, window) of the states from `in_windows`, the window as a built-in value.
    """

    def __init__(self) -> None:
        self.cell: list[Any] = [NO_KEY]
        self.window_cell: list[Any] = [NO_KEY]
        self.every_record: list[Callable[[], object]] = []  # what states that expire want called with every record
        self.key_type: TypeInformation | None = None  # of the stream, where it is declared; set before `restore`

    @abstractmethod
    def in_windows(self, prefix: str) -> KeyedStates:
        """States with an entry per key and window; their names in a checkpoint begin with the prefix."""

    @abstractmethod
    def keys(self, state_name: str) -> Iterator[Any]:
        """The keys (as the user gave them) that have an entry in a state."""

    @abstractmethod
    def entries(self, state_name: str) -> Iterator[tuple[Any, Any]]:
        """The keys and values of a state, both as docs/formats/heap-state.md describes them, expired ones included."""

    @abstractmethod
    def has_entries(self, state_name: str) -> bool:
        """Whether a state of this name was restored, or written, and is not empty."""

    @property
    @abstractmethod
    def tracked(self) -> bool:
        """Whether somebody will ask what changed: whether there are checkpoints."""

    @abstractmethod
    def adopt(self, table: Table) -> None:
        """Keep a table of the operator's own making with the others; it takes over what was restored for it.

        Such a table is on the heap whatever the backend is.
        """

    def end_epoch(self) -> None:
        """The epoch's records have all been processed: time to do what need not be done with every record."""

    @abstractmethod
    def drop_all(self) -> None:
        """Forget every entry of every state."""

    @abstractmethod
    def snapshot(self, checkpoint_id: int) -> CapturedState:
        """Capture what is to be written for a checkpoint; costs as much as changed since the last completed one."""

    @abstractmethod
    def full_snapshot(self, checkpoint_id: int) -> CapturedState:
        """Capture every entry, in the neutral format that all backends read (docs/formats/heap-state.md).

        For savepoints: what is written refers to nothing written before, lies in files of its own (`exclusive` names),
        and leaves no trace in the backend: the next `snapshot` builds on what it would have built on without it.
        """

    def native_snapshot(self, checkpoint_id: int) -> CapturedState:
        """As `full_snapshot`, but in whatever format this backend writes and reads fastest."""
        return self.full_snapshot(checkpoint_id)

    @abstractmethod
    def snapshot_completed(self, checkpoint_id: int) -> None:
        """A checkpoint is complete: later snapshots may build on its files."""

    @abstractmethod
    def restore(
        self,
        restored: OperatorRestore,
        store: FileStore,
        key_groups: tuple[int, int],
        translate: Translate | None = None,
    ) -> None:
        """Read the entries of a range of key groups. Called once, before any state is asked for.

        `translate` may change what was read before it is taken over: in RocksDB only the tables beside it, on the
        heap all of them.
        """

    @abstractmethod
    def infos(self) -> tuple[StateInfo, ...]:
        """What states there are."""

    def close(self) -> None:
        """Release memory and files."""
