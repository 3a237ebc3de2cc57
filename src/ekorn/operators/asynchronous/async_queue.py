"""The order in which the results of requests leave: in the order of the records, or in the order of the answers.

There are no threads and no clocks here. Pending records and marks are added, records are completed, and whatever may
leave is taken out. A mark is a watermark or a change of idleness. In both queues no result ever overtakes a mark.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Mark = Callable[[], None]
"""Forwards a watermark or idleness. Called when all results before the mark have left."""


class PendingRecord:
    """A record whose results have not left yet. `kept` is the record in the form state tables hold."""

    __slots__ = ("kept", "request", "results", "segment", "time")

    def __init__(self, kept: Any, time: int | None) -> None:
        self.kept = kept
        self.time = time
        self.results: list[Any] | None = None  # once the record is complete
        self.request: Any = None
        self.segment: _Segment | None = None


class Queue(Protocol):
    """Pending records and marks, and which of them may leave."""

    def add(self, record: PendingRecord) -> None:
        """Add a record."""

    def add_mark(self, mark: Mark) -> None:
        """Add a mark."""

    def complete(self, record: PendingRecord) -> None:
        """Take note that the results of a record have arrived."""

    def take(self) -> PendingRecord | Mark | None:
        """Remove and return the next record or mark that may leave now, if any."""

    def waiting(self) -> Iterator[PendingRecord]:
        """Return the records whose results have not left."""

    def __len__(self) -> int:
        """Return how many records are pending."""


class OrderedQueue:
    """Records and marks leave in the order in which they were added."""

    def __init__(self) -> None:
        self._items: deque[PendingRecord | Mark] = deque()
        self._pending_count = 0

    def add(self, record: PendingRecord) -> None:
        self._items.append(record)
        self._pending_count += 1

    def add_mark(self, mark: Mark) -> None:
        self._items.append(mark)

    def complete(self, record: PendingRecord) -> None:
        pass  # the record leaves when its turn comes

    def take(self) -> PendingRecord | Mark | None:
        if not self._items:
            return None
        first = self._items[0]
        if isinstance(first, PendingRecord):
            if first.results is None:
                return None
            self._pending_count -= 1
        return self._items.popleft()

    def waiting(self) -> Iterator[PendingRecord]:
        return (item for item in self._items if isinstance(item, PendingRecord))

    def __len__(self) -> int:
        return self._pending_count


class _Segment:
    """The records between two marks, and the mark behind them."""

    __slots__ = ("done", "mark", "open")

    def __init__(self) -> None:
        self.open: dict[PendingRecord, None] = {}  # in the order in which they were added
        self.done: deque[PendingRecord] = deque()  # in the order in which they were completed
        self.mark: Mark | None = None


class UnorderedQueue:
    """Between two marks, records leave in the order in which they are completed."""

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])
        self._pending_count = 0

    def add(self, record: PendingRecord) -> None:
        record.segment = self._segments[-1]
        record.segment.open[record] = None
        self._pending_count += 1

    def add_mark(self, mark: Mark) -> None:
        self._segments[-1].mark = mark
        self._segments.append(_Segment())

    def complete(self, record: PendingRecord) -> None:
        assert record.segment is not None
        del record.segment.open[record]
        record.segment.done.append(record)

    def take(self) -> PendingRecord | Mark | None:
        first = self._segments[0]
        if first.done:
            self._pending_count -= 1
            return first.done.popleft()
        if first.open or first.mark is None:
            return None
        self._segments.popleft()
        return first.mark

    def waiting(self) -> Iterator[PendingRecord]:
        for segment in self._segments:
            yield from segment.done
            yield from segment.open

    def __len__(self) -> int:
        return self._pending_count
