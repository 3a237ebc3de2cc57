"""Process functions: records and timers in, records and side outputs out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.codegen.chain_operator import Emit, RefusedSideOutputs
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.process_functions import KeyedProcessFunction
from ekorn.functions.timer_service import TimeDomain
from ekorn.graph.job_graph import Operator
from ekorn.operators.contexts.function_contexts import Clocks, ElementContext, SideOutputs
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_key
from ekorn.operators.operator import HasFunction, RuntimeOperator, UserFunctionOperator
from ekorn.operators.results import PROCESS_RESULTS, emit_results, generate_loop
from ekorn.operators.time.timers import Timers


class ProcessOperator(UserFunctionOperator):
    """`process` on a stream without keys: no timers, but the watermark and the processing time can be read."""

    emits_to_sides = True

    def __init__(self, operator: Operator, spec: HasFunction, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        self._clocks = Clocks(environment)
        self._context = ElementContext(self._clocks, None, SideOutputs(self))

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_process_call(
            code, self, self._function.process_element, self._context, value=value, time=time, emit=emit, side=side
        )


class KeyedProcessOperator(UserFunctionOperator):
    """`process` on a keyed stream: state and timers per key."""

    needs_out = True
    emits_to_sides = True

    def __init__(self, operator: Operator, spec: HasFunction, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, spec, environment)
        assert self.backend is not None, "the stream graph puts this operator on keyed streams only"
        self._cell = self.backend.cell
        self._cleanups = self.backend.every_record
        self.timers = Timers(self.backend, self._cell, environment.clock)
        self.metric_group().gauge("numFiredTimers", self.timers.fired_count)
        self._context = ElementContext(self.timers, self._cell, SideOutputs(self))
        self._timer_context = OnTimerContext(self.timers, self._cell, SideOutputs(self))
        self.emits_from = self._function.on_timer

    def open(self) -> None:
        self.timers.open()
        super().open()

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        generate_key(code, self, value)
        generate_process_call(
            code, self, self._function.process_element, self._context, value=value, time=time, emit=emit, side=side
        )

    def on_watermark(self, watermark_ms: int) -> None:
        self.timers.advance_watermark(watermark_ms, self._on_event_time, self.relief)

    def on_clock(self, now_ms: int) -> None:
        self.timers.advance_clock(now_ms, self._on_processing_time, self.relief)

    def next_timer_ms(self) -> int | None:
        return self.timers.next_timer_ms()

    def end_key(self) -> None:
        # Flink: in BATCH mode a record that a timer emits has no timestamp, so it can be neither late nor early.
        self.timers.end_key(self._on_event_time, self._on_processing_time, self.relief)

    def _on_event_time(self, key: Any, time_ms: int) -> None:  # hot
        self._fire(key, time_ms, TimeDomain.EVENT_TIME, time_ms)

    def _on_processing_time(self, key: Any, time_ms: int) -> None:
        self._fire(key, time_ms, TimeDomain.PROCESSING_TIME, None)

    def _fire(self, key: Any, time_ms: int, domain: TimeDomain, emitted_ms: int | None) -> None:
        self._cell[0] = key
        for clean_up in self._cleanups:  # Flink: a timer makes its key the current one, as a record does
            clean_up()
        context = self._timer_context
        context.time = time_ms
        context.domain = domain
        results = self._function.on_timer(time_ms, context)
        if results is not None:
            emit_results(results, emitted_ms, self)


class OnTimerContext(ElementContext, KeyedProcessFunction.OnTimerContext):
    """The context of `on_timer`."""

    domain = TimeDomain.EVENT_TIME

    def time_domain(self) -> TimeDomain:
        return self.domain


def generate_process_call(
    code: CodeBuilder,
    operator: RuntimeOperator,
    process: Callable[[Any, Any], Any],
    context: ElementContext,
    *,
    value: str,
    time: str,
    emit: Emit,
    side: dict[str, Emit],
) -> None:
    """Generate the call of a process function and the loop over its results: records, and pairs of tag and record."""
    name, tag = code.bind(context, "context"), code.bind(OutputTag, "OutputTag")
    code.line(f"{name}.time = {time}")
    with generate_loop(code, operator, process, f"{value}, {name}", "process", kinds=PROCESS_RESULTS) as result:
        tagged = f"{result}.__class__ is tuple and {result} and {result}[0].__class__ is {tag} and len({result}) == 2"
        with code.block(f"if {tagged}:"):
            if isinstance(side, RefusedSideOutputs):
                code.line(f"{code.bind(side.get, 'refuse')}({result}[0].tag_id)")
            elif side:
                tag_id, inner = code.fresh("tag"), code.fresh("v")
                code.line(f"{tag_id}, {inner} = {result}[0].tag_id, {result}[1]")
                for known, emit_side in side.items():
                    with code.block(f"if {tag_id} == {known!r}:"):
                        emit_side(inner, time)
        with code.block("else:"):
            emit(result, time)
