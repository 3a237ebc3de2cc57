"""The interval join: pairs records of two streams that have equal keys and timestamps within an interval.

Records arrive in one stream, tagged as (side, record). A record is kept until the watermark says that no partner can
arrive any more. A pair is emitted when its second record arrives.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.state.state_descriptors import MapStateDescriptor
from ekorn.functions.state.state_handles import MapState
from ekorn.functions.windows.window_functions import ProcessJoinFunction
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import IntervalJoinSpec
from ekorn.operators.contexts.function_contexts import SideOutputs
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.results import LateRecords, emit_results
from ekorn.operators.time.missing_timestamps import missing_timestamp
from ekorn.operators.time.timers import Timers
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

LEFT, RIGHT = 0, 1

_SideAndTime = tuple[int, int]
"""The side and the timestamp of a record. A plain tuple, since checkpoints hold it and every record makes one."""


class IntervalJoinOperator(RuntimeOperator):
    """Joins left records with right records that are `lower_ms` to `upper_ms` later."""

    needs_out = True

    def __init__(self, operator: Operator, spec: IntervalJoinSpec, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        assert self.backend is not None, "the stream graph puts this operator on keyed streams only"
        self._spec = spec
        self._cell, self._time_cell = self.backend.cell, self.backend.window_cell
        # The window of a timer is the side and the timestamp of the records that it removes.
        self.timers = Timers(self.backend, self._time_cell, environment.clock, prefix="_join/timers", windowed=True)
        self._late = (
            LateRecords(self, spec.left_late_tag, "numLeftLateRecordsDropped"),
            LateRecords(self, spec.right_late_tag, "numRightLateRecordsDropped"),
        )
        # Per side: the interval of a partner's timestamp, relative to the record's, and how long the record is kept.
        self._partner_interval = ((spec.lower_ms, spec.upper_ms), (-spec.upper_ms, -spec.lower_ms))
        self._keep_ms = (max(spec.upper_ms, 0), max(-spec.lower_ms, 0))
        self._context = _Pair(SideOutputs(self))
        self.emits_from = spec.function.process_element

    def functions(self) -> Iterable[Any]:
        return (self._spec.function,)

    def open(self) -> None:
        assert self.backend is not None
        self.timers.open()
        # The records of one key and side, by timestamp.
        self._records: tuple[MapState[int, list[Any]], MapState[int, list[Any]]] = (
            self.backend.state(MapStateDescriptor("_join/left")),
            self.backend.state(MapStateDescriptor("_join/right")),
        )
        super().open()

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        code.line(f"{code.bind(self._add, 'add')}({value}[0], {value}[1], {time})")

    def _add(self, side: int, record: Any, time_ms: int | None) -> None:
        if time_ms is None:
            raise missing_timestamp(record, self.environment)
        if self.timers.watermark_ms != MIN_TIMESTAMP and time_ms < self.timers.watermark_ms:
            self._late[side].take(record, time_ms)
            return
        mine, theirs = self._records[side], self._records[1 - side]
        mine.put(time_ms, [*(mine.get(time_ms) or ()), record])
        first, last = self._partner_interval[side]
        for other_ms in sorted(theirs.keys()):
            if time_ms + first <= other_ms <= time_ms + last:
                for other in compress(theirs.get(other_ms) or (), self.relief):
                    if side == LEFT:
                        self._emit(record, time_ms, other, other_ms)
                    else:
                        self._emit(other, other_ms, record, time_ms)
        self._time_cell[0] = (self._cell[0], (side, time_ms))
        self.timers.register_event_time_timer(min(time_ms + self._keep_ms[side], MAX_TIMESTAMP))

    def _emit(self, left: Any, left_ms: int, right: Any, right_ms: int) -> None:
        context = self._context
        context.left_ms, context.right_ms = left_ms, right_ms
        results = self._spec.function.process_element(left, right, context)
        if results is not None:
            emit_results(results, context.get_timestamp(), self)

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self.timers.advance_watermark(watermark_ms, self._remove, self.relief)

    def end_key(self) -> None:
        self.timers.end_key(self._remove, self._remove, self.relief)

    def _remove(self, entry: tuple[Any, _SideAndTime], time_ms: int) -> None:
        key, (side, record_ms) = entry
        self._cell[0] = key
        self._records[side].remove(record_ms)


class _Pair(ProcessJoinFunction.Context):
    def __init__(self, sides: SideOutputs) -> None:
        self._sides = sides
        self.left_ms = MIN_TIMESTAMP
        self.right_ms = MIN_TIMESTAMP

    def get_left_timestamp(self) -> int:
        return self.left_ms

    def get_right_timestamp(self) -> int:
        return self.right_ms

    def get_timestamp(self) -> int:
        return max(self.left_ms, self.right_ms)

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self._sides.emit(output_tag, value, self.get_timestamp())
