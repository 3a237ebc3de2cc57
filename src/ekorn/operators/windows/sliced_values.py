"""Slices that keep one value per key, for functions whose values can be combined."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from itertools import chain
from operator import itemgetter, lt
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.operators.windows.contents import MISSING, Contents
from ekorn.operators.windows.slice_contents import SavedSlice, SliceContents, Strip, grouped
from ekorn.operators.windows.value_combiners import ValueCombiner
from ekorn.types.by_value import own

_UNCACHED_ITEMS = 12  # combining up to three slices is faster than looking up what consecutive windows share


class SlicedValues(SliceContents):
    """One value per slice, in order of the slices. A strip is (start, arrival, chosen arrival, value) for each slice.

    The chosen arrival is the arrival number of the record that `min` or `max` chose, for combiners that need it.
    """

    step = 4

    def __init__(self, contents: Contents, combiner: ValueCombiner) -> None:
        super().__init__(contents)
        self.min_windows_per_record = combiner.min_windows_per_record
        self.is_combinable = combiner.is_combinable
        self._combiner = combiner
        self._combine = combiner.combine
        self._aggregates: dict[Any, SlidingAggregate] = {}

    def generate_first(self, code: CodeBuilder, strip: str, start: str, arrival: str, value: str) -> None:
        number = code.fresh("n")
        code.line(f"{number} = {arrival}")
        code.line(f"{strip} += ({start}, {number}, {number}, {code.bind(MISSING, 'MISSING')})")
        self.generate_more(code, strip, arrival, value)

    def generate_more(self, code: CodeBuilder, strip: str, arrival: str, value: str) -> None:
        if not self._combiner.tracks_chosen:
            self.contents.generate_add(code, f"{strip}[-1]", f"{strip}[-1]", value)
            return
        before = code.fresh("a")
        code.line(f"{before} = {strip}[-1]")
        self.contents.generate_add(code, f"{strip}[-1]", before, value)
        with code.block(f"if {strip}[-1] is not {before}:"):
            code.line(f"{strip}[-2] = {arrival}")

    def add(self, strip: Strip, start_ms: int, arrival: int, value: Any) -> None:
        position = len(strip)
        while position and strip[position - 4] > start_ms:
            position -= 4
        if not position or strip[position - 4] != start_ms:
            strip[position:position] = (start_ms, arrival, arrival, self.contents.first(value))
            return
        before = strip[position - 1]
        strip[position - 1] = self.contents.add(before, value)
        if self._combiner.tracks_chosen and strip[position - 1] is not before:
            strip[position - 2] = arrival

    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        if strip[0] == start_ms:
            del strip[:4]

    def is_in_order(self, strip: Strip) -> bool:
        return all(map(lt, strip[2::4], strip[5::4]))

    def first_arrival(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        arrivals = zip(strip[::4], strip[1::4], strict=True)
        return min((arrival for start, arrival in arrivals if low_ms <= start < high_ms), default=None)

    def window_contents(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        parts = [part for part in grouped(strip, 4) if low_ms <= part[0] < high_ms]
        if not parts:
            return MISSING
        return self._combine([part[3] for part in parts]) if in_order else self._combiner.combine_unordered(parts)

    def next_window_contents(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:  # hot
        if len(strip) <= _UNCACHED_ITEMS:
            if strip[0] < low_ms or strip[-4] >= high_ms:
                return self.window_contents(strip, low_ms, high_ms, in_order=True)
            return own(strip[3]) if len(strip) == 4 else self._combine(strip[3::4])
        aggregate = self._aggregates.get(key)
        if aggregate is None:
            aggregate = self._aggregates[key] = SlidingAggregate(self._combiner.combine_two)
        return own(aggregate.aggregate(strip, low_ms, high_ms))

    def drop_cache(self, key: Any) -> None:
        self._aggregates.pop(key, None)

    def drop_caches(self) -> None:
        self._aggregates.clear()

    def snapshot(self, strip: Strip) -> dict[int, SavedSlice]:
        return {
            start: (self.contents.snapshot(value), [arrival, chosen])
            for start, arrival, chosen, value in grouped(strip, 4)
        }

    def snapshot_slice(self, strip: Strip, start_ms: int, *, in_order: bool) -> SavedSlice | None:
        position = 4 * bisect_left(strip[::4], start_ms)
        if position == len(strip) or strip[position] != start_ms:
            return None
        _, arrival, chosen, value = strip[position : position + 4]
        return self.contents.snapshot(value), [arrival, chosen]

    def restore(self, slices: list[tuple[int, SavedSlice]]) -> Strip:
        parts = [(start, *arrivals, self.contents.restore(saved)) for start, (saved, arrivals) in slices]
        parts.sort(key=itemgetter(0))
        return list(chain.from_iterable(parts))


class SlidingAggregate:
    """The aggregate of consecutive sliding windows of one key, in a few steps per window however many slices it has.

    This is the two-stacks algorithm for functions without an inverse. From time to time the slices of a window are
    combined from the last to the first, and the aggregate of each suffix is kept. Each of the following windows starts
    with one of these suffixes. The slices that arrive later are combined into a second aggregate, and a window is the
    combination of both.
    """

    __slots__ = ("_combine", "_last_start", "_newer", "_suffixes")

    def __init__(self, combine: Callable[[Any, Any], Any]) -> None:
        self._combine = combine
        self._suffixes: list[Any] = []  # flat: start, aggregate of the slices from there on; the earliest start last
        self._newer: Any = MISSING  # the aggregate of the slices after the suffixes
        self._last_start = 0  # the start of the last slice that is aggregated

    def aggregate(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        """Return the aggregate of the slices that start in [low_ms, high_ms). Neither bound ever decreases.

        The strip is flat: (start, _, _, value) per slice, in ascending order. At least one slice starts in the range.
        """
        suffixes = self._suffixes
        while suffixes and suffixes[-2] < low_ms:
            del suffixes[-2:]
        if not suffixes:
            return self._rebuild(strip, low_ms, high_ms)
        position = len(strip) - 4
        while strip[position] >= high_ms:
            position -= 4
        last = position
        while strip[position] > self._last_start:
            position -= 4
        for at in range(position + 4, last + 4, 4):
            self._newer = strip[at + 3] if self._newer is MISSING else self._combine(self._newer, strip[at + 3])
        self._last_start = strip[last]
        return suffixes[-1] if self._newer is MISSING else self._combine(suffixes[-1], self._newer)

    def _rebuild(self, strip: list[Any], low_ms: int, high_ms: int) -> Any:
        value, self._newer, self._last_start = MISSING, MISSING, low_ms - 1
        for at in range(len(strip) - 4, -4, -4):
            if low_ms <= strip[at] < high_ms:
                value = strip[at + 3] if value is MISSING else self._combine(strip[at + 3], value)
                self._suffixes += (strip[at], value)
                self._last_start = max(self._last_start, strip[at])
        return value
