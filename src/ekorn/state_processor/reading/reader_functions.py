"""The functions that a program implements to read state from a savepoint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ekorn.functions.record_functions import Function
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_stores import KeyedStateStore

__all__ = ["KeyedStateReaderFunction", "WindowReaderFunction"]


class KeyedStateReaderFunction(Function):
    """Reads the keyed state of an operator, key by key.

    `open` asks the runtime context for all states that are read. `read_key` is called once for each key that has an
    entry in one of them, with that key as the current one.

    Example:
        >>> from ekorn.datastream.state import ValueStateDescriptor
        >>> class ReadCounts(KeyedStateReaderFunction):
        ...     def open(self, runtime_context):
        ...         self.count = runtime_context.get_state(ValueStateDescriptor("count"))
        ...
        ...     def read_key(self, key, ctx):
        ...         yield key, self.count.value(), sorted(ctx.registered_event_time_timers())
    """

    class Context(ABC):
        """Passed to `read_key`."""

        @abstractmethod
        def registered_event_time_timers(self) -> set[int]:
            """Return the times of the key's event-time timers."""

        @abstractmethod
        def registered_processing_time_timers(self) -> set[int]:
            """Return the times of the key's processing-time timers."""

    @abstractmethod
    def read_key(self, key: Any, ctx: KeyedStateReaderFunction.Context) -> Iterable[Any]:
        """Yield what is read of one key."""


class WindowReaderFunction(Function):
    """Reads the windows of a window operator, one key and window at a time."""

    class Context(ABC):
        """Passed to `read_window`. All of it belongs to the key and the window of the call."""

        @abstractmethod
        def window(self) -> Any:
            """Return the window."""

        @abstractmethod
        def trigger_state(self, state_descriptor: StateDescriptor) -> Any:
            """Return the state that the trigger keeps for the window."""

        @abstractmethod
        def window_state(self) -> KeyedStateStore:
            """Return the store of the state that the window function keeps for the window."""

        @abstractmethod
        def global_state(self) -> KeyedStateStore:
            """Return the store of the state that the window function keeps for the key."""

        @abstractmethod
        def registered_event_time_timers(self) -> set[int]:
            """Return the times of the window's event-time timers, those of the runtime included."""

        @abstractmethod
        def registered_processing_time_timers(self) -> set[int]:
            """Return the times of the window's processing-time timers, those of the runtime included."""

    @abstractmethod
    def read_window(self, key: Any, context: WindowReaderFunction.Context, elements: Iterable[Any]) -> Iterable[Any]:
        """Yield what is read of one window.

        Args:
            key: The key.
            context: The window, its timers and its other state.
            elements: The records of the window, or the one result of its reduce or aggregate function.
        """
