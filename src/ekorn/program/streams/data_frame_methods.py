"""The methods of a stream that turn its records into a DataFrame, of Spark or of pandas."""

from __future__ import annotations

import os
import uuid
from typing import Any

from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.connectors.files.file_addresses import input_address
from ekorn.errors import InvalidProgramError
from ekorn.extras import need
from ekorn.functions.source_contract import Boundedness
from ekorn.graph.specs import SourceSpec, WriterSpec
from ekorn.graph.stream_graph import Kind
from ekorn.program.running.foreground import wait_in_foreground
from ekorn.program.streams.sink_methods import SinkMethods
from ekorn.types.composite_types import RowTypeInfo, TupleTypeInfo
from ekorn.types.data_types import RowType
from ekorn.types.row_schema import row_type_of

__all__ = ["DataFrameMethods"]


class DataFrameMethods(SinkMethods):
    """DataFrames of the records. PyFlink's streams do not have these methods."""

    def to_data_frame(
        self,
        schema: Any = None,
        *,
        path: str | os.PathLike[str] | None = None,
        job_execution_name: str | None = None,
    ) -> Any:
        """Run the job to its end; return the records of this stream as a DataFrame of Spark.

        The records are in the DataFrame exactly once, however often the job restarted. They lie in files, which the
        DataFrame reads each time it is used.

        Args:
            schema: The columns: a `StructType`, text such as ``id long, word string``, ``DataTypes.ROW(...)`` or
                ``Types.ROW_NAMED(...)``. By default the columns of the stream's own type. Records are `Row`s, tuples
                or dicts.
            path: A new directory for the files, which then stay. By default they are removed when the program ends.
            job_execution_name: The name of the job.
        """
        need("pyarrow", "to_data_frame()")
        self._refuse_endless("to_data_frame()", "to_streaming_data_frame(path=...)")
        from ekorn.engine.spark.data_frames.result_frames import read_rows, result_folder, session_of

        environment = self._environment
        settings = environment.job_settings("to_data_frame")
        session = session_of(settings)
        row_type = self._columns_for(schema, "to_data_frame()")
        folder = result_folder(
            settings,
            None if path is None else input_address(path, "to_data_frame()"),
            f"results/{uuid.uuid4()}",
            master=session.sparkContext.master,
            what="to_data_frame()",
        )
        if folder.files.list():
            raise InvalidProgramError(f"to_data_frame() writes to a new directory, and {folder.files.url!r} has files")
        files, edges = self._taken_by(RowFilesSink(folder.address, row_type))
        sink = environment._graph.sink("DataFrame", WriterSpec(files), edges)
        try:
            handle = environment._submit(job_execution_name)
        except BaseException:
            environment._graph.discard(sink)  # the program may correct the mistake and run again
            raise
        wait_in_foreground(handle)
        return read_rows(session, folder, row_type)

    def to_streaming_data_frame(self, schema: Any = None, *, path: str | os.PathLike[str]) -> Any:
        """Write the records of this stream to a directory; return the streaming DataFrame of Spark that reads it.

        The job runs by `execute_async()`, and the queries on the DataFrame run at the same time, or later, or in
        another program: ``spark.readStream.format("ekorn").load(path)``. A query sees each record exactly once when a
        checkpoint of the job has covered it, also if the job or the query is started again.

        Args:
            schema: The columns, as for `to_data_frame`.
            path: The directory, a path or URL that every machine sees. It may hold records of an earlier run.
        """
        need("pyarrow", "to_streaming_data_frame()")
        from ekorn.engine.spark.data_frames.result_frames import begin_stream, session_of

        session = session_of(self._environment.job_settings("to_streaming_data_frame"))
        row_type = self._columns_for(schema, "to_streaming_data_frame()")
        address = input_address(path, "to_streaming_data_frame()")
        frame = begin_stream(session, address, row_type)
        files, edges = self._taken_by(RowFilesSink(address, row_type))
        self._environment._graph.sink("streaming DataFrame", WriterSpec(files), edges)
        return frame

    def _columns_for(self, schema: Any, call: str) -> RowType:
        """Return the columns of a DataFrame of Spark."""
        from ekorn.engine.spark.data_frames.result_frames import row_type_for

        return row_type_for(schema, self._type(), call)

    def to_pandas(self, job_execution_name: str | None = None) -> Any:
        """Run the job to its end; return the records of this stream as a DataFrame of pandas.

        A stream of rows gives one column for each field, with a fitting type of pandas. All records are in the memory
        of the program.
        """
        self._refuse_endless("to_pandas()", "execute_and_collect(limit=...)")
        from ekorn.connectors.data_frames.pandas_rows import load_pandas

        load_pandas("to_pandas()")
        return self._frame(job_execution_name)

    def _frame(self, job_execution_name: str | None) -> Any:
        from ekorn.connectors.data_frames.pandas_rows import frame_of

        declared = self._type()
        row_type = row_type_of(declared, "to_pandas()") if isinstance(declared, RowTypeInfo | TupleTypeInfo) else None
        with self.execute_and_collect(job_execution_name) as records:
            return frame_of(list(records), row_type)

    def _refuse_endless(self, call: str, instead: str) -> None:
        """Refuse a stream whose job would not end."""
        seen, waiting = set(), list(self._drawn_nodes())
        while waiting:
            node = waiting.pop()
            if node.id in seen:
                continue
            seen.add(node.id)
            waiting += [edge.source for edge in node.inputs]
            spec = node.spec
            if node.kind is Kind.SOURCE and isinstance(spec, SourceSpec):
                source = spec.source
                if source.boundedness is Boundedness.CONTINUOUS_UNBOUNDED and not source.ends:
                    raise InvalidProgramError(
                        f"{call} waits for the end of the job, but {node.where} never ends: use {instead}"
                    )
