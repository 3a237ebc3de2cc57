"""Runs in the driver: a streaming query of Spark that writes its batches into files, for a job that reads them.

The files lie below the query's checkpoint location: the progress of the query belongs together with the batches that no
checkpoint of the job covers yet. The query starts before the job and is stopped with it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from ekorn.connectors.data_frames.row_batches import RowBatches, batch_path
from ekorn.connectors.data_frames.row_batches_source import RowBatchesSource
from ekorn.connectors.data_frames.written_rows import row_files_in
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames.ended_feed import asked_to_go_on
from ekorn.engine.spark.data_frames.row_folder import RowFolder, url_for_spark
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.engine.spark.driver_side.quiet_cancel import cancel_quietly
from ekorn.engine.spark.driver_side.session import first_line_of
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Source
from ekorn.storage.locations import join
from ekorn.types.data_types import RowType

__all__ = ["StreamingDataFrameInput"]

_log = logging.getLogger(__name__)
_BELOW_LOCATION = "ekorn-rows"
_MOST_UNREAD = 100  # batches that no checkpoint covers; then the query waits
_WAIT_S = 0.1
_LAST_BATCH_S = 5.0
_STOP_S = 30.0


class _QueryStopped(Exception):
    """The query is stopped, so a batch is not written. By the words of this error, Spark knows that `stop()` did it."""

    def __str__(self) -> str:
        return "py4j.protocol.Py4JJavaError: An error occurred while calling stop: java.lang.InterruptedException"


class StreamingDataFrameInput:
    """The batches of one streaming DataFrame, beside the job that reads them."""

    def __init__(
        self, frame: Any, checkpoint_location: str, query_name: str, *, available_now: bool, as_columns: bool = False
    ) -> None:
        self._as_columns = as_columns
        self._frame = frame
        self._location = checkpoint_location
        self._query_name = query_name
        self._available_now = available_now
        self.row_type: RowType = row_type_from_spark(frame.schema)
        self._query: _RunningQuery | None = None

    def start(self, job: StartingJob) -> Source:
        """Start the query, from its checkpoint location; return the source of its rows."""
        if not job.settings.checkpoints.enabled or job.batch:
            raise ConfigurationError(
                f"from_streaming_data_frame(): rows of query {self._query_name!r} are kept until a checkpoint of the "
                "job covers them, but the job takes no checkpoints: call env.enable_checkpointing(...), in STREAMING "
                "mode"
            )
        context = self._frame.sparkSession.sparkContext
        if context.defaultParallelism < 2:
            _log.warning(
                "query %s and job %s share Spark's only core (%s) and wait for each other; give Spark two or more "
                "cores",
                self._query_name,
                job.settings.job_name,
                context.master,
            )
        folder = RowFolder(join(self._location, _BELOW_LOCATION))
        self._query = _RunningQuery(context, folder, self._query_name)
        # Spark refuses a second active query of the same name, and a job may have two sources of one name.
        unique_name = f"{self._query_name} {job.operator_id[:8]}"
        writer = self._frame.writeStream.queryName(unique_name).foreachBatch(self._query.write)
        writer = writer.option("checkpointLocation", url_for_spark(self._location))
        trigger = {"availableNow": True} if self._available_now else {"processingTime": "0 seconds"}
        self._query.start(writer.trigger(**trigger).start)
        return RowBatchesSource(
            folder.address,
            self.row_type,
            lanes=job.parallelism,
            bounded=self._available_now,
            as_columns=self._as_columns,
        )

    def end(self, status: JobStatus, has_savepoint: bool) -> None:
        """Stop the query. Its batches that no checkpoint covers stay for the next start."""
        query, self._query = self._query, None
        if query is not None:
            query.stop()


class _RunningQuery:
    def __init__(self, context: Any, folder: RowFolder, name: str) -> None:
        self._context = context
        self._folder = folder
        self._files = folder.files
        self._batches = RowBatches(self._files)
        self._batches.begin()
        self._name = name
        self._stopping = threading.Event()
        self._starting = threading.Lock()  # a query that is started while the job ends would not be stopped
        self._writing = threading.Lock()  # held while a batch is written
        self._query: Any = None
        self._watcher: threading.Thread | None = None

    def write(self, frame: Any, batch_id: int) -> None:
        """Write a batch. Called by Spark, again for a batch that the query does not know to be written.

        An error is passed on in one line. Spark searches the text of an error with a regular expression that overflows
        the stack of the query's thread if the text is long, as one with Java's frames is: the query would then seem to
        have ended by itself.

        Raises:
            _QueryStopped: The query is stopped.
            RuntimeError: The batch could not be written.
        """
        try:
            with self._writing:
                self._write(frame, batch_id)
        except Exception as error:  # PySpark and the storage raise many types
            if self._stopping.is_set():
                raise _QueryStopped from None
            _log.warning("batch %d of query %s could not be written", batch_id, self._name, exc_info=True)
            raise RuntimeError(first_line_of(error)) from None

    def _write(self, frame: Any, batch_id: int) -> None:
        if self._stopping.is_set():
            raise _QueryStopped
        if self._batches.is_written(batch_id):
            return
        self._batches.prune()
        while self._batches.unread() >= _MOST_UNREAD:
            if self._stopping.wait(_WAIT_S):
                raise _QueryStopped
            self._batches.prune()
        path = batch_path(batch_id)
        # `overwrite` removes the files of a query that died before it published the batch.
        frame.write.mode("overwrite").parquet(url_for_spark(join(self._folder.address, path)), compression="snappy")
        self._batches.publish(batch_id, row_files_in(self._files.below(path)))

    def start(self, start_query: Callable[[], Any]) -> None:
        self._query = start_query()
        self._watcher = threading.Thread(
            target=self._watch, args=(start_query,), name=f"ekorn-query-{self._name}", daemon=True
        )
        self._watcher.start()

    def _watch(self, start_query: Callable[[], Any]) -> None:
        """Wait for the end of the query; start it again for each restart of the job after the query has failed."""
        failure = self._failure_of(self._query.awaitTermination)
        while asked_to_go_on(self._batches, self._name, failure, self._stopping):
            failure = self._failure_of(lambda: self._run_again(start_query))

    def _run_again(self, start_query: Callable[[], Any]) -> None:
        with self._starting:
            if self._stopping.is_set():
                return
            self._query = start_query()
        self._query.awaitTermination()

    def _failure_of(self, run: Callable[[], None]) -> str | None:
        try:
            run()
        except Exception as error:  # the class is PySpark's own; any error ends the query
            return first_line_of(error)
        return None

    def stop(self) -> None:
        with self._starting:
            self._stopping.set()
        if self._writing.acquire(timeout=_LAST_BATCH_S):
            self._writing.release()  # a batch that is not written yet is not begun
        if self._query is not None:
            calls = logging.getLogger("py4j.clientserver")
            calls.addFilter(_is_news)
            cancel_quietly(self._context, str(self._query.runId), self._query.stop)
            calls.removeFilter(_is_news)
        if self._watcher is not None:
            self._watcher.join(_STOP_S)
        self._batches.prune()


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a line in which Py4J logs an error of a callback is about another one than `_QueryStopped`."""
    return record.exc_info is None or not isinstance(record.exc_info[1], _QueryStopped)
