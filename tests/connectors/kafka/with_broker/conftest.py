from tests.servers.kafka.broker import kafka

__all__ = ["kafka"]
