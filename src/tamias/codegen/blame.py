"""An exception inside a chain becomes an error that names the operator and the record."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from tamias.codegen.code_builder import CompiledCode
from tamias.errors import InvalidKeyError, RecordTypeError, UserFunctionError, may_be_retried, preview
from tamias.graph.job_graph import Operator, Vertex

_NOTHING: Any = object()


def blame(
    error: BaseException, vertex: Vertex, index: int, compiled: CompiledCode | None = None, operator: int = 0
) -> UserFunctionError:
    """Say which operator failed, in which subtask, on which record.

    The generated loop's frame is in the traceback: its line says which operator ran, its local variables hold
    the record. The frames below it are the user's. Outside the loop `operator` says who was called.
    """
    record, key, frames = _NOTHING, _NOTHING, error.__traceback__
    frame = error.__traceback__
    while frame is not None:
        if compiled is not None and frame.tb_frame.f_code.co_filename == compiled.filename:
            origin = compiled.origin(frame.tb_lineno)
            if origin is not None:
                variables = frame.tb_frame.f_locals
                operator, record = origin.operator, variables.get(origin.record, _NOTHING)
                key = variables.get(origin.key, _NOTHING) if origin.key is not None else _NOTHING
            frames = frame.tb_next
        frame = frame.tb_next
    shown = None if record is _NOTHING else preview(record)
    error = _about_keys(error, shown, key if frames is None else _NOTHING)
    return user_error(error, vertex.operators[_author(error, vertex, operator)], index, shown, frames)


def user_error(
    error: BaseException, failed: Operator, index: int, record: str | None, frames: TracebackType | None
) -> UserFunctionError:
    """An operator failed on a record, given as text; `frames` begin with the user's first."""
    return UserFunctionError(
        failed.name,
        failed.uid or failed.id,
        index,
        record,
        _text(error, frames),
        type(error).__qualname__,
        _message(error),
        may_be_retried(error),
    )


def _author(error: BaseException, vertex: Vertex, operator: int) -> int:
    """Who is to blame: where a record does not fit its declared type, not the operator that noticed."""
    if not isinstance(error, RecordTypeError):
        return operator
    if error.emitted_by is not None:
        return error.emitted_by
    return next((link.source for link in vertex.links if link.target == operator), operator)


def _about_keys(error: BaseException, record: str | None, key: Any) -> BaseException:
    """A key that cannot be one, said in words that name the record; `key` is what the loop was looking up."""
    if isinstance(error, InvalidKeyError) and not error.record_preview:
        return InvalidKeyError(record or "?", error.key_preview, error.reason)
    if key is not _NOTHING and isinstance(error, TypeError):
        kind = str(error).rpartition(":")[2].strip().strip("'")
        return InvalidKeyError(
            record or "?", preview(key), f"a {kind} can change, so it has no stable hash; use a tuple or a str"
        )
    return error


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a broken __str__ of the user's exception must not hide the exception
        return ""


def _text(error: BaseException, frames: TracebackType | None) -> str:
    """The traceback from the user's first frame on, with causes."""
    return "".join(traceback.TracebackException(type(error), error, frames).format()).rstrip()
