"""The driver's connection to a slot for queries of state, apart from the one for requests, which may take long."""

from __future__ import annotations

import pickle
import threading

from tamias.errors import DeploymentError, QueryError, StateNotServed
from tamias.slot.link import Address, Link, connect
from tamias.slot.messages import ACK, LookUpState
from tamias.slot.state_look_ups import StateQuery
from tamias.types.by_value import dumps

__all__ = ["QueryLink"]

_CONNECT_S = 2.0
_ANSWER_S = 2.0  # beyond the time that the slot may wait for user code


class QueryLink:
    """One connection, opened by the first query. Queries take turns. Thread-safe."""

    def __init__(self, slot: int, address: Address, secret: bytes) -> None:
        self._slot = slot
        self._address = address
        self._secret = secret
        self._lock = threading.Lock()
        self._link: Link | None = None
        self._closed = False

    def ask(self, query: StateQuery) -> list[bytes | None]:
        """Send a query and return its answer.

        Raises:
            StateNotServed: The slot is gone or does not answer.
            QueryError: The slot refused the query.
        """
        with self._lock:
            try:
                link = self._connected()
                link.settimeout(query.timeout_s + _ANSWER_S)
                link.send(dumps(LookUpState(query)))
                answer = link.receive()
            except (OSError, EOFError, DeploymentError) as error:
                self._disconnect()  # a late answer must not be taken for that of the next query
                raise StateNotServed(query.name, f"slot {self._slot} is gone: {error}") from error
        content = pickle.loads(memoryview(answer)[len(ACK) :])
        if not answer.startswith(ACK):
            if isinstance(content, QueryError):
                raise content
            raise StateNotServed(query.name, f"{type(content).__name__}: {content}") from content
        found: list[bytes | None] = content
        return found

    def close(self) -> None:
        """End the connection. A query that waits for its answer is refused. Thread-safe."""
        self._closed = True
        link = self._link
        if link is not None:
            link.shut_down()

    def _connected(self) -> Link:
        if self._closed:
            raise EOFError("the driver has given it up")
        if self._link is None:
            self._link = connect(self._address, self._secret, _CONNECT_S)
        return self._link

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
