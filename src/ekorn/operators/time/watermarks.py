"""The generation of watermarks: idleness, the splits of a source, the job's time characteristic.

Periodic watermarks are emitted at `pipeline.auto-watermark-interval`, as in Flink. There is one exception: a job that
runs in epochs and does not set the interval emits them at the end of every epoch, not by the clock. The same input cut
into the same epochs then has the same watermarks, and a small bounded input has none before its end
(`subtask/periodic_watermarks.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from ekorn.clock import Clock
from ekorn.functions.source_contract import Batch
from ekorn.functions.watermark_strategy import (
    AscendingTimestampsWatermarks,
    BoundedOutOfOrdernessWatermarks,
    NoWatermarksGenerator,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from ekorn.functions.windows.window_arithmetic import aligned_start
from ekorn.legacy.time_characteristic import TimeCharacteristic
from ekorn.operators.time.timestamp_check import TimestampCheck
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True, slots=True)
class SourceEvent:
    """A message of a source to its chain besides records: a watermark, or a change of idleness."""

    watermark_ms: int | None = None
    idle: bool | None = None


def make_generator(strategy: WatermarkStrategy, clock: Clock) -> WatermarkGenerator:
    """Return a generator for one subtask or split, with the strategy's idleness."""
    generator = strategy.create_generator()
    return generator if strategy.idle_timeout_ms is None else _WithIdleness(generator, strategy.idle_timeout_ms, clock)


class _WithIdleness(WatermarkGenerator):
    """Marks the input as idle after a time without records."""

    def __init__(self, generator: WatermarkGenerator, timeout_ms: int, clock: Clock) -> None:
        self._generator = generator
        self._timeout_s = timeout_ms / 1000
        self._clock = clock
        self._active = True  # whether a record arrived since the last periodic emit
        self._quiet_since: float | None = None
        self._idle = False

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        self._active = True
        if self._idle:
            self._idle = False
            output.mark_active()
        self._generator.on_event(event, event_timestamp, output)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        now = self._clock.monotonic()
        if self._active:
            self._active, self._quiet_since = False, None
        elif self._quiet_since is None:
            self._quiet_since = now
        elif now - self._quiet_since > self._timeout_s:
            if not self._idle:
                self._idle = True
                output.mark_idle()
            return
        self._generator.on_periodic_emit(output)


class _SplitOutput(WatermarkOutput):
    """The watermark and idleness of one split."""

    __slots__ = ("changed", "idle", "watermark_ms")

    def __init__(self) -> None:
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False
        self.changed = False

    def emit_watermark(self, watermark: Watermark | int) -> None:
        timestamp = watermark if isinstance(watermark, int) else watermark.timestamp
        if timestamp > self.watermark_ms:
            self.watermark_ms = timestamp
            self.changed = True
        if self.idle:
            self.mark_active()

    def mark_idle(self) -> None:
        self.idle = self.changed = True

    def mark_active(self) -> None:
        self.idle, self.changed = False, True


class _Split(NamedTuple):
    generator: WatermarkGenerator
    output: _SplitOutput
    check: TimestampCheck | None


class SplitWatermarks:
    """The watermark of a source subtask: the minimum over its splits that are not idle, with a generator per split."""

    # These generators use only the highest timestamp and emit only when called, so a run of records is one event.
    _BY_MAXIMUM = (BoundedOutOfOrdernessWatermarks, AscendingTimestampsWatermarks, NoWatermarksGenerator)

    def __init__(
        self,
        strategy: WatermarkStrategy,
        clock: Clock,
        *,
        batch: bool,
        periodic: bool,
        hint: Callable[[str, str], None] = lambda about, text: None,
    ) -> None:
        """Start without splits.

        Args:
            strategy: Where timestamps come from, and when watermarks are emitted.
            clock: The clock of the slot.
            batch: Whether the job runs in BATCH mode, without watermarks.
            periodic: Whether periodic watermarks are emitted.
            hint: Shows a hint about timestamps, given its subject and its text.
        """
        self._strategy = strategy
        self._clock = clock
        self._batch = batch
        self._periodic = periodic and not batch
        assigner = strategy.timestamp_assigner
        self._check = None if assigner is None else TimestampCheck(assigner, hint)
        self._hint = hint
        self._splits: dict[str, _Split] = {}
        self.watermark_ms = MIN_TIMESTAMP
        self.idle = False

    def add(self, split_id: str) -> None:
        """Add a split. It holds the watermark back from now on, whether or not it has records."""
        if split_id not in self._splits:
            strategy = self._strategy.for_split()
            assigner, check = strategy.timestamp_assigner, self._check
            if strategy is not self._strategy and assigner is not None:
                check = TimestampCheck(assigner, self._hint)
            self._splits[split_id] = _Split(make_generator(strategy, self._clock), _SplitOutput(), check)

    def remove(self, split_id: str) -> Iterator[SourceEvent]:
        """Remove a split that was read to its end. It no longer holds the watermark back."""
        if self._splits.pop(split_id, None) is not None and self._splits:
            yield from self._combined()

    def stamp(self, split_id: str, batch: Batch) -> Iterator[Batch | SourceEvent]:
        """Yield a run of a split's records with timestamps, and each watermark directly after its record."""
        values, times = batch.values, batch.timestamps
        generator, output, check = self._splits[split_id]
        if check is not None:
            assign = check.assign
            before = times if times is not None else [MIN_TIMESTAMP] * len(values)
            times = check.whole_run([assign(v, t) for v, t in zip(values, before, strict=True)], values)
        if self._batch:
            yield Batch(values, times)
            return
        if type(generator) in self._BY_MAXIMUM:
            yield Batch(values, times)
            if times:
                generator.on_event(None, max(times), output)
            return
        first = 0
        for number, value in enumerate(values):
            generator.on_event(value, MIN_TIMESTAMP if times is None else times[number], output)
            if output.changed:
                events = list(self._combined())
                if events:
                    after = number + 1
                    yield Batch(values[first:after], None if times is None else times[first:after])
                    yield from events
                    first = after
        if first < len(values):
            yield Batch(values[first:], None if times is None else times[first:])

    def emit_periodic(self) -> Iterator[SourceEvent]:
        """Call the generators for periodic watermarks: when these are due, and after each run of aligned sources."""
        if not self._periodic:
            return
        for generator, output, _ in self._splits.values():
            generator.on_periodic_emit(output)
        yield from self._combined()

    def by_split(self) -> dict[str, int]:
        """Return the watermarks of the splits that are not idle."""
        return {split_id: output.watermark_ms for split_id, (_, output, _) in self._splits.items() if not output.idle}

    def _combined(self) -> Iterator[SourceEvent]:
        outputs = [output for _, output, _ in self._splits.values()]
        for output in outputs:
            output.changed = False
        active = [output.watermark_ms for output in outputs if not output.idle]
        idle = not active and (bool(outputs) or self._strategy.idle_timeout_ms is not None)
        if active and min(active) > self.watermark_ms:
            self.watermark_ms = min(active)
            yield SourceEvent(watermark_ms=self.watermark_ms)
        if idle is not self.idle:
            self.idle = idle
            yield SourceEvent(idle=idle)


class SourceTime:
    """Applies the job's time characteristic to the records and watermarks of a source."""

    def __init__(
        self, characteristic: TimeCharacteristic, clock: Clock, interval_ms: int, *, columns: bool = False
    ) -> None:
        self._columns = columns
        self._characteristic = characteristic
        self._clock = clock
        self._interval_ms = interval_ms
        self._next_ms = MIN_TIMESTAMP

    def apply(self, item: Batch | SourceEvent) -> Iterator[Batch | SourceEvent]:
        """Yield what replaces a run of records or a watermark."""
        if self._characteristic is TimeCharacteristic.EventTime:
            yield item
        elif isinstance(item, SourceEvent):
            if item.idle is not None or item.watermark_ms == MAX_TIMESTAMP:
                yield item
        elif self._characteristic is TimeCharacteristic.ProcessingTime:
            yield self._stamped(item, None)
        else:
            yield self._stamped(item, self._clock.now_ms())
            yield from self.end_epoch()

    def _stamped(self, batch: Batch, time_ms: int | None) -> Batch:
        if self._columns:
            return Batch([columns.stamped(time_ms) for columns in batch.values])
        return Batch(batch.values, None if time_ms is None else [time_ms] * len(batch.values))

    def end_epoch(self) -> Iterator[SourceEvent]:
        """Advance ingestion time by the clock."""
        if self._characteristic is TimeCharacteristic.IngestionTime and self._interval_ms > 0:
            now_ms = self._clock.now_ms()
            if now_ms > self._next_ms:
                watermark_ms = aligned_start(now_ms, 0, self._interval_ms)
                self._next_ms = watermark_ms + self._interval_ms
                yield SourceEvent(watermark_ms=watermark_ms)
