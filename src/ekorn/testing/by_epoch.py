"""Sources with a list of runs: epoch n reads run n, also after a crash.

Where two streams meet in one operator, results may depend on which of their records share an epoch. With these sources
the same records share an epoch in every execution, with crashes and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ekorn.functions.source_contract import Batch, Boundedness, Source, Split, SplitReader
from ekorn.functions.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream


class EpochSource(Source):
    """A bounded source that reads one of the runs in every epoch.

    Args:
        runs: The records of each epoch. The source ends after the last run.
    """

    def __init__(self, runs: Sequence[Sequence[Any]]) -> None:
        self._runs = [list(run) for run in runs]

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        return [Split("all", None)]

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        return _EpochReader(self._runs, position or 0)


class _EpochReader(SplitReader):
    def __init__(self, runs: list[list[Any]], position: int) -> None:
        self._runs = runs
        self._at = position  # the next run to read
        self._in_epoch = False

    def read(self, max_records: int) -> Batch:
        if self._in_epoch:
            self._in_epoch = False
            return Batch([])
        values = self._runs[self._at] if self._at < len(self._runs) else []
        self._at += 1
        self._in_epoch = bool(values)
        return Batch(values)

    def position(self) -> Any:
        return self._at

    @property
    def finished(self) -> bool:
        return self._at >= len(self._runs)


def by_epoch(env: StreamExecutionEnvironment, runs: Sequence[Sequence[Any]], name: str) -> DataStream:
    """Return a stream with one run in every epoch."""
    return env.from_source(EpochSource(runs), WatermarkStrategy.no_watermarks(), name).uid(name)


class _AfterRecords(WatermarkGenerator):
    """Emits the watermark in a record's last field."""

    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event[2] is not None:
            output.emit_watermark(event[2])

    def on_periodic_emit(self, output: Any) -> None:
        pass


def timed(stream: DataStream) -> DataStream:
    """Turn a stream of (value, timestamp, following watermark or None) into its values with times and watermarks."""
    strategy = WatermarkStrategy.for_generator(lambda _: _AfterRecords()).with_timestamp_assigner(lambda e, _: e[1])
    return stream.assign_timestamps_and_watermarks(strategy).set_parallelism(1).map(lambda e: e[0]).set_parallelism(1)
