"""The driver's connection to a slot for queries of state, apart from the one for requests, which may take long."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import Future

from ekorn.errors import DeploymentError, QueryError, StateNotServed
from ekorn.links.link import Address, connect
from ekorn.links.pipelined_link import PipelinedLink
from ekorn.slot.state.state_look_ups import Found, StateQuery
from ekorn.slot_protocol.messages import AnswerQueries
from ekorn.slot_protocol.task_messages import ACK
from ekorn.types.by_value import dumps

__all__ = ["QueryLink"]

_CONNECT_S = 2.0
_ANSWER_S = 2.0  # beyond the time that the slot may wait for user code


class QueryLink:
    """One connection, opened by the first query. Queries do not wait for each other's answers. Thread-safe."""

    def __init__(self, slot: int, address: Address, secret: bytes) -> None:
        self._slot = slot
        self._address = address
        self._secret = secret
        self._lock = threading.Lock()
        self._link: PipelinedLink | None = None
        self._closed = False

    def ask(self, query: StateQuery) -> Future[list[bytes | None]]:
        """Send a query and return the future of its answer.

        The future raises `StateNotServed` if the slot is gone or does not answer, and the `QueryError` of a slot that
        refuses the query.
        """
        asked: Future[list[bytes | None]] = Future()

        def answered(answer: Future[bytes]) -> None:
            try:
                asked.set_result(self._values(query, answer))
            except Exception as error:  # of the slot, or an answer that cannot be read: the future must end
                asked.set_exception(error)

        try:
            link = self._connected()
        except (OSError, EOFError, DeploymentError) as error:
            asked.set_exception(self._gone(query, error))
        else:
            link.ask(dumps(query), query.timeout_s + _ANSWER_S).add_done_callback(answered)
        return asked

    def _values(self, query: StateQuery, answer: Future[bytes]) -> list[bytes | None]:
        try:
            message = answer.result()
        except (OSError, EOFError) as error:
            raise self._gone(query, error) from error
        found: Found = pickle.loads(memoryview(message)[len(ACK) :])
        if isinstance(found, QueryError):
            raise found
        return found

    def _gone(self, query: StateQuery, error: Exception) -> StateNotServed:
        return StateNotServed(query.name, f"slot {self._slot} is gone: {error}")

    def close(self) -> None:
        """End the connection. A query that waits for its answer is refused. Thread-safe."""
        self._closed = True
        link = self._link
        if link is not None:
            link.close()

    def _connected(self) -> PipelinedLink:
        with self._lock:
            if self._closed:
                raise EOFError("the driver has given it up")
            if self._link is None or self._link.is_broken:
                link = connect(self._address, self._secret, _CONNECT_S)
                link.send(dumps(AnswerQueries()))
                self._link = PipelinedLink(link, f"slot-{self._slot}-queries")
                if self._closed:  # meanwhile, and `close` may not have seen the connection
                    self._link.close()
            return self._link
