"""`StreamingFileSink`: the older form of the file sink, for `add_sink`."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ekorn.connectors.files.file_sink import FileSink
from ekorn.connectors.files.file_writer import FileWriter
from ekorn.connectors.formats.schemas import BulkWriterFactory, Encoder
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.functions.sink_contract import SinkContext, TwoPhaseCommitSinkFunction

__all__ = ["StreamingFileSink"]


class StreamingFileSink(TwoPhaseCommitSinkFunction[Any, list[Any]]):
    """Writes files as `FileSink` does, but ends all files at every checkpoint, regardless of the rolling policy.

    New programs use `FileSink` and `sink_to`.
    """

    def __init__(self, sink: FileSink) -> None:
        """Wrap the sink of a builder."""
        warnings.warn("StreamingFileSink is deprecated; use FileSink and sink_to()", DeprecationWarning, stacklevel=3)
        self._sink = sink
        self._writer: FileWriter | None = None

    class DefaultRowFormatBuilder(FileSink.RowFormatBuilder):
        """Builds a sink that writes record after record."""

        def build(self) -> StreamingFileSink:  # type: ignore[override]  # PyFlink's builders differ in this alone
            """Return the sink."""
            return StreamingFileSink(super().build())

    class DefaultBulkFormatBuilder(FileSink.BulkFormatBuilder):
        """Builds a sink that writes files of a bulk format."""

        def build(self) -> StreamingFileSink:  # type: ignore[override]  # PyFlink's builders differ in this alone
            """Return the sink."""
            return StreamingFileSink(super().build())

    @staticmethod
    def for_bulk_format(
        base_path: str | os.PathLike[str], writer_factory: BulkWriterFactory
    ) -> StreamingFileSink.DefaultBulkFormatBuilder:
        """Begin to build a sink that writes files with the writers of a bulk format."""
        return StreamingFileSink.DefaultBulkFormatBuilder(base_path, writer_factory)

    @staticmethod
    def for_row_format(
        base_path: str | os.PathLike[str], encoder: Encoder
    ) -> StreamingFileSink.DefaultRowFormatBuilder:
        """Begin to build a sink that writes each record with an encoder."""
        return StreamingFileSink.DefaultRowFormatBuilder(base_path, encoder)

    def open(self, runtime_context: RuntimeContext) -> None:
        """Create the writer of this subtask."""
        self._writer = self._sink.writer(runtime_context.get_index_of_this_subtask())

    def close(self) -> None:
        """Remove the files that no checkpoint refers to."""
        if self._writer is not None:
            self._writer.close()

    # A transaction is the list of its files. The list is empty until the files are ended.

    def begin_transaction(self) -> list[Any]:
        """Begin with no files."""
        return []

    def invoke(self, transaction: list[Any], value: Any, context: SinkContext) -> None:  # type: ignore[override]
        """Write one record."""
        assert self._writer is not None, "open() comes first"
        self._writer.write(value, context.timestamp())

    def pre_commit(self, transaction: list[Any]) -> None:
        """End all files and make them durable."""
        assert self._writer is not None, "open() comes first"
        self._writer.finish()
        transaction += self._writer.prepare_commit()

    def commit(self, transaction: list[Any]) -> None:
        """Make the files visible."""
        self._sink.create_committer().commit(transaction)

    def abort(self, transaction: list[Any]) -> None:
        """Do nothing: `close` removes files that were not ended, and files that stay are hidden."""
