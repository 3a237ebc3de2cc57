"""A window fires: its contents go to the window function, and what that gives goes on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

from tamias.errors import UnsupportedOperationError
from tamias.functions.state_stores import KeyedStateStore
from tamias.functions.timer_service import TimerService
from tamias.functions.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from tamias.keygroups import user_key
from tamias.operators.contexts import StateStore
from tamias.operators.operator import RuntimeOperator
from tamias.operators.process_functions import emit_results
from tamias.state.keyed_backend import KeyedStateBackend


class WindowCall(ABC):
    """What happens to the contents of a window; the operator has made the key and the window current."""

    clears = False
    """Whether `clear` does anything."""

    @abstractmethod
    def fire(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        """Emit what the contents become: the value of an incremental function, or a list of records.

        Flink: in PyFlink results have the time of the record or timer that made the window fire; with the default
        trigger that is the window's last instant, which Java gives to all results.
        """

    def clear(self, window: Any) -> None:  # noqa: B027
        """The window is over."""


class EmitValue(WindowCall):
    """No function: the value is the result."""

    def __init__(self, operator: RuntimeOperator) -> None:
        self._operator = operator

    def fire(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        self._operator.out(contents, time_ms)


class CallFunction(WindowCall):
    """One of the four kinds of window function."""

    def __init__(
        self, operator: RuntimeOperator, function: Any, clocks: TimerService, *, merging: bool, listed: bool
    ) -> None:
        assert operator.backend is not None
        self._operator = operator
        self._cleanups = operator.backend.every_record
        self._listed = listed
        self._context = WindowContext(operator.backend, operator.operator.name, clocks, merging=merging)
        self._call: Callable[[Any, Any, Iterable[Any]], Iterable[Any] | None]
        self.clears = False
        if isinstance(function, WindowFunction):
            self._call = function.apply
        elif isinstance(function, AllWindowFunction):
            self._call = lambda key, window, elements: function.apply(window, elements)
        elif isinstance(function, ProcessWindowFunction):
            self._call = lambda key, window, elements: function.process(key, self._context, elements)
            self.clears = type(function).clear is not ProcessWindowFunction.clear
        else:
            assert isinstance(function, ProcessAllWindowFunction), function
            self._call = lambda key, window, elements: function.process(self._context, elements)
            self.clears = type(function).clear is not ProcessAllWindowFunction.clear
        self._function = function

    def fire(self, key: Any, window: Any, contents: Any, time_ms: int | None) -> None:
        for clean_up in self._cleanups:
            clean_up()
        self._context.current = window
        results = self._call(user_key(key), window, contents if self._listed else [contents])
        if results is not None:
            emit_results(results, time_ms, self._operator.out, self._operator.side_out)

    def clear(self, window: Any) -> None:
        if self.clears:
            self._context.current = window
            self._function.clear(self._context)


class WindowContext(ProcessWindowFunction.Context[Any], ProcessAllWindowFunction.Context[Any]):
    """Handed to process window functions."""

    def __init__(self, backend: KeyedStateBackend, operator_name: str, clocks: TimerService, *, merging: bool) -> None:
        self.current: Any = None
        self._clocks = clocks
        self._merging = merging
        self._window_state = StateStore(backend.in_windows("window/"), operator_name)
        self._global_state = StateStore(backend, operator_name)

    def window(self) -> Any:
        return self.current

    def current_processing_time(self) -> int:
        return self._clocks.current_processing_time()

    def current_watermark(self) -> int:
        return self._clocks.current_watermark()

    def window_state(self) -> KeyedStateStore:
        if self._merging:
            raise UnsupportedOperationError(
                "windows that merge have no state of their own: which window's would it be? use global_state()"
            )
        return self._window_state

    def global_state(self) -> KeyedStateStore:
        return self._global_state
