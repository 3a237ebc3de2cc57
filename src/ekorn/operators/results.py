"""The results of a user's function, and late records, on their way out of an operator.

A function may return or yield any number of results for one record, timer or window. Every loop over results runs over
`compress(results, relief)`. `relief` is an endless run of True that the outbox makes (`subtask/outbox.py`): results
pass unchanged, and full blobs leave between some of them. Results therefore leave while the function still yields, and
counting them costs no Python code per result.

A tuple, a `str`, a `dict` or a `Row` can be iterated over, so a function that returns one instead of yielding it would
emit its parts, characters, keys or fields. Such a result is refused. Flink: PyFlink takes it apart. A flat map is there
to return several results, so it may return them in a tuple, but not in a named tuple, which is a record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import compress
from types import GeneratorType
from typing import Any

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import preview
from ekorn.functions.output_tag import OutputTag
from ekorn.operators.operator import NO_RELIEF, RuntimeOperator
from ekorn.types.row import Row

# The most results of a list that leave together: the operators that follow may emit several records for each of them.
_SHORT = 16
_SINGLE_VALUES = (tuple, str, bytes, bytearray, Mapping, Row)  # they can be iterated over


class ResultKinds:
    """The classes in which functions of one kind return any number of results.

    Attributes:
        known: The classes found so far. Only a class that is not among them is looked at.
    """

    def __init__(self, *more: type) -> None:
        self.known: set[type] = {list, GeneratorType, range, map, filter, *more}

    def check(self, results: Any, function: str = "the function") -> None:
        """Refuse a result that is one value, where a function returns any number of results.

        Args:
            results: What the function returned.
            function: Its name.
        """
        kind = type(results)
        if not isinstance(results, _SINGLE_VALUES) and _can_be_iterated(results):
            self.known.add(kind)
        elif kind is not tuple:
            raise TypeError(
                f"{function} returned one {kind.__name__}, {preview(results, 80)}, where an iterable of results is "
                "expected: yield each result, or return a list of results"
            )
        elif results and isinstance(results[0], OutputTag):
            raise TypeError(
                f"{function} returned the tuple {preview(results, 80)}: write `yield tag, value` for a record of a "
                "side output"
            )
        elif results:  # an empty tuple is no result at all
            raise TypeError(
                f"{function} returned the tuple {preview(results, 80)}, which may mean one record or {len(results)}: "
                "write `yield (a, b)` or `return [(a, b)]` for one record; write `yield a` and `yield b`, or "
                "`return [a, b]`, for a record for each part"
            )


def _can_be_iterated(results: Any) -> bool:
    try:
        iter(results)
    except TypeError:
        return False
    return True


def _name_of(function: Callable[..., Any] | None) -> str:
    """Return the name of a function or of a method with its class, as the program wrote it."""
    name = getattr(function, "__qualname__", None)
    return "the function" if name is None else name.rpartition("<locals>.")[2]


PROCESS_RESULTS = ResultKinds()
FLAT_MAP_RESULTS = ResultKinds(tuple)


@contextmanager
def generate_loop(
    code: CodeBuilder,
    operator: RuntimeOperator,
    function: Callable[..., Any],
    arguments: str,
    hint: str,
    *,
    kinds: ResultKinds,
) -> Iterator[str]:
    """Generate the call of a function and the loop over its results; yield the variable that holds a result."""
    call, result = f"{code.bind(function, hint)}({arguments})", code.fresh("v")

    def relieved(results: str) -> str:
        if operator.relief is NO_RELIEF:  # a chain that ends in sinks holds no results
            return results
        return f"{code.bind(compress, 'compress')}({results}, {code.bind(operator.relief, 'relief')})"

    if inspect.isgeneratorfunction(function):  # its results are neither None nor a single value
        with code.block(f"for {result} in {relieved(call)}:"):
            yield result
        return
    results = code.fresh("r")
    code.line(f"{results} = {call}")
    with code.block(f"if {results} is not None:"):
        with code.block(f"if {results}.__class__ is not list or len({results}) > {_SHORT}:"):
            known, check = code.bind(kinds.known, "known"), code.bind(kinds.check, "check")
            name = code.bind(_name_of(function), "name")
            code.line(f"if {results}.__class__ not in {known}: {check}({results}, {name})")
            code.line(f"{results} = {relieved(results)}")
        with code.block(f"for {result} in {results}:"):
            yield result


def emit_results(results: Iterable[Any], time_ms: int | None, operator: RuntimeOperator) -> None:
    """Emit the results of a process function outside the loop: for timers and windows."""
    if results.__class__ is not list or len(results) > _SHORT:
        if results.__class__ not in PROCESS_RESULTS.known:
            PROCESS_RESULTS.check(results, _name_of(operator.emits_from))
        results = compress(results, operator.relief)
    out, side_out = operator.out, operator.side_out
    for result in results:
        if result.__class__ is tuple and len(result) == 2 and result[0].__class__ is OutputTag:
            to_side = side_out.get(result[0].tag_id)
            if to_side is not None:  # side outputs without a reader are dropped
                to_side(result[1], time_ms)
        else:
            out(result, time_ms)


class LateRecords:
    """Sends late records to the side output that the program asked for, or counts them.

    All windows of a late record are over.
    """

    def __init__(self, operator: RuntimeOperator, tag: str | None, metric: str = "numLateRecordsDropped") -> None:
        self._operator = operator
        self._tag = tag
        self._dropped = operator.metric_group().counter(metric)

    def take(self, value: Any, time_ms: int | None, rows: int = 1) -> None:
        """Take a late record, or a batch of columns with some rows."""
        if self._tag is None:
            self._dropped.inc(rows)
            return
        out = self._operator.side_out.get(self._tag)
        if out is not None:  # a record for a side output without a reader is dropped without being counted
            out(value, time_ms)
