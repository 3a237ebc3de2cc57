"""The pane layout: tumbling and sliding windows, each record added to every window that holds it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.windows.window_arithmetic import WindowGrid
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.operators.windows.contents import MISSING
from ekorn.operators.windows.layout import LayoutParts, WindowLayout
from ekorn.operators.windows.pane_table import Pane, PaneTable, WindowEnds
from ekorn.operators.windows.saved_slices import SavedSlices
from ekorn.operators.windows.saved_windows import PANES, SavedDefaultInRocksDB, SavedPanes, check_layout, translate
from ekorn.operators.windows.slice_contents import SliceContents
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates
from ekorn.types.by_value import own


class PaneLayout(WindowLayout):
    """A pane per window, and in it the contents per key.

    `sliced` is how slices of the same windows are combined: slices of an older checkpoint restore as panes.
    """

    def __init__(self, parts: LayoutParts, grid: WindowGrid, sliced: SliceContents | None) -> None:
        self._parts = parts
        self._grid = grid
        self._sliced = sliced
        self._contents, self._time, self._output = parts.contents, parts.time, parts.output
        self._tracked = parts.backend.tracked
        self.ends = WindowEnds(self._time.lateness_ms)
        self.table = PaneTable(grid, self._contents, self.ends, tracked=self._tracked)
        self._panes_of_slice: dict[int, tuple[Pane, ...]] = {}  # the open windows of a slice, by its start

    def translate(self, tables: RestoredTables, states: OperatorStates) -> None:
        slices = SavedSlices(self._grid, self._sliced, states, self._parts.key_groups, self._parts.max_parallelism)
        translate(tables, SavedPanes(), [SavedDefaultInRocksDB(self._parts.spec), slices])

    def open(self, states: OperatorStates) -> None:
        check_layout(self._parts.backend, PANES)
        self._parts.backend.adopt(self.table)

    # ------------------------------------------------------------------------------------------------ records

    def generate_add(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        if self._grid.is_tumbling:
            self._generate_tumbling(code, key, value, at, time)
        else:
            self._generate_sliding(code, key, value, at, time)

    def _generate_tumbling(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        end, pane = code.fresh("e"), code.fresh("p")
        code.line(f"{end} = {self._grid.tumbling_end_expression(at)}")
        code.line(f"{pane} = {code.bind(self.table.panes.get, 'pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{pane} = {code.bind(self._open_pane, 'open_pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{code.bind(self._output.late.take, 'late')}({value}, {time})")
        with code.block("else:"):
            self._generate_add_to_pane(code, pane, key, value, time)

    def _generate_sliding(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        start, panes, pane = generate_slice_start(code, self._grid, at), code.fresh("ps"), code.fresh("p")
        code.line(f"{panes} = {code.bind(self._panes_of_slice.get, 'panes_of_slice')}({start})")
        with code.block(f"if {panes} is None:"):
            code.line(f"{panes} = {code.bind(self._open_panes_of_slice, 'open_panes')}({start})")
        mine = value
        if self._contents.retains_records:  # windows must not share a record that a function may change
            mine, copy, same = code.fresh("v"), code.bind(own, "own"), code.fresh("same")
            code.line(f"{same} = {copy}({value}) is {value}")
        with code.block(f"for {pane} in {panes}:"):
            if self._contents.retains_records:
                code.line(f"{mine} = {value} if {same} else {copy}({value})")
            self._generate_add_to_pane(code, pane, key, mine, time)
        if self._time.event_time:
            with code.block(f"if not {panes}:"):
                code.line(f"{code.bind(self.take_missed, 'missed')}({value}, {time})")

    def _generate_add_to_pane(self, code: CodeBuilder, pane: str, key: str, value: str, time: str) -> None:
        accumulated = code.fresh("a")
        with code.looking_up(key):
            code.line(f"{accumulated} = {pane}.get({key}, {code.bind(MISSING, 'MISSING')})")
        self._contents.generate_add(code, f"{pane}[{key}]", accumulated, value)
        if self._tracked:
            code.line(f"{pane}.changed.add({key})")
        if self._time.lateness_ms or self.table.has_fired_before_restore():
            with code.block(f"if {pane}.fired or {pane}.fired_before_restore:"):
                code.line(f"{code.bind(self._on_late_add, 'on_late_add')}({pane}, {key}, {time})")

    def _open_pane(self, end_ms: int) -> Pane | None:
        """Open a window, or return None if it is over already."""
        if self._time.is_over(end_ms):
            return None
        return self.table.open(end_ms, fired=self._time.has_ended(end_ms))

    def _open_panes_of_slice(self, start_ms: int) -> tuple[Pane, ...]:
        """Return the open windows of the slice that starts at `start_ms`, and open those that are not over."""
        ends = self._grid.window_ends(start_ms)
        known = [self.table.panes.get(end) for end in ends]
        panes = [self._open_pane(end) if pane is None else pane for end, pane in zip(ends, known, strict=True)]
        self._panes_of_slice[start_ms] = there = tuple(pane for pane in panes if pane is not None)
        return there

    def _on_late_add(self, pane: Pane, key: Any, time_ms: int) -> None:
        """Handle a record for a window that has fired: now, or before a restore."""
        if pane.fired:
            self._emit(pane, [key], time_ms)
        else:
            pane.fired_before_restore.discard(key)

    def take_missed(self, value: Any, time_ms: int) -> None:
        """Take a record that no open window holds."""
        if self._time.is_late(time_ms):
            self._output.late.take(value, time_ms)

    # ------------------------------------------------------------------- single windows, for the slice layout

    def add(self, end_ms: int, key: Any, value: Any, time_ms: int) -> None:
        """Add a record to one window."""
        contents, pane = self._contents, self._get_pane(end_ms)
        accumulated, mine = pane.get(key, MISSING), own(value) if contents.retains_records else value
        pane[key] = contents.first(mine) if accumulated is MISSING else contents.add(accumulated, mine)
        self.table.mark_changed(pane, key)
        if pane.fired or pane.fired_before_restore:
            self._on_late_add(pane, key, time_ms)

    def put(self, end_ms: int, key: Any, accumulated: Any, *, fired_before_restore: bool) -> None:
        """Give a window the contents of a key, unless it has contents of that key already."""
        pane = self._get_pane(end_ms)
        if key not in pane:
            pane[key] = accumulated
            self.table.mark_changed(pane, key)
            if fired_before_restore:
                pane.fired_before_restore.add(key)

    def _get_pane(self, end_ms: int) -> Pane:
        pane = self.table.panes.get(end_ms)
        return self.table.open(end_ms, fired=self._time.has_ended(end_ms)) if pane is None else pane

    # --------------------------------------------------------------------------------------------------- time

    def next_ms(self) -> int | None:
        return self.ends.next_ms()

    def fire_up_to(self, limit_ms: int) -> None:
        for end, fires, over in self.ends.due(limit_ms):
            self.fire_pane(end, fires=fires, over=over)

    def fire_pane(self, end_ms: int, *, fires: bool, over: bool) -> None:
        """Fire a window, or drop it when it is over, or both."""
        pane = self.table.panes[end_ms]
        self.table.settle(pane, over=over)
        if fires:
            fired = pane.fired_before_restore
            self._emit(pane, pane if not fired else [k for k in pane if k not in fired], end_ms - 1)
        if over:
            self._panes_of_slice.clear()
            self._output.clear(pane, TimeWindow(*self._grid.window(end_ms)))

    def _emit(self, pane: Pane, keys: Iterable[Any], time_ms: int) -> None:  # hot
        window, fire, stays = TimeWindow(*self._grid.window(pane.end)), self._output.fire, self._time.lateness_ms > 0
        for key in compress(keys, self._output.relief):
            fire(key, window, pane[key], time_ms, stays=stays)


def generate_slice_start(code: CodeBuilder, grid: WindowGrid, at: str) -> str:
    """Generate the statements that find the start of the slice that holds a time; return the variable that holds it."""
    into_slide, start, rest = code.fresh("o"), code.fresh("s"), grid.rest_ms
    code.line(f"{into_slide} = {grid.slide_offset_expression(at)}")
    code.line(f"{start} = {at} - {into_slide}")
    if rest:  # the second slice of a slide starts after the rest
        with code.block(f"if {into_slide} >= {rest}:"):
            code.line(f"{start} += {rest}")
    return start
