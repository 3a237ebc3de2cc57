"""Starts clients of confluent-kafka, and says what is wrong if one cannot be started."""

from __future__ import annotations

import logging
from typing import Any

from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.errors import ConfigurationError

log = logging.getLogger(__name__)


def library() -> Any:
    """Return the module `confluent_kafka`."""
    try:
        import confluent_kafka
    except ImportError as error:
        raise ConfigurationError(
            f"Kafka needs the package confluent-kafka, in the program and on every machine that runs the job: "
            f"pip install 'ekorn[kafka]' ({error})"
        ) from None
    return confluent_kafka


def start_consumer(properties: ClientProperties, settings: dict[str, Any]) -> Any:
    """Start a consumer. `settings` are added to the properties, under librdkafka's names."""
    return _start(library().Consumer, properties, settings)


def start_producer(properties: ClientProperties, settings: dict[str, Any]) -> Any:
    """Start a producer. `settings` are added to the properties, under librdkafka's names."""
    return _start(library().Producer, properties, settings)


def _start(kind: Any, properties: ClientProperties, settings: dict[str, Any]) -> Any:
    try:
        return kind({**properties.for_librdkafka(), **settings}, logger=log)
    except (library().KafkaException, ValueError, TypeError) as error:
        detail = error.args[0] if error.args else error
        text = detail.str() if hasattr(detail, "str") else str(detail)
        # Without the original: it would show the values in its own message.
        raise ConfigurationError(f"Kafka's client refuses its properties: {properties.hide(text)}") from None


def check_properties(properties: ClientProperties, settings: dict[str, Any], *, producer: bool) -> None:
    """Raise if the client refuses the properties. Connects to no broker."""
    offline = properties.without("bootstrap.servers")
    if producer:
        start_producer(offline, settings)
    else:
        start_consumer(offline, settings).close()
