"""`KafkaSink`: writes records to topics, at most once, at least once or exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ekorn.clock import Clock, SystemClock
from ekorn.connectors.delivery import DeliveryGuarantee, StreamTransformer, SupportsPreprocessing
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.clients import check_properties
from ekorn.connectors.kafka.column_serialization import messages_of_columns
from ekorn.connectors.kafka.producing import PlainWriter, TransactionalWriter, producer_settings
from ekorn.connectors.kafka.record_serialization import KafkaRecordSerializationSchema
from ekorn.connectors.kafka.transactions import TransactionAdmin, TransactionCommitter, bootstrap_addresses
from ekorn.connectors.kafka.wire_login import Login
from ekorn.errors import ConfigurationError
from ekorn.functions.sink_contract import Committer, Sink, SinkWriter, WriterContext
from ekorn.types.data_types import RowType
from ekorn.types.type_information import TypeInformation

__all__ = ["KafkaSink", "KafkaSinkBuilder"]

# Flink: one hour, which brokers refuse by default, because their own limit is 15 minutes.
_TRANSACTION_TIMEOUT_MS = 900_000


@dataclass(frozen=True)
class KafkaSink(Sink[Any], SupportsPreprocessing):
    """Writes records to topics of Kafka. Made by `builder()`.

    Exactly once means for readers with `isolation.level=read_committed`: they see records when the checkpoint that
    covers them is complete.
    """

    properties: ClientProperties
    serializer: KafkaRecordSerializationSchema
    guarantee: DeliveryGuarantee
    transactional_id_prefix: str | None = None  # None: named after the operator
    transaction_timeout_ms: int = _TRANSACTION_TIMEOUT_MS
    ignores_late_failures: bool = False
    clock: Clock = field(default_factory=SystemClock)
    row_type: RowType | None = None  # of the batches of columns that the writers get; None: they get records

    @staticmethod
    def builder() -> KafkaSinkBuilder:
        """Begin to build a sink."""
        return KafkaSinkBuilder()

    def get_transformer(self) -> StreamTransformer | None:
        """Return None: the stream is not transformed."""
        return None

    def with_input_type(self, type_info: TypeInformation | None) -> KafkaSink:
        """Return this sink for records of a declared type, which determines their text."""
        return replace(self, serializer=self.serializer.with_input_type(type_info))

    def with_columns(self, row_type: RowType) -> KafkaSink | None:
        """Return this sink for batches of columns; None if its serializer takes records."""
        return None if messages_of_columns(self.serializer, row_type) is None else replace(self, row_type=row_type)

    def create_writer(self, context: WriterContext, restored: Sequence[Any]) -> SinkWriter[Any, Any]:
        """Start the writer of one subtask."""
        messages = None if self.row_type is None else messages_of_columns(self.serializer, self.row_type)
        if self.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            flushes = self.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
            return PlainWriter(self.properties, self.serializer, messages, flushes=flushes)
        return TransactionalWriter(
            self.properties,
            self.serializer,
            messages,
            prefix=self.transactional_id_prefix or f"ekorn-{context.operator_id}",
            context=context,
            admin=TransactionAdmin(self.properties, self.clock),
            clock=self.clock,
            timeout_ms=self.transaction_timeout_ms,
        )

    def create_committer(self) -> Committer[Any] | None:
        """Create the committer of transactions, for exactly once."""
        if self.guarantee is not DeliveryGuarantee.EXACTLY_ONCE:
            return None
        return TransactionCommitter(
            TransactionAdmin(self.properties, self.clock),
            self.clock,
            self.transaction_timeout_ms,
            ignores_late_failures=self.ignores_late_failures,
        )


class KafkaSinkBuilder:
    """Builds a `KafkaSink`. Needed: servers and a record serializer; for exactly once a transactional id prefix too."""

    def __init__(self) -> None:
        """Begin with Flink's default: no guarantee."""
        self._properties: dict[str, Any] = {}
        self._serializer: KafkaRecordSerializationSchema | None = None
        self._guarantee = DeliveryGuarantee.NONE
        self._prefix: str | None = None
        self._ignores_late_failures = False
        self._is_named_after_operator = False

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSinkBuilder:
        """Set the brokers to begin with, as `host:port,host:port`."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_record_serializer(self, record_serializer: KafkaRecordSerializationSchema) -> KafkaSinkBuilder:
        """Set how records become messages."""
        if not isinstance(record_serializer, KafkaRecordSerializationSchema):
            raise TypeError(
                f"set_record_serializer() takes a KafkaRecordSerializationSchema, got {record_serializer!r}"
            )
        self._serializer = record_serializer
        return self

    def set_delivery_guarantee(self, delivery_guarantee: DeliveryGuarantee) -> KafkaSinkBuilder:
        """Set the guarantee."""
        if not isinstance(delivery_guarantee, DeliveryGuarantee):
            raise TypeError(f"set_delivery_guarantee() takes a DeliveryGuarantee, got {delivery_guarantee!r}")
        self._guarantee = delivery_guarantee
        return self

    def set_transactional_id_prefix(self, transactional_id_prefix: str) -> KafkaSinkBuilder:
        """Set how the ids of transactions begin: unique to this sink among all sinks of the Kafka cluster.

        A job that is started again aborts the open transactions of this prefix that its checkpoint does not cover.
        """
        if not isinstance(transactional_id_prefix, str) or not transactional_id_prefix:
            raise TypeError(f"set_transactional_id_prefix() takes text, got {transactional_id_prefix!r}")
        self._prefix = transactional_id_prefix
        return self

    def name_transactions_after_operator(self) -> KafkaSinkBuilder:
        """Let the ids of transactions begin with the id of the operator, for `FlinkKafkaProducer`."""
        self._is_named_after_operator = True
        return self

    def set_property(self, key: str, value: str) -> KafkaSinkBuilder:
        """Set a property of Kafka's client."""
        self._properties[key] = value
        return self

    def ignore_failures_after_transaction_timeout(self) -> KafkaSinkBuilder:
        """Log an error and continue if a transaction cannot be committed after its timeout. Its records are lost."""
        self._ignores_late_failures = True
        return self

    def build(self) -> KafkaSink:
        """Return the sink. The client's properties are checked here; brokers are asked when the job runs."""
        if self._serializer is None:
            raise ConfigurationError("a KafkaSink needs a record serializer: call set_record_serializer()")
        properties = ClientProperties(self._properties)
        if "bootstrap.servers" not in properties:
            raise ConfigurationError("a KafkaSink needs brokers: call set_bootstrap_servers()")
        bootstrap_addresses(properties["bootstrap.servers"])
        if "transactional.id" in properties:
            raise ConfigurationError("transactional.id cannot be set: call set_transactional_id_prefix()")
        timeout_ms = _timeout_ms(properties)
        client = properties.without("transaction.timeout.ms")
        settings = producer_settings(client)
        if self._guarantee is DeliveryGuarantee.EXACTLY_ONCE:
            if self._prefix is None and not self._is_named_after_operator:
                raise ConfigurationError(
                    "DeliveryGuarantee.EXACTLY_ONCE needs set_transactional_id_prefix(), with a prefix that is unique "
                    "among the sinks of the Kafka cluster"
                )
            Login(client)
            settings |= {"transactional.id": self._prefix or "ekorn", "transaction.timeout.ms": str(timeout_ms)}
        check_properties(client, settings, producer=True)
        return KafkaSink(
            client, self._serializer, self._guarantee, self._prefix, timeout_ms, self._ignores_late_failures
        )


def _timeout_ms(properties: ClientProperties) -> int:
    text = properties.get("transaction.timeout.ms", str(_TRANSACTION_TIMEOUT_MS))
    if not text.isdigit() or int(text) <= 0:
        raise ConfigurationError(f"transaction.timeout.ms is a number of milliseconds greater than 0, got {text!r}")
    return int(text)
