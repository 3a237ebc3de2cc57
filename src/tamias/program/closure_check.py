"""What users hand to a stream, checked where they hand it over.

A wrong function is found here, in the line that passes it, and not by a slot an hour later: its kind, its
number of arguments, and whether everything it holds can be sent to a slot. The last is tried by pickling it
into nothing; only when that fails is the culprit searched for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import CodeType, MethodWrapperType
from typing import Any

import cloudpickle

from tamias.errors import InvalidProgramError
from tamias.functions.checkpointed import CheckpointedFunction, ListCheckpointed
from tamias.functions.record_functions import Function
from tamias.graph.plan import function_text

_SEARCH_DEPTH = 8


def check_function(call: str, function: Any, kind: type[Function], arity: int | None) -> None:
    """Check a user's function.

    Args:
        call: the method it is given to, for messages.
        function: what the user gave.
        kind: the function class expected.
        arity: with how many arguments a plain callable would be called; None when only `kind` will do.
    """
    if isinstance(function, type) and issubclass(function, Function):
        raise TypeError(f"{call}(): {function.__name__} is a class; give an object of it: {function.__name__}(...)")
    if isinstance(function, Function):
        _check_kind(call, function, kind)
    else:
        _check_callable(call, function, kind, arity)
    if isinstance(function, CheckpointedFunction) and isinstance(function, ListCheckpointed):
        raise InvalidProgramError(
            f"{call}(): {type(function).__name__} is both a CheckpointedFunction and a ListCheckpointed; choose one"
        )
    check_sendable(call, function)


def check_instance(call: str, given: Any, kind: type, hint: str = "") -> None:
    """Check that the user gave an object of a class, and that it can be sent."""
    if isinstance(given, type) and issubclass(given, kind):
        raise TypeError(f"{call}(): {given.__name__} is a class; give an object of it: {given.__name__}(...)")
    if not isinstance(given, kind):
        raise TypeError(f"{call}() needs a {kind.__name__}{hint}, got {_kind_text(given)}")
    check_sendable(call, given)


def check_single_result(call: str, function: Any, method: str) -> None:
    """Refuse a generator where one result is expected: its result would be the generator."""
    code = getattr(function, method) if isinstance(function, Function) else function
    if inspect.isgeneratorfunction(code):
        raise InvalidProgramError(
            f"{call}(): {function_text(function)} yields, but {call}() takes one result, which is returned; "
            "use flat_map() or process() for a function that yields"
        )


def check_sendable(call: str, given: Any) -> None:
    """Check that an object can be pickled, or name the part of it that cannot."""
    error = _pickling_error(given)
    if error is None:
        return
    path, culprit = _culprit(given)
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    if path:
        ours = type(culprit).__module__.startswith("tamias.")  # our own reason says what to do
        raise InvalidProgramError(
            f"{call}(): {function_text(given)} captures {path!r} ({type(culprit).__name__}), which cannot be sent to "
            f"a slot: {reason}{'' if ours else '; create it in open() instead'}"
        )
    raise InvalidProgramError(f"{call}(): {function_text(given)} cannot be sent to a slot: {reason}")


def _check_kind(call: str, function: Function, kind: type[Function]) -> None:
    if not isinstance(function, kind):
        raise TypeError(f"{call}() needs a {kind.__name__}, got {_kind_text(function)}")


def _check_callable(call: str, function: Any, kind: type[Function], arity: int | None) -> None:
    if arity is None or not callable(function):
        wanted = f"a {kind.__name__}" + ("" if arity is None else f" or a callable of {_arguments(arity)}")
        raise TypeError(f"{call}() needs {wanted}, got {_kind_text(function)}{_near_miss(function, kind)}")
    if inspect.iscoroutinefunction(function):
        raise TypeError(f"{call}(): {function_text(function)} is a coroutine function; {call}() needs a plain one")
    if isinstance(function, MethodWrapperType):
        return  # such as `5.__eq__`: it counts the object it is bound to among its arguments
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # some builtins do not tell
    try:
        signature.bind(*range(arity))
    except TypeError:
        raise TypeError(
            f"{call}() calls its function with {_arguments(arity)}, and {function_text(function)} takes {signature}"
        ) from None


def _near_miss(given: Any, kind: type[Function]) -> str:
    methods = sorted(getattr(kind, "__abstractmethods__", ()))
    if methods and all(callable(getattr(given, method, None)) for method in methods):
        return f"; it has {' and '.join(methods)}, so let its class extend {kind.__name__}"
    return ""


def _kind_text(given: Any) -> str:
    if isinstance(given, type):
        return f"the class {given.__name__}"
    for base in type(given).__mro__:
        if base is not Function and issubclass(base, Function) and base.__module__.startswith("tamias."):
            own = type(given).__name__
            return f"a {base.__name__}" if own == base.__name__ else f"{own}, a {base.__name__}"
    return f"{given!r} of type {type(given).__name__}"


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"


# ------------------------------------------------------------------------------------------ pickling


class _Nowhere:
    """A file that keeps nothing: pickling a large object to try it should not need its size in memory."""

    def write(self, data: Any) -> int:
        return len(data) if isinstance(data, (bytes, bytearray)) else memoryview(data).nbytes


def _pickling_error(given: Any) -> Exception | None:
    try:
        cloudpickle.dump(given, _Nowhere())
    except Exception as error:  # pickling runs code of the user's objects, which may raise anything
        return error
    return None


def _culprit(given: Any) -> tuple[str, Any]:
    """The innermost part that fails by itself, with its path from the object; the path is '' for the object."""
    path, culprit = "", given
    seen = {id(given)}
    for _ in range(_SEARCH_DEPTH):
        for step, part in _parts(culprit):
            if id(part) not in seen and _pickling_error(part) is not None:
                seen.add(id(part))
                path, culprit = (path + step if path else step.lstrip(".")), part
                break
        else:
            return path, culprit
    return path, culprit


def _parts(given: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, each with the text that leads to it."""
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
    elif (
        getattr(type(given), "__reduce__", None) is object.__reduce__
    ):  # otherwise what it holds is not what is pickled
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
        except ValueError:  # a variable that is assigned later
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
