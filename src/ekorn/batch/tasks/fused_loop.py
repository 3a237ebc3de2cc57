"""Operators that take records one by one, run as one generated loop instead of one generator each.

A record then passes map, flat map, filter and projection without a generator being resumed between them. The generated
code has a line for each call, so the line that raised tells `user_error` the operator and the variable of its record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from ekorn.batch.tasks.record_operators import RecordOperator
from ekorn.batch.tasks.task_operator import TaskOperator, results_of
from ekorn.operators.results import FLAT_MAP_RESULTS

__all__ = ["FusedLoop", "fused"]

_CHECKED_RECORDS = 100
_LONGEST_LOOP = 12  # the most operators in a loop: each flat map nests a block, and Python allows 20


class UserCall(NamedTuple):
    """The call of a user's function in a line of a generated loop.

    Attributes:
        operator: The number of the operator whose function is called.
        variable: The variable that holds the record.
    """

    operator: int
    variable: str


class GeneratedLoop(NamedTuple):
    """A loop for operators of certain kinds, and by line the calls in it."""

    run: Callable[..., Iterator[Any]]
    calls: dict[int, UserCall]


class FusedLoop:
    """Some operators of a chain as one loop."""

    def __init__(self, operators: Sequence[RecordOperator]) -> None:
        self.operators = operators
        self._generated = _generated(tuple(each.kind for each in operators))

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        """Return the records that the records of the input become."""
        checked = [_FirstCall(each) if each.kind == "flat_map" else each.call() for each in self.operators]
        first = _first_records(records, [each for each in checked if isinstance(each, _FirstCall)])
        return chain(
            self._generated.run(first, self, *checked),
            self._generated.run(records, self, *[each.call() for each in self.operators]),
        )

    def call_at(self, line: int) -> UserCall | None:
        """Return the call in a line of the loop, or None if the line has none."""
        return self._generated.calls.get(line)


class _FirstCall:
    """The first calls of a flat map, whose results are checked: a function that returns one value always does."""

    def __init__(self, operator: RecordOperator) -> None:
        self._function = operator.call()
        self.was_called = False

    def __call__(self, record: Any) -> Iterable[Any]:
        self.was_called = True
        return results_of(self._function(record), FLAT_MAP_RESULTS)


def _first_records(records: Iterator[Any], calls: Sequence[_FirstCall]) -> Iterator[Any]:
    """Yield records until all functions have been called once. Few records pass, because the check costs time."""
    for _ in range(_CHECKED_RECORDS):
        if all(each.was_called for each in calls):
            return
        yield from islice(records, 1)


def fused(operators: Iterable[TaskOperator]) -> list[TaskOperator | FusedLoop]:
    """Return a chain in which neighbours that take records one by one are one loop."""
    found: list[TaskOperator | FusedLoop] = []
    for is_fused, neighbours in groupby(operators, lambda operator: isinstance(operator, RecordOperator)):
        some: list[Any] = list(neighbours)
        if is_fused:
            some = [FusedLoop(some[at : at + _LONGEST_LOOP]) for at in range(0, len(some), _LONGEST_LOOP)]
        found += some
    return found


@lru_cache(maxsize=256)
def _generated(kinds: tuple[str, ...]) -> GeneratedLoop:
    """Compile the loop of some operators.

    For a flat map and a map it is::

        def run(records, fused, call0, call1):
            for record0 in records:
                results0 = call0(record0)
                if results0 is None:
                    continue
                for record1 in results0:
                    record2 = call1(record1)
                    yield record2
    """
    parameters = ", ".join(f"call{number}" for number in range(len(kinds)))
    lines = [f"def run(records, fused, {parameters}):", "    for record0 in records:"]
    calls: dict[int, UserCall] = {}
    indent, record = 8, "record0"
    for number, kind in enumerate(kinds):
        call = UserCall(number, record)
        calls[len(lines) + 1] = call
        pad = " " * indent
        match kind:
            case "map":
                lines.append(f"{pad}record{number + 1} = call{number}({record})")
                record = f"record{number + 1}"
            case "filter":
                lines += [f"{pad}if not call{number}({record}):", f"{pad}    continue"]
            case "flat_map":
                lines += [f"{pad}results{number} = call{number}({record})", f"{pad}if results{number} is None:"]
                lines += [f"{pad}    continue", f"{pad}for record{number + 1} in results{number}:"]
                calls[len(lines)] = call  # a generator of the user raises here
                indent, record = indent + 4, f"record{number + 1}"
    lines.append(f"{' ' * indent}yield {record}")
    names: dict[str, Any] = {}
    exec(compile("\n".join(lines), "<ekorn: operators of one loop>", "exec"), names)
    return GeneratedLoop(names["run"], calls)
