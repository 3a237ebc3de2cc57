"""`KeyedBatchHarness`: runs a `KeyedBatchFunction` on batches that a test gives, and on the same rows one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Unpack

from ekorn.functions.keyed_batch_function import KeyedBatchFunction
from ekorn.program.streams.data_stream import DataStream
from ekorn.testing.harnesses import OneInputHarness, Options
from ekorn.types.type_information import TypeInformation

__all__ = ["KeyedBatchHarness"]


class KeyedBatchHarness(OneInputHarness):
    """A batch function on a keyed stream.

    Beside the function runs a second one, whose batches have one row. `check_rows` compares their results: a function
    that gives other results for other batches is wrong, because a stream may be cut anywhere.

    Args:
        function: The function.
        keys: The key columns.
        type_info: The type of the rows.
        output_type: The type of the results.
        options: See `Harness`.

    >>> from ekorn.common import Row, Types
    >>> from ekorn.datastream.columns import KeyedBatchFunction
    >>> class Count(KeyedBatchFunction):
    ...     def process_batch(self, batch, ctx):
    ...         yield batch.append_column("n", ctx.running_count())  # without state: wrong for the next batch
    >>> order = Types.ROW_NAMED(["customer"], [Types.STRING()])
    >>> counted = Types.ROW_NAMED(["customer", "n"], [Types.STRING(), Types.LONG()])
    >>> with KeyedBatchHarness(Count(), "customer", type_info=order, output_type=counted) as harness:
    ...     harness.process_batch([Row(customer="a"), Row(customer="a")])
    ...     try:
    ...         harness.check_rows()
    ...     except AssertionError as error:
    ...         print(str(error).split(";")[0])
    the same rows give different results by the batch and one by one: only by the batch: Row(customer='a', n=2)
    """

    def __init__(
        self,
        function: KeyedBatchFunction,
        keys: str | Sequence[str],
        *,
        type_info: TypeInformation,
        output_type: Any,
        **options: Unpack[Options],
    ) -> None:
        if not isinstance(function, KeyedBatchFunction):
            raise TypeError(f"a KeyedBatchHarness takes a KeyedBatchFunction, got {function!r}")
        names = (keys,) if isinstance(keys, str) else tuple(keys)

        def pipeline(stream: DataStream) -> DataStream:
            return stream.key_by(names).process(function, output_type)

        super().__init__(pipeline, type_info=type_info, **options)
        self._by_row = OneInputHarness(pipeline, type_info=type_info, **options)
        self._snapshots: dict[bytes, bytes] = {}

    def process_element(self, value: Any, timestamp: int | None = None) -> None:
        self.process_batch([value], timestamp)

    def process_elements(self, *values: Any, timestamp: int | None = None) -> None:
        for value in values:
            self.process_element(value, timestamp)

    def process_batch(self, values: Iterable[Any], timestamps: Sequence[int] | int | None = None) -> None:
        rows = list(values)
        super().process_batch(rows, timestamps)
        times = timestamps if isinstance(timestamps, Sequence) else [timestamps] * len(rows)
        for row, time_ms in zip(rows, times, strict=True):
            self._by_row.process_element(row, time_ms)

    def process_watermark(self, timestamp: int) -> None:
        super().process_watermark(timestamp)
        self._by_row.process_watermark(timestamp)

    def mark_idle(self, idle: bool = True) -> None:
        super().mark_idle(idle)
        self._by_row.mark_idle(idle)

    def check_rows(self) -> None:
        """Compare the results so far with those of the same rows one by one, whatever the order of different keys.

        Raises:
            AssertionError: They differ.
        """
        for name, batches, rows in self._outputs():
            by_batch, by_row = Counter(map(_text, batches)), Counter(map(_text, rows))
            if by_batch != by_row:
                only = {"by the batch": [*(by_batch - by_row)][:3], "one by one": [*(by_row - by_batch)][:3]}
                found = "; ".join(f"only {how}: {', '.join(each)}" for how, each in only.items() if each)
                raise AssertionError(f"the same rows give different results by the batch and one by one{name}: {found}")

    def _outputs(self) -> Iterable[tuple[str, list[Any], list[Any]]]:
        yield "", self.output_with_timestamps(), self._by_row.output_with_timestamps()
        for tag_id, (tag, outlet) in self._sides.items():
            yield f" in side output {tag_id!r}", outlet.records, self._by_row.side_output_with_timestamps(tag)

    # ------------------------------------------------------------------------------------- both, in step

    def set_processing_time(self, timestamp: int) -> None:
        super().set_processing_time(timestamp)
        self._by_row.set_processing_time(timestamp)

    def end_input(self) -> None:
        super().end_input()
        self._by_row.end_input()

    def take_output(self) -> list[Any]:
        """Return the records of `output`, and clear it. The results are compared before."""
        self.check_rows()
        self._by_row.take_output()
        return super().take_output()

    def snapshot(self) -> bytes:
        taken = super().snapshot()
        self._snapshots[taken] = self._by_row.snapshot()
        return taken

    def restore(self, snapshot: bytes, parallelism: int | None = None) -> None:
        super().restore(snapshot, parallelism)
        self._by_row.restore(self._snapshots.get(snapshot, snapshot), parallelism)

    def close(self) -> None:
        super().close()
        self._by_row.close()


def _text(record: tuple[Any, int | None]) -> str:
    value, time_ms = record
    return str(value) if time_ms is None else f"{value} at {time_ms}"
