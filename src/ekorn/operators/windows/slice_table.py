"""The table of the slice layout: a record is kept once, however many windows hold it.

The records of a key are in its strip (`slice_contents.py`), and a slice knows its keys. When a window fires, the
contents of each of its keys are made from the key's strip. A slice is dropped with its last window. The layout, not
this table, knows which windows have fired, because that is the same for all keys (`saved_slices.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from itertools import chain, count
from typing import Any

from ekorn.errors import StateMigrationError
from ekorn.functions.windows.window_arithmetic import SavedSpan, TimeSpan, WindowGrid
from ekorn.operators.windows.contents import MISSING
from ekorn.operators.windows.saved_windows import SLICES
from ekorn.operators.windows.slice_contents import SavedSlice, SliceContents, Strip
from ekorn.state.canonical_format import TableEntries
from ekorn.state.codecs import Codec
from ekorn.state.snapshots import WINDOWED, StateInfo
from ekorn.state.table import Table
from ekorn.types.by_value import own
from ekorn.types.time_bounds import MIN_TIMESTAMP


class Slice:
    """The keys that have records in one slice."""

    __slots__ = ("changed", "end", "has_fired_window", "has_mutable_records", "in_snapshot", "keys", "start")

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start = start_ms
        self.end = end_ms
        self.keys: list[Any] = []  # in order of arrival; a key that arrives again after other keys may be listed twice
        self.has_fired_window = False  # a window of the slice has fired
        self.has_mutable_records = False  # a window function could change records of the slice
        self.changed: set[Any] = set()  # keys written since the last snapshot
        self.in_snapshot = False  # a snapshot was taken while the slice was there


class SliceTable(Table):
    """The slices of sliding windows. `data` holds the strips by key.

    In a checkpoint an entry's address is (key, (start, end)) of a slice. Its value is a pair of contents, as a window
    saves them, and arrival numbers.
    """

    __slots__ = (
        "_contents",
        "_disordered",
        "_firing_keys",
        "_grid",
        "_last_fired_ms",
        "_tracked",
        "_unfired",
        "next_arrival",
        "slices",
    )

    def __init__(self, grid: WindowGrid, contents: SliceContents, *, tracked: bool) -> None:
        super().__init__(StateInfo(SLICES, f"{WINDOWED}slices"), tracked=tracked)
        self._grid = grid
        self._contents = contents
        self._tracked = tracked
        self.slices: dict[int, Slice] = {}  # by start
        self.next_arrival = count(1).__next__
        self._disordered: set[Any] = set()  # keys with a record that arrived after a record of a later slice
        self._unfired: list[int] = []  # a heap of the starts of slices without a fired window
        self._last_fired_ms = MIN_TIMESTAMP  # the end of the last window that has fired
        self._firing_keys: dict[Any, None] = {}  # keys with records in slices that start before that end

    # ------------------------------------------------------------------------------------------------ records

    def open(self, start_ms: int) -> Slice:
        """Add a slice."""
        part = self.slices[start_ms] = Slice(start_ms, self._grid.slice_end(start_ms))
        heappush(self._unfired, start_ms)
        return part

    def add(self, part: Slice, key: Any, value: Any) -> None:
        """Add a record. For a record in order the generated loop does the same without a call."""
        strip, start = self.data.get(key), part.start
        if strip is None:
            strip = self.data[key] = []
        elif start < strip[-self._contents.step]:
            self._disordered.add(key)
        if not strip or strip[-self._contents.step] != start:
            part.keys.append(key)
        self._contents.add(strip, start, self.next_arrival(), value)
        self._contents.drop_cache(key)
        if part.has_fired_window:
            self._firing_keys[key] = None
        if self._contents.contents.is_list and not part.has_mutable_records:
            part.has_mutable_records = own(value) is not value
        if self._tracked:
            part.changed.add(key)

    # ------------------------------------------------------------------------------------------------ windows

    def window_ends(self) -> list[int]:
        """Return the ends of all windows with slices in the table, in ascending order."""
        return sorted({end for start in self.slices for end in self._grid.window_ends(start)})

    def fire(self, end_ms: int) -> Iterable[tuple[Any, Any]]:  # hot
        """Yield the keys of a window in order of arrival, with their contents. Windows are fired in order."""
        self._mark_fired(end_ms)
        low_ms, data, contents, disordered = end_ms - self._grid.size_ms, self.data, self._contents, self._disordered
        copies = self._has_mutable_records(end_ms)
        for key in self._in_order_of_arrival(self._firing_keys, low_ms, end_ms):
            if key in disordered:
                found = contents.window_contents(data[key], low_ms, end_ms, in_order=False)
            else:
                found = contents.next_window_contents(key, data[key], low_ms, end_ms)
            yield key, [own(record) for record in found] if copies else found

    def keys_of(self, end_ms: int) -> list[Any]:
        """Return the keys of a window in order of arrival."""
        parts = [part for start in self._grid.slice_starts(end_ms) if (part := self.slices.get(start))]
        keys = dict.fromkeys(chain.from_iterable(part.keys for part in parts))
        return self._in_order_of_arrival(keys, end_ms - self._grid.size_ms, end_ms)

    def contents_of(self, key: Any, end_ms: int) -> Any:
        """Return the contents of a window of a key, or MISSING. Changing the contents does not change the slices."""
        strip = self.data.get(key)
        if strip is None:
            return MISSING
        low_ms, in_order = end_ms - self._grid.size_ms, key not in self._disordered
        found = self._contents.window_contents(strip, low_ms, end_ms, in_order=in_order)
        return [own(r) for r in found] if found is not MISSING and self._has_mutable_records(end_ms) else found

    def _mark_fired(self, end_ms: int) -> None:
        self._last_fired_ms = max(self._last_fired_ms, end_ms)
        while self._unfired and self._unfired[0] < end_ms:
            part = self.slices.get(heappop(self._unfired))
            if part is not None:
                part.has_fired_window = True
                self._firing_keys.update(dict.fromkeys(part.keys))

    def _in_order_of_arrival(self, keys: dict[Any, None], low_ms: int, high_ms: int) -> list[Any]:  # hot
        data, first_arrival = self.data, self._contents.first_arrival
        if keys is self._firing_keys and not self._disordered and all(start >= low_ms for start in self.slices):
            arrivals = {key: data[key][1] for key in keys}  # every strip starts in the window
        else:
            found = {key: first_arrival(data[key], low_ms, high_ms) for key in keys}
            arrivals = {key: arrival for key, arrival in found.items() if arrival is not None}
        return sorted(arrivals, key=arrivals.__getitem__)

    def _has_mutable_records(self, end_ms: int) -> bool:
        parts = [self.slices.get(start) for start in self._grid.slice_starts(end_ms)]
        return any(part is not None and part.has_mutable_records for part in parts)

    def drop_slice(self, start_ms: int) -> None:
        """Drop the earliest slice, whose last window is over."""
        part = self.slices.pop(start_ms, None)
        if part is None:
            return
        if part.in_snapshot:
            self.changed.update([(key, (part.start, part.end)) for key in part.keys])
        data, contents, disordered, step = self.data, self._contents, self._disordered, self._contents.step
        for key in part.keys:  # hot
            strip = data.get(key)
            if strip is None:
                continue  # the key is listed twice
            in_order = key not in disordered
            if in_order and strip[-step] == start_ms:
                strip.clear()
            else:
                contents.remove(strip, start_ms, in_order=in_order)
            if not in_order and contents.is_in_order(strip):
                disordered.discard(key)
            if not strip:
                del data[key]
                contents.drop_cache(key)
            if not strip or (strip[0] >= self._last_fired_ms and key not in disordered):
                self._firing_keys.pop(key, None)  # the key returns when a window with its remaining slices fires

    # ------------------------------------------------------------------------------------------- checkpoints

    def codec(self) -> Codec:
        return self._contents.contents.codec

    def some_key(self) -> Any:
        return next(iter(self.data), None)

    def take_changed(self) -> set[Any]:
        changed = set(super().take_changed())
        for part in self.slices.values():
            changed.update([(key, (part.start, part.end)) for key in part.changed])
            part.changed.clear()
            part.in_snapshot = True
        return changed

    def whole(self) -> TableEntries:
        keys, values = [], []
        for key, strip in self.data.items():
            for start, saved in self._contents.snapshot(strip).items():
                keys.append((key, (start, self._grid.slice_end(start))))
                values.append(saved)
        return TableEntries(self.info, keys, values, [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there, values, gone = [], [], []
        for address in keys:
            saved = self._saved(address)
            if saved is None:
                gone.append(address)
            else:
                there.append(address)
                values.append(saved)
        return TableEntries(self.info, there, values, gone, full=False)

    def _saved(self, address: tuple[Any, SavedSpan]) -> SavedSlice | None:
        key, (start, _) = address
        strip = self.data.get(key)
        if strip is None:
            return None
        return self._contents.snapshot_slice(strip, start, in_order=key not in self._disordered)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        by_key: dict[Any, list[tuple[int, SavedSlice]]] = {}
        last = 0
        for (key, span), saved in entries.items():
            slice_span = TimeSpan(*span)
            by_key.setdefault(key, []).append((slice_span.start_ms, saved))
            self._restored_slice(slice_span).keys.append(key)
            last = max(last, *saved[1])
        for key, slices in by_key.items():
            strip = self.data[key] = self._contents.restore(slices)
            if not self._contents.is_in_order(strip):
                self._disordered.add(key)
            self._note_mutable_records(strip)
        self.next_arrival = count(last + 1).__next__

    def _restored_slice(self, span: TimeSpan) -> Slice:
        if not self._grid.is_slice(span):
            raise StateMigrationError(
                f"the restored windows have a slice from {span.start_ms} to {span.end_ms} ms, which windows of size "
                f"{self._grid.size_ms}, slide {self._grid.slide_ms} and offset {self._grid.offset_ms} ms do not have; "
                "restore with the old size, slide and offset, or give the operator another uid to start it empty"
            )
        part = self.slices.get(span.start_ms)
        if part is None:
            part = self.open(span.start_ms)
            part.in_snapshot = True
        return part

    def _note_mutable_records(self, strip: Strip) -> None:
        if self._contents.contents.is_list:
            for start, record in zip(strip[::3], strip[2::3], strict=True):
                part = self.slices[start]
                part.has_mutable_records = part.has_mutable_records or own(record) is not record

    def drop(self) -> None:
        super().drop()
        self.slices.clear()
        self._disordered.clear()
        self._unfired.clear()
        self._firing_keys.clear()
        self._last_fired_ms = MIN_TIMESTAMP
        self._contents.drop_caches()
