"""Estimates how much memory the states of a slot take on the heap.

Nothing is counted while records are processed. When somebody asks, a few entries of each state are measured: the first
and the last of its dictionary, which are its oldest and newest. The estimate is their mean times the number of entries.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any

from ekorn.slot_protocol.diagnostics import StateSize
from ekorn.subtask.subtask import Subtask

__all__ = ["heap_bytes", "object_bytes", "state_sizes"]

_MEASURED = 32  # entries at each end of a dictionary
_DEPTH = 4  # how deep the objects within an entry are followed
_WITHIN = 32  # elements of a container within an entry that are measured


def state_sizes(subtasks: Iterable[Subtask]) -> list[StateSize]:
    """Return the states of some subtasks that are on the heap. Any thread may call it."""
    found = []
    for subtask in subtasks:
        for operator in subtask.operators:
            tables = dict(operator.states.on_heap())
            if operator.backend is not None:
                tables |= operator.backend.on_heap()
            for name, entries in tables.items():
                if entries:
                    named = operator.operator
                    size = heap_bytes(entries)
                    found.append(StateSize(name, named.name, named.id, size, len(entries)))
    return found


def heap_bytes(entries: Collection[Any]) -> int:
    """Return the estimated memory of a dictionary or list with all that is in it; 0 if it changes just now."""
    try:
        return sys.getsizeof(entries) + _contents(entries, _MEASURED, _DEPTH)
    except RuntimeError:  # the subtask changes it
        return 0


def object_bytes(value: Any) -> int:
    """Return the estimated memory of one object with what it refers to; 0 if it changes just now."""
    try:
        return _size(value, _DEPTH)
    except RuntimeError:
        return 0


def _contents(entries: Collection[Any], most: int, depth: int) -> int:
    """Return the estimated memory of the elements of a container."""
    if isinstance(entries, Mapping):
        sample: list[Any] = list(islice(entries.items(), most))
        if len(entries) > most and isinstance(entries, dict):
            sample += islice(reversed(entries.items()), min(most, len(entries) - most))
        measured = sum(_size(key, depth) + _size(value, depth) for key, value in sample)
    else:
        sample = list(islice(entries, most))
        if len(entries) > most and isinstance(entries, list | tuple | deque):
            sample += islice(reversed(entries), min(most, len(entries) - most))
        measured = sum(_size(element, depth) for element in sample)
    return measured * len(entries) // len(sample) if sample else 0


def _size(value: Any, depth: int) -> int:
    """Return the estimated memory of an object and of what it refers to."""
    size = sys.getsizeof(value, 64)
    if depth == 0 or isinstance(value, str | bytes | bytearray | int | float | type(None)):
        return size
    if isinstance(value, dict | list | tuple | set | frozenset | deque):
        return size + _contents(value, _WITHIN, depth - 1)
    own = getattr(value, "__dict__", None)
    if isinstance(own, dict):
        return size + sys.getsizeof(own) + _contents(own, _WITHIN, depth - 1)
    return size
