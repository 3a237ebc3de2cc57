"""Turns an exception in a task into an error that names operator, record and partition, and carries it to the driver.

A task that fails raises `TaskFailed`. Spark puts its message, between frames of Python and the JVM, into the error that
the driver gets; the message holds the pickled `UserFunctionError`, and the driver finds it there. Spark stops the job
at the first failure, after the attempts that `spark.task.maxFailures` allows a cluster.
"""

from __future__ import annotations

import base64
import pickle
import re
import traceback
from types import TracebackType
from typing import Any

from ekorn.batch.plan.record_keys import FieldKeys, SelectorKeys
from ekorn.batch.tasks.folds import Fold
from ekorn.batch.tasks.fused_loop import FusedLoop
from ekorn.batch.tasks.task_operator import TaskOperator
from ekorn.errors import InvalidKeyError, UserFunctionError, may_be_retried, preview
from ekorn.errors.frames import formatted, is_on_purpose
from ekorn.errors.origin import program_line, reaches_outside
from ekorn.storage.long_texts import cut_texts

__all__ = ["TaskFailed", "carried_error", "user_error"]

_NOTHING: Any = object()
_INPUTS = "ekorn.batch.inputs."
_MARK = re.compile(r"ekorn-failure:([A-Za-z0-9+/=]+):")


class TaskFailed(Exception):
    """The exception that Spark sees. Its message carries the `UserFunctionError`."""

    def __init__(self, error: UserFunctionError) -> None:
        super().__init__(f"ekorn-failure:{base64.b64encode(pickle.dumps(error)).decode()}:")


def carried_error(message: str) -> UserFunctionError | None:
    """Return the error that the message of a Spark error carries, or None if it carries none."""
    found = _MARK.search(message)
    return None if found is None else pickle.loads(base64.b64decode(found[1]))


def user_error(
    error: BaseException, operator: TaskOperator, subtask: int, *, all_frames: bool = False
) -> UserFunctionError:
    """Return an error that names the operator that raised it.

    `operator` is the first one of the stage. It is named if no frame shows another one, or if its input failed.
    """
    whole = error.__traceback__
    first_operator = operator
    record, key, frames, activity = _NOTHING, _NOTHING, error.__traceback__, None
    frame = error.__traceback__
    while frame is not None:
        variables = frame.tb_frame.f_locals
        owner = variables.get("self")
        if isinstance(owner, TaskOperator):
            operator, activity = owner, None
            record, key = variables.get("record", _NOTHING), variables.get("key", _NOTHING)
            frames = frame.tb_next
        elif isinstance(loop := variables.get("fused"), FusedLoop):
            call = loop.call_at(frame.tb_lineno)
            operator, activity = loop.operators[0 if call is None else call.operator], None
            record, key = _NOTHING if call is None else variables[call.variable], _NOTHING
            frames = frame.tb_next
        elif isinstance(owner, Fold):  # belongs to the operator in the frame before
            record, key = variables.get("record", _NOTHING), variables.get("key", _NOTHING)
            frames = frame.tb_next
        elif isinstance(owner, (FieldKeys, SelectorKeys)):
            record, key = variables.get("record", _NOTHING), _NOTHING
            frames, activity = frame.tb_next, "the key of"
        elif frame.tb_frame.f_globals.get("__name__", "").startswith(_INPUTS):  # a source has no loop of its own
            operator, frames, activity = first_operator, frame.tb_next, None
            record = key = _NOTHING
        frame = frame.tb_next
    shown = None if record is _NOTHING else preview(record)
    if isinstance(error, InvalidKeyError) and not error.record_preview:
        error = InvalidKeyError(shown or "?", error.key_preview, error.reason)
    elif key is not _NOTHING and shown is not None and _says_unhashable(error, frames):
        error = InvalidKeyError(shown, preview(key), f"it has no hash ({error}); use a tuple or a str")
    elif key is not _NOTHING and shown is None:
        activity = f"the group of key {preview(key)} in"
    trace, message = cut_texts(_text(error, frames, whole, all_frames=all_frames), str(error))
    return UserFunctionError(
        operator.name,
        None,
        subtask,
        shown,
        trace,
        type(error).__qualname__,
        message,
        may_be_retried(error),
        activity,
        program_line(frames),
        reaches_outside(error),
    )


def _says_unhashable(error: BaseException, frames: TracebackType | None) -> bool:
    """Return whether the operator itself, not a function of the user, looked up a key without a hash."""
    return isinstance(error, TypeError) and frames is None and str(error).startswith("unhashable type")


def _text(error: BaseException, frames: TracebackType | None, whole: TracebackType | None, *, all_frames: bool) -> str:
    """Return the traceback from the user's first frame on, or the whole one; empty if this package refused a record."""
    found = traceback.TracebackException(type(error), error, whole if all_frames else frames)
    if not all_frames:
        if is_on_purpose(found, error):
            return ""
        found.__cause__ = found.__context__ = None
    return formatted(found, error, all_frames=all_frames)
