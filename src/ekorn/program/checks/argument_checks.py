"""Checks of the arguments of a transformation, made at the call.

A wrong function raises in the line that passes it, not in a slot an hour later. Checked are its kind, its number of
arguments and, in `pickling_check`, whether everything it holds can be sent to a slot. A function that is probably a
mistake, such as one that returns nothing, gets a warning.
"""

from __future__ import annotations

import dis
import inspect
from types import CodeType, FunctionType, MethodWrapperType
from typing import Any

from ekorn.errors import InvalidProgramError, warn
from ekorn.functions.record_functions import Function
from ekorn.functions.state.checkpointed import CheckpointedFunction, ListCheckpointed
from ekorn.graph.plan import function_text
from ekorn.program.checks.pickling_check import check_sendable
from ekorn.types.type_information import TypeInformation


def check_function(call: str, function: Any, kind: type[Function], arity: int | None) -> None:
    """Check the kind and the arity of a user's function, and that it can be sent to a slot.

    Args:
        call: The method that the function is passed to, for error messages.
        function: The argument of the user.
        kind: The expected function class.
        arity: The number of arguments that a plain callable is called with; None if only a `kind` is accepted.
    """
    if isinstance(function, type) and issubclass(function, Function):
        raise TypeError(f"{call}(): {function.__name__} is a class; pass an instance of it: {function.__name__}(...)")
    if isinstance(function, Function):
        _check_kind(call, function, kind)
        _check_plain_methods(call, function)
    else:
        _check_callable(call, function, kind, arity)
    if isinstance(function, CheckpointedFunction) and isinstance(function, ListCheckpointed):
        raise InvalidProgramError(
            f"{call}(): {type(function).__name__} is both a CheckpointedFunction and a ListCheckpointed; choose one of "
            "them"
        )
    check_sendable(call, function)


def check_instance(call: str, given: Any, kind: type, hint: str = "") -> None:
    """Check that an argument is an object of a class, and that it can be sent to a slot."""
    if isinstance(given, type) and issubclass(given, kind):
        raise TypeError(f"{call}(): {given.__name__} is a class; pass an instance of it: {given.__name__}(...)")
    if not isinstance(given, kind):
        raise TypeError(f"{call}() needs a {kind.__name__}{hint}, got {_kind_text(given)}")
    check_sendable(call, given)


def check_single_result(call: str, function: Any, method: str) -> None:
    """Refuse a generator function where one result per call is expected: its result would be the generator."""
    code = getattr(function, method) if isinstance(function, Function) else function
    if inspect.isgeneratorfunction(code):
        raise InvalidProgramError(
            f"{call}(): {function_text(function)} yields, but {call}() needs a function that returns one result; "
            "use flat_map() or process() for a function that yields"
        )


def check_output_type(call: str, given: object, parameter: str = "output_type") -> None:
    """Check that a declared type is a `TypeInformation` or None."""
    if given is None or isinstance(given, TypeInformation):
        return
    maker = getattr(given, "__qualname__", "")
    if callable(given) and maker.startswith("Types."):
        raise TypeError(
            f"the {parameter} of {call} is a function that was not called: write {maker}(...) instead of {maker}"
        )
    raise TypeError(f"the {parameter} of {call} must be a type such as Types.INT(), got {given!r}")


def _check_kind(call: str, function: Function, kind: type[Function]) -> None:
    if not isinstance(function, kind):
        raise TypeError(f"{call}() needs a {kind.__name__}, got {_kind_text(function)}")


def _check_plain_methods(call: str, function: Function) -> None:
    """Refuse a method by `async def` that takes the place of a plain one."""
    bases = [each for each in type(function).__mro__ if each.__module__.startswith("ekorn.")]
    for name in dir(type(function)):
        plain = next((vars(each)[name] for each in bases if name in vars(each)), None)
        if callable(plain) and not _is_asynchronous(plain) and _is_asynchronous(getattr(type(function), name)):
            raise _asynchronous(call, f"{type(function).__name__}.{name}")


def _is_asynchronous(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)


def _asynchronous(call: str, what: str) -> TypeError:
    return TypeError(
        f"{call}(): {what} is a coroutine function; {call}() needs a plain one. AsyncDataStream.unordered_wait() and "
        "ordered_wait() call asynchronous functions: put the async def into the async_invoke of an AsyncFunction"
    )


def _check_callable(call: str, function: Any, kind: type[Function], arity: int | None) -> None:
    if arity is None or not callable(function):
        wanted = f"a {kind.__name__}" + ("" if arity is None else f" or a callable of {_arguments(arity)}")
        raise TypeError(f"{call}() needs {wanted}, got {_kind_text(function)}{_near_miss(function, kind)}")
    if _is_asynchronous(function) or _is_asynchronous(type(function).__call__):
        raise _asynchronous(call, function_text(function))
    if isinstance(function, MethodWrapperType):
        return  # such as `5.__eq__`: its signature counts the bound object among the arguments
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # some builtins have no signature
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
        if base is not Function and issubclass(base, Function) and base.__module__.startswith("ekorn."):
            own = type(given).__name__
            return f"a {base.__name__}" if own == base.__name__ else f"{own}, a {base.__name__}"
    return f"{given!r} of type {type(given).__name__}"


def _arguments(count: int) -> str:
    return f"{count} argument" if count == 1 else f"{count} arguments"


def warn_if_nothing_is_returned(call: str, function: Any, method: str, result: str) -> None:
    """Warn about a function whose result is used and that has no `return` with a value."""
    code = getattr(function, method, None) if isinstance(function, Function) else function
    plain = code.__func__ if inspect.ismethod(code) else code
    if isinstance(plain, FunctionType) and plain.__name__ != "<lambda>" and _returns_only_none(plain.__code__):
        warn(f"{call}(): {function_text(function)} has no return statement with a value, so {result}")


def _returns_only_none(code: CodeType) -> bool:
    if code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR):
        return False
    returns = 0
    before: dis.Instruction | None = None
    for instruction in dis.get_instructions(code):
        if instruction.opname == "RETURN_CONST":
            returns += 1
            if instruction.argval is not None:
                return False
        elif instruction.opname == "RETURN_VALUE":
            returns += 1
            is_none = before is not None and before.opname == "LOAD_CONST" and before.argval is None
            if not is_none or instruction.is_jump_target:
                return False
        before = instruction
    return returns > 0  # a function that always raises has no return at all
