"""Errors that end an attempt of a job, or the job."""

from __future__ import annotations

import os
from traceback import extract_tb, format_exception, format_list
from typing import Any

from ekorn.errors.base import EkornError, not_passed, where, with_fields
from ekorn.errors.frames import ShownFrames
from ekorn.errors.records import UserFunctionError

_NOTEBOOK = ("IPython", "ipykernel")
_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "")


def may_be_retried(error: BaseException) -> bool:
    """Return whether another attempt of the job may succeed after this error.

    >>> from ekorn.errors import RestoreError
    >>> may_be_retried(OSError("disk full")), may_be_retried(RestoreError("no checkpoint"))
    (True, False)
    """
    if isinstance(error, UserFunctionError):
        return error.original_retryable
    return not isinstance(error, EkornError) or error.retryable


def _is_of_the_program(filename: str) -> bool:
    return not filename.startswith(_PACKAGE) and not any(f"{os.sep}{each}{os.sep}" in filename for each in _NOTEBOOK)


@with_fields
class JobExecutionError(EkornError):
    """A job failed: names the operator, the subtask and the record, and holds the user's own traceback.

    Args:
        job_name: The name given to ``execute``.
        message: The reason, in one line.
        operator_name: The operator that failed, if known.
        uid: The uid of the operator.
        subtask_index: The subtask of the operator.
        record_preview: The record in process, as :func:`preview` returns it.
        user_traceback: The user's traceback as text.
        log_path: The path of the log.
        restarts: The number of restarts before the job failed for good.
        restart_description: The restart strategy that refused another restart.
        activity: What was done for the operator when the job failed, if it was not the operator itself that ran.
    """

    job_name: str
    message: str
    operator_name: str | None = None
    uid: str | None = None
    subtask_index: int | None = None
    record_preview: str | None = None
    user_traceback: str | None = None
    log_path: str | None = None
    restarts: int = 0
    restart_description: str | None = None
    activity: str | None = None

    @classmethod
    def from_user_error(
        cls,
        job_name: str,
        error: UserFunctionError,
        *,
        user_traceback: str | None = None,
        log_path: str | None = None,
        restarts: int = 0,
        restart_description: str | None = None,
    ) -> JobExecutionError:
        """Create the error of a job that an exception of user code failed, with its traceback unless one is given."""
        message = error.original_type
        if error.original_message:
            message += f": {error.original_message}"
        return cls(
            job_name,
            message,
            error.operator_name,
            error.uid,
            error.subtask_index,
            error.record_preview,
            error.traceback_text if user_traceback is None else user_traceback,
            log_path,
            restarts,
            restart_description,
            error.activity,
        )

    cause: BaseException | None = not_passed(default=None)
    """The error that ended the last attempt. Known in the driver's process only: pickling drops it."""

    def __reduce__(self) -> tuple[type[JobExecutionError], tuple[Any, ...]]:
        return type(self), self.args

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows: the lines of the program that waited for the job, or all, and the message."""
        if ShownFrames.all_frames:
            return "".join(format_exception(self)).splitlines()
        waited = [frame for frame in extract_tb(self.__traceback__) if _is_of_the_program(frame.filename)]
        return [line.rstrip() for line in format_list(waited)] + [f"{type(self).__name__}: {self}"]

    def __str__(self) -> str:
        message = " ".join(self.message.split()) or "no reason was given"
        head = f"job {self.job_name!r} failed"
        if self.operator_name is not None or self.uid is not None:
            head += f" in {where(self.operator_name, self.uid, self.subtask_index, self.activity)}"
        if self.record_preview is not None:
            head += f" on record {self.record_preview}"
        head += f": {message}"
        if self.restarts:
            head += f" (given up after {self.restarts} restart{'s' if self.restarts != 1 else ''}"
            head += f"; {self.restart_description})" if self.restart_description else ")"
        elif self.restart_description:
            head += f" (not restarted: {self.restart_description})"
        lines = [head]
        if self.user_traceback:
            lines.append(self.user_traceback.rstrip())
        if self.log_path:
            lines.append(f"log: {self.log_path}")
        return "\n".join(lines)


@with_fields
class JobCancelledError(EkornError):
    """The job was cancelled, so it has no result."""

    job_name: str

    def __str__(self) -> str:
        return f"job {self.job_name!r} was cancelled"


class RescaleError(EkornError):
    """A job could not be rescaled, and goes on with the parallelism that it had."""


class DeploymentError(EkornError):
    """The job could not be started: a slot, an interpreter or an import was missing."""


@with_fields
class WorkerPythonError(DeploymentError):
    """The Python of Spark's workers cannot run the tasks of a job. No attempt can succeed in this session."""

    retryable = False

    worker: str
    driver: str
    problem: str

    def __str__(self) -> str:
        worker, driver, problem = self.args
        return (
            f"Spark's executors run {worker}, which cannot work with the driver's {driver}: {problem}; set "
            "PYSPARK_PYTHON (or spark.pyspark.python), before the Spark session is created, to the path that a Python "
            "of the driver's version has on the executors"
        )


@with_fields
class SlotLostError(EkornError):
    """The process of a slot died or does not answer. The job restarts from its last checkpoint."""

    slot: int
    why: str

    def __str__(self) -> str:
        slot, why = self.args
        return f"slot {slot} was lost: {why}"


@with_fields
class SlotMemoryError(SlotLostError):
    """A slot has used more memory than it may, and has ended. The job restarts from its last checkpoint."""

    slot: int
    why: str
    raised_by: str

    def __str__(self) -> str:
        slot, why, _ = self.args
        return f"slot {slot} has ended, because {why}"


@with_fields
class EpochStalledError(EkornError):
    """An epoch made no progress for too long. The job restarts from its last checkpoint."""

    epoch: int
    timeout_s: float
    waiting: list[str]

    def __str__(self) -> str:
        epoch, timeout_s, waiting = self.args
        shown = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5} more" if len(waiting) > 5 else "")
        return (
            f"epoch {epoch} stalled: for {timeout_s:g} s no slot exchanged a blob with a Spark task, and none was "
            f"inside user code; not answered: {shown or 'none, but Spark did not end its job'}; look for Spark tasks "
            "that do not get a core, and for Python workers (pyspark.daemon) that are stopped or blocked; "
            "ekorn.epoch.stall-timeout sets the limit"
        )


@with_fields
class SparkSessionLostError(EkornError):
    """The driver's Spark session is gone. No attempt of the job can succeed in this driver."""

    retryable = False

    why: str
    log_path: str | None

    def __str__(self) -> str:
        why, log_path = self.args
        log = f"; Spark's log: {log_path}" if log_path else ""
        return (
            f"the driver has lost its Spark session: {why}; start the program again: a job with checkpoints continues "
            f"from the last one, under the same job id or from its path{log}"
        )


@with_fields
class SpoolError(EkornError):
    """A slot cannot write to its folder what exceeds its memory for messages."""

    size_bytes: int
    memory_bytes: int
    reason: str

    def __str__(self) -> str:
        size_bytes, memory_bytes, reason = self.args
        return (
            f"a slot keeps {memory_bytes} bytes of messages in memory and cannot write a message of {size_bytes} bytes "
            f"to its folder: {reason}; free disk space in the slots' temporary folder, or raise "
            "ekorn.exchange.slot-memory"
        )


@with_fields
class DamagedBlob(EkornError):
    """What one subtask sent to another cannot be decoded. The job restarts from its last checkpoint."""

    which: str
    why: str

    def __str__(self) -> str:
        which, why = self.args
        return f"{which} cannot be decoded: {why}"


@with_fields
class CollectSpillError(EkornError):
    """Collected records exceed the driver's memory for them, and its disk cannot take them."""

    retryable = False

    size_bytes: int
    most_bytes: int
    why: str

    def __str__(self) -> str:
        size_bytes, most_bytes, why = self.args
        return (
            f"{size_bytes} bytes of collected records could not be written to the driver's directory for temporary "
            f"files: {why}; free space there or set TMPDIR, read the records faster, take checkpoints more often, or "
            f"raise ekorn.collect.buffer-size, now {most_bytes} bytes"
        )
