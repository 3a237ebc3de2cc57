"""How the state of a running job is read: by the port for clients and by the REST API; and the address of the port."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from ekorn.slot_protocol.state_query import QueryableState
from ekorn.types.type_information import TypeInformation

__all__ = ["Consistency", "FoundValues", "QueryAddress", "StateReader"]

Consistency = Literal["live", "checkpoint"]


class FoundValues(NamedTuple):
    """The answer to a query: the kind of the state, and the pickled value of each key, None for a key without one."""

    kind: str
    values: list[bytes | None]


class StateReader(Protocol):
    """Reads the queryable states of one job. Thread-safe."""

    def states(self) -> tuple[QueryableState, ...]:
        """Return the queryable states of the job; none unless it runs."""

    def key_type(self, name: str) -> TypeInformation | None:
        """Return the declared type of the keys of a state.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now.
        """

    def look_up(self, name: str, keys: Sequence[Any], consistency: Consistency = "live") -> FoundValues:
        """Return the values of some keys.

        Raises:
            UnknownQueryableState: The job has no state of this name.
            StateNotServed: The job does not run now, or a slot does not answer in time.
            QueryRefused: A key is not one that a stream can have.
        """


@dataclass(frozen=True)
class QueryAddress:
    """Where queries of a job are answered, and the token that a client has to know."""

    host: str
    port: int
    token: str = field(repr=False)
