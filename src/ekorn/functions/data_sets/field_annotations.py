"""Decorators that say which fields of its input a function of a DataSet program copies, changes or reads.

The planner trusts `forwarded` and `non_forwarded` fields: it leaves out a shuffle if records are still together by a
field that was copied. `ekorn.testing.check_annotations` finds annotations that are not true.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

__all__ = [
    "FieldAnnotations",
    "annotations_of",
    "forwarded_fields",
    "forwarded_fields_first",
    "forwarded_fields_second",
    "non_forwarded_fields",
    "non_forwarded_fields_first",
    "non_forwarded_fields_second",
    "read_fields",
    "read_fields_first",
    "read_fields_second",
]

F = TypeVar("F")

_ATTRIBUTE = "__ekorn_fields__"


@dataclass(frozen=True)
class FieldAnnotations:
    """The annotations for one input of a function: expressions as they were written, or None."""

    forwarded: tuple[str, ...] | None = None
    non_forwarded: tuple[str, ...] | None = None
    read: tuple[str, ...] | None = None


def annotations_of(function: Any, side: int) -> FieldAnnotations:
    """Return what a function, or the class of a function object, says of its first (0) or second (1) input."""
    found: dict[int, FieldAnnotations] = getattr(function, _ATTRIBUTE, {})
    return found.get(side, FieldAnnotations())


def forwarded_fields(*fields: str) -> Callable[[F], F]:
    """Say which fields are copied unchanged: ``"f0"`` to the same place, ``"f0->f2"`` to another one, ``"*"`` for all.

    Several fields are several arguments, or one with ``;`` between them.

    Example:
        >>> from ekorn.datastream.functions import MapFunction
        >>> @forwarded_fields("f0")
        ... class Doubled(MapFunction):
        ...     def map(self, value):
        ...         return value[0], value[1] * 2
        >>> annotations_of(Doubled(), 0).forwarded
        ('f0',)
    """
    return _annotating(0, "forwarded", fields)


def forwarded_fields_first(*fields: str) -> Callable[[F], F]:
    """Say which fields of the first input are copied unchanged; see `forwarded_fields`."""
    return _annotating(0, "forwarded", fields)


def forwarded_fields_second(*fields: str) -> Callable[[F], F]:
    """Say which fields of the second input are copied unchanged; see `forwarded_fields`."""
    return _annotating(1, "forwarded", fields)


def non_forwarded_fields(*fields: str) -> Callable[[F], F]:
    """Say which fields change: all others are copied to the same place. Input and output have the same type."""
    return _annotating(0, "non_forwarded", fields)


def non_forwarded_fields_first(*fields: str) -> Callable[[F], F]:
    """Say which fields of the first input change; see `non_forwarded_fields`."""
    return _annotating(0, "non_forwarded", fields)


def non_forwarded_fields_second(*fields: str) -> Callable[[F], F]:
    """Say which fields of the second input change; see `non_forwarded_fields`."""
    return _annotating(1, "non_forwarded", fields)


def read_fields(*fields: str) -> Callable[[F], F]:
    """Say which fields the function evaluates. They must exist; the planner has no use for them."""
    return _annotating(0, "read", fields)


def read_fields_first(*fields: str) -> Callable[[F], F]:
    """Say which fields of the first input the function evaluates; see `read_fields`."""
    return _annotating(0, "read", fields)


def read_fields_second(*fields: str) -> Callable[[F], F]:
    """Say which fields of the second input the function evaluates; see `read_fields`."""
    return _annotating(1, "read", fields)


def _annotating(side: int, kind: str, fields: tuple[str, ...]) -> Callable[[F], F]:
    if not fields or not all(isinstance(each, str) for each in fields):
        raise TypeError(f"{kind}_fields() takes fields such as 'f0' or 'f0->f1', got {fields!r}")

    def annotate(target: F) -> F:
        known: dict[int, FieldAnnotations] = dict(getattr(target, _ATTRIBUTE, {}))
        known[side] = replace(known.get(side, FieldAnnotations()), **{kind: fields})
        if known[side].forwarded is not None and known[side].non_forwarded is not None:
            name = getattr(target, "__name__", repr(target))
            raise ValueError(
                f"{name} declares both forwarded and non-forwarded fields of one input; choose one of them"
            )
        setattr(target, _ATTRIBUTE, known)
        return target

    return annotate
