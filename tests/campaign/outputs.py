"""The outputs of the jobs: files, rows of PostgreSQL, messages of Kafka. Each is written, and read for the verdict."""

from __future__ import annotations

import contextlib
import warnings
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ekorn.common import Row, SimpleStringSchema, Types
from ekorn.common.serialization import Encoder
from ekorn.connectors.jdbc.databases import database_of
from ekorn.datastream import DataStream
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy, StreamingFileSink
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink
from ekorn.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from tests.campaign.places import Places
from tests.servers.kafka.topics import lines_by_partition


class Spread(BucketAssigner):
    """Spreads lines over a few folders, so that one commit makes several files visible."""

    def __init__(self, buckets: int) -> None:
        self._buckets = buckets

    def get_bucket_id(self, element, context):
        return f"bucket-{zlib.crc32(element.encode()) % self._buckets}"


def write_files(streams: dict[str, DataStream], folder: Path, *, roll: bool, buckets: int) -> None:
    """Write each stream into its folder exactly once; with `roll`, a part file ends with every checkpoint."""
    for name, stream in streams.items():
        builder = FileSink.for_row_format(str(folder / name), Encoder.simple_string_encoder())
        builder = builder.with_bucket_assigner(Spread(buckets))
        if roll:
            builder = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy())
        stream.sink_to(builder.build()).uid(f"files of {name}")


def write_in_two_phases(streams: dict[str, DataStream], folder: Path, *, buckets: int) -> None:
    """Write each stream with a sink function, whose base class prepares, recovers and commits the transactions."""
    for name, stream in streams.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the only two-phase sink function that writes files
            builder = StreamingFileSink.for_row_format(str(folder / name), Encoder.simple_string_encoder())
            sink = builder.with_bucket_assigner(Spread(buckets)).build()
        stream.add_sink(sink).uid(f"files of {name}")


def write_rows(streams: dict[str, DataStream], folder: Path) -> None:
    """Write each stream to the schedule's database, exactly once."""
    row = Types.ROW([Types.STRING(), Types.STRING()])
    options = JdbcConnectionOptions(Places.beside(folder).database)
    for name, stream in streams.items():
        sink = JdbcSink.exactly_once_sink("INSERT INTO lines VALUES (?, ?)", row, options)
        stream.map(partial(Row, name), row).add_sink(sink).uid(f"rows of {name}")


def write_topics(streams: dict[str, DataStream], folder: Path) -> None:
    """Write each stream to a topic of its own, exactly once."""
    places = Places.beside(folder)
    for name, stream in streams.items():
        topic = places.topic_of(name)
        serializer = KafkaRecordSerializationSchema.builder().set_topic(topic)
        sink = (
            KafkaSink.builder()
            .set_bootstrap_servers(places.brokers)
            .set_record_serializer(serializer.set_value_serialization_schema(SimpleStringSchema()).build())
            .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
            .set_transactional_id_prefix(topic)
            .build()
        )
        stream.sink_to(sink).uid(f"topic of {name}")


def written_lines(name: str, folder: Path) -> Iterator[list[str]]:
    """Yield the lines of each file or partition of a stream; or of its rows, one by one: their order is not known."""
    places = Places.beside(folder)
    match places.output:
        case "rows":
            with contextlib.closing(database_of(JdbcConnectionOptions(places.database)).connect()) as database:
                yield from ([line] for (line,) in database.execute("SELECT line FROM lines WHERE stream = %s", (name,)))
        case "topic":
            yield from lines_by_partition(places.brokers, places.topic_of(name))
        case _:
            for part in sorted((folder / name).rglob("part-*")):
                yield part.read_text().splitlines()
