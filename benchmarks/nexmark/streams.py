"""Streams of Nexmark's files, in rows and in columns, and the sink of runs that are measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from ekorn.common import Time, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ParquetColumns
from ekorn.datastream.connectors.base import Sink, SinkWriter
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.datastream.formats.parquet import ParquetColumnarRowInputFormat
from ekorn.table import DataTypes
from ekorn.types.data_types import RowType

Form = Literal["rows", "columns"]

LONG, TEXT, TIME = DataTypes.BIGINT(), DataTypes.STRING(), DataTypes.TIMESTAMP(3)
TYPES: dict[str, dict[str, Any]] = {
    "person": {
        "id": LONG, "name": TEXT, "emailAddress": TEXT, "creditCard": TEXT, "city": TEXT, "state": TEXT,
        "dateTime": TIME, "extra": TEXT,
    },
    "auction": {
        "id": LONG, "itemName": TEXT, "description": TEXT, "initialBid": LONG, "reserve": LONG, "dateTime": TIME,
        "expires": TIME, "seller": LONG, "category": LONG, "extra": TEXT,
    },
    "bid": {
        "auction": LONG, "bidder": LONG, "price": LONG, "channel": TEXT, "url": TEXT, "dateTime": TIME, "extra": TEXT,
    },
}  # fmt: skip


def row_type(**types: Any) -> RowType:
    """Return a row type."""
    return DataTypes.ROW([DataTypes.FIELD(name, data_type) for name, data_type in types.items()])


class Events:
    """The files of one folder as streams.

    Args:
        env: The environment that the streams are drawn in.
        folder: What `events.write` has written.
        form: Whether a stream has rows or columns.
        processing_window: The size of the windows of q12.
    """

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        folder: Path,
        form: Form,
        processing_window: Time = Time.seconds(10),  # noqa: B008  a value
    ) -> None:
        self.env, self.form, self.processing_window = env, form, processing_window
        self._folder = folder

    def people(self, *columns: str, timed: bool = False) -> Any:
        return self._stream("person", columns, timed)

    def auctions(self, *columns: str, timed: bool = False) -> Any:
        return self._stream("auction", columns, timed)

    def bids(self, *columns: str, timed: bool = False) -> Any:
        return self._stream("bid", columns, timed)

    def _stream(self, kind: str, columns: tuple[str, ...], timed: bool) -> Any:
        """Return the events of a kind: some columns, or all; with timestamps and watermarks if `timed`."""
        types = TYPES[kind]
        chosen = row_type(**{name: types[name] for name in columns or types})
        file_format = ParquetColumns if self.form == "columns" else ParquetColumnarRowInputFormat
        # A split is a whole file, and within a file times never go back.
        source = FileSource.for_bulk_file_format(file_format(chosen), str(self._folder / kind)).build()
        strategy = WatermarkStrategy.no_watermarks()
        if timed:
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("dateTime")
        return self.env.from_source(source, strategy, kind)


class Discard(Sink):
    """Takes rows and columns and drops them."""

    def with_columns(self, row_type: Any) -> Discard:
        return self

    def create_writer(self, context: Any, restored: Any) -> SinkWriter:
        return _Dropping()


class _Dropping(SinkWriter):
    def write(self, value: Any, timestamp: int | None) -> None:
        pass

    def write_batch(self, batch: Any) -> None:
        pass
