"""Errors of keyed state and of its declarations."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields


class StateError(EkornError):
    """State was declared or used in a way that is not allowed."""


@with_fields
class StateNotKeyed(StateError):
    """A function that does not run on a keyed stream asked for keyed state."""

    retryable = False

    state: str

    def __str__(self) -> str:
        return (
            f"keyed state {self.state!r} was requested on a stream that is not keyed; "
            "call key_by(...) before this function"
        )


class NoCurrentKey(StateError):
    """Keyed state was read or written while no record or timer was being processed."""

    def __str__(self) -> str:
        return (
            "keyed state was used where there is no current key; "
            "use it while processing a record or a timer, not in open(), close() or process_broadcast_element()"
        )


class StateMigrationError(StateError):
    """The new declaration of a state cannot read the values that the old declaration stored."""

    retryable = False


# Flink: programs catch the error by this name.
StateMigrationException = StateMigrationError
