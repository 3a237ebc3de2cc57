"""The two ends of a pipeline under test: the inlets that a test fills, and the outlets that it reads.

Both live in the test's process and pickle as a number, so that a pipeline that is pickled on its way to its subtasks
still reads and writes the test's own objects.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from ekorn.functions.sink_contract import SinkContext, SinkFunction
from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.functions.watermark_strategy import Watermark, WatermarkGenerator, WatermarkOutput

T = TypeVar("T", bound="_Tap")

_numbers = itertools.count()
_taps: WeakValueDictionary[int, _Tap] = WeakValueDictionary()


class _Tap:
    """Pickles as a number. Unpickling in the same process returns the same object."""

    def __init__(self) -> None:
        self._number = next(_numbers)
        _taps[self._number] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _tap, (self._number,)


def _tap(number: int) -> _Tap:
    return _taps[number]


class Inlet(_Tap):
    """The records that one input of the pipeline reads in the next epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.records: deque[tuple[Any, int | None]] = deque()
        self.watermark_ms: int | None = None
        self.idle: bool | None = None
        self.ended = False

    def reset(self) -> None:
        """Drop everything that was pushed, for a restore."""
        self.records.clear()
        self.watermark_ms = self.idle = None
        self.ended = False


class Outlet(_Tap):
    """The records of one output of the pipeline, with timestamps."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[tuple[Any, int | None]] = []


class InletSource(Source):
    """Reads an inlet. It ends when the test ends the inlet."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split("test")]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _InletReader(self._inlet)


class _InletReader(SplitReader):
    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet

    def read(self, max_records: int) -> Batch:
        if not self._inlet.records:
            return Batch([])
        value, timestamp = self._inlet.records.popleft()
        return Batch([value], None if timestamp is None else [timestamp])

    def position(self) -> Any:
        return None  # a test pushes again what is to be read after a restore

    @property
    def finished(self) -> bool:
        return self._inlet.ended and not self._inlet.records


class InletWatermarks(WatermarkGenerator):
    """Emits the watermark of an inlet at the end of the epoch in which the test pushed it."""

    def __init__(self, inlet: Inlet) -> None:
        self._inlet = inlet

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        """Emit nothing: records make no watermarks."""

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        idle, watermark_ms = self._inlet.idle, self._inlet.watermark_ms
        self._inlet.idle = self._inlet.watermark_ms = None
        if watermark_ms is not None:
            output.emit_watermark(Watermark(watermark_ms))
        if idle is not None:
            output.mark_idle() if idle else output.mark_active()


class OutletSink(SinkFunction[Any]):
    """Writes to an outlet."""

    def __init__(self, outlet: Outlet) -> None:
        self._outlet = outlet

    def invoke(self, value: Any, context: SinkContext) -> None:
        self._outlet.records.append((value, context.timestamp()))
