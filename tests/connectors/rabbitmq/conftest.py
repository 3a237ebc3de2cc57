"""The server of the tests in this folder."""

from tests.servers.rabbitmq import queue, rabbitmq_server

__all__ = ["queue", "rabbitmq_server"]
