"""Stores the blobs that a mark has overtaken in a snapshot, and restores a new subtask's share of them.

`continuous/channels.py` decides which blobs these are. docs/formats/in-flight.md describes the bytes.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ekorn.errors import CorruptFileError
from ekorn.graph.addresses import ChannelId
from ekorn.graph.job_graph import JobGraph, VertexId
from ekorn.keygroups import KeyGroupRange, key_group
from ekorn.state.keyed_backend import SnapshotTarget
from ekorn.state.snapshots import InFlightFiles, InFlightInput, InFlightRestore, Share, StateFile, StoredInput
from ekorn.state.state_files import read_state
from ekorn.storage.file_store import FileStore
from ekorn.subtask.wire.frames import NO_MARK, RECORDS, WATERMARK, Blob, Frame, ReceivedBlob
from ekorn.types.by_value import dumps

__all__ = ["BlobPart", "InFlight", "KeyShare", "restored_blobs", "stored_inputs"]

# docs/formats/in-flight.md
_MAGIC: Final = b"EKOFLGT"
_VERSION: Final = 1
_HEADER = struct.Struct(">7sBI")  # magic, version, number of blobs
_BLOB = struct.Struct(">IIQ")  # number of the input, sender, bytes of the frames
_RESTORED: Final = (RECORDS, WATERMARK)  # the frames that a restore processes


@dataclass(frozen=True)
class BlobPart:
    """Frames of a blob that have not been processed yet, or that come from a snapshot."""

    channel: ChannelId
    unread: list[Frame]
    size_bytes: int
    sequence: int = 0
    mark: int = NO_MARK

    @property
    def exchange(self) -> int:
        return self.channel.exchange

    @property
    def sender(self) -> int:
        return self.channel.sender

    def frames(self) -> list[Frame]:
        return self.unread

    def pickled(self) -> bytes | memoryview:
        return dumps(self.unread)

    def pickle(self) -> Blob:
        """Return the part as a blob of its own."""
        return Blob(self.exchange, self.sender, 0, self.sequence, self.pickled(), self.mark)


# ----------------------------------------------------------------------------------------------------------- storing


@dataclass(frozen=True)
class InFlight:
    """Recorded blobs, before they are written."""

    graph: JobGraph
    vertex: VertexId
    blobs: tuple[ReceivedBlob, ...]

    def write(self, target: SnapshotTarget) -> InFlightFiles | None:
        """Write the blobs, in files of limited size; return None if they hold nothing that a restore would process.

        Runs on another thread while the subtask continues.
        """
        # An input without blobs is left out: a restore need not divide it among the subtasks.
        names = stored_inputs(self.graph, self.vertex)
        numbers: dict[int, int] = {}  # by exchange
        files: list[StateFile] = []
        entries: list[bytes | memoryview] = []
        size_bytes = held_bytes = count = 0
        for blob in self.blobs:
            payload = _payload(blob)
            if payload is None:
                continue
            number = numbers.setdefault(blob.exchange, len(numbers))
            entries += _BLOB.pack(number, blob.sender, len(payload)), payload
            count += 1
            held_bytes += len(payload)
            size_bytes += len(payload)
            if held_bytes >= target.payload_bytes:
                files.append(_write(target, entries, count))
                entries, held_bytes, count = [], 0, 0
        if entries:
            files.append(_write(target, entries, count))
        if not files:
            return None
        return InFlightFiles(tuple(names[exchange] for exchange in numbers), tuple(files), size_bytes)


def _write(target: SnapshotTarget, entries: Sequence[bytes | memoryview], count: int) -> StateFile:
    payload = b"".join((_HEADER.pack(_MAGIC, _VERSION, count), *entries))
    return target.write(target.exclusive("in-flight"), payload)


def _payload(blob: ReceivedBlob) -> bytes | memoryview | None:
    """Return the pickled frames of a blob without its mark, which belongs to the old attempt; None: none are left.

    Every channel carries the mark itself. If it counted, an idle job would have blobs in flight.
    """
    if blob.mark == NO_MARK:
        return blob.pickled()
    frames = [frame for frame in blob.frames() if frame[0] in _RESTORED]
    return dumps(frames) if frames else None


def stored_inputs(graph: JobGraph, vertex: VertexId) -> dict[int, StoredInput]:
    """Return the inputs of a vertex as snapshots name them, by exchange."""
    found: dict[int, StoredInput] = {}
    for exchange in graph.inputs_of(vertex):
        source = graph.vertices[exchange.source].operators[exchange.source_operator].id
        name = StoredInput(source, exchange.input_index, exchange.tag)
        alike = sum(replace(other, number=0) == name for other in found.values())
        found[exchange.id] = replace(name, number=alike)
    return found


# --------------------------------------------------------------------------------------------------------- restoring


@dataclass(frozen=True)
class KeyShare:
    """Tells which records belong to a subtask: those whose key is in one of its key groups."""

    key_of: Callable[[Any], Any]
    max_parallelism: int
    own: KeyGroupRange

    def of(self, frame: Frame) -> Frame:
        """Return a run of records without those of other subtasks."""
        _, values, times = frame
        own = [self.own.first <= key_group(self.key_of(v), self.max_parallelism) <= self.own.last for v in values]
        kept = [value for value, mine in zip(values, own, strict=True) if mine]
        return RECORDS, kept, None if times is None else [t for t, mine in zip(times, own, strict=True) if mine]


def restored_blobs(
    restores: Iterable[InFlightRestore],
    store: FileStore | None,
    *,
    channels: Collection[ChannelId],
    key_share: Callable[[int], KeyShare],
) -> Iterator[BlobPart]:
    """Yield a subtask's share of stored blobs, in the order in which they are processed.

    Args:
        restores: The stored blobs of the old subtasks.
        store: Where their files are.
        channels: The channels of the subtask.
        key_share: Returns the subtask's share of the records of a keyed exchange.

    Raises:
        CorruptFileError: A file is damaged, foreign, or of a newer format.
    """
    for restore in restores:
        for file in restore.files:
            assert store is not None, "a plan with files has a directory"
            where = "blobs in flight" if file.path is None else f"{store.url}/{file.path}"
            for part, sender, frames in _decode(read_state(store, file), restore.inputs, where):
                kept = _share(part, frames, key_share)
                if kept:
                    # After rescaling a sender may be gone. Any other stands for it: these records have no watermarks.
                    old = ChannelId(part.exchange, sender)
                    channel = old if old in channels else next(c for c in channels if c.exchange == part.exchange)
                    yield BlobPart(channel, kept, len(frames))


def _share(part: InFlightInput, pickled: memoryview, key_share: Callable[[int], KeyShare]) -> list[Frame]:
    """Return what a subtask processes of a stored blob.

    Other frames than records and watermarks are dropped: the new sender tells again if it is idle or has ended.
    """
    if part.share is Share.NONE:
        return []
    kinds = _RESTORED if part.keeps_watermarks else (RECORDS,)
    kept = [frame for frame in pickle.loads(pickled) if frame[0] in kinds]
    if part.share is Share.OWN_KEYS:
        share = key_share(part.exchange)
        kept = [own for frame in kept if (own := share.of(frame))[1]]
    return kept


def _decode(
    payload: bytes, inputs: Sequence[InFlightInput], where: str
) -> Iterator[tuple[InFlightInput, int, memoryview]]:
    """Yield the input, the sender and the pickled frames of every stored blob."""
    view, position = memoryview(payload), _HEADER.size
    magic, version, count = _HEADER.unpack_from(payload) if len(payload) >= _HEADER.size else (payload[:7], 0, 0)
    if magic != _MAGIC:
        raise CorruptFileError(where, f"bytes that start with {bytes(magic)!r}", f"blobs in flight ({_MAGIC!r})")
    if version != _VERSION:
        found = f"in-flight format version {version}"
        raise CorruptFileError(where, found, f"version {_VERSION}, which is the newest this release reads")
    for _ in range(count):
        if position + _BLOB.size > len(payload):
            raise CorruptFileError(where, f"{len(payload)} bytes", "more blobs")
        number, sender, size = _BLOB.unpack_from(payload, position)
        position += _BLOB.size
        if number >= len(inputs) or position + size > len(payload):
            raise CorruptFileError(where, f"a blob of input {number} with {size} bytes", f"{len(inputs)} inputs")
        yield inputs[number], sender, view[position : position + size]
        position += size
    if position != len(payload):
        raise CorruptFileError(where, f"{len(payload) - position} bytes too many", "the end of the blobs")
