"""Turns an exception inside a chain into an error that names the operator and the record."""

from __future__ import annotations

import pickle
import threading
import traceback
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, NamedTuple

from ekorn.codegen.code_builder import CompiledCode
from ekorn.codegen.exchange_code import COPY
from ekorn.errors import (
    InvalidKeyError,
    RecordTooLargeError,
    RecordTypeError,
    UserFunctionError,
    may_be_retried,
    preview,
)
from ekorn.errors.frames import formatted, is_on_purpose, user_frames
from ekorn.errors.origin import program_line, reaches_outside
from ekorn.graph.job_graph import Operator, Vertex
from ekorn.storage.long_texts import cut_texts

_NOTHING: Any = object()

FAILED_ROW = "_failed_row_of_batch"
"""The local variable with the row of a batch that failed, in `operators/columns/column_operator.py`."""


Firing = Callable[[FrameType], str | None]


class Blame:
    """Attributes exceptions in one subtask to the operator that raised them."""

    def __init__(
        self, vertex: Vertex, index: int, firing: Firing = lambda frame: None, *, all_frames: bool = False
    ) -> None:
        """Attribute the exceptions of a subtask.

        Args:
            vertex: The chain.
            index: The index of the subtask.
            firing: Returns which timer or window fires in a frame; None if none does.
            all_frames: Whether tracebacks show frames of this package too.
        """
        self.compiled: CompiledCode | None = None  # once the chain is compiled
        self._vertex = vertex
        self._index = index
        self._firing = firing
        self._all_frames = all_frames

    def operator(self, number: int = 0) -> _Blaming:
        """Return a context in which an exception becomes a `UserFunctionError`.

        The error names operator `number`, unless the traceback shows a line generated for another operator.
        """
        return _Blaming(self, number)

    def error(self, error: BaseException, number: int) -> UserFunctionError:
        """Return an error that names the operator, the subtask and the record. Outside the loop, `number` failed."""
        blamed = self.locate(error, number)
        failed = self._vertex.operators[blamed.number]
        return user_error(
            blamed.error,
            failed,
            self._index,
            blamed.record_preview,
            blamed.frames,
            activity=blamed.activity,
            all_frames=self._all_frames,
        )

    def locate(self, error: BaseException, number: int) -> Blamed:
        """Find the operator that raised an exception, and the record.

        The frame of the generated loop is in the traceback. Its line tells which operator ran, and its local
        variables hold the record. The frames below it are the user's. Outside the loop, `number` is the operator.
        A timer or a window that fires is named beside the operator, unless what it emitted failed in a later one.
        """
        whole = error.__traceback__
        record, key, frames = _NOTHING, _NOTHING, whole
        activity: str | None = None
        frame = error.__traceback__
        while frame is not None:
            if self.compiled is not None and frame.tb_frame.f_code.co_filename == self.compiled.filename:
                origin = self.compiled.origin(frame.tb_lineno)
                if origin is not None:
                    variables = frame.tb_frame.f_locals
                    number, record = origin.operator, variables.get(origin.record, _NOTHING)
                    activity = origin.activity
                    if activity == COPY:
                        error = _unserializable(error, record)
                        record = variables.get(origin.result_of, _NOTHING) if origin.result_of is not None else _NOTHING
                    key = variables.get(origin.key, _NOTHING) if origin.key is not None else _NOTHING
                frames = frame.tb_next
            elif (fired := self._firing(frame.tb_frame)) is not None:
                activity = fired
            elif (row := frame.tb_frame.f_locals.get(FAILED_ROW)) is not None:
                record = row  # of the batch that the generated loop has
            frame = frame.tb_next
        if activity == COPY and not user_frames(traceback.extract_tb(frames)):
            # The frames are those of pickling; a user's frame among them shows its __reduce__ or the like.
            frames = None
        shown = None if record is _NOTHING else preview(record)
        error = _about_keys(error, shown, key if frames is None else _NOTHING)
        number = _author(error, self._vertex, number)
        if self._all_frames:
            frames = whole
        return Blamed(number, error, None if record is _NOTHING else record, shown, activity, frames, self._all_frames)


class Blamed(NamedTuple):
    """An exception with what is known about it.

    Attributes:
        number: The operator, by its position in the chain.
        error: The exception, or the error that explains it.
        record: The record in process, if it is known.
        record_preview: The record as text; None if it is not known.
        activity: What was done for the operator, if it was not the operator itself that ran.
        frames: The traceback from the user's first frame on; the whole one if all frames are shown.
        all_frames: Whether frames of this package are shown too.
    """

    number: int
    error: BaseException
    record: Any
    record_preview: str | None
    activity: str | None
    frames: TracebackType | None
    all_frames: bool

    def traceback_text(self) -> str:
        """Return the traceback from the user's first frame on, as text."""
        return cut_texts(_text(self.error, self.frames, all_frames=self.all_frames))[0]


class _Blaming:
    __slots__ = ("_blame", "_number")

    def __init__(self, blame: Blame, number: int) -> None:
        self._blame = blame
        self._number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, frames: Any) -> None:
        if error is None or isinstance(error, UserFunctionError) or _is_from_outside(error):
            return
        raise self._blame.error(error, self._number) from error


def _is_from_outside(error: BaseException) -> bool:
    """Return whether an exception reached user code without being raised there: Ctrl-C, or the end of a generator.

    Python raises Ctrl-C in the main thread alone. The end of a generator of this package shows no frame of the user's.
    """
    if isinstance(error, KeyboardInterrupt):
        return threading.current_thread() is threading.main_thread()
    return isinstance(error, GeneratorExit) and not user_frames(traceback.extract_tb(error.__traceback__))


def user_error(
    error: BaseException,
    failed: Operator,
    index: int,
    record: str | None,
    frames: TracebackType | None,
    *,
    activity: str | None = None,
    all_frames: bool = False,
) -> UserFunctionError:
    """Return the error of an operator that failed on a record.

    Args:
        record: The record as text, if it is known.
        frames: The traceback from the user's first frame on.
        activity: What was done for the operator, if it was not the operator itself that ran.
        all_frames: Whether frames of this package are shown too.
    """
    trace, message = cut_texts(_text(error, frames, all_frames=all_frames), message_of(error))
    return UserFunctionError(
        failed.name,
        failed.uid,
        index,
        record,
        trace,
        type(error).__qualname__,
        message,
        may_be_retried(error),
        activity,
        program_line(frames) or program_line(_cause_frames(error)),
        reaches_outside(error),
    )


def _cause_frames(error: BaseException) -> TracebackType | None:
    return None if error.__cause__ is None else error.__cause__.__traceback__


def _author(error: BaseException, vertex: Vertex, operator: int) -> int:
    """Return the operator to name. A record that does not fit its declared type is the fault of its emitter."""
    if not isinstance(error, (RecordTypeError, RecordTooLargeError)):
        return operator
    if error.emitted_by is not None:
        return error.emitted_by
    return next((link.source for link in vertex.links if link.target == operator), operator)


def _about_keys(error: BaseException, record: str | None, key: Any) -> BaseException:
    """Return an error about an invalid key that names the record; other errors are returned unchanged.

    Args:
        key: The key that the generated loop was looking up, if any.
    """
    if isinstance(error, InvalidKeyError) and not error.record_preview:
        return InvalidKeyError(record or "?", error.key_preview, error.reason)
    if key is not _NOTHING and isinstance(error, TypeError):
        kind = str(error).rpartition(":")[2].strip().strip("'")
        return InvalidKeyError(
            record or "?", preview(key), f"a {kind} is mutable, so it has no stable hash; use a tuple or a str"
        )
    return error


def _unserializable(error: BaseException, result: Any) -> BaseException:
    """Return the error for a result that cannot be pickled, with what to do; other errors are returned unchanged."""
    if not isinstance(error, TypeError | pickle.PicklingError | AttributeError):
        return error
    what = f"the result {preview(result)} ({type(result).__name__})"
    return TypeError(f"{what} cannot be serialized: {message_of(error)}; emit plain data instead")


def message_of(error: BaseException) -> str:
    """Return the text of an exception."""
    try:
        return str(error)
    except Exception:  # a broken __str__ of the user's exception must not hide the exception
        return ""


def _text(error: BaseException, frames: TracebackType | None, *, all_frames: bool) -> str:
    """Format the frames of the user, with those of the causes, or all frames.

    An error that this package raises on purpose, while no frame is the user's, says in its message what is wrong and
    where; its traceback would show this package's own lines. So its text contains no traceback, or only that of the
    user's error that caused it.
    """
    found = traceback.TracebackException(type(error), error, frames)
    if is_on_purpose(found, error) and not all_frames:
        cause = found.__cause__
        if cause is None or not user_frames(cause.stack):
            return ""
        assert error.__cause__ is not None
        found, error = cause, error.__cause__
    return formatted(found, error, all_frames=all_frames)
