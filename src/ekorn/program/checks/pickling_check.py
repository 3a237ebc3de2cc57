"""Whether an object can be sent to a slot, and which part of it cannot.

The object is pickled for trial, and the bytes are dropped. Its parts are searched only if that fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import cloudpickle

from ekorn.errors import InvalidProgramError
from ekorn.graph.plan import function_text

_SEARCH_DEPTH = 8


def check_sendable(call: str, given: Any) -> None:
    """Check that an object can be pickled.

    Raises:
        InvalidProgramError: It cannot. The message names the innermost part that cannot be pickled.
    """
    error = _pickling_error(given)
    if error is None:
        return
    path, culprit = _culprit(given)
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if path:
        raise InvalidProgramError(
            f"{call}(): {function_text(given)} captures {path!r} ({type(culprit).__name__}), which cannot be sent to "
            f"a slot: {_advice(culprit, reason)}"
        )
    raise InvalidProgramError(f"{call}(): {function_text(given)} cannot be sent to a slot: {reason}")


def _advice(culprit: Any, reason: str) -> str:
    module = type(culprit).__module__
    if module.startswith("ekorn."):
        return reason  # the messages of ekorn say what to do
    if _is_sparks(culprit):
        return (
            "Spark can be used in the driver only; collect what the function needs before the job starts, and pass "
            "it as a plain value or as a separate stream"
        )
    return f"{reason}; create it in open() instead"


def _is_sparks(given: Any) -> bool:
    return type(given).__module__.startswith("pyspark.")


class _Nowhere:
    """A file that keeps nothing, so that a trial of a large object does not need its size in memory."""

    def write(self, data: Any) -> int:
        return len(data) if isinstance(data, (bytes, bytearray)) else memoryview(data).nbytes


def _pickling_error(given: Any) -> Exception | None:
    try:
        cloudpickle.dump(given, _Nowhere())
    except Exception as error:  # pickling runs code of the user's objects, which may raise anything
        return error
    return None


def _culprit(given: Any) -> tuple[str, Any]:
    """Find the innermost part that cannot be pickled by itself. The parts of Spark's objects are not searched.

    Returns:
        The path from the object to the part, '' for the object itself, and the part.
    """
    path, culprit = "", given
    seen = {id(given)}
    for _ in range(_SEARCH_DEPTH):
        if _is_sparks(culprit):
            break
        for step, part in _parts(culprit):
            if id(part) not in seen and _pickling_error(part) is not None:
                seen.add(id(part))
                path, culprit = (path + step if path else step.lstrip(".")), part
                break
        else:
            return path, culprit
    return path, culprit


def _parts(given: Any) -> Iterator[tuple[str, Any]]:
    """Yield the parts of an object, each with the text to append to the path."""
    if isinstance(given, dict):
        for key, value in given.items():
            yield f"[{key!r}]", value
    elif isinstance(given, (list, tuple, set, frozenset)):
        for index, value in enumerate(given):
            yield f"[{index}]", value
    elif inspect.ismethod(given):
        yield ".self", given.__self__
        yield f".{given.__name__}", given.__func__
    elif inspect.isfunction(given):
        yield from _captured(given)
    elif getattr(type(given), "__reduce__", None) is object.__reduce__:
        # An object with a __reduce__ of its own does not pickle its attributes, so they are not searched.
        for name, value in _attributes(given).items():
            yield f".{name}", value
        if _is_sent_by_value(type(given)):
            for name, value in vars(type(given)).items():
                if inspect.isfunction(value):
                    for inner, part in _captured(value):
                        yield f".{name}{inner}", part


def _captured(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield f".{name}", cell.cell_contents
        except ValueError:  # the variable is assigned later
            continue
    for name in _names_in(code):
        if name in function.__globals__:
            yield f".{name}", function.__globals__[name]
    for value in function.__defaults__ or ():
        yield ".default argument", value
    for name, value in (function.__kwdefaults__ or {}).items():
        yield f".{name}", value


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):  # a function, lambda or comprehension inside
            yield from _names_in(constant)


def _attributes(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = dict(getattr(given, "__dict__", {}))
    for base in type(given).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if hasattr(given, slot):
                found.setdefault(slot, getattr(given, slot))
    return found


def _is_sent_by_value(cls: type) -> bool:
    return cls.__module__ == "__main__" or "<locals>" in cls.__qualname__
