"""Slices that keep all records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import chain
from operator import itemgetter, le
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.operators.windows.contents import MISSING
from ekorn.operators.windows.slice_contents import SavedSlice, SliceContents, Strip, grouped


class SlicedRecords(SliceContents):
    """All records in order of arrival. A strip is (start, arrival, record) for each record."""

    step = 3
    min_windows_per_record = 5

    def generate_first(self, code: CodeBuilder, strip: str, start: str, arrival: str, value: str) -> None:
        code.line(f"{strip} += ({start}, {arrival}, {value})")

    def generate_more(self, code: CodeBuilder, strip: str, arrival: str, value: str) -> None:
        # The record is not the first of any window, so it may share the arrival number of the one before it.
        code.line(f"{strip} += ({strip}[-3], {strip}[-2], {value})")

    def add(self, strip: Strip, start_ms: int, arrival: int, value: Any) -> None:
        strip += (start_ms, arrival, value)

    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        if not in_order:
            strip[:] = chain.from_iterable(record for record in grouped(strip, 3) if record[0] != start_ms)
            return
        position = 0
        while strip[position] == start_ms:
            position += 3
        del strip[:position]

    def is_in_order(self, strip: Strip) -> bool:
        starts = strip[::3]
        return all(map(le, starts, starts[1:]))

    def first_arrival(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        arrivals = zip(strip[::3], strip[1::3], strict=True)
        return next((arrival for start, arrival in arrivals if low_ms <= start < high_ms), None)

    def window_contents(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        if not in_order:
            records = zip(strip[::3], strip[2::3], strict=True)
            return [record for start, record in records if low_ms <= start < high_ms] or MISSING
        first, last = 0, len(strip)
        if strip[0] < low_ms:
            first = 3 * bisect_left(strip[::3], low_ms)
        if strip[-3] >= high_ms:
            last = 3 * bisect_left(strip[::3], high_ms)
        return strip[first + 2 : last : 3] or MISSING

    def next_window_contents(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:  # hot
        if strip[0] < low_ms or strip[-3] >= high_ms:
            return self.window_contents(strip, low_ms, high_ms, in_order=True)
        return strip[2::3]

    def snapshot(self, strip: Strip) -> dict[int, SavedSlice]:
        by_start: dict[int, tuple[list[Any], list[int]]] = {}
        for start, arrival, record in grouped(strip, 3):
            records, arrivals = by_start.setdefault(start, ([], []))
            records.append(record)
            arrivals.append(arrival)
        return {start: (self.contents.snapshot(records), arrivals) for start, (records, arrivals) in by_start.items()}

    def snapshot_slice(self, strip: Strip, start_ms: int, *, in_order: bool) -> SavedSlice | None:
        if not in_order:
            return self.snapshot(strip).get(start_ms)
        starts = strip[::3]
        first, last = 3 * bisect_left(starts, start_ms), 3 * bisect_right(starts, start_ms)
        if first == last:
            return None
        return self.contents.snapshot(strip[first + 2 : last : 3]), strip[first + 1 : last : 3]

    def restore(self, slices: list[tuple[int, SavedSlice]]) -> Strip:
        records = [
            (start, arrival, record)
            for start, (saved, arrivals) in slices
            for arrival, record in zip(arrivals, self.contents.restore(saved), strict=True)
        ]
        records.sort(key=itemgetter(1))  # stable: records of one slice that share a number keep their order
        return list(chain.from_iterable(records))
