"""`RMQSource`: reads a queue of RabbitMQ, under PyFlink's name and for `env.add_source`."""

from __future__ import annotations

from typing import Any

from ekorn.connectors.formats.schemas import DeserializationSchema
from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig
from ekorn.connectors.rabbitmq.queue_source import RabbitQueue
from ekorn.extras import need
from ekorn.legacy.spellings import SourceSpelling
from ekorn.types.type_information import TypeInformation

__all__ = ["RMQSource"]


class RMQSource(SourceSpelling):
    """Reads the messages of a queue.

    - With checkpoints and correlation ids every message takes effect once. One subtask reads.
    - With checkpoints alone no message is lost, and some are processed again after a failure.
    - Without checkpoints a message may be lost, or processed again.

    The queue is created if it does not exist; it then survives a restart of the server.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema[Any],
    ) -> None:
        """Create a source.

        Args:
            connection_config: The server.
            queue_name: The queue.
            use_correlation_id: Whether each message has a correlation id of its own, which its publisher sets. A
                message whose id was seen before is passed over.
            deserialization_schema: Turns the body of a message into a record.
        """
        need("rabbitmq", "RMQSource")
        _check("RMQSource", connection_config, queue_name)
        if not isinstance(deserialization_schema, DeserializationSchema):
            raise TypeError(f"RMQSource() takes a DeserializationSchema, got {deserialization_schema!r}")
        if not isinstance(use_correlation_id, bool):
            raise TypeError(f"RMQSource(): use_correlation_id is True or False, got {use_correlation_id!r}")
        self._queue = RabbitQueue(connection_config, queue_name, deserialization_schema, use_correlation_id)

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that the schema declares."""
        return self._queue.get_produced_type()

    def as_source(self) -> RabbitQueue:
        """Return the source."""
        return self._queue


def _check(call: str, config: Any, queue: Any) -> None:
    if not isinstance(config, RMQConnectionConfig):
        raise TypeError(f"{call}() takes an RMQConnectionConfig, got {config!r}; call build() of its Builder")
    if not isinstance(queue, str) or not queue:
        raise TypeError(f"{call}() takes the name of a queue, got {queue!r}")
