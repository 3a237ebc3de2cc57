"""The evaluation of a firing window: its contents go to the window function, and the results go downstream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from ekorn.errors import UnsupportedOperationError
from ekorn.functions.output_tag import OutputTag
from ekorn.functions.record_functions import WrappingFunction
from ekorn.functions.state.state_stores import KeyedStateStore
from ekorn.functions.timer_service import TimerService
from ekorn.functions.windows.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from ekorn.graph.specs import WindowSpec
from ekorn.keygroups import user_key
from ekorn.operators.contexts.function_contexts import SideOutputs
from ekorn.operators.contexts.subtask_context import StateStore
from ekorn.operators.operator import RuntimeOperator
from ekorn.operators.results import emit_results
from ekorn.state.keyed_backend import KeyedStateBackend


def functions_of(spec: WindowSpec) -> tuple[Any, ...]:
    """Return the user's functions of a window: the incremental one, then the one that evaluates it."""
    return tuple(f for f in (getattr(spec.contents, "function", None), spec.function) if f is not None)


class Evaluator(ABC):
    """Evaluates windows. The operator has made the key and the window current."""

    clears_windows = False
    """Whether `clear` does anything."""

    @abstractmethod
    def evaluate(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        """Emit the results of a window. The contents are the value of an incremental function, or a list of records.

        Flink: in PyFlink results get the timestamp of the record or timer that made the window fire. With the default
        trigger that is the window's last instant, which Java gives to all results.
        """

    def clear(self, window: Any) -> None:  # noqa: B027
        """Let the function clear its state of a window that is over."""


class EmitContents(Evaluator):
    """Emits the value of an incremental function as it is."""

    def __init__(self, operator: RuntimeOperator) -> None:
        self._operator = operator

    def evaluate(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        self._operator.out(contents, time_ms)


class CallWindowFunction(Evaluator):
    """Calls one of the four kinds of window function and emits its results."""

    def __init__(
        self, operator: RuntimeOperator, function: Any, clocks: TimerService, *, merging: bool, is_list: bool
    ) -> None:
        assert operator.backend is not None
        self._operator = operator
        self._cleanups = operator.backend.every_record
        self._is_list = is_list
        self._context = WindowContext(operator.backend, clocks, SideOutputs(operator), merging=merging)
        self._call: Callable[[Any, Any, Iterable[Any]], Iterable[Any] | None]
        self.clears_windows = False
        if isinstance(function, WindowFunction):
            self._call = function.apply
        elif isinstance(function, AllWindowFunction):
            self._call = lambda key, window, elements: function.apply(window, elements)
        elif isinstance(function, ProcessWindowFunction):
            self._call = lambda key, window, elements: function.process(key, self._context, elements)
            self.clears_windows = type(function).clear is not ProcessWindowFunction.clear
        else:
            assert isinstance(function, ProcessAllWindowFunction), function
            self._call = lambda key, window, elements: function.process(self._context, elements)
            self.clears_windows = type(function).clear is not ProcessAllWindowFunction.clear
        self._function = function
        operator.emits_from = _users_function(function)

    def evaluate(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        for clean_up in self._cleanups:
            clean_up()
        self._context.current, self._context.time = window, time_ms
        results = self._call(user_key(key), window, contents if self._is_list else [contents])
        if results is not None:
            emit_results(results, time_ms, self._operator)

    def clear(self, window: Any) -> None:
        if self.clears_windows:
            self._context.current, self._context.time = window, window.max_timestamp()
            self._function.clear(self._context)


def _users_function(function: Any) -> Callable[..., Any]:
    """Return the method or the plain function of the user that a window function is, or that it wraps."""
    if isinstance(function, WrappingFunction):
        return getattr(function.wrapped, "co_group", function.wrapped)  # type: ignore[no-any-return]
    is_process = isinstance(function, ProcessWindowFunction | ProcessAllWindowFunction)
    return function.process if is_process else function.apply  # type: ignore[no-any-return]


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """The context of process window functions.

    Attributes:
        current: The window that is evaluated or cleared.
        time: The timestamp of its results.
    """

    def __init__(self, backend: KeyedStateBackend, clocks: TimerService, sides: SideOutputs, *, merging: bool) -> None:
        self.current: Any = None
        self.time: int | None = None
        self._clocks = clocks
        self._sides = sides
        self._merging = merging
        self._window_state = StateStore(backend.in_windows("window/"))
        self._global_state = StateStore(backend)

    def window(self) -> Any:
        return self.current

    def output(self, output_tag: OutputTag, value: Any) -> None:
        self._sides.emit(output_tag, value, self.time)

    def current_processing_time(self) -> int:
        return self._clocks.current_processing_time()

    def current_watermark(self) -> int:
        return self._clocks.current_watermark()

    def window_state(self) -> KeyedStateStore:
        if self._merging:
            raise UnsupportedOperationError(
                "window_state() is not available with merging windows, because merging replaces windows; "
                "use global_state()"
            )
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state
