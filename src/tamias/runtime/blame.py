"""An exception inside a chain becomes an error that names the operator and the record."""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import Any

from tamias.errors import InvalidKeyError, UserFunctionError, preview
from tamias.graph.job_graph import Vertex
from tamias.runtime.code import Compiled

_NOTHING: Any = object()


def blame(
    error: BaseException, vertex: Vertex, index: int, compiled: Compiled | None = None, operator: int = 0
) -> UserFunctionError:
    """Say which operator failed, in which subtask, on which record.

    The generated loop's frame is in the traceback: its line says which operator ran, its local variables hold
    the record. The frames below it are the user's. Outside the loop `operator` says who was called.
    """
    record, frames = _NOTHING, error.__traceback__
    frame = error.__traceback__
    while frame is not None:
        if compiled is not None and frame.tb_frame.f_code.co_filename == compiled.filename:
            place = compiled.place(frame.tb_lineno)
            if place is not None:
                operator, record = place.operator, frame.tb_frame.f_locals.get(place.record, _NOTHING)
            frames = frame.tb_next
        frame = frame.tb_next
    shown = None if record is _NOTHING else preview(record)
    error = _about_keys(error, shown, in_loop=frames is None)
    failed = vertex.operators[operator]
    return UserFunctionError(
        failed.name,
        failed.uid or failed.id,
        index,
        shown,
        _text(error, frames),
        type(error).__qualname__,
        _message(error),
    )


def _about_keys(error: BaseException, record: str | None, *, in_loop: bool) -> BaseException:
    """A key that cannot be one, said in words that name the record."""
    if isinstance(error, InvalidKeyError) and not error.record_preview:
        return InvalidKeyError(record or "?", error.key_preview, error.reason)
    if in_loop and isinstance(error, TypeError) and "unhashable type" in str(error):
        kind = str(error).rpartition(":")[2].strip().strip("'")
        return InvalidKeyError(
            record or "?", f"a {kind}", f"a {kind} can change, so it has no stable hash; use a tuple or a str"
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
