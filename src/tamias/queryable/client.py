"""`QueryableStateClient`: reads the state of running jobs."""

from __future__ import annotations

import pickle
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, NamedTuple, get_args

from tamias.config.job_id import JobID
from tamias.config.web_settings import is_loopback
from tamias.driver.query_server import read_token
from tamias.driver.query_wire import Answer, decode_answer, encode_query
from tamias.driver.state_queries import Consistency
from tamias.errors import (
    DeploymentError,
    QueryError,
    QueryRefused,
    RecordTypeError,
    StateNotServed,
    UnknownKey,
    preview,
)
from tamias.functions.state_descriptors import StateDescriptor
from tamias.functions.state_handles import State
from tamias.queryable.immutable_states import immutable_state
from tamias.slot.encryption import EncryptedAddress
from tamias.slot.link import Address, Link, connect
from tamias.types.type_information import TypeInformation

__all__ = ["QueryableStateClient"]

_MOST_KEYS = 2_000  # in one message; more keys go into the next
_CONNECT_S = 10.0


class _Target(NamedTuple):
    """The state that some keys are looked up in."""

    job: str
    name: str
    consistency: Consistency


@dataclass(frozen=True, slots=True)
class _Asked:
    """One key that waits for its value. The future has the kind of the state and the pickled value, or None."""

    target: _Target
    key: Any
    future: Future[tuple[str, bytes | None]]


class QueryableStateClient:
    """Reads the state of running jobs by key, without stopping them. Thread-safe.

    Queries that wait at the same time travel in one message, so many futures cost little more than one.

    Example:
        client = QueryableStateClient("127.0.0.1", 9069)
        descriptor = ValueStateDescriptor("count", Types.LONG())
        future = client.get_kv_state(job_id, "word-counts", "tea", Types.STRING(), descriptor)
        print(future.result(timeout=5).value())
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int = 9069,
        token: str | None = None,
        *,
        encrypted: bool | None = None,
    ) -> None:
        """Prepare a client. It connects with the first query.

        Args:
            host: Where the driver of the job answers queries.
            port: Its port.
            token: The token of the port; None: that of a driver of this user on this machine.
            encrypted: Whether the driver speaks TLS; None: unless the host is this machine.
        """
        if encrypted is None:
            encrypted = not is_loopback(host)
        self.host = host
        self.port = port
        self._address: Address = EncryptedAddress(host, port) if encrypted else (host, port)
        self._token = token
        self._waiting: deque[list[_Asked]] = deque()  # keys of one call, which travel in one message
        self._changed = threading.Condition()
        self._closed = False
        self._link: Link | None = None
        self._thread: threading.Thread | None = None

    def get_kv_state(
        self,
        job_id: JobID | str,
        queryable_state_name: str,
        key: Any,
        key_type_info: TypeInformation | None,
        state_descriptor: StateDescriptor,
        *,
        consistency: Consistency = "live",
    ) -> Future[State]:
        """Return a future of the state of a key, which cannot be changed.

        The future raises `UnknownKey` if the key has no value, `UnknownQueryableState`, `UnknownJob`, and
        `StateNotServed` if the job cannot answer now: while it restarts, for example.

        Args:
            job_id: The id of the job.
            queryable_state_name: The name in `set_queryable` or `as_queryable_state`.
            key: The key, as the job's key selector returns it.
            key_type_info: The type of the key, against which it is checked; None: it is not checked.
            state_descriptor: The kind of the state.
            consistency: `live` for the newest value; `checkpoint` for that of the last completed checkpoint, which no
                failure takes back. It is read from the files of the checkpoint.
        """
        (asked,) = self._ask(job_id, queryable_state_name, [key], key_type_info, consistency)
        return _after(asked, lambda found: _state(queryable_state_name, key, found, state_descriptor))

    def get_kv_states(
        self,
        job_id: JobID | str,
        queryable_state_name: str,
        keys: Iterable[Any],
        key_type_info: TypeInformation | None,
        state_descriptor: StateDescriptor,
        *,
        consistency: Consistency = "live",
    ) -> Future[list[State | None]]:
        """Return a future of the states of many keys, in their order; None for a key without a value.

        Live values of different keys need not be of one instant. Those of a checkpoint are, for up to 2,000 keys.
        """
        all_keys = list(keys)
        futures = self._ask(job_id, queryable_state_name, all_keys, key_type_info, consistency)
        together: Future[list[State | None]] = Future()
        together.set_running_or_notify_cancel()  # the query is on its way and cannot be cancelled
        left = _Countdown(len(futures))

        def one_done(_: Future[tuple[str, bytes | None]]) -> None:
            if left.is_last():
                try:
                    found = [future.result() for future in futures]
                    together.set_result([_state_or_none(each, state_descriptor) for each in found])
                except BaseException as error:
                    together.set_exception(error)

        if not futures:
            together.set_result([])
        for future in futures:
            future.add_done_callback(one_done)
        return together

    def shutdown(self) -> None:
        """Close the connection. Queries without an answer fail."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            link = self._link
        if link is not None:
            link.shut_down()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> QueryableStateClient:
        return self

    def __exit__(self, *ended: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"QueryableStateClient({self.host!r}, {self.port})"

    # -------------------------------------------------------------------------------------------------- the connection

    def _ask(
        self,
        job_id: JobID | str,
        name: str,
        keys: list[Any],
        key_type: TypeInformation | None,
        consistency: Consistency,
    ) -> list[Future[tuple[str, bytes | None]]]:
        if key_type is not None:
            try:
                keys = list(key_type.conform(keys))
            except RecordTypeError as error:
                raise QueryRefused(f"queryable state {name!r}: a key does not fit its type: {error}") from None
        if consistency not in get_args(Consistency):
            raise ValueError(f"consistency is 'live' or 'checkpoint', not {consistency!r}")
        target = _Target(str(job_id), name, consistency)
        asked = [_Asked(target, key, Future()) for key in keys]
        with self._changed:
            if self._closed:
                raise QueryError("the client is shut down")
            self._waiting.extend(asked[at : at + _MOST_KEYS] for at in range(0, len(asked), _MOST_KEYS))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="tamias-query-client", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return [each.future for each in asked]

    def _run(self) -> None:
        """Send what waits and take the answers, one message after another, until the client is shut down."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if self._closed:
                    left = [each for keys in self._waiting for each in keys]
                    break
                batch = self._next_batch()
            self._answer(batch)
        for each in left:
            each.future.set_exception(QueryError("the client is shut down"))
        if self._link is not None:
            self._link.close()

    def _next_batch(self) -> list[_Asked]:
        """Take the keys of one state that wait next to each other, and no part of a call's keys."""
        batch = list(self._waiting.popleft())
        while self._waiting and self._waiting[0][0].target == batch[0].target:
            if len(batch) + len(self._waiting[0]) > _MOST_KEYS:
                break
            batch += self._waiting.popleft()
        return batch

    def _answer(self, batch: list[_Asked]) -> None:
        try:
            answer = self._exchange(batch)
            answer.raise_error()
        except Exception as error:  # each of the callers learns it from the future
            for each in batch:
                each.future.set_exception(error)
            return
        for each, value in zip(batch, answer.values, strict=True):
            each.future.set_result((answer.kind, value))

    def _exchange(self, batch: list[_Asked]) -> Answer:
        target = batch[0].target
        try:
            message = encode_query(target.job, target.name, [each.key for each in batch], target.consistency)
        except Exception as error:  # whatever pickling a key of the user raises
            raise QueryRefused(f"a key cannot be sent: {error}") from error
        try:
            link = self._connected()
            link.send(message)
            return decode_answer(link.receive())
        except (OSError, EOFError) as error:
            self._disconnect()
            where = f"{self.host}:{self.port}"
            raise StateNotServed(target.name, f"the driver at {where} does not answer: {error}") from error
        except DeploymentError as error:
            self._disconnect()
            raise QueryError(f"the driver at {self.host}:{self.port} does not accept the token: {error}") from None

    def _connected(self) -> Link:
        if self._link is None:
            token = self._token if self._token is not None else read_token(self.port)
            self._link = connect(self._address, token.encode(), _CONNECT_S)
        return self._link

    def _disconnect(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None


class _Countdown:
    """Counts down to the last of some events. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()

    def is_last(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


def _after(asked: Future[tuple[str, bytes | None]], make: Any) -> Future[State]:
    """Return a future of what a function makes of another future's result."""
    made: Future[State] = Future()
    made.set_running_or_notify_cancel()  # the query is on its way and cannot be cancelled

    def done(found: Future[tuple[str, bytes | None]]) -> None:
        try:
            made.set_result(make(found.result()))
        except BaseException as error:
            made.set_exception(error)

    asked.add_done_callback(done)
    return made


def _state(name: str, key: Any, found: tuple[str, bytes | None], descriptor: StateDescriptor) -> State:
    state = _state_or_none(found, descriptor)
    if state is None:
        raise UnknownKey(name, preview(key))
    return state


def _state_or_none(found: tuple[str, bytes | None], descriptor: StateDescriptor) -> State | None:
    kind, value = found
    if kind != descriptor.kind:
        raise QueryRefused(f"the state is {kind} state, and the descriptor is one of {descriptor.kind} state")
    return None if value is None else immutable_state(kind, pickle.loads(value))
