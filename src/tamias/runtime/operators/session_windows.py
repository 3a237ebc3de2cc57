"""The tight way for sessions: default trigger, no evictor.

As `aligned_windows.py` does for windows that end at fixed times. A record that lies in or at its key's only session
costs one lookup and two comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamias.common.constants import MAX_TIMESTAMP
from tamias.contracts.window_assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows, no_timestamp
from tamias.contracts.windows import TimeWindow
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.runtime.code import Code
from tamias.runtime.contexts import Clocks
from tamias.runtime.operators.base import Emit, RuntimeOperator
from tamias.runtime.operators.keys import write_state_key
from tamias.runtime.place import Place
from tamias.runtime.windows.calls import CallFunction, WindowCall
from tamias.runtime.windows.contents import contents_for
from tamias.runtime.windows.late import LateRecords
from tamias.runtime.windows.layouts import SESSIONS, check_layout
from tamias.runtime.windows.sessions import END, KEPT, QUIET, START, Session, SessionTable
from tamias.state.heap import HeapStateBackend
from tamias.wire.values import own


class SessionWindowOperator(RuntimeOperator):
    """Sessions with a fixed or a dynamic gap, by event time or by the clock."""

    needs_out = True

    def __init__(self, operator: Operator, spec: WindowSpec, place: Place) -> None:
        super().__init__(operator, place)
        assert isinstance(self.backend, HeapStateBackend)
        self._assigner: Any = spec.assigner
        self._event_time = spec.assigner.is_event_time()
        self._clocks = Clocks(place)
        self._contents = contents_for(spec.contents)
        self._functions = tuple(f for f in (getattr(spec.contents, "function", None), spec.function) if f is not None)
        self._lateness = spec.lateness_ms if self._event_time else 0
        self._table = SessionTable(SESSIONS, self._lateness, self._contents, tracked=self.backend.tracked)
        self._late = LateRecords(self, spec.late_tag)
        self._call: WindowCall | None = None
        if spec.function is not None:
            listed = self._contents.listed
            self._call = CallFunction(self, spec.function, self._clocks, merging=True, listed=listed)

    def functions(self) -> Iterable[Any]:
        return self._functions

    def open(self) -> None:
        assert isinstance(self.backend, HeapStateBackend)
        check_layout(self.backend, SESSIONS)
        self.backend.adopt(self._table)
        super().open()

    # ------------------------------------------------------------------------------------------------ records

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:  # hot
        if self._event_time and time == "None":
            code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            return
        assert isinstance(self.backend, HeapStateBackend)
        key = write_state_key(code, self, value)
        at, end, sessions, session = code.fresh("t"), code.fresh("e"), code.fresh("ss"), code.fresh("s")
        if self._event_time:
            with code.block(f"if {time} is None:"):
                code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            at = time
        else:
            code.line(f"{at} = {code.bind(self.place.clock.now_ms, 'now')}()")
        fixed = type(self._assigner) in (EventTimeSessionWindows, ProcessingTimeSessionWindows)
        gap = str(self._assigner.session_gap) if fixed else f"{code.bind(self._assigner.gap_after, 'gap')}({value})"
        code.line(f"{end} = {at} + {gap}")
        with code.looking_up(key):
            code.line(f"{sessions} = {code.bind(self._table.data.get, 'sessions')}({key})")
        code.line(f"{session} = {sessions}[0] if {sessions} is not None and len({sessions}) == 1 else None")
        touches = f"{session}[{START}] <= {end} and {at} <= {session}[{END}]"
        with code.block(f"if {session} is not None and {touches}:"):
            with code.block(f"if {end} > {session}[{END}]:"):
                code.line(f"{session}[{END}] = {end}")
            with code.block(f"if {at} < {session}[{START}]:"):
                code.line(f"{session}[{START}] = {at}")
            kept = code.fresh("a")
            code.line(f"{kept} = {session}[{KEPT}]")
            self._contents.write(code, f"{session}[{KEPT}]", kept, value)
            if self.backend.tracked:
                code.line(f"{code.bind(self._table.mark, 'mark')}({key})")
            if self._lateness:
                with code.block(f"if {session}[{QUIET}]:"):
                    code.line(f"{code.bind(self._settle, 'settle')}({key}, {session}, {time})")
        with code.block("else:"):
            code.line(f"{code.bind(self._add, 'add')}({key}, {value}, {at}, {end}, {time})")

    def _add(self, key: Any, value: Any, at_ms: int, end_ms: int, time_ms: int | None) -> None:
        """A record that begins a session, or brings several together."""
        table, watermark_ms = self._table, self._clocks.watermark_ms
        touched = [s for s in table.data.get(key, ()) if s[START] <= end_ms and at_ms <= s[END]]
        if touched:
            session = table.merge(key, touched, at_ms, end_ms)
            session[KEPT] = self._contents.more(session[KEPT], value)
        elif self._event_time and min(end_ms - 1 + self._lateness, MAX_TIMESTAMP) <= watermark_ms:
            if at_ms + self._lateness <= watermark_ms:
                self._late.take(value, time_ms)
            return
        else:
            session = table.open(key, at_ms, end_ms, self._contents.first(value))
        table.mark(key)
        self._settle(key, session, time_ms)

    def _settle(self, key: Any, session: Session, time_ms: int | None) -> None:
        """A session got a record: it fires at once if its end has passed, else when that comes."""
        ended = self._event_time and session[END] - 1 <= self._clocks.watermark_ms
        self._table.enter(key, session, quiet=ended)
        if ended:
            self._emit(key, session, time_ms)

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
        return None if self._event_time else self._table.next_ms()

    def end_key(self) -> None:
        before, self._clocks.watermark_ms = self._clocks.watermark_ms, MAX_TIMESTAMP
        self._fire(MAX_TIMESTAMP)
        self._clocks.watermark_ms = before

    def _fire(self, limit_ms: int) -> None:
        for key, session, fires, over in self._table.due(limit_ms):
            if fires:
                self._emit(key, session, session[END] - 1)
            if over and self._call is not None and self._call.clears:
                self._call.clear(self._enter(key, session))

    def _emit(self, key: Any, session: Session, time_ms: int | None) -> None:  # hot
        value = self._contents.result(session[KEPT])
        if value is None:
            return
        if self._lateness:  # it stays in the session, and must not change with what is emitted
            value = own(value)
        if self._call is None:
            self.out(value, time_ms)
        else:
            self._call.fire(key, self._enter(key, session), value, time_ms)

    def _enter(self, key: Any, session: Session) -> TimeWindow:
        assert self.backend is not None
        self.backend.cell[0] = key
        self.backend.window_cell[0] = (key, (session[START], session[END]))
        return TimeWindow(session[START], session[END])
