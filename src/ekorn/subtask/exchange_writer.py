"""The sending side of one exchange of one subtask: its channels, which are cut into blobs, and the way to them."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

from ekorn.codegen.exchange_code import Append
from ekorn.codegen.key_code import key_function
from ekorn.columns.columns_type import has_columns, row_count
from ekorn.config import options
from ekorn.errors import InvalidKeyError, InvalidProgramError, RecordTooLargeError, RecordTypeError, preview
from ekorn.graph.job_graph import Exchange, Vertex
from ekorn.graph.specs import Hash, Rebalance, Rescale, Shuffle
from ekorn.keygroups import key_group, state_key, subtask_of
from ekorn.subtask.wire.frames import EPOCH, NO_MARK, RECORDS, Blob, Frame
from ekorn.types.by_value import dumps_up_to, pickled_size, size_of

FULL_RUN = 8192  # records that fill a blob, if they are small
BLOB_BYTES = options.BLOB_BYTES.default  # bytes that fill a blob
_FIRST_RUN = 256  # records that fill the first blob of a channel, whose records have not been measured yet
_GROWTH = 4  # a run grows at most this much from one blob to the next
_SUBTASK_BYTES = 64 << 20  # bytes that all channels of an exchange may hold together
_ROUTES_KEPT = 1 << 17  # keys whose channel is remembered: some 10 MB


class OutputChannel:
    """The open run of records to one target subtask.

    `values` and `times` are the same two lists for as long as the channel exists, because the generated loops keep
    their `append` methods.
    """

    __slots__ = ("closed_records", "frames", "full_run", "record_bytes", "sequence", "target", "times", "values")

    def __init__(self, target: int, blob_bytes: int = BLOB_BYTES) -> None:
        self.target = target
        self.values: list[Any] = []
        self.times: list[int | None] = []
        self.frames: list[Frame] = []
        self.closed_records = 0  # in `frames`
        self.full_run = _FIRST_RUN  # records that fill the next blob
        self.record_bytes = blob_bytes / _FIRST_RUN  # as measured in the last blob; at first a careful guess
        self.sequence = 0

    @property
    def record_count(self) -> int:
        """The records that have not left yet."""
        return self.closed_records + len(self.values)

    def measured(self, records: int, size_bytes: int, blob_bytes: int) -> None:
        """Adapt the length of the next run to the size of a blob that has been encoded."""
        self.record_bytes = max(1.0, size_bytes / records)
        affordable = max(1, int(blob_bytes / self.record_bytes))
        self.full_run = min(affordable, self.full_run * _GROWTH, FULL_RUN)


class ExchangeWriter:
    """The sending side of one exchange in one subtask.

    Args:
        blob_bytes: The size at which a blob leaves. A blob is larger by at most the growth of its records since the
            last blob, and never larger than twice the size, unless it holds a single record.
        max_record_bytes: The size above which a record is refused.
    """

    def __init__(
        self,
        exchange: Exchange,
        targets: list[int],
        *,
        sender: int,
        blob_bytes: int = BLOB_BYTES,
        max_record_bytes: int = options.MAX_RECORD_BYTES.default,
    ) -> None:
        self.exchange = exchange
        self.sender = sender
        self._max_record_bytes = max_record_bytes
        self._blob_bytes = max(1, min(blob_bytes, _SUBTASK_BYTES // max(1, len(targets))))
        self.channels = [OutputChannel(t, self._blob_bytes) for t in targets]
        self.timed = False
        self.bytes_taken = self.records_taken = 0
        self.conform = exchange.type_info.conform if exchange.type_info is not None else None
        self._count: Callable[[list[Any]], int] = row_count if has_columns(exchange.type_info) else len

    def set_timed(self, timed: bool) -> None:
        """State whether the records that follow have timestamps. All or none of a run's records have."""
        if timed is not self.timed:
            for channel in self.channels:
                self._close_run(channel)
            self.timed = timed

    def broadcast(self, frame: Frame) -> None:
        """Add a frame behind the records sent so far, on every channel."""
        for channel in self.channels:
            self._close_run(channel)
            channel.frames.append(frame)

    def take_full(self) -> Iterator[Blob]:
        """Yield the blobs of channels that are full."""
        for channel in self.channels:
            if channel.closed_records + len(channel.values) >= channel.full_run:
                yield from self._take(channel)

    def take_all(self) -> Iterator[Blob]:
        """Yield the blobs of channels with any frame."""
        for channel in self.channels:
            yield from self._take(channel)

    def sample(self) -> int:
        """Look at the size of the last record of the longest run; return how many such records fill a blob.

        If records have grown since the last blob, a full run is shorter from now on.
        """
        channel = max(self.channels, key=_open_records)
        if not channel.values:
            return FULL_RUN
        try:
            (record,) = self._conformed([channel.values[-1]])
        except RecordTypeError:  # the error must name the first such record of the run: closing the run raises it
            return FULL_RUN
        affordable = max(1, self._blob_bytes // (size_of(record) + 1))
        channel.full_run = min(channel.full_run, affordable)
        return affordable

    def held_bytes(self) -> float:
        """Return an estimate of the bytes that have not left yet."""
        return sum(channel.record_count * channel.record_bytes for channel in self.channels)

    def _take(self, channel: OutputChannel) -> Iterator[Blob]:
        self._close_run(channel)
        frames, channel.frames, channel.closed_records = channel.frames, [], 0
        if not frames:
            return
        waiting = [frames]  # in the order in which the frames were sent, the next ones last
        while waiting:
            part = waiting.pop()
            records = sum(len(frame[1]) for frame in part if frame[0] == RECORDS)
            payload = dumps_up_to(part, self._max_record_bytes if records <= 1 else 2 * self._blob_bytes)
            if payload is None:
                if records <= 1:
                    raise self._too_large(part)
                first, second = _halved(part, records // 2)
                waiting += second, first
                continue
            mark = part[-1][1].number if part[-1][0] == EPOCH else NO_MARK
            blob = Blob(self.exchange.id, self.sender, channel.target, channel.sequence, payload, mark)
            channel.sequence += 1
            self.bytes_taken += blob.size_bytes
            if records:
                channel.measured(records, len(payload), self._blob_bytes)
            yield blob

    def _too_large(self, frames: list[Frame]) -> RecordTooLargeError:
        record = next(frame[1][0] for frame in frames if frame[0] == RECORDS)
        key = None
        partitioning = self.exchange.partitioning
        if isinstance(partitioning, Hash):
            key = preview(key_function(partitioning.key)(record))
        error = RecordTooLargeError(pickled_size(record), self._max_record_bytes, key)
        error.emitted_by = self.exchange.source_operator
        return error

    def restart(self) -> None:
        """Number blobs from 0 again, for a new epoch."""
        for channel in self.channels:
            channel.sequence = 0

    def _close_run(self, channel: OutputChannel) -> None:
        if channel.values:
            values = self._conformed(channel.values.copy())
            self.records_taken += self._count(values)
            channel.closed_records += len(values)
            times = channel.times.copy() if self.timed else None
            channel.frames.append((RECORDS, values, times))
            channel.values.clear()
            channel.times.clear()

    def _conformed(self, values: list[Any]) -> list[Any]:
        """Return values in the exchange's type, which is how they are pickled."""
        if self.conform is None:
            return values
        try:
            return self.conform(values)
        except RecordTypeError as misfit:
            misfit.emitted_by = self.exchange.source_operator
            raise


def _open_records(channel: OutputChannel) -> int:
    return len(channel.values)


def _halved(frames: list[Frame], first_records: int) -> tuple[list[Frame], list[Frame]]:
    """Cut frames behind their first `first_records` records."""
    first: list[Frame] = []
    for position, frame in enumerate(frames):
        if frame[0] == RECORDS:
            values, times = frame[1], frame[2]
            if len(values) > first_records:
                at = first_records
                if at:
                    first.append((RECORDS, values[:at], None if times is None else times[:at]))
                rest: Frame = (RECORDS, values[at:], None if times is None else times[at:])
                return first, [rest, *frames[position + 1 :]]
            first_records -= len(values)
        first.append(frame)
    return first, []


class Router:
    """Finds the channel for a record of one exchange. Used by the generated loops."""

    def __init__(self, writer: ExchangeWriter, target: Vertex, seed: int) -> None:
        self.writer = writer
        self.appends: list[Append] = [(c.values.append, c.times.append) for c in writer.channels]
        self._target = target
        partitioning = writer.exchange.partitioning
        match partitioning:
            case Rebalance() | Rescale():
                first = writer.sender % len(self.appends) if isinstance(partitioning, Rebalance) else 0
                self.next = itertools.islice(itertools.cycle(self.appends), first, None).__next__
            case Shuffle():
                choice = random.Random(seed).choice
                self.next = lambda: choice(self.appends)
            case _:
                pass
        self.routes: dict[Any, Append] = {}

    def resolve(self, key: Any) -> Append:
        """Return the channel of a key that is not remembered, and remember it."""
        found = self._channel_of(key)
        if len(self.routes) >= _ROUTES_KEPT:
            self.routes.clear()
        self.routes[key] = found
        return found

    def resolve_unhashable(self, key: Any) -> Append:
        """Return the channel of a list, or of a tuple with a list, which a dict cannot hold.

        Raises:
            InvalidKeyError: The key is of another kind.
        """
        found = self._channel_of(key)
        try:
            hash(state_key(key))
        except TypeError as error:
            raise InvalidKeyError("", preview(key), f"it has no hash ({error}); use a tuple or a str") from None
        return found

    def _channel_of(self, key: Any) -> Append:
        target = self._target
        group = key_group(key, target.max_parallelism)
        return self.appends[subtask_of(group, target.max_parallelism, target.parallelism)]

    def custom(self, index: Any) -> Append:
        """Return the channel of the index that a user's partitioner returned."""
        if type(index) is not int or not 0 <= index < len(self.appends):
            raise InvalidProgramError(
                f"the partitioner returned {index!r}; it must return an int from 0 to {len(self.appends) - 1}"
            )
        return self.appends[index]

    def send_columns(self, batch: Any) -> None:
        raise AssertionError("an exchange of columns has a router of its own")

    def choose_for_columns(self, batch: Any) -> Any:
        raise AssertionError("an exchange of columns has a router of its own")
