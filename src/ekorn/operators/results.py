"""The results of a user's function, and late records, on their way out of an operator.

A function may return or yield any number of results for one record, timer or window. Every loop over results runs over
`compress(results, relief)`. `relief` is an endless run of True that the outbox makes (`subtask/outbox.py`): results
pass unchanged, and full blobs leave between some of them. Results therefore leave while the function still yields, and
counting them costs no Python code per result.

A `str`, a `dict` or a `Row` can be iterated over, so a function that returns one instead of yielding it would emit its
characters, keys or fields. Such a result is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import compress
from typing import Any, NoReturn

from ekorn.codegen.code_builder import CodeBuilder
from ekorn.errors import preview
from ekorn.functions.output_tag import OutputTag
from ekorn.operators.operator import NO_RELIEF, RuntimeOperator
from ekorn.types.row import Row

# The most results of a list that leave together: the operators that follow may emit several records for each of them.
_SHORT = 16
SINGLE_VALUES = frozenset({str, bytes, bytearray, dict, Row, int, float, bool})


@contextmanager
def generate_loop(
    code: CodeBuilder, operator: RuntimeOperator, function: Callable[..., Any], arguments: str, hint: str
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
            single, refuse = code.bind(SINGLE_VALUES, "single"), code.bind(refuse_single, "refuse_single")
            code.line(f"if {results}.__class__ in {single}: {refuse}({results})")
            code.line(f"{results} = {relieved(results)}")
        with code.block(f"for {result} in {results}:"):
            yield result


def emit_results(results: Iterable[Any], time_ms: int | None, operator: RuntimeOperator) -> None:
    """Emit the results of a process function outside the loop: for timers and windows."""
    if results.__class__ is not list or len(results) > _SHORT:
        if results.__class__ in SINGLE_VALUES:
            refuse_single(results)
        results = compress(results, operator.relief)
    out, side_out = operator.out, operator.side_out
    for result in results:
        if result.__class__ is tuple and len(result) == 2 and result[0].__class__ is OutputTag:
            to_side = side_out.get(result[0].tag_id)
            if to_side is not None:  # side outputs without a reader are dropped
                to_side(result[1], time_ms)
        else:
            out(result, time_ms)


def refuse_single(result: Any) -> NoReturn:
    """Refuse a result that is one value, where a function returns any number of results."""
    raise TypeError(
        f"the function returned one {type(result).__name__}, {preview(result, 80)}, where an iterable of results is "
        "expected: yield each result, or return a list of results"
    )


class LateRecords:
    """Sends late records to the side output that the program asked for, or counts them.

    All windows of a late record are over.
    """

    def __init__(self, operator: RuntimeOperator, tag: str | None, metric: str = "numLateRecordsDropped") -> None:
        self._operator = operator
        self._tag = tag
        self._dropped = operator.metric_group().counter(metric)

    def take(self, value: Any, time_ms: int | None) -> None:
        if self._tag is None:
            self._dropped.inc()
            return
        out = self._operator.side_out.get(self._tag)
        if out is not None:  # a record for a side output without a reader is dropped without being counted
            out(value, time_ms)
