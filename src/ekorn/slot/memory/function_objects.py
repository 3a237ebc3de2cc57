"""Estimates how much memory the user's functions of a slot keep outside of state: attributes, closures, globals.

What a function keeps in its own objects and not in state is in no checkpoint, and often the reason why a slot runs out
of memory.
"""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator
from typing import Any

from ekorn.functions.record_functions import WrappingFunction
from ekorn.slot.memory.state_sizes import heap_bytes, object_bytes, state_sizes
from ekorn.slot_protocol.diagnostics import StateSize
from ekorn.subtask.subtask import Subtask

__all__ = ["function_objects", "kept_in_memory"]

_LEAST = 1 << 20  # smaller ones are not worth a line
_CONTAINERS = {dict, list, tuple, set, frozenset, deque, defaultdict, OrderedDict, Counter}
_CODE = (types.ModuleType, types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)


def kept_in_memory(subtasks: Iterable[Subtask]) -> list[StateSize]:
    """Return the states of some subtasks that are on the heap, and the objects of functions, the largest first."""
    asked = list(subtasks)
    return sorted(state_sizes(asked) + function_objects(asked), key=lambda each: -each.size_bytes)


def function_objects(subtasks: Iterable[Subtask]) -> list[StateSize]:
    """Return the objects of at least 1 MiB that functions keep. Any thread may call it."""
    found = []
    for subtask in subtasks:
        for operator in subtask.operators:
            named = operator.operator
            for function in operator.functions():
                for name, value in _kept(function):
                    size, entries = _measured(value)
                    if size >= _LEAST:
                        found.append(StateSize(name, named.name, named.id, size, entries, is_state=False))
    return found


def _kept(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function object or a plain function keeps from call to call, with the name it has there."""
    if isinstance(function, WrappingFunction):
        function = function.wrapped
    owner = getattr(function, "__self__", function)  # of a bound method
    code = getattr(owner, "__code__", None)
    if code is None:
        yield from ((f"{type(owner).__name__}.{name}", value) for name, value in dict(_attributes(owner)).items())
        return
    for name, cell in zip(code.co_freevars, owner.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # nothing was assigned yet
            continue
    for name in code.co_names:
        if name in owner.__globals__:
            yield name, owner.__globals__[name]


def _attributes(value: Any) -> dict[str, Any]:
    own = getattr(value, "__dict__", None)
    return own if isinstance(own, dict) else {}


def _measured(value: Any) -> tuple[int, int]:
    """Return the estimated memory of an object and the number of its entries; 0 for code and for Ekorn's objects.

    Only containers of Python itself are walked: a method of another class may change the object that it belongs to, and
    the function uses the object at this moment.
    """
    if isinstance(value, _CODE) or type(value).__module__.startswith("ekorn."):
        return 0, 0
    if type(value) in _CONTAINERS:
        return heap_bytes(value), len(value)
    return object_bytes(value), 1
