"""The shapes of entries: where in an entry its values are.

All backends agree on the form of an entry (docs/formats/heap-state.md). The entry of a key is one kept value, a list of
kept values, or a dict of them. If the state has a time to live, each of these values is a pair `(stamp_ms, value)`.
Code that works on the values of any state asks the shape of its entries:

    shape = shape_of(info.kind)                     # kinds.py
    shape.converter(codec.loaded)                   # of whole entries: calls `loaded` with each value
    shape.converter(itemgetter(0))                  # of whole entries with stamps: returns the stamps in their place
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

__all__ = ["LIST", "MAP", "ONE_VALUE", "PANE", "SESSIONS", "Convert", "DeclaredShape", "EntryShape"]

Convert = Callable[[Any], Any]


def itself(value: Any) -> Any:
    """Return the argument."""
    return value


class EntryShape(ABC):
    """The shape of the entries of a state."""

    copy: Convert | None = None
    """Copies an entry, if entries are changed in place; None if they are only ever replaced."""

    @abstractmethod
    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        """Return a function that converts an entry: `value` converts each value in it, `map_key` each key of a map."""


class DeclaredShape(EntryShape):
    """The shape of the entries of a kind of state that programs declare. These states can expire and be queried."""

    @staticmethod
    @abstractmethod
    def left(entry: Any, dead_ms: int) -> Any:
        """Return what is left of an entry without the values stamped up to a time: itself, a part of it, or None."""

    @staticmethod
    @abstractmethod
    def stamped(entry: Any, stamps: Any, now_ms: int) -> Any:
        """Return an entry with stamps. `stamps` has its shape, or is None; a value without one is stamped now."""

    @staticmethod
    @abstractmethod
    def without_stamps(entry: Any) -> Any:
        """Return an entry without its stamps."""

    @abstractmethod
    def answer(self, value: Convert, map_key: Convert, finish: Convert) -> Convert:
        """Return a function that makes the answer to a query from an entry without stamps and passes it to `finish`."""

    @staticmethod
    def from_answer(answer: Any) -> Any:
        """Return the value that an answer to a query stands for."""
        return answer


class _OneValue(DeclaredShape):
    """An entry is the kept value."""

    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        return value

    @staticmethod
    def left(entry: tuple[int, Any], dead_ms: int) -> tuple[int, Any] | None:  # hot
        return entry if entry[0] > dead_ms else None

    @staticmethod
    def stamped(entry: Any, stamps: int | None, now_ms: int) -> tuple[int, Any]:
        return (now_ms if stamps is None else stamps), entry

    @staticmethod
    def without_stamps(entry: tuple[int, Any]) -> Any:
        return entry[1]

    def answer(self, value: Convert, map_key: Convert, finish: Convert) -> Convert:
        return lambda entry: finish(value(entry))


class _List(DeclaredShape):
    """An entry is a list of kept values."""

    copy = list

    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        return lambda entry: [value(each) for each in entry]

    @staticmethod
    def left(entry: list[tuple[int, Any]], dead_ms: int) -> list[tuple[int, Any]] | None:  # hot
        rest = [each for each in entry if each[0] > dead_ms]
        return entry if len(rest) == len(entry) else rest or None

    @staticmethod
    def stamped(entry: list[Any], stamps: list[int] | None, now_ms: int) -> list[tuple[int, Any]]:
        return list(zip([*(stamps or ()), *[now_ms] * len(entry)], entry, strict=False))

    @staticmethod
    def without_stamps(entry: list[tuple[int, Any]]) -> list[Any]:
        return [each for _, each in entry]

    def answer(self, value: Convert, map_key: Convert, finish: Convert) -> Convert:
        return lambda entry: finish([value(each) for each in entry])


class _Map(DeclaredShape):
    """An entry is a dict of kept values by kept keys. The entry of a key of the stream has entries of its own."""

    copy = dict

    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        if map_key is itself:
            return lambda entry: {key: value(each) for key, each in entry.items()}
        return lambda entry: {map_key(key): value(each) for key, each in entry.items()}

    @staticmethod
    def left(entry: dict[Any, tuple[int, Any]], dead_ms: int) -> dict[Any, tuple[int, Any]] | None:  # hot
        rest = {key: each for key, each in entry.items() if each[0] > dead_ms}
        return entry if len(rest) == len(entry) else rest or None

    @staticmethod
    def stamped(entry: dict[Any, Any], stamps: dict[Any, int] | None, now_ms: int) -> dict[Any, tuple[int, Any]]:
        known = stamps or {}
        return {key: (known.get(key, now_ms), each) for key, each in entry.items()}

    @staticmethod
    def without_stamps(entry: dict[Any, tuple[int, Any]]) -> dict[Any, Any]:
        return {key: each for key, (_, each) in entry.items()}

    def answer(self, value: Convert, map_key: Convert, finish: Convert) -> Convert:
        # A list of pairs: the serializer of the program may return keys that cannot be hashed.
        return lambda entry: finish([(map_key(key), value(each)) for key, each in entry.items()])

    @staticmethod
    def from_answer(answer: list[tuple[Any, Any]]) -> dict[Any, Any]:
        return dict(answer)


class _Pane(EntryShape):
    """An entry is a tuple that begins with the contents of a window or slice."""

    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        return lambda entry: (_contents(entry[0], value), *entry[1:])


class _Sessions(EntryShape):
    """An entry is a list of sessions: tuples of start, end, contents and more."""

    def converter(self, value: Convert, map_key: Convert = itself) -> Convert:
        return lambda entry: [(start, end, _contents(kept, value), *rest) for start, end, kept, *rest in entry]


def _contents(kept: Any, value: Convert) -> Any:
    """Convert the contents of a window: a list of records, or one value. A value that is a list is kept pickled."""
    return [value(record) for record in kept] if isinstance(kept, list) else value(kept)


ONE_VALUE, LIST, MAP = _OneValue(), _List(), _Map()  # the shapes of the kinds of state that programs declare
PANE, SESSIONS = _Pane(), _Sessions()  # the shapes of tables that window operators bring along
