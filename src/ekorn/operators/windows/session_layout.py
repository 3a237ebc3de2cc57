"""The session layout: the open sessions of each key in a list.

A record that lies in or touches its key's only session costs one lookup and two comparisons.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.windows.window_arithmetic import SessionGap
from ekorn.functions.windows.window_values import TimeWindow
from ekorn.operators.windows.layout import LayoutParts, WindowLayout
from ekorn.operators.windows.saved_windows import (
    SESSIONS,
    SavedDefaultInRocksDB,
    SavedSessions,
    check_layout,
    translate,
)
from ekorn.operators.windows.session_table import CONTENTS, END, FIRED, START, Session, SessionTable
from ekorn.state.keyed_backend import RestoredTables
from ekorn.state.operator_state import OperatorStates


class SessionLayout(WindowLayout):
    """Sessions with a fixed or a dynamic gap."""

    def __init__(self, parts: LayoutParts, gap: SessionGap) -> None:
        self._parts = parts
        self._gap = gap
        self._contents, self._time, self._output = parts.contents, parts.time, parts.output
        self.table = SessionTable(self._time.lateness_ms, self._contents, tracked=parts.backend.tracked)

    def translate(self, tables: RestoredTables, states: OperatorStates) -> None:
        translate(tables, SavedSessions(), [SavedDefaultInRocksDB(self._parts.spec)])

    def open(self, states: OperatorStates) -> None:
        check_layout(self._parts.backend, SESSIONS)
        self._parts.backend.adopt(self.table)

    # ------------------------------------------------------------------------------------------------ records

    def generate_add(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:  # hot
        end, sessions, session = code.fresh("e"), code.fresh("ss"), code.fresh("s")
        fixed = self._gap.fixed_ms
        gap = str(fixed) if fixed is not None else f"{code.bind(self._gap.after, 'gap')}({value})"
        code.line(f"{end} = {at} + {gap}")
        with code.looking_up(key):
            code.line(f"{sessions} = {code.bind(self.table.data.get, 'sessions')}({key})")
        code.line(f"{session} = {sessions}[0] if {sessions} is not None and len({sessions}) == 1 else None")
        touches = f"{session}[{START}] <= {end} and {at} <= {session}[{END}]"
        with code.block(f"if {session} is not None and {touches}:"):
            with code.block(f"if {end} > {session}[{END}]:"):
                code.line(f"{session}[{END}] = {end}")
            with code.block(f"if {at} < {session}[{START}]:"):
                code.line(f"{session}[{START}] = {at}")
            accumulated = code.fresh("a")
            code.line(f"{accumulated} = {session}[{CONTENTS}]")
            self._contents.generate_add(code, f"{session}[{CONTENTS}]", accumulated, value)
            if self._parts.backend.tracked:
                code.line(f"{code.bind(self.table.mark, 'mark')}({key})")
            if self._time.lateness_ms or self.table.has_fired_sessions():
                with code.block(f"if {session}[{FIRED}]:"):
                    code.line(f"{code.bind(self._settle, 'settle')}({key}, {session}, {time})")
        with code.block("else:"):
            code.line(f"{code.bind(self._add, 'add')}({key}, {value}, {at}, {end}, {time})")

    def _add(self, key: Any, value: Any, at_ms: int, end_ms: int, time_ms: int | None) -> None:
        """Add a record that opens a session, or merges several."""
        table = self.table
        touched = [s for s in table.data.get(key, ()) if s[START] <= end_ms and at_ms <= s[END]]
        if touched:
            session = table.merge(key, touched, at_ms, end_ms)
            session[CONTENTS] = self._contents.add(session[CONTENTS], value)
        elif self._time.is_over(end_ms):
            if self._time.is_late(at_ms):
                self._output.late.take(value, at_ms)
            return
        else:
            session = table.open(key, at_ms, end_ms, self._contents.first(value))
        table.mark(key)
        self._settle(key, session, time_ms)

    def _settle(self, key: Any, session: Session, time_ms: int | None) -> None:
        """Fire a session that got a record at once if its end has passed; otherwise wait for its end."""
        ended = self._time.has_ended(session[END])
        self.table.enter(key, session, fired=ended)
        if ended:
            self._emit(key, session, time_ms)

    # --------------------------------------------------------------------------------------------------- time

    def next_ms(self) -> int | None:
        return self.table.next_ms()

    def fire_up_to(self, limit_ms: int) -> None:
        for key, session, fires, over in compress(self.table.due(limit_ms), self._output.relief):
            if fires:
                self._emit(key, session, session[END] - 1)
            if over:
                self._output.clear([key], TimeWindow(session[START], session[END]))

    def _emit(self, key: Any, session: Session, time_ms: int | None) -> None:  # hot
        window = TimeWindow(session[START], session[END])
        self._output.fire(key, window, session[CONTENTS], time_ms, stays=self._time.lateness_ms > 0)
