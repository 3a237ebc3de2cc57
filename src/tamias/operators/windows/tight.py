"""What the tight window operators share: default trigger, no evictor.

Everything a trigger would say is known beforehand, so no trigger is asked: a window fires when time reaches its end,
fires again with every late record that is still allowed, and is gone. How windows are kept is up to each operator;
how records come in, how time passes and how contents go out is here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from tamias.codegen.chain_operator import Emit
from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.time_assigners import no_timestamp
from tamias.functions.windows import TimeWindow
from tamias.graph.job_graph import Operator
from tamias.graph.specs import WindowSpec
from tamias.operators.contexts import Clocks
from tamias.operators.environment import SubtaskEnvironment
from tamias.operators.keys import generate_state_key
from tamias.operators.operator import RuntimeOperator
from tamias.operators.windows.calls import CallFunction, WindowCall
from tamias.operators.windows.contents import contents_for
from tamias.operators.windows.late import LateRecords
from tamias.state.heap.backend import HeapStateBackend
from tamias.types.by_value import own
from tamias.types.time_bounds import MAX_TIMESTAMP


class TightWindowOperator(RuntimeOperator):
    """Time windows with their default trigger, by event time or by the clock."""

    needs_out = True

    def __init__(self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment, *, merging: bool) -> None:
        super().__init__(operator, environment)
        self._spec = spec
        self._event_time = spec.assigner.is_event_time()
        self._clocks = Clocks(environment)
        self._contents = contents_for(spec.contents, operator.input_type)
        self._functions = tuple(f for f in (getattr(spec.contents, "function", None), spec.function) if f is not None)
        self._lateness = spec.lateness_ms if self._event_time else 0
        self._late = LateRecords(self, spec.late_tag)
        self._call: WindowCall | None = None
        if spec.function is not None:
            listed = self._contents.listed
            self._call = CallFunction(self, spec.function, self._clocks, merging=merging, listed=listed)

    def functions(self) -> Iterable[Any]:
        return self._functions

    @property
    def _heap(self) -> HeapStateBackend:
        assert isinstance(self.backend, HeapStateBackend)
        return self.backend

    # ------------------------------------------------------------------------------------------------ records

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:  # hot
        if self._event_time and time == "None":
            code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            return
        key = generate_state_key(code, self, value)
        if self._event_time:
            with code.block(f"if {time} is None:"):
                code.line(f"{code.bind(self._refuse, 'refuse')}({value})")
            at = time
        else:
            at = code.fresh("t")
            code.line(f"{at} = {code.bind(self.environment.clock.now_ms, 'now')}()")
        self._generate_record(code, key, value, at, time)

    @abstractmethod
    def _generate_record(self, code: CodeBuilder, key: str, value: str, at: str, time: str) -> None:
        """Generate the statements that take a record; variables hold key, value, time of counting and timestamp."""

    @staticmethod
    def _refuse(value: Any) -> None:
        raise no_timestamp(value)

    def _is_over(self, end_ms: int) -> bool:
        """Whether a window that ends then takes no more records; by the clock none is closed to them."""
        return self._event_time and min(end_ms - 1 + self._lateness, MAX_TIMESTAMP) <= self._clocks.watermark_ms

    def _has_fired(self, end_ms: int) -> bool:
        """Whether a window that ends then fires with every record that it still gets."""
        return self._event_time and end_ms - 1 <= self._clocks.watermark_ms

    def _missed(self, value: Any, time_ms: int) -> None:
        """A record that is in no open window: late, or in a gap between windows."""
        if time_ms + self._lateness <= self._clocks.watermark_ms:
            self._late.take(value, time_ms)

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms
        if self._event_time:
            self._fire(watermark_ms)

    def on_clock(self, now_ms: int) -> None:
        if not self._event_time:
            self._fire(now_ms - 1)

    def next_timer_ms(self) -> int | None:
        return None if self._event_time else self._next_ms()

    def end_key(self) -> None:
        before, self._clocks.watermark_ms = self._clocks.watermark_ms, MAX_TIMESTAMP
        self._fire(MAX_TIMESTAMP)
        self._clocks.watermark_ms = before

    @abstractmethod
    def _fire(self, limit_ms: int) -> None:
        """Time has passed an instant: windows fire and go."""

    @abstractmethod
    def _next_ms(self) -> int | None:
        """When something happens next."""

    def _give(self, key: Any, window: TimeWindow, kept: Any, time_ms: int | None, *, stays: bool) -> None:  # hot
        """Hand a key's contents of a window to the function, or on; those that stay must not change with that."""
        value = self._contents.result(kept)
        if value is None:
            return
        if stays:
            value = own(value)
        call = self._call
        if call is None:
            self.out(value, time_ms)
        else:
            self._enter(key, window)
            call.fire(key, window, value, time_ms)

    def _clear(self, keys: Iterable[Any], window: TimeWindow) -> None:
        """A window is over: its function is told, key by key."""
        if self._clears:
            assert self._call is not None
            for key in keys:
                self._enter(key, window)
                self._call.clear(window)

    @property
    def _clears(self) -> bool:
        return self._call is not None and self._call.clears

    def _enter(self, key: Any, window: TimeWindow) -> None:
        """Make a key, and a window of it, the current ones."""
        assert self.backend is not None
        self.backend.cell[0] = key
        self.backend.window_cell[0] = (key, (window.start, window.end))
