"""Runs in the driver: the session that reads a job's rows, the columns that a program asks for, and the DataFrame."""

from __future__ import annotations

import atexit
import json
from collections.abc import Sequence
from typing import Any

from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.data_frames.commit_log import CommitLog, path_of
from ekorn.engine.spark.data_frames.ekorn_source import SCHEMA_FILE, EkornSource
from ekorn.engine.spark.data_frames.row_folder import RowFolder, row_folder, url_for_spark
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark, spark_schema
from ekorn.engine.spark.driver_side.cluster import ship_package
from ekorn.engine.spark.driver_side.session import is_started_by_us, spark_context
from ekorn.engine.spark.driver_side.worker_python import DriverPythonContext
from ekorn.errors import ConfigurationError
from ekorn.storage.locations import join
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.data_types import RowType
from ekorn.types.row_schema import row_type_of
from ekorn.types.type_information import TypeInformation

__all__ = [
    "begin_stream",
    "read_rows",
    "register_ekorn_source",
    "register_source",
    "result_folder",
    "row_type_for",
    "session_of",
]


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


def begin_stream(session: Any, address: str, row_type: RowType) -> Any:
    """Return the streaming DataFrame of the rows that jobs commit to a folder, and note the columns there.

    Raises:
        ConfigurationError: The folder was begun with other columns.
    """
    schema = spark_schema(row_type)
    files = RowFolder(address).files
    columns = schema.jsonValue()
    try:
        files.publish(SCHEMA_FILE, json.dumps(columns).encode())
    except FileExistsError:
        known = json.loads(files.read(SCHEMA_FILE))
        if known != columns:
            raise ConfigurationError(
                f"to_streaming_data_frame(): {files.url!r} holds rows with other columns, {known}; now they are "
                f"{columns}: choose another path"
            ) from None
    register_ekorn_source(session)
    return session.readStream.format(EkornSource.name()).load(address)


def register_ekorn_source(session: Any) -> None:
    """Make the format `ekorn` known to a session of Spark, for programs that only read what a job has written."""
    register_source(session, EkornSource)


def register_source(session: Any, source: type) -> None:
    """Make a data source known to a session of Spark."""
    from pyspark.sql.datasource import DataSourceRegistration

    context = session.sparkContext
    if context.master.startswith("local"):
        session = _DriverPythonSession(session, DriverPythonContext(context))
    elif not is_started_by_us(context):
        ship_package(context)  # the Python of the cluster need not have ekorn installed
    DataSourceRegistration(session).register(source)


class _DriverPythonSession:
    """A session of Spark that sends the driver's Python with what is registered. The user's session stays as it is."""

    def __init__(self, session: Any, context: DriverPythonContext) -> None:
        self._session = session
        self.sparkContext = context

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)
