"""The table behind sliding windows in slices: a record is kept once, however many windows it is in.

What keys have is in their strips (`combining.py`), and a slice knows its keys. When a window fires, each of its keys'
contents are made from its strip; a slice goes with the last window that it is part of. Which windows have fired is not
kept here but with the operator: it holds for all keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from itertools import chain, count
from typing import Any

from tamias.errors import StateMigrationError
from tamias.operators.windows.combining import Frozen, SliceContents, Strip
from tamias.operators.windows.contents import MISSING
from tamias.operators.windows.slice_arithmetic import Slicing
from tamias.state.canonical_format import TableEntries
from tamias.state.codecs import Codec
from tamias.state.snapshots import WINDOWED, StateInfo
from tamias.state.table import Table
from tamias.types.by_value import own
from tamias.types.time_bounds import MIN_TIMESTAMP


class Slice:
    """Which keys have records in a slice."""

    __slots__ = ("captured", "changeable", "changed", "end", "entered", "keys", "start")

    def __init__(self, start_ms: int, end_ms: int) -> None:
        self.start = start_ms
        self.end = end_ms
        self.keys: list[Any] = []  # in the order in which they came; one that came again after others may stand twice
        self.entered = False  # a window that it is part of has fired
        self.changeable = False  # it has records in lists that a function could change
        self.changed: set[Any] = set()  # keys written since the last snapshot
        self.captured = False  # a snapshot was taken while it was there


class SliceTable(Table):
    """The slices of sliding windows; `data` has the strips.

    In a checkpoint an entry's address is (key, (start, end)) of a slice; its value is a pair of what is kept, as a
    window would keep it, and the numbers that say when it came.
    """

    __slots__ = (
        "_contents",
        "_disordered",
        "_entered_ms",
        "_firing",
        "_slicing",
        "_tracked",
        "_waiting",
        "next_number",
        "slices",
    )

    def __init__(self, name: str, slicing: Slicing, contents: SliceContents, *, tracked: bool) -> None:
        super().__init__(StateInfo(name, f"{WINDOWED}slices"), tracked=tracked)
        self._slicing = slicing
        self._contents = contents
        self._tracked = tracked
        self.slices: dict[int, Slice] = {}  # by their starts
        self.next_number = count(1).__next__
        self._disordered: set[Any] = set()  # keys of which something came for a slice before their latest one
        self._waiting: list[int] = []  # a heap: slices of which no window has fired
        self._entered_ms = MIN_TIMESTAMP  # the end of the last window that has fired
        self._firing: dict[Any, None] = {}  # keys that have something before it

    # ------------------------------------------------------------------------------------------------ records

    def open(self, start_ms: int) -> Slice:
        """Begin a slice."""
        part = self.slices[start_ms] = Slice(start_ms, self._slicing.end_of(start_ms))
        heappush(self._waiting, start_ms)
        return part

    def add(self, part: Slice, key: Any, value: Any) -> None:
        """Add a record; for one that comes in order the operator's loop does the same without calls."""
        strip, start = self.data.get(key), part.start
        if strip is None:
            strip = self.data[key] = []
        elif start < strip[-self._contents.step]:
            self._disordered.add(key)
        if not strip or strip[-self._contents.step] != start:
            part.keys.append(key)
        self._contents.add(strip, start, self.next_number(), value)
        self._contents.forget(key)
        if part.entered:
            self._firing[key] = None
        if self._contents.contents.listed and not part.changeable:
            part.changeable = own(value) is not value
        if self._tracked:
            part.changed.add(key)

    # ------------------------------------------------------------------------------------------------ windows

    def windows(self) -> list[int]:
        """The ends of all windows that have slices here, in order."""
        return sorted({end for start in self.slices for end in self._slicing.windows_of(start)})

    def fire(self, end_ms: int) -> Iterable[tuple[Any, Any]]:  # hot
        """The keys of a window, in the order in which they came to it, and its contents; windows are asked in order."""
        self._enter_up_to(end_ms)
        low_ms, data, contents, disordered = end_ms - self._slicing.size_ms, self.data, self._contents, self._disordered
        copies = self._is_changeable(end_ms)
        for key in self._in_order_of_coming(self._firing, low_ms, end_ms):
            if key in disordered:
                kept = contents.select(data[key], low_ms, end_ms, in_order=False)
            else:
                kept = contents.next_window(key, data[key], low_ms, end_ms)
            yield key, [own(record) for record in kept] if copies else kept

    def keys_of(self, end_ms: int) -> list[Any]:
        """The keys of a window, in the order in which they came to it."""
        parts = [part for start in self._slicing.slices_of(end_ms) if (part := self.slices.get(start))]
        keys = dict.fromkeys(chain.from_iterable(part.keys for part in parts))
        return self._in_order_of_coming(keys, end_ms - self._slicing.size_ms, end_ms)

    def contents_of(self, key: Any, end_ms: int) -> Any:
        """What a window has of a key, or MISSING; nothing that is done to it changes the slices."""
        strip = self.data.get(key)
        if strip is None:
            return MISSING
        low_ms, in_order = end_ms - self._slicing.size_ms, key not in self._disordered
        kept = self._contents.select(strip, low_ms, end_ms, in_order=in_order)
        return [own(r) for r in kept] if kept is not MISSING and self._is_changeable(end_ms) else kept

    def _enter_up_to(self, end_ms: int) -> None:
        self._entered_ms = max(self._entered_ms, end_ms)
        while self._waiting and self._waiting[0] < end_ms:
            part = self.slices.get(heappop(self._waiting))
            if part is not None:
                part.entered = True
                self._firing.update(dict.fromkeys(part.keys))

    def _in_order_of_coming(self, keys: dict[Any, None], low_ms: int, high_ms: int) -> list[Any]:  # hot
        data, came = self.data, self._contents.came
        if keys is self._firing and not self._disordered and all(start >= low_ms for start in self.slices):
            numbers = {key: data[key][1] for key in keys}  # every strip begins in the window
        else:
            found = {key: came(data[key], low_ms, high_ms) for key in keys}
            numbers = {key: number for key, number in found.items() if number is not None}
        return sorted(numbers, key=numbers.__getitem__)

    def _is_changeable(self, end_ms: int) -> bool:
        parts = [self.slices.get(start) for start in self._slicing.slices_of(end_ms)]
        return any(part is not None and part.changeable for part in parts)

    def forget(self, start_ms: int) -> None:
        """The last window that a slice is part of is over; it is the earliest slice that there is."""
        part = self.slices.pop(start_ms, None)
        if part is None:
            return
        if part.captured:
            self.changed.update([(key, (part.start, part.end)) for key in part.keys])
        data, contents, disordered, step = self.data, self._contents, self._disordered, self._contents.step
        for key in part.keys:  # hot
            strip = data.get(key)
            if strip is None:
                continue  # it stands twice among the keys
            in_order = key not in disordered
            if in_order and strip[-step] == start_ms:
                strip.clear()
            else:
                contents.remove(strip, start_ms, in_order=in_order)
            if not in_order and contents.is_in_order(strip):
                disordered.discard(key)
            if not strip:
                del data[key]
                contents.forget(key)
            if not strip or (strip[0] >= self._entered_ms and key not in disordered):
                self._firing.pop(key, None)  # until a window of what it has left fires

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
            part.captured = True
        return changed

    def whole(self) -> TableEntries:
        keys, values = [], []
        for key, strip in self.data.items():
            for start, frozen in self._contents.freeze(strip).items():
                keys.append((key, (start, self._slicing.end_of(start))))
                values.append(frozen)
        return TableEntries(self.info, keys, values, [], full=True)

    def some(self, keys: Collection[Any]) -> TableEntries:
        there, values, gone = [], [], []
        for address in keys:
            frozen = self._frozen(address)
            if frozen is None:
                gone.append(address)
            else:
                there.append(address)
                values.append(frozen)
        return TableEntries(self.info, there, values, gone, full=False)

    def _frozen(self, address: tuple[Any, tuple[int, int]]) -> Frozen | None:
        key, (start, _) = address
        strip = self.data.get(key)
        if strip is None:
            return None
        return self._contents.freeze_one(strip, start, in_order=key not in self._disordered)

    def load(self, entries: dict[Any, Any]) -> None:
        self.drop()
        by_key: dict[Any, list[tuple[int, Frozen]]] = {}
        last = 0
        for (key, (start, end)), frozen in entries.items():
            by_key.setdefault(key, []).append((start, frozen))
            self._restored_slice(start, end).keys.append(key)
            last = max(last, *frozen[1])
        for key, slices in by_key.items():
            strip = self.data[key] = self._contents.thaw(slices)
            if not self._contents.is_in_order(strip):
                self._disordered.add(key)
            self._note_changeable(strip)
        self.next_number = count(last + 1).__next__

    def _restored_slice(self, start_ms: int, end_ms: int) -> Slice:
        if not self._slicing.has(start_ms, end_ms):
            raise StateMigrationError(
                f"the restored windows have a slice from {start_ms} to {end_ms} ms, which those of the job do not "
                f"have: {self._slicing}; restore with the old size, slide and offset, or give the operator another uid "
                "to start it empty"
            )
        part = self.slices.get(start_ms)
        if part is None:
            part = self.open(start_ms)
            part.captured = True
        return part

    def _note_changeable(self, strip: Strip) -> None:
        if self._contents.contents.listed:
            for start, record in zip(strip[::3], strip[2::3], strict=True):
                part = self.slices[start]
                part.changeable = part.changeable or own(record) is not record

    def drop(self) -> None:
        super().drop()
        self.slices.clear()
        self._disordered.clear()
        self._waiting.clear()
        self._firing.clear()
        self._entered_ms = MIN_TIMESTAMP
        self._contents.forget_all()
