"""Errors of checkpoints and savepoints, of the directories that hold them, and of restoring from them."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields


class CheckpointError(EkornError):
    """A checkpoint or savepoint could not be written, found or read."""


@with_fields
class CheckpointFailed(CheckpointError):
    """A checkpoint failed. The job continues unless too many checkpoints fail in a row."""

    checkpoint_id: int
    reason: str

    def __str__(self) -> str:
        checkpoint_id, reason = self.args
        return f"checkpoint {checkpoint_id} failed: {reason}"


@with_fields
class CorruptFileError(CheckpointError):
    """A file is torn, was not written by ekorn, or has an unknown version."""

    path: str
    found: str
    expected: str

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
            "trust it, with `ekorn savepoint sign`"
        )


@with_fields
class JobHasFinished(CheckpointError):
    """A driver was started for a job that has finished; its first driver ended while it removed the checkpoints."""

    directory: str

    def __str__(self) -> str:
        (directory,) = self.args
        return (
            f"the job of checkpoint directory {directory!r} has finished, and all its output is committed; to run it "
            "again from the beginning, delete that directory or use another job id"
        )


@with_fields
class JobWasCancelled(CheckpointError):
    """A driver was started for a job that was cancelled, without naming the checkpoint to start from."""

    retryable = False

    job_id: str
    directory: str

    def __str__(self) -> str:
        job_id, directory = self.args
        return (
            f"job {job_id} was cancelled, so its checkpoints in {directory!r} are not resumed automatically; to "
            "start from one of them, name it (execution.state-recovery.path, `ekorn run -s PATH`); to start empty, "
            "use another job id or delete that directory"
        )


@with_fields
class DirectoryInUse(CheckpointError):
    """A second driver was started on a checkpoint directory that a running driver owns."""

    directory: str
    host: str
    pid: int

    def __str__(self) -> str:
        directory, host, pid = self.args
        return (
            f"checkpoint directory {directory!r} is in use by the driver with process id {pid} on host {host!r}; "
            "stop that one first, or run this job under another job id"
        )


@with_fields
class Fenced(CheckpointError):
    """Another driver took over the job of this driver, which must stop, commit nothing and delete nothing."""

    retryable = False

    directory: str
    term: int

    def __str__(self) -> str:
        directory, term = self.args
        return (
            f"this driver (term {term}) no longer owns checkpoint directory {directory!r}: another driver took the job "
            "over, or the directory was removed; this driver stops without committing any output"
        )


class RestoreError(EkornError, RuntimeError):
    """The job could not start from the checkpoint or savepoint it was given."""

    retryable = False


class NoReadableCheckpoint(RestoreError):
    """A job has checkpoints, and none of them can be read. Starting empty would lose state."""


class SinkFilesMissing(RestoreError):
    """Files that a checkpoint of a file sink refers to are gone, cut off, or have been made visible since."""


@with_fields
class PendingFileLost(CheckpointError):
    """A part file that a completed checkpoint is to make visible is gone or cut off. No attempt can bring it back.

    The checkpoints of the job are kept, whatever their retention: its other pending files are committed from them.

    Args:
        visible: The name that the file was to get.
        pending: What is lost, such as ``the pending file '/out/.part-0-0.inprogress'``.
        expected_bytes: How many bytes were written.
        found_bytes: How many are left; None if the file is gone.
        is_upload: Whether it is an upload in parts, which has no file before it is completed.
        waits: Whether it waited to be merged with others, so that it was never visible under this name.
    """

    retryable = False

    visible: str
    pending: str
    expected_bytes: int
    found_bytes: int | None
    is_upload: bool = False
    waits: bool = False

    def __str__(self) -> str:
        visible, pending, expected, found, is_upload, waits = self.args
        state = "is gone" if found is None else f"has {found} bytes"
        remedy = "Put the file back, from a copy or with the disk that it was on"
        if is_upload:
            remedy = "Create an object of that size, and let lifecycle rules keep uploads longer than a job may be down"
        elif not waits:
            remedy += (
                "; or, if it was committed and its visible file was moved away since, create an empty file of the "
                "visible name"
            )
        return (
            f"cannot commit {visible!r}: {pending} {state}, and {expected} bytes were written to it for a completed "
            f"checkpoint. The job is not restarted, and its checkpoints are kept. {remedy}. "
            "Then start the program again with ekorn run --resume"
        )
