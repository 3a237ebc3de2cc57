"""The values that describe a checkpoint: from the subtask that took a snapshot, through the metadata, to its restore.

State is addressed by operator id and key group, never by subtask: a subtask index here only says which one wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from ekorn.errors import CorruptFileError
from ekorn.graph.addresses import SubtaskId
from ekorn.keygroups import KeyGroupRange

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
    sha256: str | None = None  # the hash of the bytes as stored, in hex digits; set only where checkpoints are signed


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
class StoredInput:
    """An input of a vertex, by what stays the same when the job is drawn again: its sender and its input index."""

    source: str  # the id of the operator that emits
    input_index: int = 0
    tag: str | None = None  # the tag of a side output
    number: int = 0  # tells apart inputs that are otherwise alike


@dataclass(frozen=True, slots=True)
class InFlightFiles:
    """The blobs that a mark has overtaken on their way to one subtask: they are not part of its state yet."""

    inputs: tuple[StoredInput, ...]  # the blobs refer to them by number
    files: tuple[StateFile, ...]  # docs/formats/in-flight.md; in the order in which the blobs are processed
    size_bytes: int = 0  # the size of all blobs


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """One operator's part of one subtask's snapshot."""

    operator_id: str
    uid: str | None
    name: str
    keyed: KeyedFiles | None = None
    operator_state: StateFile | None = None
    states: tuple[StateInfo, ...] = ()
    in_flight: InFlightFiles | None = None  # only at the head of a chain

    def files(self) -> Iterator[StateFile]:
        """Yield every file of the snapshot."""
        if self.keyed is not None:
            yield from self.keyed.files
        if self.operator_state is not None:
            yield self.operator_state
        if self.in_flight is not None:
            yield from self.in_flight.files

    def with_files(self, changed: Callable[[StateFile], StateFile]) -> OperatorSnapshot:
        """Return the snapshot with every file replaced."""
        keyed, in_flight = self.keyed, self.in_flight
        return replace(
            self,
            keyed=None if keyed is None else replace(keyed, files=tuple(map(changed, keyed.files))),
            operator_state=None if self.operator_state is None else changed(self.operator_state),
            in_flight=None if in_flight is None else replace(in_flight, files=tuple(map(changed, in_flight.files))),
        )


@dataclass(frozen=True, slots=True)
class AlignmentStats:
    """How the mark of a checkpoint came to one subtask of a job that runs continuously.

    Attributes:
        start_delay_ms: From the trigger of the checkpoint to the first mark.
        aligned_ms: From the first mark to the snapshot.
        held_bytes: Blobs of channels that were ahead and waited meanwhile.
        recorded_ms: From the snapshot to the last mark, if the mark has overtaken blobs.
        in_flight_bytes: What the mark has overtaken and the snapshot stores; known when it is written.
        unaligned: The snapshot was taken before the mark had come on all channels.
    """

    start_delay_ms: float = 0.0
    aligned_ms: float = 0.0
    held_bytes: int = 0
    recorded_ms: float = 0.0
    in_flight_bytes: int = 0
    unaligned: bool = False

    @property
    def duration_ms(self) -> float:
        """From the first mark to the last."""
        return self.aligned_ms + self.recorded_ms


NO_ALIGNMENT = AlignmentStats()


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
    alignment: AlignmentStats = NO_ALIGNMENT


@dataclass(frozen=True, slots=True)
class OperatorRestore:
    """The state that one operator of one new subtask starts from."""

    operator_id: str
    keyed: tuple[KeyedFiles, ...] = ()  # from the old subtasks whose key groups overlap the new subtask's
    operator_state: tuple[StateFile | None, ...] = ()  # from every old subtask, by index
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


class Share(Enum):
    """Which of the stored records of an input one new subtask processes."""

    ALL = "all"
    OWN_KEYS = "those of its key groups"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class InFlightInput:
    """What one new subtask does with the stored blobs of one input.

    Attributes:
        exchange: The exchange of this job that the input is.
        keeps_watermarks: Neither side of the exchange was rescaled: every channel is what it was.
    """

    exchange: int
    share: Share
    keeps_watermarks: bool = False


@dataclass(frozen=True, slots=True)
class InFlightRestore:
    """The stored blobs of one old subtask, of which one new subtask processes its share before new input."""

    files: tuple[StateFile, ...]
    inputs: tuple[InFlightInput, ...]  # by the number that the blobs refer to


@dataclass(frozen=True, slots=True)
class SubtaskRestore:
    """The state that one new subtask starts from."""

    operators: tuple[OperatorRestore, ...] = ()
    finished: bool = False
    in_flight: tuple[InFlightRestore, ...] = ()

    def of(self, operator_id: str) -> OperatorRestore | None:
        """Return the part of one operator, or None if the checkpoint has none."""
        return next((o for o in self.operators if o.operator_id == operator_id), None)


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The parts that the subtasks of a deployment restore, and the directory of the files."""

    directory: str
    checkpoint_id: int
    subtasks: dict[SubtaskId, SubtaskRestore] = field(default_factory=dict)
