"""`QueryableStateClient`: reads the state of running jobs."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple, get_args

from ekorn.config.job_id import JobID
from ekorn.config.settings.web_settings import is_loopback
from ekorn.driver.queries.query_routing import Consistency
from ekorn.driver.queries.query_server import read_token
from ekorn.errors import QueryRefused, RecordTypeError, UnknownKey, preview
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.functions.state.state_handles import State
from ekorn.links.encryption import EncryptedAddress
from ekorn.links.link import Address, Link, connect
from ekorn.queryable.immutable_states import immutable_state
from ekorn.queryable.query_batches import MOST_KEYS, QueryBatches, Target
from ekorn.queryable.state_future import StateFuture
from ekorn.types.type_information import TypeInformation

__all__ = ["QueryableStateClient"]

_CONNECT_S = 10.0
_CONSISTENCIES = frozenset(get_args(Consistency))


class QueryableStateClient:
    """Reads the state of running jobs by key, without stopping them. Thread-safe.

    Concurrent queries travel in one message, so many futures cost little more than one.

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
        """Create a client. The first query connects it.

        Args:
            host: The host of the job's driver.
            port: The port at which the driver answers queries.
            token: The token of the port; None for that of a driver of this user on this machine.
            encrypted: Whether the driver speaks TLS; None for TLS unless the host is this machine.
        """
        if encrypted is None:
            encrypted = not is_loopback(host)
        self.host = host
        self.port = port
        self._address: Address = EncryptedAddress(host, port) if encrypted else (host, port)
        self._token = token
        self._batches = QueryBatches(self._connect, f"{host}:{port}")
        self._last_target: Target | None = None

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
        """Return a future of a key's state: a copy, which cannot be changed.

        The future raises `UnknownKey` if the key has no value, `UnknownQueryableState` or `UnknownJob` if there is no
        such state or job, and `StateNotServed` if the job cannot answer now, for example during a restart.

        Args:
            job_id: The id of the job.
            queryable_state_name: The name in `set_queryable` or `as_queryable_state`.
            key: The key, as the job's key selector returns it.
            key_type_info: The type to check the key against; None for no check.
            state_descriptor: A descriptor of the kind that the state has.
            consistency: `live` for the newest value; `checkpoint` for the value in the last completed checkpoint,
                which no failure takes back. The latter is read from the files of the checkpoint.
        """
        if key_type_info is not None:
            (key,) = _conforming(queryable_state_name, [key], key_type_info)
        asked = _OneKey(self._target(job_id, queryable_state_name, consistency), key, state_descriptor)
        self._batches.ask((asked,))
        return asked

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

        Live values of different keys may be from different instants. Values of a checkpoint are from the same
        checkpoint for up to 2,000 keys.
        """
        found = list(keys)
        if key_type_info is not None:
            found = _conforming(queryable_state_name, found, key_type_info)
        target = self._target(job_id, queryable_state_name, consistency)
        together = _ManyKeys(len(found), state_descriptor)
        parts = [
            _SomeKeys(target, found[start : start + MOST_KEYS], start, together)
            for start in range(0, len(found), MOST_KEYS)
        ]
        self._batches.ask(parts)
        return together.future

    def shutdown(self) -> None:
        """Close the connection. Queries in flight fail."""
        self._batches.close()

    def __enter__(self) -> QueryableStateClient:
        return self

    def __exit__(self, *ended: object) -> None:
        self.shutdown()

    def __repr__(self) -> str:
        return f"QueryableStateClient({self.host!r}, {self.port})"

    def _target(self, job_id: JobID | str, name: str, consistency: Consistency) -> Target:
        """Return the target of a query. Consecutive queries of one state share the object."""
        target, job = self._last_target, str(job_id)
        if target is None or target.name != name or target.job != job or target.consistency != consistency:
            if consistency not in _CONSISTENCIES:
                raise ValueError(f"consistency is 'live' or 'checkpoint', not {consistency!r}")
            self._last_target = target = Target(job, name, consistency)
        return target

    def _connect(self) -> Link:
        token = self._token if self._token is not None else read_token(self.port)
        return connect(self._address, token.encode(), _CONNECT_S)


def _conforming(name: str, keys: list[Any], key_type: TypeInformation) -> list[Any]:
    """Return the keys as values of their declared type."""
    try:
        return list(key_type.conform(keys))
    except RecordTypeError as error:
        raise QueryRefused(f"queryable state {name!r}: a key does not fit its type: {error}") from None


class _OneKey(StateFuture[State]):
    """A query of one key and its future, in one object. A key without a value is an error."""

    size = 1

    def __init__(self, target: Target, key: Any, descriptor: StateDescriptor) -> None:
        super().__init__()
        self.target = target
        self._key = key
        self._descriptor = descriptor

    @property
    def keys(self) -> tuple[Any]:
        return (self._key,)

    def give(self, kind: str, values: list[bytes | None]) -> None:
        try:
            state = _state(kind, values[0], self._descriptor)
            if state is None:
                raise UnknownKey(self.target.name, preview(self._key))
        except Exception as error:  # for example a value whose class cannot be imported here
            self.set_exception(error)
        else:
            self.set_result(state)

    def fail(self, error: Exception) -> None:
        self.set_exception(error)


class _ManyKeys:
    """A query of many keys, whose values arrive in parts. Thread-safe."""

    def __init__(self, count: int, descriptor: StateDescriptor) -> None:
        self._descriptor = descriptor
        self._states: list[State | None] = [None] * count
        self._left = count
        self._lock = threading.Lock()
        self.future: StateFuture[list[State | None]] = StateFuture()
        if not count:
            self.future.set_result([])

    def give(self, start: int, kind: str, values: list[bytes | None]) -> None:
        try:
            found = [_state(kind, value, self._descriptor) for value in values]
        except Exception as error:  # for example a value whose class cannot be imported here
            self.fail(error)
            return
        with self._lock:
            self._states[start : start + len(found)] = found
            self._left -= len(found)
            whole = not self._left
        if whole:
            self.future.set_result(self._states)

    def fail(self, error: Exception) -> None:
        with self._lock:
            if not self.future.done():  # otherwise another part has failed before
                self.future.set_exception(error)


class _SomeKeys(NamedTuple):
    """The part of a query's keys that travels in one message."""

    target: Target
    keys: list[Any]
    start: int
    call: _ManyKeys

    @property
    def size(self) -> int:
        return len(self.keys)

    def give(self, kind: str, values: list[bytes | None]) -> None:
        self.call.give(self.start, kind, values)

    def fail(self, error: Exception) -> None:
        self.call.fail(error)


def _state(kind: str, value: bytes | None, descriptor: StateDescriptor) -> State | None:
    if kind != descriptor.kind:
        raise QueryRefused(f"the state is {kind} state, and the descriptor is one of {descriptor.kind} state")
    return None if value is None else immutable_state(kind, pickle.loads(value))
