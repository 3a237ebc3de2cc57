"""The operator that assigns timestamps and watermarks in the middle of a stream."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.codegen.chain_operator import Emit
from ekorn.codegen.code_builder import CodeBuilder
from ekorn.functions.watermark_strategy import Watermark, WatermarkOutput, WatermarkStrategy
from ekorn.graph.job_graph import Operator
from ekorn.operators.environment import SubtaskEnvironment
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.time.timestamp_check import TimestampCheck
from ekorn.operators.time.watermarks import make_generator
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP

OnWatermark = Callable[[int], None]
OnIdle = Callable[[bool], None]


class WatermarkEmitter(WatermarkOutput):
    """Takes the output of a generator, and forwards watermarks that advance and changes of idleness."""

    def __init__(self) -> None:
        self.on_watermark: OnWatermark = _unset
        self.on_idle: OnIdle = _unset
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False

    def emit_watermark(self, watermark: Watermark | int) -> None:
        timestamp = watermark if isinstance(watermark, int) else watermark.timestamp
        if timestamp > self.watermark_ms:
            self.watermark_ms = timestamp
            self.mark_active()
            self.on_watermark(timestamp)

    def mark_idle(self) -> None:
        if not self.idle:
            self.idle = True
            self.on_idle(True)

    def mark_active(self) -> None:
        if self.idle:
            self.idle = False
            self.on_idle(False)


class TimestampsOperator(RuntimeOperator):
    """`assign_timestamps_and_watermarks`: replaces the watermarks from upstream by its own.

    In BATCH mode only timestamps are assigned.
    """

    holds_watermarks = True

    def __init__(self, operator: Operator, strategy: WatermarkStrategy, environment: SubtaskEnvironment) -> None:
        super().__init__(operator, environment)
        settings = environment.graph.settings
        self._generator = make_generator(strategy, environment.clock)
        self._check: TimestampCheck | None = None
        if strategy.timestamp_assigner is not None:
            self._check = TimestampCheck(strategy.timestamp_assigner, self.hint)
        self._generates = not settings.batch
        self._periodic = settings.auto_watermark_interval_ms > 0
        self.emitter = WatermarkEmitter()

    def connect_time(self, forward_watermark: OnWatermark, forward_idle: OnIdle) -> None:
        super().connect_time(forward_watermark, forward_idle)
        self.emitter.on_watermark = forward_watermark
        self.emitter.on_idle = forward_idle

    def generate(self, code: CodeBuilder, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        check = self._check
        if check is not None:
            before = time
            time = code.fresh("t")
            assign, whole = code.bind(check, "timestamp"), code.bind(check.whole, "whole")
            check.in_code(code.namespace, assign)
            none = MIN_TIMESTAMP if before == "None" else f"({MIN_TIMESTAMP} if {before} is None else {before})"
            code.line(f"{time} = {assign}({value}, {none})")
            code.line(f"if {time}.__class__ is not int: {time} = {whole}({time}, {value})")
        emit(value, time)
        if self._generates:
            event_time = time if time != "None" else str(MIN_TIMESTAMP)
            on_event, output = code.bind(self._generator.on_event, "on_event"), code.bind(self.emitter, "output")
            code.line(f"{on_event}({value}, {event_time}, {output})")

    def emit_periodic_watermark(self) -> None:
        if self._generates and self._periodic:
            self._generator.on_periodic_emit(self.emitter)

    def on_watermark(self, watermark_ms: int) -> None:
        """Forward the last watermark, which ends the input. All others from upstream are replaced by the generator's.

        Flink: the generator is called once more, but only after the last watermark, so the call has no effect.
        """
        if watermark_ms == MAX_TIMESTAMP:
            self.emitter.mark_active()  # the last watermark also counts for a stream that was idle
            self.forward_watermark(watermark_ms)


def _unset(news: Any) -> None:
    raise AssertionError("the subtask connects the emitter before the first record")
