"""`TaskOperator`: an operator as it runs in a task, over an iterator of records.

An operator is pickled by the driver and unpickled in each task, so its functions are new objects in each subtask. The
loops hold the record in a local variable `record`, or the key of a group in `key`: when a function raises, `user_error`
finds the operator and the record in the frames of the traceback, at no cost per record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ekorn.functions.record_functions import Function
from ekorn.functions.runtime_context import RuntimeContext
from ekorn.operators.results import PROCESS_RESULTS, ResultKinds

__all__ = ["TaskOperator", "method", "results_of"]


class TaskOperator:
    """One operator in a task. A subclass has the loop.

    Attributes:
        name: The name that errors show.
        number: Its number in the job: two operators of a job never share one.
        step: Its place in the plan: the operator of the plan, and its number among what that operator became; None in
            a plan that is no job, and in the supersteps of an iteration.
        parameters: What `with_parameters` gave.
        shared: The data that every task reads whole, by name: in the driver Spark's broadcasts, in a task their values.
        goes_by_order: Whether the result depends on the order of the input. The order of a shuffle's records is not
            fixed, so a task that Spark repeats after a loss may then give another result than the first one.
    """

    goes_by_order = False

    def __init__(self, name: str, *functions: Any, parameters: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.number = -1  # set by the planner
        self.step: tuple[int, int] | None = None
        self.parameters = dict(parameters or {})
        self.shared: dict[str, Any] = {}
        self._functions = [each for each in functions if isinstance(each, Function)]
        self._opened: list[Function] = []

    def open(self, context: RuntimeContext) -> None:
        """Open the functions, before the first record of the task."""
        for function in self._functions:
            function.set_runtime_context(context)
            self._opened.append(function)
            function.open(context)

    def close(self) -> None:
        """Close the functions whose `open` was called, after the last record or a failure."""
        while self._opened:
            self._opened.pop().close()

    @property
    def functions(self) -> Sequence[Function]:
        """Return the functions that can use a runtime context."""
        return self._functions

    def run(self, records: Iterator[Any]) -> Iterator[Any]:
        """Yield the records that the records of the input become."""
        raise AssertionError(f"{type(self).__name__} has no loop over one input")

    def run_two(self, first: Iterator[Any], second: Iterator[Any]) -> Iterator[Any]:
        """Yield the results of two inputs. The first is exhausted before the second is touched."""
        raise AssertionError(f"{type(self).__name__} has no loop over two inputs")


def method(function: Any, name: str) -> Callable[..., Any]:
    """Return the method of a function object, or the plain callable itself."""
    return getattr(function, name) if isinstance(function, Function) else function  # type: ignore[no-any-return]


def results_of(returned: Iterable[Any] | None, kinds: ResultKinds = PROCESS_RESULTS) -> Iterable[Any]:
    """Return the results that a function returned; refuse a single value, whose parts would become results."""
    if returned is None:
        return ()
    if returned.__class__ not in kinds.known:
        kinds.check(returned)
    return returned
