"""A Kafka broker on this machine, without Docker: `python -m ekorn.testing.kafka`, or a fixture of tests."""

from ekorn.testing.kafka.broker import kafka_broker

__all__ = ["kafka_broker"]
