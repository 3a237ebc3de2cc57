"""`KafkaSource`: reads the partitions of topics, bounded or without end, with offsets in the job's checkpoints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from ekorn.connectors.formats.message_columns import MessageColumns
from ekorn.connectors.formats.schemas import DeserializationSchema
from ekorn.connectors.kafka.client_properties import ClientProperties
from ekorn.connectors.kafka.clients import check_properties
from ekorn.connectors.kafka.column_deserialization import KafkaColumns
from ekorn.connectors.kafka.consuming import (
    PULL,
    PULL_OF_COLUMNS,
    KafkaConnection,
    LoneReader,
    Reading,
    consumer_settings,
)
from ekorn.connectors.kafka.deserialization import KafkaRecordDeserializationSchema, ValueOnly, batch_decoder
from ekorn.connectors.kafka.offsets import KafkaOffsetsInitializer, KafkaTopicPartition
from ekorn.connectors.kafka.topic_partitions import GivenPartitions, NamedTopics, PartitionChoice, TopicPattern
from ekorn.errors import ConfigurationError, warn
from ekorn.functions.source_contract import Boundedness, Source, SourceConnection, Split, SplitReader
from ekorn.keygroups import stable_hash
from ekorn.types.type_information import TypeInformation

__all__ = ["KafkaSource", "KafkaSourceBuilder"]

_DISCOVERY = "partition.discovery.interval.ms"
_COMMIT = "commit.offsets.on.checkpoint"
_DISCOVERY_MS = 300_000  # Flink: five minutes
_WITHOUT_EFFECT = {
    "auto.offset.reset": "set_starting_offsets() decides where to start, and an offset that is lost later is an error",
    "auto.commit.interval.ms": "offsets are committed when a checkpoint completes",
    "register.consumer.metrics": "metrics of the client are not reported",
}
_WAIT_S = 0.02  # how long an epoch waits for messages that are on their way
_LONE_WAIT_S = 10.0


class KafkaSource(Source):
    r"""Reads records from topics of Kafka. Splits are partitions.

        KafkaSource.builder().set_bootstrap_servers("host:9092").set_topics("in").set_group_id("g") \
            .set_starting_offsets(KafkaOffsetsInitializer.earliest()) \
            .set_value_only_deserializer(SimpleStringSchema()).build()

    The timestamp of a message is the timestamp of its record. Every partition has a watermark of its own.
    """

    def __init__(
        self,
        properties: ClientProperties,
        choice: PartitionChoice,
        starting: KafkaOffsetsInitializer,
        stopping: KafkaOffsetsInitializer | None,
        schema: KafkaRecordDeserializationSchema[Any] | KafkaColumns,
        *,
        bounded: bool,
        discovery_interval_ms: int | None,
        commits: bool,
    ) -> None:
        """Create the source from the settings of a `KafkaSourceBuilder`."""
        self._schema = schema
        self._bounded = bounded
        self._discovery_interval_ms = discovery_interval_ms
        columns = isinstance(schema, KafkaColumns)
        make_decoder = schema.batch_decoder if isinstance(schema, KafkaColumns) else partial(batch_decoder, schema)
        pull = PULL_OF_COLUMNS if columns else PULL
        self._reading = Reading(properties, choice, starting, stopping, commits, make_decoder, pull)

    @staticmethod
    def builder() -> KafkaSourceBuilder:
        """Begin to build a source."""
        return KafkaSourceBuilder()

    @property
    def boundedness(self) -> Boundedness:
        """Return BOUNDED after `set_bounded`."""
        return Boundedness.BOUNDED if self._bounded else Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def ends(self) -> bool:
        """Return whether the source has stopping offsets, or a schema that may end its partitions."""
        return self._discovery_interval_ms is None

    @property
    def discovery_interval_ms(self) -> int | None:
        """Return the interval at which the source looks for new partitions."""
        return self._discovery_interval_ms

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type that the schema declares."""
        return self._schema.get_produced_type()

    def owner(self, split_id: str, parallelism: int) -> int:
        """Return the subtask of a partition: those of a topic go round, from a subtask that differs by topic."""
        topic, _, number = split_id.rpartition("-")
        return (stable_hash(topic) + int(number)) % parallelism

    def connect(self, subtask_index: int) -> SourceConnection:
        """Start the consumer of a subtask."""
        return KafkaConnection(self._reading, subtask_index, patience_s=_WAIT_S)

    def discover_splits(self, parallelism: int) -> Sequence[Split]:
        """Return the present partitions, with a consumer for this one question."""
        connection = KafkaConnection(self._reading, 0, patience_s=_LONE_WAIT_S)
        try:
            return connection.discover_splits(parallelism, first=True)
        finally:
            connection.close()

    def create_reader(self, split: Split, position: Any | None) -> SplitReader:
        """Open one partition with a consumer of its own. A job uses `connect`, whose readers share one."""
        return LoneReader(KafkaConnection(self._reading, 0, patience_s=_LONE_WAIT_S), split, position)

    def __repr__(self) -> str:
        reading = self._reading
        return f"KafkaSource({reading.choice!r}, {reading.starting!r}, {reading.properties!r})"


class KafkaSourceBuilder:
    """Builds a `KafkaSource`. Needed: servers, topics (or a pattern, or partitions) and a deserializer."""

    def __init__(self) -> None:
        """Begin with Flink's defaults: from the earliest offset, without end."""
        self._properties: dict[str, Any] = {}
        self._choice: PartitionChoice | None = None
        self._starting = KafkaOffsetsInitializer.earliest()
        self._stopping: KafkaOffsetsInitializer | None = None
        self._bounded = False
        self._schema: KafkaRecordDeserializationSchema[Any] | KafkaColumns | None = None

    def set_bootstrap_servers(self, bootstrap_servers: str) -> KafkaSourceBuilder:
        """Set the brokers to begin with, as `host:port,host:port`."""
        return self.set_property("bootstrap.servers", bootstrap_servers)

    def set_group_id(self, group_id: str) -> KafkaSourceBuilder:
        """Set the group to which offsets are committed when a checkpoint completes, for display."""
        return self.set_property("group.id", group_id)

    def set_client_id_prefix(self, prefix: str) -> KafkaSourceBuilder:
        """Set how the ids of the clients begin; the number of the subtask follows."""
        return self.set_property("client.id.prefix", prefix)

    def set_topics(self, *topics: str) -> KafkaSourceBuilder:
        """Read all partitions of these topics."""
        if not topics or not all(isinstance(topic, str) and topic for topic in topics):
            raise TypeError(f"set_topics() takes the names of topics, got {', '.join(map(repr, topics)) or 'none'}")
        return self._choose("set_topics", NamedTopics(tuple(dict.fromkeys(topics))))

    def set_topic_pattern(self, topic_pattern: str) -> KafkaSourceBuilder:
        """Read all partitions of the topics whose whole name matches a regular expression."""
        try:
            re.compile(topic_pattern)
        except (re.error, TypeError) as error:
            raise ValueError(
                f"set_topic_pattern() takes a regular expression, got {topic_pattern!r}: {error}"
            ) from None
        return self._choose("set_topic_pattern", TopicPattern(topic_pattern))

    def set_partitions(self, partitions: AbstractSet[KafkaTopicPartition]) -> KafkaSourceBuilder:
        """Read these partitions."""
        if not partitions or not all(isinstance(each, KafkaTopicPartition) for each in partitions):
            raise TypeError(f"set_partitions() takes a set of KafkaTopicPartition, got {partitions!r}")
        return self._choose("set_partitions", GivenPartitions(tuple(partitions)))

    def _choose(self, call: str, choice: PartitionChoice) -> KafkaSourceBuilder:
        if self._choice is not None:
            raise ConfigurationError(
                f"{call}(): the builder already has {self._choice!r}; call only one of set_topics(), "
                "set_topic_pattern() and set_partitions()"
            )
        self._choice = choice
        return self

    def set_starting_offsets(self, starting_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """Set where partitions begin if the job starts without a checkpoint."""
        self._starting = _checked("set_starting_offsets", starting_offsets_initializer)
        return self

    def set_bounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End at these offsets, which are looked up once when the job starts. The source counts as bounded."""
        self._stopping, self._bounded = _checked("set_bounded", stopping_offsets_initializer), True
        return self

    def set_unbounded(self, stopping_offsets_initializer: KafkaOffsetsInitializer) -> KafkaSourceBuilder:
        """End at these offsets, but run as an unbounded source does until then."""
        self._stopping, self._bounded = _checked("set_unbounded", stopping_offsets_initializer), False
        return self

    def set_value_only_deserializer(
        self, deserialization_schema: DeserializationSchema[Any] | MessageColumns
    ) -> KafkaSourceBuilder:
        """Make records of the values of messages. With `JsonColumns` or `AvroColumns` the stream has columns."""
        if isinstance(deserialization_schema, MessageColumns):
            self._schema = KafkaColumns(deserialization_schema)
        else:
            self._schema = ValueOnly(deserialization_schema)
        return self

    def set_deserializer(self, schema: KafkaRecordDeserializationSchema[Any] | KafkaColumns) -> KafkaSourceBuilder:
        """Make records of whole messages, with key, headers, timestamp, partition and offset.

        With `KafkaColumns` the stream has columns.
        """
        if not isinstance(schema, KafkaRecordDeserializationSchema | KafkaColumns):
            raise TypeError(
                f"set_deserializer() takes a KafkaRecordDeserializationSchema or KafkaColumns, got {schema!r}"
            )
        self._schema = schema
        return self

    def set_property(self, key: str, value: str) -> KafkaSourceBuilder:
        """Set a property of Kafka's client or of the source."""
        self._properties[key] = value
        return self

    def set_properties(self, props: Mapping[str, Any]) -> KafkaSourceBuilder:
        """Set several properties."""
        self._properties.update(props)
        return self

    def build(self) -> KafkaSource:
        """Return the source. The client's properties are checked here; brokers are asked when the job runs."""
        if self._choice is None:
            raise ConfigurationError(
                "a KafkaSource needs topics: call set_topics(), set_topic_pattern() or set_partitions()"
            )
        if self._schema is None:
            raise ConfigurationError(
                "a KafkaSource needs a deserializer: call set_value_only_deserializer() or set_deserializer()"
            )
        properties = ClientProperties(self._properties)
        if "bootstrap.servers" not in properties:
            raise ConfigurationError("a KafkaSource needs brokers: call set_bootstrap_servers()")
        for initializer in (self._starting, self._stopping):
            if initializer is not None and initializer.needs_group and "group.id" not in properties:
                raise ConfigurationError("committed offsets belong to a group: call set_group_id()")
        if properties.get("enable.auto.commit", "false").lower() != "false":
            raise ConfigurationError(
                "enable.auto.commit cannot be true: offsets are committed when a checkpoint completes; leave it "
                "out, and call env.enable_checkpointing()"
            )
        for name, reason in _WITHOUT_EFFECT.items():
            if name in properties:
                warn(f"the property {name} has no effect on a KafkaSource: {reason}")
        commits = properties.get(_COMMIT, "true").lower() == "true" and "group.id" in properties
        client = properties.without(
            _DISCOVERY, _COMMIT, "client.id.prefix", "enable.auto.commit", *_WITHOUT_EFFECT
        )  # fmt: skip
        if "client.id.prefix" in properties:
            client = client.with_values({"client.id": properties["client.id.prefix"]})
        check_properties(client, consumer_settings(client, 0), producer=False)
        return KafkaSource(
            client,
            self._choice,
            self._starting,
            self._stopping,
            self._schema,
            bounded=self._bounded,
            discovery_interval_ms=self._interval_ms(properties),
            commits=commits,
        )

    def _interval_ms(self, properties: ClientProperties) -> int | None:
        text = properties.get(_DISCOVERY)
        try:
            interval_ms = _DISCOVERY_MS if text is None else int(text)
        except ValueError:
            raise ConfigurationError(f"{_DISCOVERY} is in milliseconds, got {text!r}") from None
        if self._stopping is not None:
            if text is not None and interval_ms > 0:
                self._give_up_discovery(text)
            return None
        return interval_ms if interval_ms > 0 else None

    def _give_up_discovery(self, interval: str) -> None:
        if not self._bounded:  # Flink: such a source looks for new partitions, so leaving them out would lose records
            raise ConfigurationError(
                f"{_DISCOVERY} cannot be set for a source with stopping offsets: a partition that appears later "
                "has none"
            )
        # Flink: a bounded source overrides the property in the same way.
        warn(f"{_DISCOVERY}={interval} has no effect on a bounded KafkaSource, which looks for partitions once")


def _checked(call: str, initializer: KafkaOffsetsInitializer) -> KafkaOffsetsInitializer:
    if not isinstance(initializer, KafkaOffsetsInitializer):
        raise TypeError(f"{call}() takes a KafkaOffsetsInitializer, got {initializer!r}")
    return initializer
