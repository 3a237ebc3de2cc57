"""The tight way for sessions: default trigger, no evictor.

As `aligned_windows.py` does for windows that end at fixed times. A record that lies in or at its key's only session
costs one lookup and two comparisons.
"""

from __future__ import annotations

from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.session_assigners import EventTimeSessionWindows, ProcessingTimeSessionWindows
from tamias.functions.windows import TimeWindow
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.windows.layout_translation import to_sessions
from tamias.operators.windows.layouts import SESSIONS, check_layout
from tamias.operators.windows.session_table import END, KEPT, QUIET, START, Session, SessionTable
from tamias.operators.windows.tight import TightWindowOperator
from tamias.state.keyed_backend import RestoredTables


class SessionWindowOperator(TightWindowOperator):
    """Sessions with a fixed or a dynamic gap, by event time or by the clock."""

    def __init__(self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment, merging=True)
        self._assigner: Any = spec.assigner
        self._table = SessionTable(SESSIONS, self._lateness, self._contents, tracked=self._heap.tracked)

    def translate(self, tables: RestoredTables) -> None:
        to_sessions(tables, self._spec)

    def open(self) -> None:
        check_layout(self._heap, SESSIONS)
        self._heap.adopt(self._table)
        super().open()

    # ------------------------------------------------------------------------------------------------ records

    def _generate_record(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        end, sessions, session = code.fresh("e"), code.fresh("ss"), code.fresh("s")
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
            self._contents.generate_add(code, f"{session}[{KEPT}]", kept, value)
            if self._heap.tracked:
                code.line(f"{code.bind(self._table.mark, 'mark')}({key})")
            if self._lateness or self._table.has_quiet():
                with code.block(f"if {session}[{QUIET}]:"):
                    code.line(f"{code.bind(self._settle, 'settle')}({key}, {session}, {time})")
        with code.block("else:"):
            code.line(f"{code.bind(self._add, 'add')}({key}, {value}, {at}, {end}, {time})")

    def _add(self, key: Any, value: Any, at_ms: int, end_ms: int, time_ms: int | None) -> None:
        """A record that begins a session, or brings several together."""
        table = self._table
        touched = [s for s in table.data.get(key, ()) if s[START] <= end_ms and at_ms <= s[END]]
        if touched:
            session = table.merge(key, touched, at_ms, end_ms)
            session[KEPT] = self._contents.more(session[KEPT], value)
        elif self._is_over(end_ms):
            self._missed(value, at_ms)
            return
        else:
            session = table.open(key, at_ms, end_ms, self._contents.first(value))
        table.mark(key)
        self._settle(key, session, time_ms)

    def _settle(self, key: Any, session: Session, time_ms: int | None) -> None:
        """A session got a record: it fires at once if its end has passed, else when that comes."""
        ended = self._has_fired(session[END])
        self._table.enter(key, session, quiet=ended)
        if ended:
            self._emit(key, session, time_ms)

    # --------------------------------------------------------------------------------------------------- time

    def _next_ms(self) -> int | None:
        return self._table.next_ms()

    def _fire(self, limit_ms: int) -> None:
        for key, session, fires, over in self._table.due(limit_ms):
            if fires:
                self._emit(key, session, session[END] - 1)
            if over:
                self._clear([key], TimeWindow(session[START], session[END]))

    def _emit(self, key: Any, session: Session, time_ms: int | None) -> None:  # hot
        window = TimeWindow(session[START], session[END])
        self._give(key, window, session[KEPT], time_ms, stays=self._lateness > 0)
