"""The methods of an environment that begin a stream with the rows of a DataFrame, of Spark or of pandas."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ekorn.connectors.collection_source import CollectionSource
from ekorn.connectors.data_frames.written_rows import form_of_rows
from ekorn.connectors.files.file_addresses import input_address
from ekorn.errors import ConfigurationError
from ekorn.extras import need
from ekorn.functions.source_contract import Boundedness
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.graph.specs import SourceSpec
from ekorn.program.environment.environment_sources import EnvironmentSources
from ekorn.types.data_type_info import row_type_info

if TYPE_CHECKING:
    from ekorn.program.streams.data_stream import DataStream

__all__ = ["DataFrameSources", "check_frame"]


class DataFrameSources(EnvironmentSources):
    """The methods of a `StreamExecutionEnvironment` that read DataFrames. PyFlink's environment does not have them."""

    def from_data_frame(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "DataFrame",
        *,
        as_columns: bool = False,
    ) -> DataStream:
        """Begin a stream with the rows of a DataFrame of Spark, as `Row`s with the names of its columns.

        Spark runs the plan of the DataFrame once, when the job is submitted, and writes the rows into files. The job
        reads each of them exactly once, however often it restarts. The files are deleted at the end of the job, unless
        a checkpoint is kept from which it may be resumed.

        Args:
            df: The DataFrame, of the session that runs the job.
            watermark_strategy: How timestamps and watermarks are made; None for neither.
            source_name: The name of the operator.
            as_columns: Whether the stream has columns instead of rows.
        """
        check_frame("from_data_frame", df, streaming=False)
        from ekorn.engine.spark.data_frames.data_frame_input import DataFrameInput

        part = DataFrameInput(df, as_columns=as_columns)
        produced = form_of_rows(part.row_type, as_columns=as_columns)
        source = self._deferred.source(part, "from_data_frame()", produced, Boundedness.BOUNDED)
        return self.from_source(source, watermark_strategy, source_name, produced)

    def from_streaming_data_frame(
        self,
        df: Any,
        checkpoint_location: str | os.PathLike[str],
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "streaming DataFrame",
        *,
        available_now: bool = False,
        as_columns: bool = False,
    ) -> DataStream:
        """Begin a stream with the rows of a streaming DataFrame of Spark, as `Row`s with the names of its columns.

        A streaming query starts with the job and ends with it. Spark writes each of its batches into files once, and
        the job reads each row exactly once, also if the job, its driver or the query is started again. The files of a
        batch are deleted when a checkpoint of the job covers them, so the job must take checkpoints.

        Args:
            df: The streaming DataFrame, of the session that runs the job.
            checkpoint_location: The directory in which the query keeps its progress, and the files wait; a path or URL
                that every machine sees. It belongs to this query alone.
            watermark_strategy: How timestamps and watermarks are made; None for neither.
            source_name: The name of the operator, and of the query.
            available_now: Whether the query ends with the rows that are there when it starts, and the job with it.
            as_columns: Whether the stream has columns instead of rows.
        """
        check_frame("from_streaming_data_frame", df, streaming=True)
        location = input_address(checkpoint_location, "from_streaming_data_frame()")
        from ekorn.engine.spark.data_frames.streaming_input import StreamingDataFrameInput

        part = StreamingDataFrameInput(df, location, source_name, available_now=available_now, as_columns=as_columns)
        produced = form_of_rows(part.row_type, as_columns=as_columns)
        bounds = Boundedness.BOUNDED if available_now else Boundedness.CONTINUOUS_UNBOUNDED
        source = self._deferred.source(part, "from_streaming_data_frame()", produced, bounds)
        return self.from_source(source, watermark_strategy, source_name, produced)

    def from_spark_source(
        self,
        df: Any,
        watermark_strategy: WatermarkStrategy | None = None,
        source_name: str = "Spark source",
        *,
        available_now: bool = False,
        as_columns: bool = False,
    ) -> DataStream:
        """Begin a stream with the rows of a source of Structured Streaming, as `Row`s with the names of its columns.

        The job reads the source itself, without a streaming query: the source's offsets are in the checkpoints and
        savepoints of the job, and each row is read exactly once. `select`, `where` and `explode` may stand behind the
        source. Other steps, and sources of Spark's older interface such as files, need `from_streaming_data_frame`.

        Args:
            df: What `spark.readStream...load()` returned, of the session that runs the job.
            watermark_strategy: How timestamps and watermarks are made; None for neither. Without alignment.
            source_name: The name of the operator.
            available_now: Whether the source ends with the rows that are there when it starts, and the job with it.
            as_columns: Whether the stream has columns instead of rows.
        """
        check_frame("from_spark_source", df, streaming=True)
        if watermark_strategy is not None and watermark_strategy.alignment is not None:
            raise ConfigurationError(
                "from_spark_source(): all subtasks read the same batches, so none can wait for the watermark of an "
                "alignment group: leave out with_watermark_alignment(), or use from_streaming_data_frame()"
            )
        from ekorn.engine.spark.data_frames.micro_batches import SparkMicroBatches
        from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
        from ekorn.engine.spark.data_frames.spark_source_input import SparkSourceInput

        stream = SparkMicroBatches(df, row_type_from_spark(df.schema))
        part = SparkSourceInput(
            df.sparkSession, stream, source_name, available_now=available_now, as_columns=as_columns
        )
        produced = form_of_rows(part.row_type, as_columns=as_columns)
        bounds = Boundedness.BOUNDED if available_now else Boundedness.CONTINUOUS_UNBOUNDED
        source = self._deferred.source(part, "from_spark_source()", produced, bounds)
        return self.from_source(source, watermark_strategy, source_name, produced)

    def from_pandas(self, df: Any, source_name: str = "pandas DataFrame", *, as_columns: bool = False) -> DataStream:
        """Begin a stream with the rows of a DataFrame of pandas, as `Row`s with the names of its columns.

        The rows are read during this call, by one subtask of the job in their order, without the index. Missing
        values, NaN included, are None.

        Args:
            df: The DataFrame.
            source_name: The name of the operator.
            as_columns: Whether the stream has columns instead of rows.
        """
        if type(df).__module__.partition(".")[0] != "pandas" or not hasattr(df, "itertuples"):
            raise TypeError(f"from_pandas() needs a pandas DataFrame, got {type(df).__name__}")
        from ekorn.connectors.data_frames.pandas_rows import columns_of_pandas, rows_of_pandas

        if as_columns:
            columns = columns_of_pandas(df)
            return self._source(source_name, SourceSpec(columns), columns.get_produced_type(), non_parallel=True)
        rows, row_type = rows_of_pandas(df)
        source = CollectionSource(rows)
        return self._source(source_name, SourceSpec(source), row_type_info(row_type), non_parallel=True)


_NOT_YET_A_FRAME = {
    "DataStreamReader": "call load() on it",
    "DataStreamWriter": "pass the DataFrame whose writeStream it is",
    "StreamingQuery": "a query that was started feeds only its own sink; pass the DataFrame that it writes",
}


def check_frame(call: str, df: Any, *, streaming: bool) -> None:
    """Refuse what is not a DataFrame of this kind, without importing PySpark."""
    bases = {f"{base.__module__}.{base.__qualname__}" for base in type(df).__mro__}
    if "pyspark.sql.connect.dataframe.DataFrame" in bases:
        raise TypeError(
            f"{call}() got a Spark Connect DataFrame, whose session cannot run jobs: use a session with a SparkContext "
            "in this process"
        )
    for unfinished, advice in _NOT_YET_A_FRAME.items():
        if any(base.startswith("pyspark.sql") and base.endswith(f".{unfinished}") for base in bases):
            raise TypeError(f"{call}() needs a Spark DataFrame, got a {unfinished}: {advice}")
    if "pyspark.sql.dataframe.DataFrame" not in bases:
        pandas = type(df).__module__.partition(".")[0] == "pandas"
        raise TypeError(
            f"{call}() needs a Spark DataFrame, got {'a pandas DataFrame: use from_pandas(df)' if pandas else repr(df)}"
        )
    need("pyarrow", f"{call}()")
    if df.isStreaming and not streaming:
        raise TypeError(f"{call}() got a streaming DataFrame: use from_streaming_data_frame(df, checkpoint_location)")
    if streaming and not df.isStreaming:
        raise TypeError(f"{call}() got a DataFrame that does not stream: use from_data_frame(df)")
