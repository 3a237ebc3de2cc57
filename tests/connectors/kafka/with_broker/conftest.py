from tests.services.kafka.broker import kafka

__all__ = ["kafka"]
