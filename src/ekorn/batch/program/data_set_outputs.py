"""The sinks of a data set: files, formats of the user, the standard output of the tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Self, cast

from ekorn.batch.outputs.file_output import CsvLinesFormat, FileOutput, TextLinesFormat, WriteMode
from ekorn.batch.outputs.output import FormatOutput, FunctionFormat, Output, OutputFormat, PrintFormat
from ekorn.batch.plan.data_set_specs import OutputSpec
from ekorn.batch.program.data_set_core import DataSetCore, DataSetSettings
from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.files.text_lines import checked_charset
from ekorn.connectors.formats.schemas import BulkWriterFactory
from ekorn.errors import InvalidProgramError
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.types.basic_types import BasicTypeInfo
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import data_type_of
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = ["DataSetOutputs", "DataSink"]

Path = str | os.PathLike[str]


class DataSetOutputs(DataSetCore):
    """The part of `DataSet` that writes, when the environment executes.

    Files appear when all sinks of the job have been written: a job that fails leaves none. A sink with parallelism 1
    writes a file; a sink with more writes a directory with a file for each subtask. Paths may be URLs.
    """

    def write_as_text(
        self, file_path: Path, write_mode: WriteMode = WriteMode.NO_OVERWRITE, charset: str = "UTF-8"
    ) -> DataSink:
        """Write each record as a line of text."""
        lines = TextLinesFormat(self._text_type(), None, checked_charset(charset))
        return self._to_files("TextSink", file_path, lines, write_mode)

    def write_as_formatted_text(
        self, file_path: Path, formatter: Callable[[Any], str], write_mode: WriteMode = WriteMode.NO_OVERWRITE
    ) -> DataSink:
        """Write what a function returns for each record as a line of text."""
        if not callable(formatter):
            raise TypeError(f"write_as_formatted_text() takes a function of a record, got {formatter!r}")
        return self._to_files("TextSink", file_path, TextLinesFormat(None, formatter), write_mode)

    def write_as_csv(
        self,
        file_path: Path,
        row_delimiter: str = "\n",
        field_delimiter: str = ",",
        write_mode: WriteMode = WriteMode.NO_OVERWRITE,
        quote_strings: bool = False,
    ) -> DataSink:
        """Write the fields of each tuple or row as a line, with a delimiter between them.

        As in Flink, values are written as they are: only `quote_strings` puts strings in quotes.
        """
        known = self._known_type
        if isinstance(known, BasicTypeInfo):
            raise InvalidProgramError(f"write_as_csv() writes tuples and rows, and the records are of type {known}")
        lines = CsvLinesFormat(row_delimiter, field_delimiter, quote_strings, self._text_type())
        return self._to_files("CsvSink", file_path, lines, write_mode)

    def write_as_parquet(
        self, file_path: Path, row_type: RowType | None = None, write_mode: WriteMode = WriteMode.NO_OVERWRITE
    ) -> DataSink:
        """Write rows, tuples or dicts to Parquet files, with the columns of a row type or of the declared type."""
        from ekorn.connectors.formats.parquet_files import ParquetBulkWriters

        known = self._known_type
        if row_type is None:
            if not isinstance(known, RowTypeInfo):
                raise InvalidProgramError(
                    "write_as_parquet() needs the columns: give a row type such as "
                    'DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())]), or declare rows by returns()'
                )
            row_type = cast(RowType, data_type_of(known, "write_as_parquet()"))
        writers = ParquetBulkWriters.for_row_type(row_type, utc_timestamp=True)
        return self._to_files("ParquetSink", file_path, writers, write_mode)

    def write(
        self, writer_factory: BulkWriterFactory, file_path: Path, write_mode: WriteMode = WriteMode.NO_OVERWRITE
    ) -> DataSink:
        """Write files by a format of `ekorn.datastream.formats`, such as `AvroBulkWriters.for_generic_record(...)`."""
        if not callable(getattr(writer_factory, "create", None)):
            raise TypeError(
                f"write() takes a bulk writer such as CsvBulkWriters.for_schema(...), got {writer_factory!r}"
            )
        return self._to_files("FileSink", file_path, writer_factory, write_mode)

    def output(self, output_format: OutputFormat[Any] | Callable[[Any], Any]) -> DataSink:
        """Write to an `OutputFormat`, or call a function with each record, where the subtasks run."""
        if not isinstance(output_format, OutputFormat):
            if not callable(output_format):
                raise TypeError(f"output() takes an OutputFormat or a function of a record, got {output_format!r}")
            check_sendable("output", output_format)
            output_format = FunctionFormat(output_format)
        return self._to("DataSink", FormatOutput(output_format))

    def print_on_task_manager(self, prefix: str = "") -> DataSink:
        """Print each record after a prefix, where its subtask runs."""
        return self._to("Print", FormatOutput(PrintFormat(prefix, self._text_type())))

    def _text_type(self) -> TypeInformation | None:
        return self._known_type if self._declares_type else None

    def _to_files(self, kind: str, file_path: Path, writers: BulkWriterFactory, write_mode: WriteMode) -> DataSink:
        if not isinstance(write_mode, WriteMode):
            raise TypeError(f"the write mode is WriteMode.OVERWRITE or WriteMode.NO_OVERWRITE, got {write_mode!r}")
        return self._to(kind, FileOutput(input_address(file_path, "a file sink"), writers, write_mode))

    def _to(self, kind: str, output: Output) -> DataSink:
        sink = self.next(kind, OutputSpec(output))
        self.environment.add_sink(sink)
        return DataSink(sink)


class DataSink:
    """An output that the next `execute` writes. Its name and parallelism may be set until then."""

    def __init__(self, settings: DataSetSettings) -> None:
        """Take the settings of the operator that writes; methods of `DataSet` make sinks."""
        self._settings = settings

    def name(self, name: str) -> Self:
        """Set the name that errors and plans show."""
        self._settings.name(name)
        return self

    def get_name(self) -> str:
        """Return the sink's name."""
        return self._settings.get_name()

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the number of subtasks; -1 stands for the environment's parallelism. A file sink of one writes a file."""
        self._settings.set_parallelism(parallelism)
        return self

    def get_parallelism(self) -> int:
        """Return the number of subtasks that was set; -1 if the environment's parallelism applies."""
        return self._settings.get_parallelism()

    def __repr__(self) -> str:
        return f"DataSink({self.get_name()!r})"
