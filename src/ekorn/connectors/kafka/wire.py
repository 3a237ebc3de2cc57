"""Six requests of Kafka's protocol that confluent-kafka does not offer, on one connection to one broker.

The versions are old on purpose: Kafka 3.0 and all later releases answer them, and a commit in an old version leaves the
epoch of the transaction as it is, so that it can be sent again. https://kafka.apache.org/protocol has the layouts.
"""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from ekorn.connectors.kafka.wire_login import Login

T = TypeVar("T")

_METADATA, _FIND_COORDINATOR, _SASL_HANDSHAKE, _INIT_PRODUCER_ID, _END_TXN, _SASL_AUTHENTICATE = 3, 10, 17, 22, 26, 36
_DESCRIBE_TRANSACTIONS, _LIST_TRANSACTIONS = 65, 66
_OF_TRANSACTIONS = 1  # a key type of FindCoordinator
_COORDINATORS = "__transaction_state"  # the topic whose leaders coordinate the transactions
_LARGEST_ANSWER = 64 << 20
_CLIENT = "ekorn"


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int


class ErrorCode(int):
    """An error code of a broker; 0 for none."""

    def __str__(self) -> str:
        return _NAMES.get(int(self), f"error {int(self)}")


NONE = ErrorCode(0)
_TOPIC_UNKNOWN = ErrorCode(3)
_COORDINATOR_AWAY = ErrorCode(15)
_TOPIC_NOT_SHOWN = ErrorCode(29)  # the topic is not shown to this user
_NAMES = {
    -1: "UNKNOWN_SERVER_ERROR", 0: "NONE", 3: "UNKNOWN_TOPIC_OR_PARTITION", 5: "LEADER_NOT_AVAILABLE",
    7: "REQUEST_TIMED_OUT", 14: "COORDINATOR_LOAD_IN_PROGRESS", 15: "COORDINATOR_NOT_AVAILABLE",
    16: "NOT_COORDINATOR", 29: "TOPIC_AUTHORIZATION_FAILED", 31: "CLUSTER_AUTHORIZATION_FAILED",
    33: "UNSUPPORTED_SASL_MECHANISM", 47: "INVALID_PRODUCER_EPOCH", 48: "INVALID_TXN_STATE",
    49: "INVALID_PRODUCER_ID_MAPPING", 50: "INVALID_TRANSACTION_TIMEOUT", 51: "CONCURRENT_TRANSACTIONS",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 58: "SASL_AUTHENTICATION_FAILED", 90: "PRODUCER_FENCED",
    105: "TRANSACTIONAL_ID_NOT_FOUND",
}  # fmt: skip
# The coordinator moves, starts, or is still ending the previous transaction: a later request succeeds.
PASSING = frozenset(map(ErrorCode, (-1, 5, 7, 14, 15, 16, 51)))


class TransactionState(NamedTuple):
    """A transaction as its coordinator knows it. States are Kafka's: Ongoing, CompleteCommit, CompleteAbort, ..."""

    error: ErrorCode
    state: str
    producer_id: int
    epoch: int


class LoginRefused(Exception):
    """A broker refused the login; the message has no secrets."""


class BrokerConnection:
    """A connection to one broker. Any failure is an `OSError`, after which the connection is of no use."""

    def __init__(self, address: Address, login: Login, timeout_s: float) -> None:
        raw = socket.create_connection(address, timeout_s)
        try:
            self._socket = login.wrap(raw, address.host)
            self._number = 0
            if login.mechanism is not None:
                self._log_in(login, login.mechanism)
        except ssl.SSLCertVerificationError as error:
            raw.close()
            raise LoginRefused(f"the certificate of {address.host}:{address.port} is not trusted: {error}") from None
        except BaseException:
            raw.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def coordinators(self) -> tuple[ErrorCode, list[Address]]:
        """Return the brokers that coordinate transactions; together they know all. An error if some are unknown."""
        answer = self._ask(_METADATA, 4, _array([_string(_COORDINATORS)]) + b"\0")
        answer.int32()  # throttle time, here and below
        brokers = dict(answer.array(lambda: _broker(answer)))
        answer.string()  # the cluster's id
        answer.int32()  # its controller
        (topic,) = answer.array(lambda: _topic(answer))
        if topic.error == _TOPIC_NOT_SHOWN:
            return NONE if brokers else _COORDINATOR_AWAY, list(brokers.values())
        if topic.error == _TOPIC_UNKNOWN:
            return NONE, []  # the topic is created with the first transaction of a cluster
        if topic.error or any(leader not in brokers for leader in topic.leaders):
            return topic.error or _COORDINATOR_AWAY, []
        return NONE, [brokers[leader] for leader in sorted(set(topic.leaders))]

    def coordinator(self, transactional_id: str) -> tuple[ErrorCode, Address]:
        """Return the broker that coordinates a transaction."""
        answer = self._ask(_FIND_COORDINATOR, 2, _string(transactional_id) + struct.pack(">b", _OF_TRANSACTIONS))
        answer.int32()
        error = answer.error()
        answer.string()  # a message
        answer.int32()  # the broker's number
        return error, Address(answer.string(), answer.int32())

    def end_transaction(self, transactional_id: str, producer_id: int, epoch: int, *, commit: bool) -> ErrorCode:
        """Commit or abort a transaction. A commit may be sent again: it has no second effect."""
        answer = self._ask(_END_TXN, 2, _string(transactional_id) + struct.pack(">qh?", producer_id, epoch, commit))
        answer.int32()
        return answer.error()

    def fence(self, transactional_id: str, timeout_ms: int) -> ErrorCode:
        """Abort the open transaction of an id, if there is one, and shut its producer out."""
        answer = self._ask(_INIT_PRODUCER_ID, 1, _string(transactional_id) + struct.pack(">i", timeout_ms))
        answer.int32()
        return answer.error()

    def describe(self, transactional_id: str) -> TransactionState:
        """Return the state of a transaction."""
        answer = self._ask(
            _DESCRIBE_TRANSACTIONS, 0, _compact_array([_compact(transactional_id)]) + b"\0", compact=True
        )
        answer.int32()
        (found,) = answer.compact_array(lambda: _described(answer))
        return found

    def open_transactions(self) -> tuple[ErrorCode, list[str]]:
        """Return the ids whose transactions are open and coordinated by this broker."""
        filters = _compact_array([_compact("Ongoing")]) + _compact_array([])
        answer = self._ask(_LIST_TRANSACTIONS, 0, filters + b"\0", compact=True)
        answer.int32()
        error = answer.error()
        answer.compact_array(answer.compact_string)  # filters that the broker does not know
        return error, answer.compact_array(lambda: _listed(answer))

    # ------------------------------------------------------------------------------------------------------ login

    def _log_in(self, login: Login, mechanism: str) -> None:
        answer = self._ask(_SASL_HANDSHAKE, 1, _string(mechanism))
        error = answer.error()
        if error:
            raise LoginRefused(f"the broker does not offer the SASL mechanism {mechanism} ({error})")
        dialogue = login.dialogue()
        challenge: bytes | None = None
        while (reply := dialogue.answer(challenge)) is not None:
            answer = self._ask(_SASL_AUTHENTICATE, 0, struct.pack(">i", len(reply)) + reply)
            error, _ = answer.error(), answer.string()
            if error:
                raise LoginRefused(f"the broker refused the login of {login.user!r} ({error})")
            challenge = answer.data()

    # --------------------------------------------------------------------------------------------------- requests

    def _ask(self, api: int, version: int, body: bytes, *, compact: bool = False) -> _Answer:
        self._number += 1
        request = (
            struct.pack(">hhi", api, version, self._number) + _string(_CLIENT) + (b"\0" if compact else b"") + body
        )
        try:
            self._socket.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", self._receive(4))
        except ssl.SSLError as error:  # TLS 1.3: a broker refuses the certificate of a client after the handshake
            if "ALERT" in (error.reason or "") and ("CERT" in error.reason or "UNKNOWN_CA" in error.reason):
                raise LoginRefused(f"the broker refused the client's certificate: {error.reason}") from None
            raise
        if not 4 <= size <= _LARGEST_ANSWER:
            raise ConnectionError(f"a broker sent an answer of {size} bytes")
        answer = _Answer(self._receive(size))
        if answer.int32() != self._number:
            raise ConnectionError("a broker answered a different request")
        if compact:
            answer.tags()
        return answer

    def _receive(self, size: int) -> bytes:
        parts = []
        while size:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                # Brokers also close the connection if they do not know the version of a request.
                raise ConnectionError("a broker closed the connection; exactly-once output needs Kafka 3.0 or newer")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _broker(answer: _Answer) -> tuple[int, Address]:
    number, address = answer.int32(), Address(answer.string(), answer.int32())
    answer.string()  # the rack
    return number, address


class _Topic(NamedTuple):
    """A topic in an answer: its error, and the leaders of its partitions by number; -1 for no leader."""

    error: ErrorCode
    leaders: list[int]


def _topic(answer: _Answer) -> _Topic:
    error = answer.error()
    answer.string()  # its name
    answer.boolean()  # whether it is internal
    return _Topic(error, answer.array(lambda: _leader(answer)))


def _leader(answer: _Answer) -> int:
    answer.error()  # no leader, which the number shows too
    answer.int32()  # the partition
    leader = answer.int32()
    answer.array(answer.int32)  # replicas
    answer.array(answer.int32)  # those in sync
    return leader


def _described(answer: _Answer) -> TransactionState:
    error, _, state = answer.error(), answer.compact_string(), answer.compact_string()
    answer.int32()  # timeout
    answer.int64()  # start
    found = TransactionState(error, state, answer.int64(), answer.int16())
    answer.compact_array(lambda: _skip_topic(answer))
    answer.tags()
    return found


def _skip_topic(answer: _Answer) -> None:
    answer.compact_string()
    answer.compact_array(answer.int32)
    answer.tags()


def _listed(answer: _Answer) -> str:
    transactional_id = answer.compact_string()
    answer.int64()
    answer.compact_string()
    answer.tags()
    return transactional_id


# ------------------------------------------------------------------------------------------------------ primitive types


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _array(items: list[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def _compact(text: str) -> bytes:
    data = text.encode()
    return _varint(len(data) + 1) + data


def _compact_array(items: list[bytes]) -> bytes:
    return _varint(len(items) + 1) + b"".join(items)


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


class _Answer:
    """Reads an answer from its beginning to its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if size < 0 or len(taken) != size:
            raise ConnectionError("a broker sent an answer that is too short")
        self._at += size
        return taken

    def boolean(self) -> bool:
        return self._take(1) != b"\0"

    def int16(self) -> int:
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        return int.from_bytes(self._take(8), "big", signed=True)

    def error(self) -> ErrorCode:
        return ErrorCode(self.int16())

    def string(self) -> str:
        size = self.int16()
        return "" if size < 0 else self._take(size).decode()

    def data(self) -> bytes:
        return self._take(max(0, self.int32()))

    def array(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(self.int32())]

    def compact_string(self) -> str:
        return self._take(max(0, self._varint() - 1)).decode()

    def compact_array(self, read: Callable[[], T]) -> list[T]:
        return [read() for _ in range(self._varint() - 1)]

    def tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()
            self._take(self._varint())

    def _varint(self) -> int:
        number = shift = 0
        while True:
            (byte,) = self._take(1)
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
