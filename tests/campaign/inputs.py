"""The inputs of the jobs, each the numbers 0, 1, 2, ...: a generator, a topic of Kafka, a table of PostgreSQL."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ekorn.common import Duration, SimpleStringSchema, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import DataStream, MapFunction, StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.jdbc import JdbcSource
from ekorn.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource, KafkaTopicPartition
from tests.campaign.places import Places
from tests.spark.every_kind import NumberIsTime

if TYPE_CHECKING:
    from tests.campaign.driver import Run

_IN_ORDER = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(0))
_SHORT_MS = "100"  # between two looks for new partitions


def read_numbers(env: StreamExecutionEnvironment, run: Run, name: str = "numbers") -> DataStream:
    """Return the stream of the numbers. Generators of several names are sources of their own."""
    # Not chained: ids of operators without a uid depend on chains, and chains depend on the parallelism.
    if run.source == "generator":
        generator = DataGeneratorSource(lambda n: n, run.records, RateLimiterStrategy.per_second(run.per_second))
        numbers = env.from_source(generator, _IN_ORDER.with_timestamp_assigner(NumberIsTime()), name)
        return numbers.uid(name).set_parallelism(1).disable_chaining()
    places = Places.beside(Path(run.output))
    source = _topic(run, places) if run.source == "topic" else _table(run, places)
    read = env.from_source(source, _IN_ORDER.with_timestamp_assigner(ContentIsTime()), "numbers").uid("numbers")
    paced = read.map(Paced(run.per_second), Types.LONG()).uid("paced").disable_chaining()
    if run.partitions == 1:
        read.set_parallelism(1)
        paced.set_parallelism(1)
    return paced


def _topic(run: Run, places: Places) -> KafkaSource:
    builder = (
        KafkaSource.builder()
        .set_bootstrap_servers(places.brokers)
        .set_topics(places.numbers)
        .set_group_id(places.prefix)
        .set_value_only_deserializer(SimpleStringSchema())
    )
    if run.grows:
        return builder.set_property("partition.discovery.interval.ms", _SHORT_MS).build()
    ends = {
        KafkaTopicPartition(places.numbers, number): len(range(number, run.records, run.partitions))
        for number in range(run.partitions)
    }
    return builder.set_unbounded(KafkaOffsetsInitializer.offsets(ends)).build()


def _table(run: Run, places: Places) -> JdbcSource:
    builder = JdbcSource.builder().set_db_url(places.database).set_sql("SELECT id FROM numbers")
    if run.grows:
        return builder.set_growing_column("id", start_after=-1, poll_interval=50).build()
    return builder.set_partition_column("id", run.partitions).build()


def number_of(record: Any) -> int:
    """Return the number of a message, which is text, or of a row."""
    return int(record) if isinstance(record, str) else int(record[0])


class ContentIsTime(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return number_of(value)


class Paced(MapFunction):
    """Lets numbers pass at a rate, so that a job with a backlog lasts long enough for its faults."""

    def __init__(self, per_second: float) -> None:
        self._gap_s = 1 / per_second

    def open(self, runtime_context):
        self._due_s = time.monotonic()

    def map(self, value):
        now_s = time.monotonic()
        self._due_s = max(self._due_s, now_s - 0.1) + self._gap_s  # catches up with a tenth of a second
        if self._due_s > now_s:
            time.sleep(self._due_s - now_s)
        return number_of(value)
