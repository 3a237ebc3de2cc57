"""Windows, which are values, and the serializers that write them to checkpoints."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Iterable
from io import BytesIO
from typing import Protocol

from ekorn.functions.windows.window_arithmetic import aligned_start
from ekorn.types.published import publish
from ekorn.types.serializer import TypeSerializer
from ekorn.types.time_bounds import MAX_TIMESTAMP

MAX_LONG_VALUE = MAX_TIMESTAMP
MIN_LONG_VALUE = -MAX_TIMESTAMP - 1


class Window(ABC):
    """A group of records. Equal windows are one window, so a subclass needs `__eq__` and `__hash__`."""

    @abstractmethod
    def max_timestamp(self) -> int:
        """Return the last instant that belongs to the window: the timestamp of its results."""


class OnTimeWindowMerge(Protocol):
    """The part of `MergingWindowAssigner.MergeCallback` that `TimeWindow.merge_windows` calls."""

    def merge(self, to_be_merged: Iterable[TimeWindow], merge_result: TimeWindow) -> None: ...


class TimeWindow(Window):
    """A span of time, from `start` to just before `end`.

    Example:
        >>> TimeWindow(0, 10).max_timestamp()
        9
        >>> TimeWindow(0, 10).intersects(TimeWindow(10, 20)), TimeWindow(0, 10).cover(TimeWindow(10, 20))
        (True, TimeWindow(start=0, end=20))
    """

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    def max_timestamp(self) -> int:
        """Return the millisecond before the end."""
        return self.end - 1

    def intersects(self, other: TimeWindow) -> bool:
        """Return whether the two windows overlap or touch. Merging assigners merge such windows."""
        return self.start <= other.end and self.end >= other.start

    def cover(self, other: TimeWindow) -> TimeWindow:
        """Return the smallest window that holds both."""
        return TimeWindow(min(self.start, other.start), max(self.end, other.end))

    @staticmethod
    def get_window_start_with_offset(timestamp: int, offset: int, window_size: int) -> int:
        """Return the start of the tumbling window that holds a timestamp.

        Example:
            >>> TimeWindow.get_window_start_with_offset(-4, -3, 10)
            -13
        """
        return aligned_start(timestamp, offset, window_size)

    @staticmethod
    def merge_windows(windows: Iterable[TimeWindow], callback: OnTimeWindowMerge) -> None:
        """Find the groups of windows that overlap or touch, and call `callback.merge` for each group of two or more."""
        group: list[TimeWindow] = []
        cover: TimeWindow | None = None
        for window in sorted(windows, key=lambda w: w.start):
            if cover is None or not cover.intersects(window):
                if cover is not None and len(group) > 1:
                    callback.merge(group, cover)
                group, cover = [window], window
            else:
                group.append(window)
                cover = cover.cover(window)
        if cover is not None and len(group) > 1:
            callback.merge(group, cover)

    def __eq__(self, other: object) -> bool:
        return (
            self.__class__ is other.__class__
            and isinstance(other, TimeWindow)
            and (self.start == other.start and self.end == other.end)
        )

    def __hash__(self) -> int:
        return hash((self.start, self.end))

    def __lt__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) < (other.start, other.end)

    def __le__(self, other: TimeWindow) -> bool:
        return (self.start, self.end) <= (other.start, other.end)

    def __repr__(self) -> str:
        return f"TimeWindow(start={self.start}, end={self.end})"


class GlobalWindow(Window):
    """The one window that holds every record."""

    def max_timestamp(self) -> int:
        """Return `MAX_TIMESTAMP`: the window never ends."""
        return MAX_TIMESTAMP

    @staticmethod
    def get() -> GlobalWindow:
        """Return the one instance."""
        return GLOBAL_WINDOW

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GlobalWindow)

    def __hash__(self) -> int:
        return 0

    def __lt__(self, other: GlobalWindow) -> bool:
        return False

    def __repr__(self) -> str:
        return "GlobalWindow"


GLOBAL_WINDOW = GlobalWindow()


class CountWindow(Window):
    """A window of a fixed number of records. Windows of one key are numbered by `id`."""

    def __init__(self, id: int) -> None:
        self.id = id

    def max_timestamp(self) -> int:
        """Return `MAX_TIMESTAMP`: no time ends a count window."""
        return MAX_TIMESTAMP

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CountWindow) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __lt__(self, other: CountWindow) -> bool:
        return self.id < other.id

    def __repr__(self) -> str:
        return f"CountWindow(id={self.id})"


# ----------------------------------------------------------------------------------------- serializers

_TWO_LONGS, _LONG = struct.Struct(">qq"), struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Writes the start and the end."""

    def serialize(self, element: TimeWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_TWO_LONGS.pack(element.start, element.end))

    def deserialize(self, stream: BytesIO) -> TimeWindow:
        """Read a window."""
        return TimeWindow(*_TWO_LONGS.unpack(stream.read(_TWO_LONGS.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Writes the number of the window."""

    def serialize(self, element: CountWindow, stream: BytesIO) -> None:
        """Write a window."""
        stream.write(_LONG.pack(element.id))

    def deserialize(self, stream: BytesIO) -> CountWindow:
        """Read a window."""
        return CountWindow(*_LONG.unpack(stream.read(_LONG.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """Writes one byte, since there is only one global window."""

    def serialize(self, element: GlobalWindow, stream: BytesIO) -> None:
        """Write the window."""
        stream.write(b"\0")

    def deserialize(self, stream: BytesIO) -> GlobalWindow:
        """Read the window."""
        stream.read(1)
        return GlobalWindow.get()


publish("ekorn.datastream.window", TimeWindow, CountWindow, GlobalWindow)
