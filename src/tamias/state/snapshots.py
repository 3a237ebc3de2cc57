"""The values that describe a checkpoint: from the subtask that took a snapshot, through the metadata, to its restore.

State is addressed by operator id and key group, never by subtask: a subtask index here only says which one wrote it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tamias.errors import CorruptFileError
from tamias.graph.addresses import SubtaskId
from tamias.keygroups import KeyGroupRange

CANONICAL, ROCKSDB = "heap", "rocksdb"  # the formats of keyed state, as the metadata names them
RAW_OPERATOR, RAW_KEYED = "raw-operator", "raw-keyed"  # the kinds of raw state
WINDOWED = "window-"  # the prefix of the kind of a state with an entry per key and window


@dataclass(frozen=True, slots=True)
class StateFile:
    """Bytes of state with their size and checksum: a file below the checkpoint directory, or the bytes themselves.

    `path` is relative to the job's checkpoint directory (`shared/…`, `chk-7/…`) or, in a savepoint, to the
    savepoint's. Exactly one of `path` and `inline` is set. `size` and `crc32` describe the bytes as stored.
    """

    size: int
    crc32: int
    path: str | None = None
    inline: bytes | None = None
    raw_size: int | None = None  # the size before compression; None if the bytes are not compressed
    sha256: str | None = None  # of the bytes as stored, in hex digits; only where checkpoints are signed


@dataclass(frozen=True, slots=True)
class KeyedFiles:
    """The keyed state of a range of key groups.

    In the canonical format (`heap`), which every backend reads, an entry in a later file wins over an earlier one. In
    the format `rocksdb` the files are those of a RocksDB instance, each with its name (`rocksdb/instance_files.py`).
    """

    key_group_first: int
    key_group_last: int
    files: tuple[StateFile, ...]
    format: str = CANONICAL
    names: tuple[str, ...] = ()  # one for each file, in formats in which files have names

    @property
    def key_groups(self) -> KeyGroupRange:
        """The key groups that the state belongs to."""
        return KeyGroupRange(self.key_group_first, self.key_group_last)


@dataclass(frozen=True, slots=True)
class StateInfo:
    """The description of one named state, for listings and for the checks on restore."""

    name: str
    kind: str  # value, list, map, reducing, aggregating, folding, timers, list-split, list-union, broadcast, raw-…
    type_text: str = "pickled"
    ttl: bool = False
    schema: str = ""  # JSON (declared.py): the types and classes of the values; empty if nothing is known

    @property
    def summary(self) -> str:
        """The kind and the type in words, for messages."""
        return f"{self.kind} of {self.type_text}" + (" with time-to-live" if self.ttl else "")

    @property
    def of_subtask(self) -> bool:
        """Whether this is operator state. Operator state and keyed state may use the same names."""
        return self.kind in ("list-split", "list-union", "broadcast", RAW_OPERATOR, RAW_KEYED)

    @property
    def namespaced(self) -> bool:
        """Whether the address of an entry is (key, namespace), the namespace a window or the time of a timer."""
        return self.kind == "timers" or self.kind.startswith(WINDOWED)


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """One operator's part of one subtask's snapshot."""

    operator_id: str
    uid: str | None
    name: str
    keyed: KeyedFiles | None = None
    operator_state: StateFile | None = None
    states: tuple[StateInfo, ...] = ()


@dataclass(frozen=True, slots=True)
class SubtaskSnapshot:
    """One subtask's snapshot, which the coordinator waits for."""

    vertex: int
    subtask: int
    operators: tuple[OperatorSnapshot, ...] = ()
    finished: bool = False  # the subtask had read its whole input and takes no part in later checkpoints
    bytes_written: int = 0  # written for this checkpoint, without the shared files that it refers to
    sync_ms: float = 0.0
    async_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class OperatorRestore:
    """The state that one operator of one new subtask starts from."""

    operator_id: str
    keyed: tuple[KeyedFiles, ...] = ()  # of the old subtasks whose key groups overlap the new subtask's
    operator_state: tuple[StateFile | None, ...] = ()  # of every old subtask, by index
    states: tuple[StateInfo, ...] = ()
    restored_checkpoint_id: int | None = None
    max_parallelism: int = 128
    label: str = ""  # the name of the operator, for messages

    def keyed_infos(self) -> dict[str, StateInfo]:
        """Return the descriptions of the keyed states in the checkpoint, by name."""
        return {info.name: info for info in self.states if not info.of_subtask}

    def check_formats(self) -> None:
        """Refuse keyed state in a format that no backend of this release reads.

        Raises:
            CorruptFileError: There is such state.
        """
        for part in self.keyed:
            if part.format not in (CANONICAL, ROCKSDB):
                where = f"keyed state of operator {self.label or self.operator_id}"
                raise CorruptFileError(where, f"format {part.format!r}", f"{CANONICAL!r} or {ROCKSDB!r}")


@dataclass(frozen=True, slots=True)
class SubtaskRestore:
    """The state that one new subtask starts from."""

    operators: tuple[OperatorRestore, ...] = ()
    finished: bool = False

    def of(self, operator_id: str) -> OperatorRestore | None:
        """Return the part of one operator, or None if the checkpoint has none."""
        return next((o for o in self.operators if o.operator_id == operator_id), None)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The parts that the subtasks of a deployment restore, and the directory of the files."""

    directory: str
    checkpoint_id: int
    subtasks: dict[SubtaskId, SubtaskRestore] = field(default_factory=dict)
