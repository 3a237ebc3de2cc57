"""What slices keep of a key's records, and how that becomes the contents of a window.

A window must keep what it would keep if its records had been added to it one by one, as they came. Each kind of
contents here can say that of parts: all records, what the built-in minimum and maximum choose, sums of whole numbers,
and functions that promise it (`combines_exactly`). For all others there is none.

What a key has in all its slices is one flat list, a strip: nothing else is as small, and of a key that has a record in
each of sixty slices there are many. Strips hold the starts of slices, and numbers that say what came before what: the
higher, the later. They are comparable between keys too, and no two slices of a key share one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from itertools import chain
from operator import itemgetter, le, lt
from typing import Any

from tamias.codegen.code_builder import CodeBuilder
from tamias.functions.record_fields import Field, read_field, with_field
from tamias.functions.rolling_aggregates import OnField
from tamias.operators.windows.contents import MISSING, Contents
from tamias.operators.windows.running import Running
from tamias.types.by_value import own

Strip = list[Any]
Frozen = tuple[Any, list[int]]
"""Of one slice, in a checkpoint: contents as a window would keep them, and numbers."""


class SliceContents(ABC):
    """How records get into strips, and the contents of a window out of them."""

    step = 0
    """How many items of a strip belong together; the first is the start of the slice, the second a number."""

    pays_from = 5
    """From how many windows a record on slices are worth their while (docs/decisions: sliding windows in slices)."""

    fits: Callable[[Any], bool] | None = None
    """Whether a record can be combined with others; None where all can. One that cannot ends the use of slices."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents

    @abstractmethod
    def generate_first(self, code: CodeBuilder, strip: str, start: str, number: str, value: str) -> None:
        """Generate the statements that add a key's first record in a slice behind all that the strip has.

        Variables hold the strip and the record; expressions give the slice's start, which is one object for all that
        is in it, and a new number.
        """

    @abstractmethod
    def generate_more(self, code: CodeBuilder, strip: str, number: str, value: str) -> None:
        """The same for a record in the slice that the strip ends with."""

    @abstractmethod
    def add(self, strip: Strip, start_ms: int, number: int, value: Any) -> None:
        """Add a record to any slice."""

    @abstractmethod
    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        """Take a slice out of a strip that has none earlier, and not always this one; one in order has a later one."""

    @abstractmethod
    def is_in_order(self, strip: Strip) -> bool:
        """Whether all that is in a slice came before all that is in later ones."""

    @abstractmethod
    def came(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        """The number of the record that came first in the slices from one start up to another; None without any."""

    @abstractmethod
    def select(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        """What a window of these slices keeps, or MISSING.

        Nothing that is done to it changes the strip, unless it is done to one of the records in a list.
        """

    def next_window(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:
        """The same for a strip in order, if it is asked for a key's windows one after the other."""
        return self.select(strip, low_ms, high_ms, in_order=True)

    def forget(self, key: Any) -> None:  # noqa: B027
        """What was remembered between a key's windows does not hold any more."""

    def forget_all(self) -> None:  # noqa: B027
        """The same for all keys."""

    @abstractmethod
    def freeze(self, strip: Strip) -> dict[int, Frozen]:
        """What a checkpoint says of each slice, by its start."""

    @abstractmethod
    def freeze_one(self, strip: Strip, start_ms: int, *, in_order: bool) -> Frozen | None:
        """What a checkpoint says of a slice; None if it has nothing."""

    @abstractmethod
    def thaw(self, slices: list[tuple[int, Frozen]]) -> Strip:
        """The strip of a key with these slices."""


class AllInSlices(SliceContents):
    """All records, in the order in which they came: (start, number, record) after (start, number, record)."""

    step = 3

    def generate_first(self, code: CodeBuilder, strip: str, start: str, number: str, value: str) -> None:
        code.line(f"{strip} += ({start}, {number}, {value})")

    def generate_more(self, code: CodeBuilder, strip: str, number: str, value: str) -> None:
        code.line(f"{strip} += ({strip}[-3], {strip}[-2], {value})")  # the first of no window: any number will do

    def add(self, strip: Strip, start_ms: int, number: int, value: Any) -> None:
        strip += (start_ms, number, value)

    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        if not in_order:
            strip[:] = chain.from_iterable(record for record in _by(3, strip) if record[0] != start_ms)
            return
        position = 0
        while strip[position] == start_ms:
            position += 3
        del strip[:position]

    def is_in_order(self, strip: Strip) -> bool:
        starts = strip[::3]
        return all(map(le, starts, starts[1:]))

    def came(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        numbers = zip(strip[::3], strip[1::3], strict=True)
        return next((number for start, number in numbers if low_ms <= start < high_ms), None)

    def select(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        if not in_order:
            records = zip(strip[::3], strip[2::3], strict=True)
            return [record for start, record in records if low_ms <= start < high_ms] or MISSING
        first, last = 0, len(strip)
        if strip[0] < low_ms:
            first = 3 * bisect_left(strip[::3], low_ms)
        if strip[-3] >= high_ms:
            last = 3 * bisect_left(strip[::3], high_ms)
        return strip[first + 2 : last : 3] or MISSING

    def next_window(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:  # hot
        if strip[0] < low_ms or strip[-3] >= high_ms:
            return self.select(strip, low_ms, high_ms, in_order=True)
        return strip[2::3]

    def freeze(self, strip: Strip) -> dict[int, Frozen]:
        by_start: dict[int, tuple[list[Any], list[int]]] = {}
        for start, number, record in _by(3, strip):
            records, numbers = by_start.setdefault(start, ([], []))
            records.append(record)
            numbers.append(number)
        return {start: (self.contents.freeze(records), numbers) for start, (records, numbers) in by_start.items()}

    def freeze_one(self, strip: Strip, start_ms: int, *, in_order: bool) -> Frozen | None:
        if not in_order:
            return self.freeze(strip).get(start_ms)
        starts = strip[::3]
        first, last = 3 * bisect_left(starts, start_ms), 3 * bisect_right(starts, start_ms)
        if first == last:
            return None
        return self.contents.freeze(strip[first + 2 : last : 3]), strip[first + 1 : last : 3]

    def thaw(self, slices: list[tuple[int, Frozen]]) -> Strip:
        records = [
            (start, number, record)
            for start, (frozen, numbers) in slices
            for number, record in zip(numbers, self.contents.thaw(frozen), strict=True)
        ]
        records.sort(key=itemgetter(1))  # those of one slice that share a number stay as they are
        return list(chain.from_iterable(records))


class ValueInSlices(SliceContents):
    """One value a slice, in order of the slices: (start, number, chosen, value) after (start, number, chosen, value).

    Used as it is for functions that promise that order means nothing; `chosen` is for `ChoiceInSlices`.
    """

    step = 4
    pays_from = 10

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.join: Callable[[Any, Any], Any] = self._join
        self._running: dict[Any, Running] = {}

    def generate_first(self, code: CodeBuilder, strip: str, start: str, number: str, value: str) -> None:
        came = code.fresh("n")
        code.line(f"{came} = {number}")
        code.line(f"{strip} += ({start}, {came}, {came}, {code.bind(MISSING, 'MISSING')})")
        self.generate_more(code, strip, number, value)

    def generate_more(self, code: CodeBuilder, strip: str, number: str, value: str) -> None:
        self.contents.generate_add(code, f"{strip}[-1]", f"{strip}[-1]", value)

    def add(self, strip: Strip, start_ms: int, number: int, value: Any) -> None:
        position = len(strip)
        while position and strip[position - 4] > start_ms:
            position -= 4
        if position and strip[position - 4] == start_ms:
            self._change(strip, position - 4, number, value)
        else:
            strip[position:position] = (start_ms, number, number, self.contents.first(value))

    def _change(self, strip: Strip, position: int, number: int, value: Any) -> None:
        strip[position + 3] = self.contents.more(strip[position + 3], value)

    def remove(self, strip: Strip, start_ms: int, *, in_order: bool) -> None:
        if strip[0] == start_ms:
            del strip[:4]

    def is_in_order(self, strip: Strip) -> bool:
        return all(map(lt, strip[2::4], strip[5::4]))

    def came(self, strip: Strip, low_ms: int, high_ms: int) -> int | None:
        numbers = zip(strip[::4], strip[1::4], strict=True)
        return min((number for start, number in numbers if low_ms <= start < high_ms), default=None)

    def select(self, strip: Strip, low_ms: int, high_ms: int, *, in_order: bool) -> Any:
        parts = [part for part in _by(4, strip) if low_ms <= part[0] < high_ms]
        if not parts:
            return MISSING
        return self._result([part[3] for part in parts]) if in_order else self._in_disorder(parts)

    def _in_disorder(self, parts: list[tuple[int, int, int, Any]]) -> Any:
        return self._result([part[3] for part in parts])

    def _result(self, values: list[Any]) -> Any:
        kept = own(values[0])
        for value in values[1:]:
            kept = self.contents.merge(kept, own(value))  # which may change either
        return kept

    def _join(self, one: Any, other: Any) -> Any:
        """The value of two parts, the first of which came earlier; neither changes with it."""
        return self.contents.merge(own(one), own(other))

    def next_window(self, key: Any, strip: Strip, low_ms: int, high_ms: int) -> Any:  # hot
        if len(strip) <= 12:  # few parts are put together faster than what came of others is remembered
            if strip[0] < low_ms or strip[-4] >= high_ms:
                return self.select(strip, low_ms, high_ms, in_order=True)
            return own(strip[3]) if len(strip) == 4 else self._result(strip[3::4])
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = Running(self.join)
        return own(running.window(strip, low_ms, high_ms))

    def forget(self, key: Any) -> None:
        self._running.pop(key, None)

    def forget_all(self) -> None:
        self._running.clear()

    def freeze(self, strip: Strip) -> dict[int, Frozen]:
        return {
            start: (self.contents.freeze(value), [number, chosen]) for start, number, chosen, value in _by(4, strip)
        }

    def freeze_one(self, strip: Strip, start_ms: int, *, in_order: bool) -> Frozen | None:
        position = 4 * bisect_left(strip[::4], start_ms)
        if position == len(strip) or strip[position] != start_ms:
            return None
        _, number, chosen, value = strip[position : position + 4]
        return self.contents.freeze(value), [number, chosen]

    def thaw(self, slices: list[tuple[int, Frozen]]) -> Strip:
        parts = [(start, *numbers, self.contents.thaw(frozen)) for start, (frozen, numbers) in slices]
        parts.sort(key=itemgetter(0))
        return list(chain.from_iterable(parts))


class SumInSlices(ValueInSlices):
    """`sum` of whole numbers: the first record, with the sum in one field."""

    pays_from = 5

    def __init__(self, contents: Contents, function: OnField) -> None:
        super().__init__(contents)
        self.join = function.reduce  # our own functions change nothing that they are given
        self.fits = _reading(function.field, lambda summand: type(summand) is int)

    def _in_disorder(self, parts: list[tuple[int, int, int, Any]]) -> Any:
        return self._result([part[3] for part in sorted(parts, key=itemgetter(1))])

    def _result(self, values: list[Any]) -> Any:
        return own(reduce(self.join, values))


_ORDERED = frozenset({int, float, str, bool, bytes})  # any two that can be compared stand in one order, but for NaN


class ChoiceInSlices(SumInSlices):
    """`min_by` and `max_by`: a whole record; `chosen` is the number under which it came."""

    def __init__(self, contents: Contents, function: OnField) -> None:
        super().__init__(contents, function)
        self.field = function.field
        self.fits = _reading(self.field, lambda compared: type(compared) in _ORDERED and compared == compared)

    def generate_more(self, code: CodeBuilder, strip: str, number: str, value: str) -> None:
        kept = code.fresh("a")
        code.line(f"{kept} = {strip}[-1]")
        self.contents.generate_add(code, f"{strip}[-1]", kept, value)
        with code.block(f"if {strip}[-1] is not {kept}:"):
            code.line(f"{strip}[-2] = {number}")

    def _change(self, strip: Strip, position: int, number: int, value: Any) -> None:
        kept = strip[position + 3]
        super()._change(strip, position, number, value)
        if strip[position + 3] is not kept:
            strip[position + 2] = number

    def _in_disorder(self, parts: list[tuple[int, int, int, Any]]) -> Any:
        """Of equal ones the function takes the earlier or the later record, so they are put in order."""
        return self._result([part[3] for part in sorted(parts, key=itemgetter(2))])


class ExtremeInSlices(ChoiceInSlices):
    """`min` and `max`: the first record, with the chosen field in it; `chosen` is the number under which that came."""

    def _in_disorder(self, parts: list[tuple[int, int, int, Any]]) -> Any:
        chosen = read_field(super()._in_disorder(parts), self.field)
        return own(with_field(min(parts, key=itemgetter(1))[3], self.field, chosen))


def _by(step: int, strip: Strip) -> Iterator[Any]:
    """What belongs together in a strip, as tuples."""
    items: list[Iterable[Any]] = [iter(strip)] * step
    return zip(*items, strict=True)


def _reading(field: Field, fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Whether a record's field is as `fits` wants it."""

    def check(record: Any) -> bool:  # hot
        try:
            return fits(record[field] if type(record) is tuple and type(field) is int else read_field(record, field))
        except (TypeError, IndexError):
            return False  # no such field: the function will say so, if it comes to compare or add the record

    return check
