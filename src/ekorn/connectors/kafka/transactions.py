"""Transactions of Kafka: named in checkpoints, committed by any process, and aborted if no checkpoint covers them.

A committable is the name of a transaction with the id and epoch of its producer. Committing needs nothing else, so any
process can commit what a killed process wrote. Repeated commits have no further effect.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict, TypeVar

from ekorn.clock import Clock
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.wire import (
    NONE,
    PASSING,
    Address,
    BrokerConnection,
    ErrorCode,
    LoginRefused,
    TransactionState,
)
from ekorn.connectors.kafka.wire_login import Login
from ekorn.errors import ConfigurationError, KafkaError, KafkaTransactionLost
from ekorn.functions.sink_contract import Committer

log = logging.getLogger(__name__)

T = TypeVar("T")

_ANSWER_S = 10.0  # the time for an answer, unless the program sets socket.timeout.ms
_PATIENCE_S = 60.0  # the time to wait for brokers that are away
_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


class PreparedTransaction(TypedDict):
    """A transaction whose records are all in Kafka. Checkpoints hold it as it is."""

    id: str
    producer_id: int
    epoch: int
    begun_ms: int


class WriterName(NamedTuple):
    """The parts of a transactional id before the number of the transaction: `<prefix>-<subtask>-<uid>-<number>`.

    The uid is new for every writer, so no id is used twice, and an id that is committed again is never another
    transaction's.
    """

    prefix: str
    subtask_index: int
    uid: str

    def transaction(self, number: int) -> str:
        return f"{self.prefix}-{self.subtask_index}-{self.uid}-{number}"


def writer_of(prefix: str, transactional_id: str) -> WriterName | None:
    """Return the writer of a transaction; None if a transaction does not belong to the prefix."""
    found = re.fullmatch(re.escape(prefix) + r"-(\d+)-([0-9a-f]{12})-\d+", transactional_id)
    return None if found is None else WriterName(prefix, int(found[1]), found[2])


class TransactionAdmin:
    """Asks the coordinators of transactions. Waits for brokers that are away, for a minute at most."""

    def __init__(self, properties: ClientProperties, clock: Clock) -> None:
        self._properties = properties
        self._clock = clock
        self._login = Login(properties)
        self._servers = deque(bootstrap_addresses(properties["bootstrap.servers"]))
        self._answer_s = _answer_s(properties)
        self._connections: dict[Address, BrokerConnection] = {}
        self._coordinators: dict[str, Address] = {}

    def commit(self, transaction: PreparedTransaction) -> ErrorCode:
        """Commit a transaction; return the error if it cannot be committed."""
        name = transaction["id"]
        return self._at_coordinator(
            name,
            lambda broker: broker.end_transaction(name, transaction["producer_id"], transaction["epoch"], commit=True),
            lambda error: error,
        )

    def fence(self, transactional_id: str, timeout_ms: int) -> ErrorCode:
        """Abort the open transaction of an id, and shut its producer out."""
        return self._at_coordinator(transactional_id, lambda b: b.fence(transactional_id, timeout_ms), lambda e: e)

    def describe(self, transactional_id: str) -> TransactionState:
        """Return the state of a transaction."""
        return self._at_coordinator(transactional_id, lambda b: b.describe(transactional_id), lambda s: s.error)

    def open_transactions(self) -> list[str]:
        """Return the ids of all open transactions of the cluster."""
        return self._patiently("listing transactions", self._list_open)

    def _list_open(self) -> tuple[ErrorCode, list[str]]:
        """Ask every coordinator.

        A coordinator that has just died is still listed for a while, then its successor is.
        """
        found: list[str] = []
        error, coordinators = self._any_broker().coordinators()
        for address in coordinators:
            if not error:
                error, names = self._connection(address).open_transactions()
                found += names
        return error, found

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def _at_coordinator(self, name: str, ask: Callable[[BrokerConnection], T], error_of: Callable[[T], ErrorCode]) -> T:
        def asked() -> tuple[ErrorCode, T | None]:
            address = self._coordinators.get(name)
            if address is None:
                error, address = self._any_broker().coordinator(name)
                if error:
                    return error, None
                # Only for the last transaction, because names are never used again.
                self._coordinators = {name: address}
            answer = ask(self._connection(address))
            error = error_of(answer)
            if error in PASSING:
                self._coordinators.pop(name, None)
                return error, answer
            return NONE, answer

        answer = self._patiently(f"transaction {name!r}", asked)
        assert answer is not None, "an answer without an error"
        return answer

    def _patiently(self, what: str, ask: Callable[[], tuple[ErrorCode, T]]) -> T:
        """Ask until the answer is not a temporary error."""
        deadline, pause_s = self._clock.monotonic() + _PATIENCE_S, _PAUSE_S
        while True:
            try:
                error, answer = ask()
                if not error:
                    return answer
                found = str(error)
                if error not in PASSING:
                    raise KafkaError(what, found)
            except LoginRefused as error_:
                raise KafkaError(what, self._properties.hide(str(error_))) from None
            except OSError as error_:
                found = self._properties.hide(str(error_))
                self._forget_connections()
            if self._clock.monotonic() >= deadline:
                raise KafkaError(what, f"no answer within {_PATIENCE_S:.0f} s: {found}")
            self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _forget_connections(self) -> None:
        self.close()
        self._coordinators.clear()
        # Otherwise a server that accepts connections but never answers would be asked for ever.
        self._servers.rotate(-1)

    def _any_broker(self) -> BrokerConnection:
        if self._connections:
            return next(iter(self._connections.values()))
        problem: OSError | None = None
        for address in self._servers:
            try:
                return self._connection(address)
            except OSError as error:  # another of the servers may answer
                problem = error
        assert problem is not None, "there is at least one server"
        raise problem

    def _connection(self, address: Address) -> BrokerConnection:
        connection = self._connections.get(address)
        if connection is None:
            connection = self._connections[address] = BrokerConnection(address, self._login, self._answer_s)
        return connection


class TransactionCommitter(Committer[PreparedTransaction]):
    """Commits transactions."""

    def __init__(self, admin: TransactionAdmin, clock: Clock, timeout_ms: int, *, ignores_late_failures: bool) -> None:
        self._admin = admin
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._ignores_late_failures = ignores_late_failures

    def commit(self, committables: Sequence[PreparedTransaction]) -> None:
        for transaction in committables:
            error = self._admin.commit(transaction)
            if error:
                self._fail(transaction, error)

    def close(self) -> None:
        self._admin.close()

    def _fail(self, transaction: PreparedTransaction, error: ErrorCode) -> None:
        """Raise or log what happened to a transaction that cannot be committed."""
        state = self._admin.describe(transaction["id"])
        age_ms = max(0, self._clock.now_ms() - transaction["begun_ms"])
        if state.error:
            found = f"the brokers do not know it, or no longer know it (transactional.id.expiration.ms) ({state.error})"
        else:
            found = f"{error}; its state is {state.state}, at epoch {state.epoch} and not {transaction['epoch']}"
        lost = KafkaTransactionLost(transaction["id"], found, age_ms // 1000, self._timeout_ms)
        if not self._ignores_late_failures or age_ms <= self._timeout_ms:
            raise lost
        log.error("%s", lost)


def abort_lingering(admin: TransactionAdmin, writer: WriterName, subtask_count: int, timeout_ms: int) -> list[str]:
    """Abort the open transactions of earlier writers of a subtask, and of subtasks that no longer exist.

    Called when all subtasks have committed what they restored: what is open then is covered by no checkpoint, and would
    hold back the readers of committed records until its timeout.
    """
    aborted = []
    for name in admin.open_transactions():
        other = writer_of(writer.prefix, name)
        if other is None or other.uid == writer.uid or other.subtask_index % subtask_count != writer.subtask_index:
            continue
        error = admin.fence(name, timeout_ms)
        if error:
            raise KafkaError(f"aborting transaction {name!r} of an earlier attempt", str(error))
        aborted.append(name)
    return aborted


def bootstrap_addresses(servers: str) -> list[Address]:
    """Return the addresses of `bootstrap.servers`.

    >>> bootstrap_addresses("PLAINTEXT://a:1, [::1]:2")
    [Address(host='a', port=1), Address(host='::1', port=2)]
    """
    addresses = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition("://")[2].rpartition(":")
        if not host or not port.isdigit():
            raise ConfigurationError(f"bootstrap.servers has the form host:port,host:port, got {server.strip()!r}")
        addresses.append(Address(host.strip("[]"), int(port)))
    return addresses


def _answer_s(properties: ClientProperties) -> float:
    """Return how long a broker may take to answer. The client has checked the property."""
    text = properties.for_librdkafka().get("socket.timeout.ms")
    return _ANSWER_S if text is None else int(text) / 1000
