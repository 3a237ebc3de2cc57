"""The tight way for tumbling and sliding windows: default trigger, no evictor.

Which is most programs. Everything a trigger would say is known beforehand, so no trigger is asked: a window fires
when time reaches its end, fires again with every late record that is still allowed, and is gone. `window.py` is the
general way; both give the same results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamias.common.constants import MAX_TIMESTAMP
from tamias.contracts.window_assigners import no_timestamp
from tamias.contracts.windows import TimeWindow
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.runtime.code import Code
from tamias.runtime.contexts import Clocks
from tamias.runtime.operators.base import Emit, RuntimeOperator
from tamias.runtime.operators.keys import write_state_key
from tamias.runtime.place import Place
from tamias.runtime.windows.calls import CallFunction, WindowCall
from tamias.runtime.windows.contents import MISSING, contents_for
from tamias.runtime.windows.late import LateRecords
from tamias.runtime.windows.layouts import PANES, check_layout
from tamias.runtime.windows.panes import Pane, PaneTable
from tamias.state.heap import HeapStateBackend
from tamias.wire.values import own


class AlignedWindowOperator(RuntimeOperator):
    """Tumbling and sliding windows, by event time or by the clock."""

    needs_out = True

    def __init__(self, operator: Operator, spec: WindowSpec, place: Place) -> None:
        super().__init__(operator, place)
        assert isinstance(self.backend, HeapStateBackend)
        assigner: Any = spec.assigner
        self._size: int = assigner.size
        self._slide: int = getattr(assigner, "slide", assigner.size)
        self._offset: int = assigner.offset
        self._event_time = assigner.is_event_time()
        self._clocks = Clocks(place)
        self._contents = contents_for(spec.contents)
        self._functions = tuple(f for f in (getattr(spec.contents, "function", None), spec.function) if f is not None)
        self._lateness = spec.lateness_ms if self._event_time else 0
        tracked = self.backend.tracked
        self._table = PaneTable(PANES, self._size, self._lateness, self._contents, tracked=tracked)
        self._slices: dict[int, tuple[Pane, ...]] = {}
        self._late = LateRecords(self, spec.late_tag)
        self._call: WindowCall | None = None
        if spec.function is not None:
            listed = self._contents.listed
            self._call = CallFunction(self, spec.function, self._clocks, merging=False, listed=listed)

    def functions(self) -> Iterable[Any]:
        return self._functions

    def open(self) -> None:
        assert isinstance(self.backend, HeapStateBackend)
        check_layout(self.backend, PANES)
        self.backend.adopt(self._table)
        super().open()

    # ------------------------------------------------------------------------------------------------ records

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:  # hot
        if self._event_time and time == "None":
            code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            return
        key = write_state_key(code, self, value)
        if self._event_time:
            with code.block(f"if {time} is None:"):
                code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            at = time
        else:
            at = code.fresh("t")
            code.line(f"{at} = {code.bind(self.place.clock.now_ms, 'now')}()")
        if self._slide == self._size:
            self._write_tumbling(code, key, value, at, time)
        else:
            self._write_sliding(code, key, value, at, time)

    def _write_tumbling(self, code: Code, key: str, value: str, at: str, time: str) -> None:
        end, pane, size = code.fresh("e"), code.fresh("p"), self._size
        shifted = at if self._offset % size == 0 else f"({at} - {self._offset % size})"
        code.line(f"{end} = {at} - {shifted} % {size} + {size}")
        code.line(f"{pane} = {code.bind(self._table.panes.get, 'pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{pane} = {code.bind(self._open, 'open_pane')}({end})")
        with code.block(f"if {pane} is None:"):
            code.line(f"{code.bind(self._late.take, 'late')}({value}, {time})")
        with code.block("else:"):
            self._write_add(code, pane, key, value, time)

    def _write_sliding(self, code: Code, key: str, value: str, at: str, time: str) -> None:
        into, start, panes, pane = code.fresh("o"), code.fresh("s"), code.fresh("ps"), code.fresh("p")
        slide, rest = self._slide, self._size % self._slide
        shifted = at if self._offset % slide == 0 else f"({at} - {self._offset % slide})"
        code.line(f"{into} = {shifted} % {slide}")
        code.line(f"{start} = {at} - {into}")
        if rest:  # the first part of a slide lies in one window more than the second
            with code.block(f"if {into} >= {rest}:"):
                code.line(f"{start} += {rest}")
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
            self._write_add(code, pane, key, mine, time)
        if self._event_time:
            with code.block(f"if not {panes}:"):
                code.line(f"{code.bind(self._missed, 'missed')}({value}, {time})")

    def _write_add(self, code: Code, pane: str, key: str, value: str, time: str) -> None:
        kept = code.fresh("a")
        with code.looking_up(key):
            code.line(f"{kept} = {pane}.get({key}, {code.bind(MISSING, 'MISSING')})")
        self._contents.write(code, f"{pane}[{key}]", kept, value)
        if self._tracked:
            code.line(f"{pane}.changed.add({key})")
        if self._lateness:
            with code.block(f"if {pane}.fired or {pane}.quiet:"):
                code.line(f"{code.bind(self._touched, 'touched')}({pane}, {key}, {time})")

    @property
    def _tracked(self) -> bool:
        assert isinstance(self.backend, HeapStateBackend)
        return self.backend.tracked

    def _open(self, end_ms: int) -> Pane | None:
        """Begin a window, unless it is over already."""
        if not self._event_time:
            return self._table.open(end_ms, fired=False)
        watermark_ms = self._clocks.watermark_ms
        if min(end_ms - 1 + self._lateness, MAX_TIMESTAMP) <= watermark_ms:
            return None
        return self._table.open(end_ms, fired=end_ms - 1 <= watermark_ms)

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

    def _missed(self, value: Any, time_ms: int) -> None:
        """A record that is in no open window: late, or in a gap between windows."""
        if time_ms + self._lateness <= self._clocks.watermark_ms:
            self._late.take(value, time_ms)

    @staticmethod
    def _refuse(value: Any) -> None:
        raise no_timestamp(value)

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms
        if self._event_time:
            self._fire(watermark_ms)

    def on_clock(self, now_ms: int) -> None:
        if not self._event_time:
            self._fire(now_ms - 1)

    def next_timer_ms(self) -> int | None:
        return None if self._event_time else self._table.next_end_ms()

    def end_key(self) -> None:
        before, self._clocks.watermark_ms = self._clocks.watermark_ms, MAX_TIMESTAMP
        self._fire(MAX_TIMESTAMP)
        self._clocks.watermark_ms = before

    def _fire(self, limit_ms: int) -> None:
        if not self._table.is_due(limit_ms):
            return
        for pane, fires, over in self._table.due(limit_ms):
            if fires:
                self._emit(pane, pane if not pane.quiet else [k for k in pane if k not in pane.quiet], pane.end - 1)
            if over:
                self._slices.clear()
                if self._call is not None and self._call.clears:
                    self._clear(self._call, pane)

    def _emit(self, pane: Pane, keys: Iterable[Any], time_ms: int) -> None:  # hot
        result, out, call = self._contents.result, self.out, self._call
        window = TimeWindow(pane.end - self._size, pane.end)
        for key in keys:
            value = result(pane[key])
            if value is None:
                continue
            if self._lateness:  # it stays in the window, and must not change with what is emitted
                value = own(value)
            if call is None:
                out(value, time_ms)
            else:
                self._enter(window, key)
                call.fire(key, window, value, time_ms)

    def _clear(self, call: WindowCall, pane: Pane) -> None:
        window = TimeWindow(pane.end - self._size, pane.end)
        for key in pane:
            self._enter(window, key)
            call.clear(window)

    def _enter(self, window: TimeWindow, key: Any) -> None:
        assert self.backend is not None
        self.backend.cell[0] = key
        self.backend.window_cell[0] = (key, (window.start, window.end))
