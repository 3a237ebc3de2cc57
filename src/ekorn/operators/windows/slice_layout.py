"""The slice layout: sliding windows whose slices can be combined, so that a record is added once.

A window fires by combining its slices, and gives exactly what it would give if its records had been added to it one by
one. Some windows are kept in panes all the same:

- windows up to `_pane_limit_ms`, the end of the last window that had fired when the state was restored: their slices
  hold records that they have emitted before;
- every window, once a record has arrived that cannot be combined with others.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.windows.window_arithmetic import WindowGrid
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.operators.windows.contents import MISSING
from ekorn.operators.windows.layout import LayoutParts, WindowLayout
from ekorn.operators.windows.pane_layout import PaneLayout, generate_slice_start
from ekorn.operators.windows.saved_slices import FiringMark, FiringMarks, mark_of
from ekorn.operators.windows.saved_windows import (
    PANES,
    SLICES,
    SavedDefaultInRocksDB,
    SavedPanes,
    check_layout,
    other_size,
    translate,
)
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.operators.windows.slice_table import Slice, SliceTable
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.types.by_value import own
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


class SliceLayout(WindowLayout):
    """Slices that several windows share, and panes for windows that must be kept one by one."""

    def __init__(self, parts: LayoutParts, grid: WindowGrid, contents: SliceContents) -> None:
        self._parts = parts
        self._grid = grid
        self._contents = contents
        self._time, self._output = parts.time, parts.output
        self.panes = PaneLayout(parts, grid, contents)
        self.ends = self.panes.ends
        self.table = SliceTable(grid, contents, tracked=parts.backend.tracked)
        self._unfired: dict[int, Slice] = {}  # by start: slices without a fired window, to which a record is just added
        self._pane_limit_ms = MIN_TIMESTAMP  # windows that end up to here are in panes
        # Windows that end later than this, up to the pane limit, stay in slices until they get a record.
        self._dropped_ms = MIN_TIMESTAMP

    def translate(self, tables: RestoredTables, states: OperatorStates) -> None:
        translate(tables, SavedPanes(), [SavedDefaultInRocksDB(self._parts.spec)])

    def open(self, states: OperatorStates) -> None:
        backend = self._parts.backend
        check_layout(backend, SLICES, PANES)
        backend.adopt(self.panes.table)
        backend.adopt(self.table)
        self._marks = FiringMarks(states)
        self._resume(self._marks.of(self._parts.key_groups))

    def _resume(self, marks: list[FiringMark]) -> None:
        """Continue from a checkpoint: windows up to the last one that had fired for any key are in panes."""
        table = self.table
        if table.data and any(mark.size_ms != self._grid.size_ms for mark in marks):
            raise other_size(marks[0].size_ms, self._grid.size_ms)
        fired = [mark.fired_ms for mark in marks]
        self._pane_limit_ms = max([*fired, *self.panes.table.panes], default=MIN_TIMESTAMP)
        self._dropped_ms = max((mark.dropped_ms for mark in marks), default=self._pane_limit_ms)
        if len({(mark.dropped_ms, mark.fired_ms) for mark in marks}) > 1:
            self._even_out(marks)
        for start in sorted(table.slices):
            if self._grid.window_ends(start)[0] <= self._dropped_ms:
                table.drop_slice(start)
        for end in table.window_ends():
            if end > self._dropped_ms:
                self.ends.enter(end)

    def _even_out(self, marks: list[FiringMark]) -> None:
        """Move windows up to the pane limit into panes for keys with different marks."""
        mark_by_key = {key: mark_of(key, marks, self._parts.max_parallelism) for key in self.table.data}
        for end in self.table.window_ends():
            if end <= self._pane_limit_ms:
                for key in self.table.keys_of(end):
                    mark = mark_by_key[key]
                    if mark.dropped_ms < end and (mark.fired_ms < end or end <= self._dropped_ms):
                        self._move_to_pane(end, key, fired_before_restore=end <= mark.fired_ms)

    def before_snapshot(self) -> None:
        dropped, fired = self._dropped_ms, self._pane_limit_ms
        if self._time.event_time and fired < MAX_TIMESTAMP:
            passed = min(self._time.watermark_ms + 1, MAX_TIMESTAMP)
            dropped, fired = max(dropped, passed - self._time.lateness_ms), max(fired, passed)
        elif fired == MAX_TIMESTAMP:  # every window is in a pane; a restored job tries slices again
            dropped = fired = max(self.panes.table.panes, default=MIN_TIMESTAMP)
        self._marks.save(FiringMark(*self._parts.key_groups, self._grid.size_ms, dropped, fired))

    # ------------------------------------------------------------------------------------------------ records

    def generate_add(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        start, part = generate_slice_start(code, self._grid, at), code.fresh("p")
        code.line(f"{part} = {code.bind(self._unfired.get, 'slice')}({start})")
        with code.block(f"if {part} is None:"):
            code.line(f"{part} = {code.bind(self._unfired_slice, 'unfired_slice')}({start})")
        aside, is_combinable = f"{part} is None", self._contents.is_combinable
        if is_combinable is not None:
            aside += f" or not {code.bind(is_combinable, 'is_combinable')}({value})"
        with code.block(f"if {aside}:"):
            code.line(f"{code.bind(self._add_aside, 'add_aside')}({key}, {value}, {at}, {time})")
        with code.block("else:"):
            self._generate_add_to_slice(code, part, key, value, start)
            if self._contents.contents.is_list:
                with code.block(f"if not {part}.has_mutable_records:"):
                    code.line(f"{part}.has_mutable_records = {code.bind(own, 'own')}({value}) is not {value}")
            if self._parts.backend.tracked:
                code.line(f"{part}.changed.add({key})")

    def _generate_add_to_slice(self, code: CodeBuilder, part: str, key: str, value: str, start: str) -> None:
        """Generate the statements that add a record to a slice: mostly the key's last slice, or a new one."""
        strip, last, table, contents = code.fresh("l"), code.fresh("x"), self.table, self._contents
        arrival = f"{code.bind(table.next_arrival, 'arrival')}()"
        with code.looking_up(key):
            code.line(f"{strip} = {code.bind(table.data.get, 'strip')}({key})")
        code.line(f"{last} = {MIN_TIMESTAMP} if {strip} is None else {strip}[-{contents.step}]")
        with code.block(f"if {last} == {start}:"):
            contents.generate_more(code, strip, arrival, value)
        with code.block(f"elif {last} < {start}:"):
            with code.block(f"if {strip} is None:"):
                code.line(f"{strip} = {code.bind(table.data, 'strips')}[{key}] = []")
            code.line(f"{part}.keys.append({key})")
            contents.generate_first(code, strip, f"{part}.start", arrival, value)
        with code.block("else:"):
            code.line(f"{code.bind(table.add, 'add')}({part}, {key}, {value})")

    def _unfired_slice(self, start_ms: int) -> Slice | None:
        """Return a slice if none of its windows has fired or is in a pane; otherwise return None."""
        ends = self._grid.window_ends(start_ms)
        if ends[-1] <= self._pane_limit_ms or self._time.has_ended(ends[-1]):
            return None
        part = self._unfired[start_ms] = self._slice(start_ms, ends)
        return part

    def _slice(self, start_ms: int, ends: list[int]) -> Slice:
        part = self.table.slices.get(start_ms)
        if part is None:
            part = self.table.open(start_ms)
            for end in ends:
                if end > self._pane_limit_ms:
                    self.ends.enter(end, fired=self._time.has_ended(end))
        return part

    def _add_aside(self, key: Any, value: Any, at_ms: int, time_ms: int) -> None:
        """Add a record that is late, that comes after a restore, or that cannot be combined with others."""
        start = self._grid.slice_start(at_ms)
        ends = [end for end in self._grid.window_ends(start) if not self._time.is_over(end)]
        if not ends:
            self.panes.take_missed(value, time_ms)
            return
        is_combinable = self._contents.is_combinable
        if self._pane_limit_ms < MAX_TIMESTAMP and is_combinable is not None and not is_combinable(value):
            self._leave_slices()
        for end in ends:
            if self._dropped_ms < end <= self._pane_limit_ms:
                # The window fired before the restore, and a pane holds it from now on.
                self._move_to_pane(end, key, fired_before_restore=False)
        if ends[0] > self._pane_limit_ms:
            self.table.add(self._slice(start, ends), key, value)
        if ends[-1] > self._pane_limit_ms and not self._time.lateness_ms:
            return
        for end in ends:
            if end <= self._pane_limit_ms:
                self.panes.add(end, key, value, time_ms)
            elif self._time.has_ended(end):
                self._fire_again(end, key, time_ms)

    # --------------------------------------------------------------------------------------------- into panes

    def _move_to_pane(self, end_ms: int, key: Any, *, fired_before_restore: bool) -> None:
        """Copy a key's contents of a window from the slices into a pane, unless the pane has contents of the key."""
        found = self.table.contents_of(key, end_ms)
        if found is not MISSING:
            self.panes.put(end_ms, key, found, fired_before_restore=fired_before_restore)

    def _leave_slices(self) -> None:
        """Keep every window in a pane from now on: a record has arrived that cannot be combined."""
        table = self.table
        for end in table.window_ends():
            if end > self._dropped_ms and not self._time.is_over(end):
                for key in table.keys_of(end):
                    self._move_to_pane(end, key, fired_before_restore=end <= self._pane_limit_ms)
        for start in sorted(table.slices):
            table.drop_slice(start)
        self._unfired.clear()
        self._pane_limit_ms = self._dropped_ms = MAX_TIMESTAMP

    # --------------------------------------------------------------------------------------------------- time

    def next_ms(self) -> int | None:
        return self.ends.next_ms()

    def clock_advanced(self, now_ms: int) -> None:
        if now_ms > self._pane_limit_ms:
            # If the clock is set back, windows that have fired open again, empty.
            self._pane_limit_ms = self._dropped_ms = now_ms
            self._unfired.clear()

    def fire_up_to(self, limit_ms: int) -> None:
        for end, fires, over in self.ends.due(limit_ms):
            self._unfired.clear()
            if end > self._pane_limit_ms:
                self._fire_slices(end, fires=fires, over=over)
            else:
                self._fire_pane(end, fires=fires, over=over)
            if over:
                for start in self._grid.slices_ending_with(end):
                    self.table.drop_slice(start)

    def _fire_slices(self, end_ms: int, *, fires: bool, over: bool) -> None:  # hot
        window, fire = TimeWindow(*self._grid.window(end_ms)), self._output.fire
        if fires:
            for key, found in compress(self.table.fire(end_ms), self._output.relief):
                fire(key, window, found, end_ms - 1, stays=False)
        if over and self._output.clears_windows:
            self._output.clear(self.table.keys_of(end_ms), window)

    def _fire_pane(self, end_ms: int, *, fires: bool, over: bool) -> None:
        pane = self.panes.table.panes.get(end_ms, ())
        if over and end_ms > self._dropped_ms and self._output.clears_windows:
            rest = [key for key in self.table.keys_of(end_ms) if key not in pane]
            self._output.clear(rest, TimeWindow(*self._grid.window(end_ms)))
        if pane:
            self.panes.fire_pane(end_ms, fires=fires, over=over)

    def _fire_again(self, end_ms: int, key: Any, time_ms: int) -> None:
        """Fire a window that has fired again, with a late record."""
        window, found = TimeWindow(*self._grid.window(end_ms)), self.table.contents_of(key, end_ms)
        self._output.fire(key, window, found, time_ms, stays=False)
