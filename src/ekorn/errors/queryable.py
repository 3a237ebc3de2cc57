"""Errors of queryable state: what a client is told, and why a job is refused."""

from __future__ import annotations

from ekorn.errors.base import EkornError, ErrorArgument
from ekorn.errors.program import InvalidProgramError


class QueryableNameTwice(InvalidProgramError):
    """Two states of a job have one queryable name."""

    retryable = False

    def __init__(self, name: str, found: str) -> None:
        super().__init__(name, found)

    name = ErrorArgument[str](0)

    def __str__(self) -> str:
        return (
            f"two states are queryable as {self.args[0]!r}: {self.args[1]}; "
            "give each of them a name of its own in set_queryable() or as_queryable_state()"
        )


class QueryError(EkornError):
    """A query of state was not answered."""


class UnknownJob(QueryError):
    """The driver that was asked runs no such job."""

    def __init__(self, job: str, running: str) -> None:
        super().__init__(job, running)

    def __str__(self) -> str:
        return f"no job {self.args[0]!r} can be queried here; running with queryable-state.enable: {self.args[1]}"


class UnknownQueryableState(QueryError):
    """The job has no queryable state of the name."""

    def __init__(self, name: str, known: str) -> None:
        super().__init__(name, known)

    def __str__(self) -> str:
        return (
            f"the job has no queryable state {self.args[0]!r}; it has {self.args[1]}. "
            "A function makes a state known by asking for it in open()"
        )


class UnknownKey(QueryError):
    """The state has no value for the key, or its value has expired."""

    def __init__(self, name: str, key: str) -> None:
        super().__init__(name, key)

    def __str__(self) -> str:
        return f"queryable state {self.args[0]!r} has no value for key {self.args[1]}"


class StateNotServed(QueryError):
    """The job cannot answer now: it starts, restarts, has ended, or its user code takes too long. Ask again later."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)

    def __str__(self) -> str:
        return f"queryable state {self.args[0]!r} is not served now: {self.args[1]}"


class QueryRefused(QueryError):
    """The question is wrong: a key or a descriptor that does not fit the state."""


# Flink: programs catch the errors by these names.
UnknownKvStateLocation = UnknownQueryableState
UnknownKeyOrNamespaceException = UnknownKey
