"""Runs in the driver: the session that reads a job's rows, the columns that a program asks for, and the DataFrame."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from typing import Any

from tamias.config.job_settings import JobSettings
from tamias.connectors.data_frames.commit_log import CommitLog, path_of
from tamias.engine.spark.data_frames.row_folder import RowFolder, row_folder, url_for_spark
from tamias.engine.spark.data_frames.schemas import row_type_from_spark, spark_schema
from tamias.engine.spark.driver_side.session import spark_context
from tamias.storage.locations import join
from tamias.types.composite_types import RowTypeInfo
from tamias.types.data_types import RowType
from tamias.types.row_schema import row_type_of
from tamias.types.type_information import TypeInformation

__all__ = ["read_rows", "result_folder", "row_type_for", "session_of"]


def session_of(settings: JobSettings) -> Any:
    """Return the session that a job of these settings runs on; start one if none runs."""
    from pyspark.sql import SparkSession

    spark_context(dict(settings.configuration), settings.spark_session)  # explains what is missing
    return settings.spark_session or SparkSession.builder.getOrCreate()


def row_type_for(schema: Any, stream_type: TypeInformation | None, taken_by: str) -> RowType:
    """Return the columns that a program asks for.

    Args:
        schema: A `StructType`, its text such as ``id long, word string``, a row type of `DataTypes` or `Types`, or
            None for the columns of the stream.
        stream_type: The type of the stream.
        taken_by: The call, for error messages.

    Raises:
        TypeError: The schema is none of these.
        ConfigurationError: The stream has no columns, or one that no table has.
    """
    from pyspark.sql.types import StructType

    match schema:
        case None:
            return row_type_of(stream_type, taken_by)
        case RowType():
            return schema
        case RowTypeInfo():
            return row_type_of(schema, taken_by)
        case StructType():
            return row_type_from_spark(schema)
        case str():
            return row_type_from_spark(StructType.fromDDL(schema))
    raise TypeError(
        f"{taken_by} takes a schema as a StructType, as text such as 'id long, word string', as DataTypes.ROW(...) or "
        f"as Types.ROW_NAMED(...), got {schema!r}"
    )


def result_folder(settings: JobSettings, path: str | None, name: str, *, master: str, what: str) -> RowFolder:
    """Return the folder of a result: the one that the program names, or one that is removed when the driver ends."""
    if path is not None:
        return RowFolder(path)
    folder = row_folder(settings, name, master=master, what=what)
    atexit.register(folder.remove)
    return folder


def read_rows(session: Any, folder: RowFolder, row_type: RowType) -> Any:
    """Return the DataFrame of the rows that a job has committed to a folder."""
    schema = spark_schema(row_type)
    files: Sequence[Any] = CommitLog(folder.files).all_files()
    if not files:
        return session.createDataFrame([], schema)
    urls = [url_for_spark(join(folder.address, path_of(file))) for file in files]
    return session.read.schema(schema).parquet(*urls)
