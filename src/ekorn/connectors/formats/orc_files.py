"""ORC files: written stripe by stripe."""

from __future__ import annotations

from functools import partial
from typing import Any

from ekorn.columns.arrow_columns import ArrowColumn, arrow_column, load_arrow
from ekorn.config.configuration import Configuration
from ekorn.connectors.formats.arrow_writer import ArrowWriterFactory, TableWriter, fields_of_row, file_properties
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import ConfigurationError
from ekorn.types.data_type_info import checked_row_type
from ekorn.types.data_types import RowType

__all__ = ["OrcBulkWriters"]

_STRIPE_BYTES = 64 << 20
_CODECS = {"NONE": "uncompressed", "ZLIB": "zlib", "SNAPPY": "snappy", "LZ4": "lz4", "ZSTD": "zstd"}


class OrcBulkWriters:
    """Writes rows to ORC files.

    FileSink.for_bulk_format("/data/out", OrcBulkWriters.for_row_type(row_type)).build()
    """

    @staticmethod
    def for_row_type(
        row_type: RowType,
        writer_properties: Configuration | None = None,
        hadoop_config: Configuration | None = None,
    ) -> BulkWriterFactory:
        """Write the columns of a row type.

        Args:
            row_type: The columns and their types.
            writer_properties: `orc.compress` (LZ4 by default) and `orc.stripe.size`, in bytes.
            hadoop_config: Settings of Hadoop; none applies here, so it must be empty.
        """
        fields = checked_row_type(row_type, "for_row_type()")
        file_properties("OrcBulkWriters", hadoop_config, {})
        settings = file_properties(
            "OrcBulkWriters", writer_properties, {"orc.compress": "LZ4", "orc.stripe.size": _STRIPE_BYTES}
        )
        codec = _CODECS.get(str(settings["orc.compress"]).upper())
        if codec is None:
            raise ConfigurationError(f"orc.compress is one of {', '.join(_CODECS)}, got {settings['orc.compress']!r}")
        stripe_bytes = int(settings["orc.stripe.size"])
        return ArrowWriterFactory(
            "ORC",
            partial(_columns, fields),
            fields_of_row,
            partial(_open_writer, codec=codec, stripe_bytes=stripe_bytes),
            group_bytes=min(stripe_bytes, 16 << 20),
            row_type=fields,
        )


class _OrcTables:
    """pyarrow's writer, with the method of Parquet's."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def write_table(self, table: Any) -> None:
        self._writer.write(table)

    def close(self) -> None:
        self._writer.close()


def _columns(row_type: RowType) -> dict[str, ArrowColumn]:
    return {field.name: arrow_column(field.data_type, utc=True) for field in row_type}


def _open_writer(stream: Any, schema: Any, *, codec: str, stripe_bytes: int) -> TableWriter:
    load_arrow("ORC", "orc")
    import pyarrow.orc

    return _OrcTables(pyarrow.orc.ORCWriter(stream, compression=codec, stripe_size=stripe_bytes))
