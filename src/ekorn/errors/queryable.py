"""Errors of queryable state: what a client is told, and why a job is refused."""

from __future__ import annotations

from ekorn.errors.base import EkornError, with_fields
from ekorn.errors.program import InvalidProgramError


@with_fields
class QueryableNameTwice(InvalidProgramError):
    """Two states of a job have one queryable name."""

    retryable = False

    name: str
    found: str

    def __str__(self) -> str:
        return (
            f"two states are queryable as {self.name!r}: {self.found}; "
            "give each of them a name of its own in set_queryable() or as_queryable_state()"
        )


class QueryError(EkornError):
    """A query of state was not answered."""


@with_fields
class UnknownJob(QueryError):
    """The driver that was asked runs no such job."""

    job: str
    running: str

    def __str__(self) -> str:
        return (
            f"no job {self.job!r} can be queried here; the running jobs with queryable-state.enable are {self.running}"
        )


@with_fields
class UnknownQueryableState(QueryError):
    """The job has no queryable state of the name."""

    name: str
    known: str

    def __str__(self) -> str:
        return (
            f"the job has no queryable state {self.name!r}; it has {self.known}. "
            "A state becomes known when a function requests it in open()"
        )


@with_fields
class UnknownKey(QueryError):
    """The state has no value for the key, or its value has expired."""

    name: str
    key: str

    def __str__(self) -> str:
        return f"queryable state {self.name!r} has no value for key {self.key}"


@with_fields
class StateNotServed(QueryError):
    """The job cannot answer now: it starts, restarts, has ended, or its user code takes too long. Ask again later."""

    name: str
    why: str

    def __str__(self) -> str:
        return f"queryable state {self.name!r} cannot be served now: {self.why}"


class QueryRefused(QueryError):
    """The question is wrong: a key or a descriptor that does not fit the state."""


# Flink: programs catch the errors by these names.
UnknownKvStateLocation = UnknownQueryableState
UnknownKeyOrNamespaceException = UnknownKey
