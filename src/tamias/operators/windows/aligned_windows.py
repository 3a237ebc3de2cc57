"""The tight way for tumbling and sliding windows: default trigger, no evictor.

Which is most programs. `window.py` is the general way; both give the same results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.windows import TimeWindow
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.windows.contents import MISSING
from tamias.operators.windows.ends import WindowEnds
from tamias.operators.windows.layout_translation import out_of_slices, to_panes
from tamias.operators.windows.layouts import PANES, check_layout
from tamias.operators.windows.panes import Pane, PaneTable
from tamias.operators.windows.tight import TightWindowOperator
from tamias.state.keyed_backend import RestoredTables
from tamias.types.by_value import own


class AlignedWindowOperator(TightWindowOperator):
    """Tumbling and sliding windows, by event time or by the clock."""

    def __init__(self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment, merging=False)
        assigner: Any = spec.assigner
        self._size: int = assigner.size
        self._slide: int = getattr(assigner, "slide", assigner.size)
        self._offset: int = assigner.offset
        self._ends = WindowEnds(self._lateness)
        self._table = PaneTable(PANES, self._size, self._contents, self._ends, tracked=self._heap.tracked)
        self._slices: dict[int, tuple[Pane, ...]] = {}

    def open(self) -> None:
        self._adopt_state()
        super().open()

    def translate(self, tables: RestoredTables) -> None:
        to_panes(tables, self._spec)
        out_of_slices(tables, self._spec, self)

    def _adopt_state(self) -> None:
        check_layout(self._heap, PANES)
        self._heap.adopt(self._table)

    # ------------------------------------------------------------------------------------------------ records

    def _generate_record(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        if self._slide == self._size:
            self._generate_tumbling(code, key, value, at, time)
        else:
            self._generate_sliding(code, key, value, at, time)

    def _generate_tumbling(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        end, pane, size = code.fresh("e"), code.fresh("p"), self._size
        shifted = at if self._offset % size == 0 else f"({at} - {self._offset % size})"
        code.line(f"{end} = {at} - {shifted} % {size} + {size}")
        code.line(f"{pane} = {code.bind(self._table.panes.get, 'pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{pane} = {code.bind(self._open, 'open_pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{code.bind(self._late.take, 'late')}({value}, {time})")
        with code.block("else:"):
            self._generate_add(code, pane, key, value, time)

    def _generate_slice_start(self, code: CodeBuilder, at: str) -> str:
        """Generate the statements that find the start of the slice that holds a time; answers the variable.

        A slice is the time between one start or end of a window and the next: all its records are in the same windows.
        """
        into, start, slide, rest = code.fresh("o"), code.fresh("s"), self._slide, self._size % self._slide
        shifted = at if self._offset % slide == 0 else f"({at} - {self._offset % slide})"
        code.line(f"{into} = {shifted} % {slide}")
        code.line(f"{start} = {at} - {into}")
        if rest:  # the first part of a slide lies in one window more than the second
            with code.block(f"if {into} >= {rest}:"):
                code.line(f"{start} += {rest}")
        return start

    def _generate_sliding(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        start, panes, pane = self._generate_slice_start(code, at), code.fresh("ps"), code.fresh("p")
        code.line(f"{panes} = {code.bind(self._slices.get, 'slice')}({start})")
        with code.block(f"if {panes} is None:"):
            code.line(f"{panes} = {code.bind(self._open_slice, 'open_slice')}({start})")
        mine = value
        if self._contents.retains:  # windows must not share a record that a function may change
            mine, copy, same = code.fresh("v"), code.bind(own, "own"), code.fresh("same")
            code.line(f"{same} = {copy}({value}) is {value}")
        with code.block(f"for {pane} in {panes}:"):
            if self._contents.retains:
                code.line(f"{mine} = {value} if {same} else {copy}({value})")
            self._generate_add(code, pane, key, mine, time)
        if self._event_time:
            with code.block(f"if not {panes}:"):
                code.line(f"{code.bind(self._missed, 'missed')}({value}, {time})")

    def _generate_add(self, code: CodeBuilder, pane: str, key: str, value: str, time: str) -> None:
        kept = code.fresh("a")
        with code.looking_up(key):
            code.line(f"{kept} = {pane}.get({key}, {code.bind(MISSING, 'MISSING')})")
        self._contents.generate_add(code, f"{pane}[{key}]", kept, value)
        if self._heap.tracked:
            code.line(f"{pane}.changed.add({key})")
        if self._lateness or self._table.has_quiet():
            with code.block(f"if {pane}.fired or {pane}.quiet:"):
                code.line(f"{code.bind(self._touched, 'touched')}({pane}, {key}, {time})")

    def _open(self, end_ms: int) -> Pane | None:
        """Begin a window, unless it is over already."""
        if self._is_over(end_ms):
            return None
        return self._table.open(end_ms, fired=self._has_fired(end_ms))

    def _touched(self, pane: Pane, key: Any, time_ms: int) -> None:
        """A record came for a window that has fired: now, or before a restore."""
        if pane.fired:
            self._emit(pane, [key], time_ms)
        else:
            pane.quiet.discard(key)

    def _open_slice(self, time_ms: int) -> tuple[Pane, ...]:
        """The open windows that hold a time, and all times up to the next start or end of a window."""
        last = time_ms - (time_ms - self._offset) % self._slide
        ends = [start + self._size for start in range(last, time_ms - self._size, -self._slide)]
        panes = [self._table.panes.get(end) for end in ends]
        found = [self._open(end) if pane is None else pane for end, pane in zip(ends, panes, strict=True)]
        self._slices[time_ms] = there = tuple(pane for pane in found if pane is not None)
        return there

    # --------------------------------------------------------------------------------------------------- time

    def _next_ms(self) -> int | None:
        return self._ends.next_ms()

    def _fire(self, limit_ms: int) -> None:
        for end, fires, over in self._ends.due(limit_ms):
            self._pass(end, fires=fires, over=over)

    def _pass(self, end_ms: int, *, fires: bool, over: bool) -> None:
        """Time has come to where a window fires, or is over."""
        pane = self._table.panes[end_ms]
        self._table.settle(pane, over=over)
        if fires:
            self._emit(pane, pane if not pane.quiet else [k for k in pane if k not in pane.quiet], end_ms - 1)
        if over:
            self._slices.clear()
            self._clear(pane, self._window(end_ms))

    def _emit(self, pane: Pane, keys: Iterable[Any], time_ms: int) -> None:  # hot
        window, give, stays = self._window(pane.end), self._give, self._lateness > 0
        for key in keys:
            give(key, window, pane[key], time_ms, stays=stays)

    def _window(self, end_ms: int) -> TimeWindow:
        return TimeWindow(end_ms - self._size, end_ms)
