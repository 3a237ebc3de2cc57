"""The operator of time windows with their default trigger and no evictor, on the heap.

The decisions of the default trigger follow from the window's end, so the operator asks no trigger: a window fires when
time reaches its end, fires again with every late record within the allowed lateness, and is dropped. A layout stores
the windows. `triggered_windows.py` runs all other windows; both operators give the same results.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.windows.assigner_contract import MergingWindowAssigner
from ekorn.graph.job_graph import Operator
from ekorn.graph.specs import WindowSpec
from ekorn.operators.contexts.function_contexts import Clocks
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.keys import generate_state_key
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.time.missing_timestamps import missing_timestamp
from ekorn.operators.windows.contents import contents_for
from ekorn.operators.windows.evaluation import functions_of
from ekorn.operators.windows.layout import LayoutParts, MakeLayout, WindowTime
from ekorn.operators.windows.window_output import WindowOutput
from ekorn.state.heap.heap_backend import HeapStateBackend
from ekorn.state.keyed_backend import RestoredTables
from ekorn.types.time_bounds import MAX_TIMESTAMP


class TimeWindowOperator(RuntimeOperator):
    """Tumbling, sliding or session windows, by event time or by processing time."""

    needs_out = True

    def __init__(
        self, operator: Operator, spec: WindowSpec, environment: SubtaskEnvironment, make_layout: MakeLayout
    ) -> None:
        super().__init__(operator, environment)
        assert isinstance(self.backend, HeapStateBackend), "windows in RocksDB are run by the triggered operator"
        self._functions = functions_of(spec)
        self._event_time = spec.assigner.is_event_time()
        self._clocks = Clocks(environment)
        contents = contents_for(spec.contents, operator.input_type)
        merging = isinstance(spec.assigner, MergingWindowAssigner)
        self.layout = make_layout(
            LayoutParts(
                spec,
                contents,
                WindowTime(self._clocks, event_time=self._event_time, lateness_ms=spec.lateness_ms),
                WindowOutput(self, spec, contents, self._clocks, merging=merging),
                self.backend,
                self.key_groups(),
                environment.vertex.max_parallelism,
            )
        )

    def functions(self) -> Iterable[Any]:
        return self._functions

    def translate(self, tables: RestoredTables) -> None:
        self.layout.translate(tables, self.states)

    def open(self) -> None:
        self.layout.open(self.states)
        super().open()

    def before_snapshot(self, checkpoint_id: int, now_ms: int) -> None:
        self.layout.before_snapshot()

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
        self.layout.generate_add(code, key, value, at, time)

    def _refuse(self, value: Any) -> None:
        raise missing_timestamp(value, self.environment)

    # --------------------------------------------------------------------------------------------------- time

    def on_watermark(self, watermark_ms: int) -> None:
        self._clocks.watermark_ms = watermark_ms
        if self._event_time:
            self.layout.fire_up_to(watermark_ms)

    def on_clock(self, now_ms: int) -> None:
        if not self._event_time:
            self.layout.fire_up_to(now_ms - 1)
            self.layout.clock_advanced(now_ms)

    def next_timer_ms(self) -> int | None:
        return None if self._event_time else self.layout.next_ms()

    def end_key(self) -> None:
        before, self._clocks.watermark_ms = self._clocks.watermark_ms, MAX_TIMESTAMP
        self.layout.fire_up_to(MAX_TIMESTAMP)
        self._clocks.watermark_ms = before
