"""The inputs of an environment that come from storage, from the user's own formats, or from Spark."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, cast

from ekorn.batch.inputs.input_formats import FormatInput, InputFormat, IteratorInput, SplittableIterator
from ekorn.batch.inputs.lines import LineFormat
from ekorn.batch.inputs.source_inputs import BoundedSourceInput, FileInput
from ekorn.batch.plan.data_set_specs import FrameInputSpec, Input, InputSpec
from ekorn.batch.program.csv_reader import CsvReader
from ekorn.batch.program.data_set import DataSet
from ekorn.connectors.files.file_addresses import input_address
from ekorn.connectors.files.file_bytes import need_unpacker
from ekorn.connectors.files.stream_formats import FileFormat, StreamFormat
from ekorn.connectors.files.stream_formats import InputFormat as StreamInputFormat
from ekorn.connectors.files.text_lines import checked_charset
from ekorn.connectors.formats.json_rows import JsonRowDeserializationSchema
from ekorn.connectors.formats.text_values import text_parser
from ekorn.errors import InvalidProgramError
from ekorn.functions.source_contract import Boundedness, Source
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.environment.data_frame_sources import check_frame
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_type_info import data_type_of, row_type_info
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.batch.program.execution_environment import ExecutionEnvironment
    from ekorn.types.avro_schema import AvroSchema

__all__ = ["EnvironmentInputs"]

Path = str | os.PathLike[str]


class EnvironmentInputs:
    """The part of `ExecutionEnvironment` that reads. Paths may be URLs that checkpoints can use too."""

    # ------------------------------------------------------------------------------ files

    def read_text_file(self, file_path: Path, charset_name: str = "UTF-8") -> DataSet:
        """Return the lines of a file, or of the files in a directory. Files named .gz, .bz2 and so on are unpacked.

        Subdirectories are read if the parameter ``recursive.file.enumeration`` is true (`with_parameters`).
        """
        return self.read_file(StreamFormat.text_line_format(charset_name), file_path)

    def read_file(self, file_format: FileFormat, *file_paths: Path) -> DataSet:
        """Return the records of files by a format of `ekorn.datastream.formats`, such as `CsvReaderFormat`."""
        if not isinstance(file_format, FileFormat):
            raise TypeError(
                f"read_file() takes a format such as StreamFormat.text_line_format(), then paths, got {file_format!r}"
            )
        if not file_paths:
            raise InvalidProgramError("read_file() needs a path after the format")
        addresses = [_readable(path, "read_file()") for path in file_paths]
        return self._input("FileInput", FileInput(file_format, addresses), file_format.get_produced_type())

    def read_csv_file(self, file_path: Path) -> CsvReader:
        """Begin to read a CSV file, or those in a directory: `read_csv_file(path).types(int, str)`."""
        return CsvReader(self, _readable(file_path, "read_csv_file()"))

    def read_csv(self, path: Path, types: list[Any], line_delimiter: str = "\n", field_delimiter: str = ",") -> DataSet:
        """Read tuples from a CSV file: the short form of `read_csv_file`."""
        return self.read_csv_file(path).line_delimiter(line_delimiter).field_delimiter(field_delimiter).types(*types)

    def read_file_of_primitives(
        self, file_path: Path, type_info: TypeInformation, delimiter: str = "\n", charset_name: str = "UTF-8"
    ) -> DataSet:
        """Return the values of a file of one column, such as numbers, with a delimiter between them."""
        check_output_type("read_file_of_primitives", type_info, "type_info")
        if not isinstance(delimiter, str) or not delimiter:
            raise ValueError(f"read_file_of_primitives() takes a non-empty delimiter, got {delimiter!r}")
        parse = text_parser(data_type_of(type_info, "read_file_of_primitives()"))
        lines = LineFormat(parse, type_info, checked_charset(charset_name), delimiter)
        return self._input(
            "PrimitiveInput", FileInput(lines, [_readable(file_path, "read_file_of_primitives()")]), type_info
        )

    def read_json(self, file_path: Path, type_info: TypeInformation | None = None) -> DataSet:
        """Return the JSON values of a file, one on each line: rows of a row type, or else plain values."""
        if type_info is None:
            lines = LineFormat(json.loads)
        elif isinstance(type_info, RowTypeInfo):
            schema = JsonRowDeserializationSchema.builder().type_info(type_info).build()
            lines = LineFormat(_JsonRows(schema), type_info)
        else:
            raise TypeError(f"read_json() takes a type of rows such as Types.ROW_NAMED(...), got {type_info!r}")
        return self._input("JsonInput", FileInput(lines, [_readable(file_path, "read_json()")]), type_info)

    def read_parquet(self, file_path: Path, row_type: RowType | None = None) -> DataSet:
        """Return the rows of Parquet files: the columns of a row type, or else all columns of the first file."""
        from ekorn.batch.inputs.source_inputs import row_type_of_parquet
        from ekorn.connectors.formats.parquet_files import ParquetColumnarRowInputFormat

        address = input_address(file_path, "read_parquet()")
        columns = row_type_of_parquet(address) if row_type is None else row_type
        return self.read_file(ParquetColumnarRowInputFormat(columns, is_utc_timestamp=True), address)

    def read_avro(self, file_path: Path, schema: AvroSchema | None = None) -> DataSet:
        """Return the records of Avro files as dicts, by a schema, or else by that of the first file."""
        from ekorn.batch.inputs.source_inputs import schema_of_avro
        from ekorn.connectors.formats.avro_files import AvroReaderFormat

        address = input_address(file_path, "read_avro()")
        found = schema_of_avro(address) if schema is None else schema
        return self.read_file(AvroReaderFormat.for_generic_record(found), address)

    # ------------------------------------------------------------------------------ the user's inputs

    def create_input(
        self, input_format: InputFormat[Any, Any] | StreamInputFormat | Source, type_info: TypeInformation | None = None
    ) -> DataSet:
        """Return the records of an input: an `InputFormat`, or a bounded source of the DataStream API."""
        check_output_type("create_input", type_info, "type_info")
        if isinstance(input_format, InputFormat):
            return self._input("Input", FormatInput(input_format), type_info)
        if isinstance(input_format, StreamInputFormat):
            type_info = type_info or input_format.get_produced_type()
            input_format = input_format.create_source()
        if not isinstance(input_format, Source):
            raise TypeError(f"create_input() takes an InputFormat or a bounded Source, got {input_format!r}")
        if input_format.boundedness is not Boundedness.BOUNDED:
            raise InvalidProgramError(
                f"create_input(): {input_format!r} is unbounded; a data set needs a bounded source"
            )
        return self._input("SourceInput", BoundedSourceInput(input_format), type_info)

    def from_parallel_collection(
        self, iterator: SplittableIterator[Any], type_info: TypeInformation | None = None
    ) -> DataSet:
        """Return the values of a collection that divides itself, each part in the subtask that reads it."""
        if not isinstance(iterator, SplittableIterator):
            raise TypeError(f"from_parallel_collection() takes a SplittableIterator, got {iterator!r}")
        check_output_type("from_parallel_collection", type_info, "type_info")
        return self._input("ParallelCollection", IteratorInput(iterator), type_info)

    def from_data_frame(self, data_frame: Any) -> DataSet:
        """Return the rows of a DataFrame of Spark. They go to the subtasks without passing the driver."""
        check_frame("from_data_frame", data_frame, streaming=False)
        from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark

        row_type = row_type_from_spark(data_frame.schema)
        return DataSet(
            cast("ExecutionEnvironment", self),
            "DataFrame",
            FrameInputSpec(data_frame, row_type),
            known_type=row_type_info(row_type),
        )

    def _input(self, kind: str, reads: Input, known_type: TypeInformation | None) -> DataSet:
        return DataSet(cast("ExecutionEnvironment", self), kind, InputSpec(reads), known_type=known_type)


class _JsonRows:
    def __init__(self, schema: JsonRowDeserializationSchema) -> None:
        self._schema = schema

    def __call__(self, line: str) -> Any:
        return self._schema.deserialize(line.encode())


def _readable(path: Path, taken_by: str) -> str:
    return need_unpacker(input_address(path, taken_by))
