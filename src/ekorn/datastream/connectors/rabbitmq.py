"""Queues of RabbitMQ."""

from ekorn.connectors.rabbitmq.connection_config import RMQConnectionConfig
from ekorn.connectors.rabbitmq.sink import RMQSink
from ekorn.connectors.rabbitmq.source import RMQSource

__all__ = ["RMQConnectionConfig", "RMQSink", "RMQSource"]
