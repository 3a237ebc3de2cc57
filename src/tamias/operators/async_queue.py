"""In which order the results of requests leave: as the records came, or as the answers come.

No threads and no clocks: entries and marks are put in, entries are said to be complete, and what may leave is taken
out. A mark is a watermark or a change of idleness; no record's results ever pass one, in either queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Protocol

Mark = Callable[[], None]
"""Says on what has been held back; called when everything before it has left."""


class PendingRecord:
    """A record whose results have not left yet. `kept` is the record as state tables keep it."""

    __slots__ = ("kept", "request", "results", "segment", "time")

    def __init__(self, kept: Any, time: int | None) -> None:
        self.kept = kept
        self.time = time
        self.results: list[Any] | None = None  # once it is complete
        self.request: Any = None
        self.segment: _Segment | None = None


class Queue(Protocol):
    """What waits, and what of it may leave."""

    def add(self, entry: PendingRecord) -> None:
        """A record has come."""

    def add_mark(self, mark: Mark) -> None:
        """A mark has come."""

    def complete(self, entry: PendingRecord) -> None:
        """A record's results are there."""

    def take(self) -> PendingRecord | Mark | None:
        """The next that may leave now, if any."""

    def waiting(self) -> Iterator[PendingRecord]:
        """The records whose results have not left."""

    def __len__(self) -> int:
        """How many records' results have not left."""


class OrderedQueue:
    """Everything leaves in the order in which it came."""

    def __init__(self) -> None:
        self._items: deque[PendingRecord | Mark] = deque()
        self._entries = 0

    def add(self, entry: PendingRecord) -> None:
        self._items.append(entry)
        self._entries += 1

    def add_mark(self, mark: Mark) -> None:
        self._items.append(mark)

    def complete(self, entry: PendingRecord) -> None:
        pass  # its turn comes

    def take(self) -> PendingRecord | Mark | None:
        if not self._items:
            return None
        first = self._items[0]
        if isinstance(first, PendingRecord):
            if first.results is None:
                return None
            self._entries -= 1
        return self._items.popleft()

    def waiting(self) -> Iterator[PendingRecord]:
        return (item for item in self._items if isinstance(item, PendingRecord))

    def __len__(self) -> int:
        return self._entries


class _Segment:
    """What came between two marks, and the mark behind it."""

    __slots__ = ("done", "mark", "open")

    def __init__(self) -> None:
        self.open: dict[PendingRecord, None] = {}  # in the order in which they came
        self.done: deque[PendingRecord] = deque()  # in the order in which their results came
        self.mark: Mark | None = None


class UnorderedQueue:
    """Between two marks whatever is complete leaves first."""

    def __init__(self) -> None:
        self._segments: deque[_Segment] = deque([_Segment()])
        self._entries = 0

    def add(self, entry: PendingRecord) -> None:
        entry.segment = self._segments[-1]
        entry.segment.open[entry] = None
        self._entries += 1

    def add_mark(self, mark: Mark) -> None:
        self._segments[-1].mark = mark
        self._segments.append(_Segment())

    def complete(self, entry: PendingRecord) -> None:
        assert entry.segment is not None
        del entry.segment.open[entry]
        entry.segment.done.append(entry)

    def take(self) -> PendingRecord | Mark | None:
        first = self._segments[0]
        if first.done:
            self._entries -= 1
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
        return self._entries
