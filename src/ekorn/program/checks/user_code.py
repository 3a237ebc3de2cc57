"""Finds the code of the program that an operator calls, without calling any of it.

Code of the program is what is neither in this package, nor in Python's library, nor in an installed package.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ekorn.graph.stream_graph import Node

__all__ = ["UserCode", "all_code", "attributes_of", "user_code"]

_DEPTH = 6  # how far functions are searched in the attributes of objects
_PACKAGE = __name__.partition(".")[0]
_INSTALLED = ("site-packages", "dist-packages")


class UserCode(NamedTuple):
    """A function or a method of the program.

    Attributes:
        name: Its name, with that of its class.
        code: Its code, which holds the code of nested functions.
        variables: The global variables of its module.
    """

    name: str
    code: CodeType
    variables: Mapping[str, Any]


def user_code(node: Node) -> Iterator[UserCode]:
    """Yield each function and method of the program that an operator may call: also key selectors and assigners."""
    seen: set[int] = set()
    for held in (node.spec, node.key, *node.keys, *(edge.partitioning for edge in node.inputs)):
        yield from _code_of(held, seen, _DEPTH)


def all_code(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of a function and of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from all_code(constant)


def attributes_of(given: Any) -> dict[str, Any]:
    """Return the attributes of an object, without a method of its class being called."""
    try:
        held = object.__getattribute__(given, "__dict__")
    except AttributeError:  # a class with slots
        return {}
    return held if type(held) is dict else {}


def _code_of(given: Any, seen: set[int], depth: int) -> Iterator[UserCode]:
    kind = type(given)  # `isinstance` would ask an object of the program for its class
    if depth == 0 or id(given) in seen or issubclass(kind, type | ModuleType):
        return
    if issubclass(kind, MethodType):
        yield from _code_of(given.__func__, seen, depth)
        return
    seen.add(id(given))
    if issubclass(kind, FunctionType):
        yield from _code_of_function(given, seen, depth)
    elif issubclass(kind, partial):
        yield from _code_of(given.func, seen, depth)
    elif kind.__module__.partition(".")[0] == _PACKAGE or _is_users(kind.__module__):
        for method in _methods_of(kind):
            yield from _code_of(method, seen, depth)
        for held in attributes_of(given).values():
            yield from _code_of(held, seen, depth - 1)


def _code_of_function(function: FunctionType, seen: set[int], depth: int) -> Iterator[UserCode]:
    variables = function.__globals__
    if _is_users(function.__module__):
        yield UserCode(function.__qualname__.rpartition("<locals>.")[2], function.__code__, variables)
        for name in _global_names(function.__code__):
            called = variables.get(name)
            if type(called) is FunctionType and called.__globals__ is variables:
                yield from _code_of(called, seen, depth)
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
        if issubclass(type(held), FunctionType | MethodType | partial):
            yield from _code_of(held, seen, depth)


def _global_names(code: CodeType) -> set[str]:
    return {
        step.argval for each in all_code(code) for step in dis.get_instructions(each) if step.opname == "LOAD_GLOBAL"
    }


def _methods_of(kind: type) -> Iterator[FunctionType]:
    """Yield the methods of a class of the program that the engine calls, and the methods that those call."""
    methods: dict[str, FunctionType] = {}
    entries = {"__call__"}
    for each in kind.__mro__:
        if _is_users(each.__module__):
            for name, member in vars(each).items():
                function = member.__func__ if type(member) in {staticmethod, classmethod} else member
                if type(function) is FunctionType:
                    methods.setdefault(name, function)
        else:
            entries.update(name for name in vars(each) if not name.startswith("__"))
    waiting = [name for name in methods if name in entries]
    found = set(waiting)
    while waiting:
        method = methods[waiting.pop()]
        yield method
        used = {name for code in all_code(method.__code__) for name in code.co_names if name in methods}
        waiting += used - found
        found |= used


def _is_users(module: str | None) -> bool:
    first = (module or "").partition(".")[0]
    if first == _PACKAGE or first in sys.stdlib_module_names:
        return False
    path = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return not any(folder in path for folder in _INSTALLED)
