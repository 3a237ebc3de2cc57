"""Timestamps and watermarks: assigned in the middle of a stream, or by the source for each of its splits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tamias.common.constants import MIN_TIMESTAMP
from tamias.common.watermark_strategy import Watermark, WatermarkOutput, WatermarkStrategy
from tamias.graph.job_graph import Operator
from tamias.runtime.code import Code
from tamias.runtime.operators.base import Emit, RuntimeOperator
from tamias.runtime.place import Place

OnWatermark = Callable[[int], None]


class WatermarkEmitter(WatermarkOutput):
    """Takes what a generator emits; hands on only what moves time forward."""

    def __init__(self, on_watermark: OnWatermark) -> None:
        self._on_watermark = on_watermark
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False

    def emit_watermark(self, watermark: Watermark | int) -> None:
        timestamp = watermark if isinstance(watermark, int) else watermark.timestamp
        self.idle = False
        if timestamp > self.watermark_ms:
            self.watermark_ms = timestamp
            self._on_watermark(timestamp)

    def mark_idle(self) -> None:
        self.idle = True

    def mark_active(self) -> None:
        self.idle = False


class TimestampsOperator(RuntimeOperator):
    """`assign_timestamps_and_watermarks`: replaces the watermarks from upstream by its own."""

    generates_watermarks = True

    def __init__(self, operator: Operator, strategy: WatermarkStrategy, place: Place) -> None:
        super().__init__(operator, place)
        self._strategy = strategy
        self._generator = strategy.create_generator()
        self.emitter = WatermarkEmitter(self._forward)
        self.forward: OnWatermark = _unset
        self._next_emit_ms = 0

    def _forward(self, watermark_ms: int) -> None:
        self.forward(watermark_ms)

    def write(self, code: Code, value: str, time: str, emit: Emit, side: dict[str, Emit]) -> None:
        assigner = self._strategy.timestamp_assigner
        if assigner is not None:
            before = time
            time = code.fresh("t")
            none = MIN_TIMESTAMP if before == "None" else f"({MIN_TIMESTAMP} if {before} is None else {before})"
            code.line(f"{time} = {code.bind(assigner.extract_timestamp, 'timestamp')}({value}, {none})")
        emit(value, time)
        event_time = str(MIN_TIMESTAMP) if time == "None" else time
        if assigner is None and time != "None":
            event_time = f"({MIN_TIMESTAMP} if {time} is None else {time})"
        code.line(f"{code.bind(self._generator.on_event, 'on_event')}({value}, {event_time}, {code.bind(self.emitter, 'output')})")

    def on_clock(self, now_ms: int) -> None:
        """Emit periodically: at the end of an epoch, at most once per auto-watermark interval."""
        interval = self.place.graph.settings.auto_watermark_interval_ms
        if interval > 0 and now_ms >= self._next_emit_ms:
            self._next_emit_ms = now_ms + interval
            self._generator.on_periodic_emit(self.emitter)

    def last_emit(self) -> None:
        """The input has ended: one more chance before the final watermark."""
        self._generator.on_periodic_emit(self.emitter)


def _unset(watermark_ms: int) -> Any:
    raise AssertionError("the subtask sets `forward` before the first record")
