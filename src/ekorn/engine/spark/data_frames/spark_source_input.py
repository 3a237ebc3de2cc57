"""Runs in the driver: reads a source of Spark in batches, from offset to offset, into files that a job reads.

    <home>/source/         what the source itself notes down, such as where it began
    <home>/source.json     says that the folder was begun; a job that is restored from elsewhere looks for it
    <home>/run-<id>/       the batches of one submission (docs/formats/row-files.md)

The lanes of the job say at which offset they begin: at that of the checkpoint or savepoint, or at none. Batches of an
earlier run are deleted, and their rows are read from the source again.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from typing import Any

from ekorn.connectors.data_frames.offset_batches_source import OffsetBatchesSource
from ekorn.connectors.data_frames.row_batches import Beginning, RowBatches, batch_path
from ekorn.connectors.data_frames.written_rows import row_files_in
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames.ended_feed import asked_to_go_on
from ekorn.engine.spark.data_frames.micro_batches import MicroBatches
from ekorn.engine.spark.data_frames.row_folder import RowFolder, row_folder, url_for_spark
from ekorn.engine.spark.driver_side.quiet_cancel import cancel_quietly
from ekorn.engine.spark.driver_side.session import first_line_of
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Source
from ekorn.storage.file_store import open_files
from ekorn.storage.locations import join, shown
from ekorn.types.data_types import RowType

__all__ = ["SparkSourceInput"]

_log = logging.getLogger(__name__)
_NOTES, _BEGUN, _RUN = "source", "source.json", "run-"
_MOST_UNREAD = 100  # batches that no checkpoint covers; then the source waits
_WAIT_S = 0.1
_LAST_BATCH_S = 5.0
_STOP_S = 30.0


class SparkSourceInput:
    """The batches of one source of Spark, beside the job that reads them."""

    def __init__(
        self, session: Any, stream: MicroBatches, name: str, *, available_now: bool, as_columns: bool = False
    ) -> None:
        self._as_columns = as_columns
        self._session = session
        self._stream = stream
        self._name = name
        self._available_now = available_now
        self.row_type: RowType = stream.row_type
        self._job: StartingJob | None = None
        self._home: RowFolder | None = None
        self._run: _Run | None = None

    def start(self, job: StartingJob) -> Source:
        """Begin to read, as soon as the lanes say where; return the source of the rows."""
        if not job.settings.checkpoints.enabled or job.batch:
            raise ConfigurationError(
                f"from_spark_source(): the offsets of {self._name!r} are kept in checkpoints, but the job takes no "
                "checkpoints: call env.enable_checkpointing(...), in STREAMING mode"
            )
        context = self._session.sparkContext
        self._job = job
        self._home = home = row_folder(
            job.settings,
            f"{job.settings.job_id}/{job.operator_id}",
            master=context.master,
            what="from_spark_source()",
        )
        files = home.files
        for name in files.list():
            if name.startswith(_RUN):
                files.delete_tree(name)  # of an earlier driver of this job
        files.replace(_BEGUN, json.dumps({"format": "ekorn-spark-source", "version": 1}).encode())
        folder = RowFolder(join(home.address, f"{_RUN}{uuid.uuid4().hex}"))
        self._run = _Run(context, self._stream, folder, home.address, self._name, available_now=self._available_now)
        self._run.start()
        return OffsetBatchesSource(
            folder.address,
            shown(home.address),
            self.row_type,
            lanes=job.parallelism,
            bounded=self._available_now,
            as_columns=self._as_columns,
        )

    def end(self, status: JobStatus, has_savepoint: bool) -> None:
        """Stop reading and delete the batches. The source's own notes stay as long as a job may continue from them."""
        run, self._run = self._run, None
        if run is not None:
            run.stop()
        if self._home is None or self._job is None:
            return
        if not self._job.may_continue_after(status, has_savepoint=has_savepoint):
            self._home.remove()


class _Run:
    """One thread that reads batches until the job ends. Spark's classes are used by this thread alone."""

    def __init__(
        self, context: Any, stream: MicroBatches, folder: RowFolder, home: str, name: str, *, available_now: bool
    ) -> None:
        self._context = context
        self._stream = stream
        self._folder = folder
        self._files = folder.files
        self._batches = RowBatches(self._files)
        self._home = home
        self._name = name
        self._available_now = available_now
        self._next: tuple[int, str] | None = None  # the batch and the offset at which reading goes on
        self._ends: dict[int, str] = {}  # the offset behind a batch, of batches that no checkpoint covers
        self._job_group = f"ekorn-source-{uuid.uuid4().hex}"
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._read_until_stopped, name=f"ekorn-source-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _read_until_stopped(self) -> None:
        """Read the source, once more for each restart of the job after the source has failed."""
        while asked_to_go_on(self._batches, self._name, self._failure_of_reading(), self._stopping):
            pass

    def _failure_of_reading(self) -> str | None:
        try:
            self._read()
        except Exception as error:  # PySpark, the source and the storage raise many types
            if not self._stopping.is_set():
                _log.warning("source %s failed", self._name, exc_info=True)
            return first_line_of(error)
        finally:
            self._stream.close()
        return None

    def _read(self) -> None:
        beginning = self._wait_for_beginning()
        if beginning is None:
            return
        self._context.setJobGroup(self._job_group, f"source {self._name}", interruptOnCancel=True)
        self._stream.open(self._notes_of(beginning), available_now=self._available_now)
        if self._next is None:
            offset = self._stream.initial_offset() if beginning.offset is None else beginning.offset
            self._next = beginning.batch_id, offset
        while not self._stopping.is_set():
            self._forget_covered()
            batch_id, offset = self._next
            end = self._stream.latest_offset(offset) if self._batches.unread() < _MOST_UNREAD else None
            if end is not None and end != offset:
                self._write(batch_id, offset, end)
                self._next = batch_id + 1, end
                if self._available_now and not self._stream.ends_by_itself:
                    return
            elif end is not None and self._available_now:
                return
            else:
                self._stopping.wait(_WAIT_S)

    def _wait_for_beginning(self) -> Beginning | None:
        while not self._stopping.wait(_WAIT_S):
            beginning = self._batches.beginning()
            if beginning is not None:
                return beginning
        return None

    def _notes_of(self, beginning: Beginning) -> str:
        """Return the URL of the folder with the notes that belong to the offset."""
        own = beginning.home == shown(self._home)
        home = self._home if own else beginning.home  # with credentials, which no checkpoint holds
        if not own and not open_files(home).exists(_BEGUN):
            raise FileNotFoundError(
                f"{beginning.home!r}, where it recorded what its offsets refer to, no longer exists; it belongs to the "
                "savepoint: restore it, or start without the savepoint"
            )
        return url_for_spark(join(home, _NOTES))

    def _write(self, batch_id: int, start: str, end: str) -> None:
        path = batch_path(batch_id)
        frame = self._stream.frame(start, end)
        frame.write.mode("overwrite").parquet(url_for_spark(join(self._folder.address, path)), compression="snappy")
        self._ends[batch_id] = end
        self._batches.publish(batch_id, row_files_in(self._files.below(path)), end)

    def _forget_covered(self) -> None:
        """Delete the batches that a completed checkpoint covers, and let the source forget them too."""
        covered = self._batches.read_by_all()
        done = [batch_id for batch_id in self._ends if covered is not None and batch_id < covered]
        if not done:
            return
        self._batches.prune()
        self._stream.commit(self._ends[max(done)])
        for batch_id in done:
            del self._ends[batch_id]

    def stop(self) -> None:
        """Stop reading after the batch that is being written, and cancel a batch that takes long."""
        self._stopping.set()
        self._thread.join(_LAST_BATCH_S)
        if self._thread.is_alive():
            cancel_quietly(self._context, self._job_group, self._cancel)
        self._folder.remove()

    def _cancel(self) -> None:
        self._context.cancelJobGroup(self._job_group)
        self._thread.join(_STOP_S)
