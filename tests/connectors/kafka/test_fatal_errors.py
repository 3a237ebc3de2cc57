"""A fatal error of Kafka's client fails the job in its own words, however confluent-kafka raises it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException

from ekorn.common.serialization import SimpleStringSchema
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.producing import KafkaWriter
from ekorn.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from ekorn.errors import KafkaError

FENCED = ClientError(-144, "fenced by a newer instance", fatal=True)  # librdkafka's _FENCED


class FencedWriter(KafkaWriter):
    """A writer whose producer was fenced, and whose client raises what a test gives."""

    def __init__(self, raised: BaseException, *, reported: bool) -> None:
        schema = (
            KafkaRecordSerializationSchema.builder().set_topic("t").set_value_serialization_schema(SimpleStringSchema())
        )
        super().__init__(ClientProperties({"bootstrap.servers": "127.0.0.1:1"}), schema.build())
        self._raised, self._reported = raised, reported

    @property
    def _producer(self) -> Any:
        return self

    def poll(self, timeout_s: float) -> int:
        if self._reported:
            self._errors.report(FENCED)
        raise self._raised

    def prepare_commit(self) -> list[Any]:
        return []

    def close(self) -> None:
        pass


def with_cause(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("raised", "reported"),
    [
        (KafkaException(FENCED), False),
        (with_cause(SystemError("error return with exception set"), KafkaException(FENCED)), False),
        (SystemError("returned NULL without setting an exception"), True),
    ],
)
def test_a_fenced_writer_says_so(raised: BaseException, reported: bool) -> None:
    with pytest.raises(KafkaError, match=r"writing to Kafka: _FENCED: .*fenced"):
        FencedWriter(raised, reported=reported).end_epoch()


def test_an_error_that_nobody_reported_is_raised_as_it_is() -> None:
    with pytest.raises(SystemError, match="something else"):
        FencedWriter(SystemError("something else"), reported=False).end_epoch()
