"""Runs in the driver: has Spark write a DataFrame into files, once, for a job that reads them.

The plan is never run a second time: it may give other rows, or the same rows in other files. A driver that continues
the job finds the files of the driver before it.
"""

from __future__ import annotations

from typing import Any

from ekorn.connectors.data_frames.written_rows import (
    WrittenRows,
    columns_text,
    publish_manifest,
    read_manifest,
    row_files_in,
)
from ekorn.engine.beside_job import StartingJob
from ekorn.engine.spark.data_frames.row_folder import RowFolder, row_folder, url_for_spark
from ekorn.engine.spark.data_frames.spark_schemas import row_type_from_spark
from ekorn.errors import ConfigurationError
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Source
from ekorn.types.data_types import RowType

__all__ = ["DataFrameInput"]


class DataFrameInput:
    """The rows of one bounded DataFrame, beside the job that reads them."""

    def __init__(self, frame: Any, *, as_columns: bool = False) -> None:
        self._as_columns = as_columns
        self._frame = frame
        self.row_type: RowType = row_type_from_spark(frame.schema)
        self._job: StartingJob | None = None
        self._folder: RowFolder | None = None

    def start(self, job: StartingJob) -> Source:
        """Write the rows, unless an earlier driver of the job did; return their source."""
        self._job = job
        folder = self._folder = row_folder(
            job.settings,
            f"{job.settings.job_id}/{job.operator_id}",
            master=self._frame.sparkSession.sparkContext.master,
            what="from_data_frame()",
        )
        files = folder.files
        manifest = read_manifest(files)
        if manifest is None:
            # `overwrite` removes the files of a driver that died before it published the manifest.
            self._frame.write.mode("overwrite").parquet(url_for_spark(folder.address), compression="snappy")
            manifest = publish_manifest(files, row_files_in(files), self.row_type)
        elif manifest.columns != columns_text(self.row_type):
            raise ConfigurationError(
                f"from_data_frame(): job {job.settings.job_name!r} continues with the rows of its earlier driver, "
                f"whose columns were {manifest.columns}; now they are {columns_text(self.row_type)}: give the job a "
                f"new id, or remove {files.url!r} to start from the beginning"
            )
        return WrittenRows(folder.address, self.row_type, manifest.files, as_columns=self._as_columns)

    def end(self, status: JobStatus, has_savepoint: bool) -> None:
        """Delete the files, unless a checkpoint or savepoint that is kept refers to them."""
        if self._folder is None or self._job is None:
            return
        if not self._job.may_continue_after(status, has_savepoint=has_savepoint):
            self._folder.remove()
