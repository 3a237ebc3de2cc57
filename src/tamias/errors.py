"""Every exception tamias raises: one tree, one page.

An error keeps its fields in ``args`` and composes its message in ``__str__``. Errors travel from slots to the driver by
pickle, which rebuilds an exception by calling its class with ``args``. An error that composed its message in
``__init__`` would compose it twice, or could not be rebuilt.

    TamiasError
        the program     InvalidProgramError (DuplicateUidError), ConfigurationError (UnsafeFolderError),
                        UnsupportedOperationError, AccumulatorError, InvalidKeyError, RecordTypeError, UserFunctionError
        the job         JobExecutionError, JobCancelledError, DeploymentError, SlotLostError, CollectSpillError
        the state       StateError (StateNotKeyed, NoCurrentKey, StateMigrationError)
        checkpoints     CheckpointError (CheckpointFailed, CorruptFileError (UntrustedFileError), JobHasFinished,
                        JobWasCancelled, DirectoryInUse, Fenced), RestoreError (NoReadableCheckpoint, SinkFilesMissing)
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, ClassVar, Generic, TypeVar

__all__ = [
    "AccumulatorError",
    "CheckpointError",
    "CheckpointFailed",
    "CollectSpillError",
    "ConfigurationError",
    "CorruptFileError",
    "DeploymentError",
    "DirectoryInUse",
    "DuplicateUidError",
    "Fenced",
    "InvalidKeyError",
    "InvalidProgramError",
    "JobCancelledError",
    "JobExecutionError",
    "JobHasFinished",
    "JobWasCancelled",
    "NoCurrentKey",
    "NoReadableCheckpoint",
    "ProgramWarning",
    "RecordErrorLimitExceeded",
    "RecordTypeError",
    "RestoreError",
    "SinkFilesMissing",
    "SlotLostError",
    "SparkSessionLostError",
    "StateError",
    "StateMigrationError",
    "StateMigrationException",
    "StateNotKeyed",
    "TamiasError",
    "UnsafeFolderError",
    "UnsupportedOperationError",
    "UntrustedFileError",
    "UserFunctionError",
    "may_be_retried",
    "preview",
    "warn",
]

PREVIEW_CHARS = 200

_PACKAGE = os.path.dirname(__file__) + os.sep

T = TypeVar("T")


def preview(value: Any, limit: int = PREVIEW_CHARS) -> str:
    """Return the repr of a user's value, cut to ``limit`` characters. Never raises, even if the value's repr does.

    >>> preview("a" * 500, limit=10)
    "'aaaaaa..."
    """
    try:
        text = repr(value)
    except Exception as error:  # a broken __repr__ of the user must not hide the error being reported
        text = f"<{type(value).__name__} whose repr raised {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _where(operator_name: str | None, uid: str | None, subtask_index: int | None, activity: str | None = None) -> str:
    """Return ``operator 'count' (uid 'u1', subtask 0)``, with the parts that are known.

    An activity is text that ends before the operator, such as ``the key selector of key_by() after``.
    """
    details = []
    if uid is not None:
        details.append(f"uid {uid!r}")
    if subtask_index is not None:
        details.append(f"subtask {subtask_index}")
    name = "an operator" if operator_name is None else f"operator {operator_name!r}"
    if activity is not None:
        name = f"{activity} {name}"
    return f"{name} ({', '.join(details)})" if details else name


class TamiasError(Exception):
    """The base of every error that tamias raises."""

    retryable: ClassVar[bool] = True  # False: another attempt of the job would only fail the same way


def may_be_retried(error: BaseException) -> bool:
    """Return whether another attempt of the job may succeed after this error.

    >>> may_be_retried(OSError("disk full")), may_be_retried(RestoreError("no checkpoint"))
    (True, False)
    """
    if isinstance(error, UserFunctionError):
        return error.original_retryable
    return not isinstance(error, TamiasError) or error.retryable


class _Field(Generic[T]):
    """A name for one of the ``args`` of an error."""

    def __init__(self, index: int) -> None:
        self._index = index

    def __get__(self, error: TamiasError, owner: type[TamiasError]) -> T:
        return error.args[self._index]  # type: ignore[no-any-return]


# ---------------------------------------------------------------------------------------------- the program


class InvalidProgramError(TamiasError):
    """The program cannot be run. Raised by the call that is wrong."""

    retryable = False


class ProgramWarning(UserWarning):
    """A program that can run probably does not do what its author wanted."""


def warn(message: str) -> None:
    """Warn with `ProgramWarning` at the line of the program that called into this package."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, ProgramWarning, stacklevel=level)


class DuplicateUidError(InvalidProgramError, ValueError):
    """Two operators have the same uid, or the same uid hash."""


class ConfigurationError(TamiasError, ValueError):
    """A configuration value cannot be read, or contradicts another value."""

    retryable = False


class UnsafeFolderError(ConfigurationError):
    """A folder for private files belongs to another user, can be entered by other users, or is a link or a file."""

    def __init__(self, path: str, found: str) -> None:
        super().__init__(path, found)

    path = _Field[str](0)
    found = _Field[str](1)

    def __str__(self) -> str:
        path, found = self.args
        return (
            f"{path!r} must be a folder of this user's that nobody else may enter, but {found}; "
            "remove it or `chmod 700` it, or choose another directory"
        )


class UnsupportedOperationError(TamiasError, NotImplementedError):
    """Flink has the operation, but it is not allowed or not offered here."""


class AccumulatorError(TamiasError):
    """Two accumulators with the same name differ in type, or an accumulator could not be merged."""


class InvalidKeyError(TamiasError, TypeError):
    """A key selector returned a value that cannot be a key."""

    def __init__(self, record_preview: str, key_preview: str, reason: str) -> None:
        super().__init__(record_preview, key_preview, reason)

    record_preview = _Field[str](0)
    key_preview = _Field[str](1)
    reason = _Field[str](2)

    def __str__(self) -> str:
        record, key, reason = self.args
        return f"cannot use {key} as the key of record {record}: {reason}"


class RecordTypeError(TamiasError, TypeError):
    """A function returned a value that does not fit the type declared for its output."""

    def __init__(self, declared: str, value_preview: str, reason: str) -> None:
        super().__init__(declared, value_preview, reason)

    declared = _Field[str](0)
    value_preview = _Field[str](1)
    reason = _Field[str](2)
    emitted_by: int | None = None  # the operator of the chain that emitted the value, if known

    def __str__(self) -> str:
        declared, value, reason = self.args
        return (
            f"the value {value} does not fit the declared type {declared}: {reason}; "
            "return a fitting value, or declare another output_type"
        )


class RecordTooLargeError(TamiasError):
    """A record is larger than any record that can be sent to another subtask."""

    def __init__(self, size_bytes: int, most_bytes: int, key_preview: str | None) -> None:
        super().__init__(size_bytes, most_bytes, key_preview)

    emitted_by: int | None = None  # the operator of the chain that emitted the record, if known

    def __str__(self) -> str:
        size_bytes, most_bytes, key = self.args
        whose = "" if key is None else f" of key {key}"
        return (
            f"a record{whose} has {size_bytes} bytes when pickled, and a record may have {most_bytes}; "
            "split the record, send the address of a file instead, or raise tamias.exchange.max-record-size up to 1 gb"
        )


class SpoolError(TamiasError):
    """A slot cannot write to its folder what exceeds its memory for messages."""

    def __init__(self, size_bytes: int, memory_bytes: int, reason: str) -> None:
        super().__init__(size_bytes, memory_bytes, reason)

    def __str__(self) -> str:
        size_bytes, memory_bytes, reason = self.args
        return (
            f"a slot keeps {memory_bytes} bytes of messages in memory and cannot write a message of {size_bytes} bytes "
            f"to its folder: {reason}; free disk space in the slots' temporary folder, or raise "
            "tamias.exchange.slot-memory"
        )


class RecordErrorLimitExceeded(TamiasError):
    """More records failed than ``tamias.on-record-error.limit`` allows.

    Args:
        operator_name: The operator.
        limit: The limit.
        record_preview: The last record, as :func:`preview` returns it.
        reason: Why the last record failed.
    """

    def __init__(self, operator_name: str, limit: int, record_preview: str | None, reason: str) -> None:
        super().__init__(operator_name, limit, record_preview, reason)

    def __str__(self) -> str:
        operator_name, limit, record, reason = self.args
        return (
            f"operator {operator_name!r} has skipped {limit} record(s), which is the limit of this subtask, and cannot "
            f"process record {record}: {reason}; raise tamias.on-record-error.limit, or correct the function"
        )


class UserFunctionError(TamiasError):
    """An exception of user code, as a slot sends it to the driver.

    The error holds text only: the class of the user's exception may not pickle, or not be importable in the driver.
    """

    def __init__(  # noqa: PLR0917 - rebuilt by pickle from its positional arguments
        self,
        operator_name: str,
        uid: str | None,
        subtask_index: int,
        record_preview: str | None,
        traceback_text: str,
        original_type: str,
        original_message: str = "",
        original_retryable: bool = True,
        activity: str | None = None,
    ) -> None:
        super().__init__(
            operator_name,
            uid,
            subtask_index,
            record_preview,
            traceback_text,
            original_type,
            original_message,
            original_retryable,
            activity,
        )

    operator_name = _Field[str](0)
    uid = _Field[str | None](1)
    subtask_index = _Field[int](2)
    record_preview = _Field[str | None](3)
    traceback_text = _Field[str](4)
    original_type = _Field[str](5)
    original_message = _Field[str](6)
    original_retryable = _Field[bool](7)
    activity = _Field[str | None](8)

    def __str__(self) -> str:
        name, uid, subtask, record, trace, original_type, message, _, activity = self.args
        head = f"{original_type}: {message}" if message else original_type
        at = "" if record is None else f" while processing record {record}"
        return f"{head} in {_where(name, uid, subtask, activity)}{at}\n{trace.rstrip()}"


# --------------------------------------------------------------------------------------------------- the job


class JobExecutionError(TamiasError):
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

    def __init__(  # noqa: PLR0917 - rebuilt by pickle from its positional arguments
        self,
        job_name: str,
        message: str,
        operator_name: str | None = None,
        uid: str | None = None,
        subtask_index: int | None = None,
        record_preview: str | None = None,
        user_traceback: str | None = None,
        log_path: str | None = None,
        restarts: int = 0,
        restart_description: str | None = None,
        activity: str | None = None,
    ) -> None:
        super().__init__(
            job_name,
            message,
            operator_name,
            uid,
            subtask_index,
            record_preview,
            user_traceback,
            log_path,
            restarts,
            restart_description,
            activity,
        )

    @classmethod
    def from_user_error(
        cls,
        job_name: str,
        error: UserFunctionError,
        *,
        log_path: str | None = None,
        restarts: int = 0,
        restart_description: str | None = None,
    ) -> JobExecutionError:
        """Create the error of a job that an exception of user code failed."""
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
            error.traceback_text,
            log_path,
            restarts,
            restart_description,
            error.activity,
        )

    cause: BaseException | None = None
    """The error that ended the last attempt. Known in the driver's process only: pickling drops it."""

    def __reduce__(self) -> tuple[type[JobExecutionError], tuple[Any, ...]]:
        return type(self), self.args

    job_name = _Field[str](0)
    message = _Field[str](1)
    operator_name = _Field[str | None](2)
    uid = _Field[str | None](3)
    subtask_index = _Field[int | None](4)
    record_preview = _Field[str | None](5)
    user_traceback = _Field[str | None](6)
    log_path = _Field[str | None](7)
    restarts = _Field[int](8)
    restart_description = _Field[str | None](9)
    activity = _Field[str | None](10)

    def __str__(self) -> str:
        message = " ".join(self.message.split()) or "no reason was given"
        head = f"job {self.job_name!r} failed"
        if self.operator_name is not None or self.uid is not None:
            head += f" in {_where(self.operator_name, self.uid, self.subtask_index, self.activity)}"
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


class JobCancelledError(TamiasError):
    """The job was cancelled, so it has no result."""

    def __init__(self, job_name: str) -> None:
        super().__init__(job_name)

    job_name = _Field[str](0)

    def __str__(self) -> str:
        return f"job {self.args[0]!r} was cancelled"


class DeploymentError(TamiasError):
    """The job could not be started: a slot, an interpreter or an import was missing."""


class SlotLostError(TamiasError):
    """The process of a slot died or does not answer. The job restarts from its last checkpoint."""

    def __init__(self, slot: int, why: str) -> None:
        super().__init__(slot, why)

    slot = _Field[int](0)
    why = _Field[str](1)

    def __str__(self) -> str:
        slot, why = self.args
        return f"slot {slot} was lost: {why}"


class EpochStalledError(TamiasError):
    """An epoch made no progress for too long. The job restarts from its last checkpoint."""

    def __init__(self, epoch: int, timeout_s: float, waiting: list[str]) -> None:
        super().__init__(epoch, timeout_s, waiting)

    epoch = _Field[int](0)
    timeout_s = _Field[float](1)
    waiting = _Field[list[str]](2)

    def __str__(self) -> str:
        epoch, timeout_s, waiting = self.args
        shown = ", ".join(waiting[:5]) + (f" and {len(waiting) - 5} more" if len(waiting) > 5 else "")
        return (
            f"epoch {epoch} stalled: for {timeout_s:g} s no slot exchanged a blob with a Spark task, and none was "
            f"inside user code; not answered: {shown or 'none, but Spark did not end its job'}; look for Spark tasks "
            "that do not get a core, and for Python workers (pyspark.daemon) that are stopped or blocked; "
            "tamias.epoch.stall-timeout sets the limit"
        )


class SparkSessionLostError(TamiasError):
    """The driver's Spark session is gone. No attempt of the job can succeed in this driver."""

    retryable = False

    def __init__(self, why: str, log_path: str | None) -> None:
        super().__init__(why, log_path)

    def __str__(self) -> str:
        why, log_path = self.args
        log = f"; Spark's log: {log_path}" if log_path else ""
        return (
            f"the driver has lost its Spark session: {why}; start the program again: a job with checkpoints continues "
            f"from the last one, under the same job id or from its path{log}"
        )


class CollectSpillError(TamiasError):
    """Collected records exceed the driver's memory for them, and its disk cannot take them."""

    retryable = False

    def __init__(self, size_bytes: int, most_bytes: int, why: str) -> None:
        super().__init__(size_bytes, most_bytes, why)

    def __str__(self) -> str:
        size_bytes, most_bytes, why = self.args
        return (
            f"{size_bytes} bytes of collected records could not be written to the driver's directory for temporary "
            f"files: {why}; free space there or set TMPDIR, read the records faster, take checkpoints more often, or "
            f"raise tamias.collect.buffer-size, now {most_bytes} bytes"
        )


# ------------------------------------------------------------------------------------------------- the state


class StateError(TamiasError):
    """State was declared or used in a way that is not allowed."""


class StateNotKeyed(StateError):
    """A function that does not run on a keyed stream asked for keyed state."""

    retryable = False

    def __init__(self, state: str) -> None:
        super().__init__(state)

    state = _Field[str](0)

    def __str__(self) -> str:
        return (
            f"keyed state {self.args[0]!r} was asked for on a stream that is not keyed; "
            "call key_by(...) before this function"
        )


class NoCurrentKey(StateError):
    """Keyed state was read or written while no record or timer was being processed."""

    def __str__(self) -> str:
        return (
            "keyed state was used where there is no current key; "
            "use it while processing a record or a timer, not in open(), close() or process_broadcast_element()"
        )


class StateMigrationError(StateError):
    """The new declaration of a state cannot read the values that the old declaration stored."""

    retryable = False


# Flink: programs catch the error by this name.
StateMigrationException = StateMigrationError


# ------------------------------------------------------------------------------- checkpoints and what they restore


class CheckpointError(TamiasError):
    """A checkpoint or savepoint could not be written, found or read."""


class CheckpointFailed(CheckpointError):
    """A checkpoint failed. The job continues unless too many checkpoints fail in a row."""

    def __init__(self, checkpoint_id: int, reason: str) -> None:
        super().__init__(checkpoint_id, reason)

    checkpoint_id = _Field[int](0)
    reason = _Field[str](1)

    def __str__(self) -> str:
        checkpoint_id, reason = self.args
        return f"checkpoint {checkpoint_id} failed: {reason}"


class CorruptFileError(CheckpointError):
    """A file is torn, was not written by tamias, or has an unknown version."""

    def __init__(self, path: str, found: str, expected: str) -> None:
        super().__init__(path, found, expected)

    path = _Field[str](0)
    found = _Field[str](1)
    expected = _Field[str](2)

    def __str__(self) -> str:
        path, found, expected = self.args
        return (
            f"cannot read {path!r}: found {found}, expected {expected}; "
            "restore from an older checkpoint, or from a copy of this file"
        )


class UntrustedFileError(CorruptFileError):
    """A signing key is configured, and the metadata of a checkpoint is not signed with it."""

    def __str__(self) -> str:
        path, found, option = self.args
        return (
            f"cannot trust {path!r}: found {found}, expected a signature of the key that is given by {option}; "
            "restore a checkpoint that was taken with this key, give the key that signed this one, or sign it, if you "
            "trust it, with `tamias savepoint sign`"
        )


class JobHasFinished(CheckpointError):
    """A driver was started for a job that has finished; its first driver ended while it removed the checkpoints."""

    def __init__(self, directory: str) -> None:
        super().__init__(directory)

    directory = _Field[str](0)

    def __str__(self) -> str:
        (directory,) = self.args
        return (
            f"the job of checkpoint directory {directory!r} has finished, and all its output is committed; to run it "
            "again from the beginning, delete that directory or use another job id"
        )


class JobWasCancelled(CheckpointError):
    """A driver was started for a job that was cancelled, without naming the checkpoint to start from."""

    retryable = False

    def __init__(self, job_id: str, directory: str) -> None:
        super().__init__(job_id, directory)

    job_id = _Field[str](0)
    directory = _Field[str](1)

    def __str__(self) -> str:
        job_id, directory = self.args
        return (
            f"job {job_id} was cancelled, and no driver continues from its checkpoints in {directory!r} unasked; to "
            "start from one of them, name it (execution.state-recovery.path, `tamias run -s PATH`); to start empty, "
            "use another job id or delete that directory"
        )


class DirectoryInUse(CheckpointError):
    """A second driver was started on a checkpoint directory that a running driver owns."""

    def __init__(self, directory: str, host: str, pid: int) -> None:
        super().__init__(directory, host, pid)

    directory = _Field[str](0)
    host = _Field[str](1)
    pid = _Field[int](2)

    def __str__(self) -> str:
        directory, host, pid = self.args
        return (
            f"checkpoint directory {directory!r} is in use by the driver with process id {pid} on host {host!r}; "
            "stop that one first, or run this job under another job id"
        )


class Fenced(CheckpointError):
    """Another driver took over the job of this driver, which must stop, commit nothing and delete nothing."""

    retryable = False

    def __init__(self, directory: str, term: int) -> None:
        super().__init__(directory, term)

    directory = _Field[str](0)
    term = _Field[int](1)

    def __str__(self) -> str:
        directory, term = self.args
        return (
            f"this driver (term {term}) no longer owns checkpoint directory {directory!r}: another driver took the job "
            "over, or the directory was removed; this driver stops without committing anything"
        )


class RestoreError(TamiasError, RuntimeError):
    """The job could not start from the checkpoint or savepoint it was given."""

    retryable = False


class NoReadableCheckpoint(RestoreError):
    """A job has checkpoints, and none of them can be read. Starting empty would lose state."""


class SinkFilesMissing(RestoreError):
    """Files that a checkpoint of a file sink refers to are gone, cut off, or have been made visible since."""
