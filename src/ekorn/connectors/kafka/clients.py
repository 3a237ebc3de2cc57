"""Starts clients of confluent-kafka, and decides which of their errors fail the job.

The client reconnects and retries by itself. A temporary error that it reports (a broker is away, a leader changes) is
therefore only logged. An error that no retry can fix fails the job.
"""

from __future__ import annotations

import logging
from typing import Any

from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.errors import ConfigurationError, KafkaError
from ekorn.extras import load

_logger = logging.getLogger(__name__)


# Names of `confluent_kafka.KafkaError`, as text: the module may be missing where programs are drawn.
_PERMANENT = frozenset(
    {
        "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE", "_SSL",
        "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "_UNSUPPORTED_FEATURE", "_INVALID_ARG",
        "MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "INVALID_TRANSACTION_TIMEOUT", "_FENCED", "_FATAL",
    }
)  # fmt: skip


# Errors of one outage: a client that cannot connect reports them in turn, at every attempt.
_AWAY = frozenset({"_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT"})
_FAILED_CONNECTION = "FAIL"  # the facility of the client's log lines about attempts, which it also reports as errors


class _ClientLog:
    """Takes the client's own log, and leaves the lines about failed connections to `ClientErrors`."""

    def log(self, level: int, message: str, *parts: Any) -> None:
        failed = bool(parts) and parts[0] == _FAILED_CONNECTION
        _logger.log(logging.DEBUG if failed else level, message, *parts)


def library() -> Any:
    """Return the module `confluent_kafka`."""
    return load("kafka", "Kafka")


def start_consumer(properties: ClientProperties, settings: dict[str, Any]) -> Any:
    """Start a consumer. `settings` are added to the properties, under librdkafka's names."""
    return _start(library().Consumer, properties, settings)


def start_producer(properties: ClientProperties, settings: dict[str, Any]) -> Any:
    """Start a producer. `settings` are added to the properties, under librdkafka's names."""
    return _start(library().Producer, properties, settings)


def _start(kind: Any, properties: ClientProperties, settings: dict[str, Any]) -> Any:
    try:
        return kind({**properties.for_librdkafka(), **settings}, logger=_ClientLog())
    except (library().KafkaException, ValueError, TypeError) as error:
        detail = error.args[0] if error.args else error
        text = detail.str() if hasattr(detail, "str") else str(detail)
        # The original error is not chained: its message would show the values.
        raise ConfigurationError(f"Kafka's client rejects its properties: {properties.hide(text)}") from None


def check_properties(properties: ClientProperties, settings: dict[str, Any], *, producer: bool) -> None:
    """Raise if the client refuses the properties. Connects to no broker."""
    offline = properties.without("bootstrap.servers")
    if producer:
        start_producer(offline, settings)
    else:
        start_consumer(offline, settings).close()


class ClientErrors:
    """Collects the errors that the client reports: the first permanent one is raised, others are logged."""

    def __init__(self, properties: ClientProperties, what: str) -> None:
        self._properties = properties
        self._what = what
        self._permanent: str | None = None
        self._last_logged: str | None = None

    def report(self, error: Any) -> None:
        """Take an error from the client; called by the client, on the thread that polls it."""
        text = self._properties.hide(f"{error.name()}: {error.str()}")
        if is_permanent(error):
            self._permanent = self._permanent or text
            return
        kind = "away" if error.name() in _AWAY else error.name()
        if kind != self._last_logged:  # one line per kind of outage, not one per connection attempt
            self._last_logged = kind
            _logger.warning("%s: %s; the client will retry", self._what, text)

    def recovered(self) -> None:
        """Take note that the client works again."""
        self._last_logged = None

    def check(self) -> None:
        """Raise the first permanent error."""
        if self._permanent is not None:
            raise KafkaError(self._what, self._permanent)


def is_permanent(error: Any) -> bool:
    """Return whether no retry of the client changes this error."""
    return bool(error.fatal()) or error.name() in _PERMANENT


def failure(what: str, error: BaseException, properties: ClientProperties) -> KafkaError:
    """Return the error of the job for an exception of the client, without secrets."""
    detail: Any = error.args[0] if error.args else error
    text = f"{detail.name()}: {detail.str()}" if hasattr(detail, "str") else str(detail)
    return KafkaError(what, properties.hide(text))
