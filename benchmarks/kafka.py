"""Records per second from Kafka through a keyed count to Kafka, on two cores that the broker shares.

    python -m benchmarks.kafka --records 2000000
    python -m benchmarks.kafka --form columns --records 4000000
    python -m benchmarks.kafka --engine pyspark --records 200000
    python -m benchmarks.kafka --engine pyflink --python .venvs/flink/bin/python --records 100000

The broker is the tests' own, on this machine, with the Java options of Kafka's start script. Ekorn and PyFlink write
exactly once, with a checkpoint every two seconds; Spark's sink writes at least once. The rate of Ekorn is that of the
time between the first record that the job reads and its end, when the last transaction is committed. That of a peer
begins later, with the first message in the topic that it writes.

With `--form rows` or `--form columns` the records are JSON objects, and the job writes a JSON object with the running
count and sum of its key for each of them. With `--form text` they are lines, and a function counts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from tests.servers.kafka.broker import AS_SHIPPED, Broker, running_broker
from tests.servers.kafka.jars import FOLDER, SPARK_FOLDER, SPARK_LIST
from tests.servers.kafka.topics import consume, new_topic

from ekorn.common import Configuration, SimpleStringSchema, Types, WatermarkStrategy
from ekorn.datastream import DataStream, KeyedProcessFunction, StreamExecutionEnvironment
from ekorn.datastream.columns import Count as CountOf
from ekorn.datastream.columns import JsonColumns, Sum
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from ekorn.datastream.formats.json import JsonRowDeserializationSchema, JsonRowSerializationSchema
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.testing.kafka.jars import download

KEYS = 1_000
PARALLELISM = 2
JARS = {  # of each peer: the folder, and the list of what is in it
    "pyflink": (FOLDER.with_name("flink-kafka"), Path(__file__).parent / "peers" / "flink_kafka_jars.txt"),
    "pyspark": (SPARK_FOLDER, SPARK_LIST),
}


class Count(KeyedProcessFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value


ORDER = Types.ROW_NAMED(["customer", "amount"], [Types.STRING(), Types.LONG()])
TOTAL = Types.ROW_NAMED(["customer", "orders", "total"], [Types.STRING(), Types.LONG(), Types.LONG()])


def line(number: int, rest: str, form: str, record_bytes: int) -> str:
    """Return a record."""
    if form == "text":
        return f"key-{number % KEYS},{number},{rest}"[:record_bytes]
    start = f'{{"customer":"key-{number % KEYS}","amount":{number},"rest":"'
    return f'{start}{rest[: record_bytes - len(start) - 2]}"}}'


def fill(kafka: Broker, topic: str, records: int, record_bytes: int, form: str) -> None:
    """Write the records, spread evenly over the partitions."""
    producer = Producer(
        {"bootstrap.servers": kafka.servers, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    )
    rest = "x" * record_bytes
    for first in range(0, records, 10_000):
        lines = [line(n, rest, form, record_bytes) for n in range(first, min(first + 10_000, records))]
        for partition in range(PARALLELISM):
            producer.produce_batch(topic, [{"value": line} for line in lines[partition::PARALLELISM]], partition)
        producer.flush()


def counted(stream: DataStream, form: str) -> DataStream:
    """Return the counts of each key."""
    if form == "text":
        return stream.key_by(lambda line: line[: line.index(",")]).process(Count(), Types.STRING())
    return stream.key_by("customer").aggregate(orders=CountOf(), total=Sum("amount"))


def run(
    kafka: Broker, topics: tuple[str, str], checkpoints: str, interval_ms: int, *, execution: str, form: str
) -> float:
    """Run the job to the end of the first topic; return the seconds from the first record to the end."""
    env = StreamExecutionEnvironment.get_execution_environment(Configuration().set_string("ekorn.execution", execution))
    env.set_parallelism(PARALLELISM)
    env.enable_checkpointing(interval_ms)
    env.get_checkpoint_config().set_checkpoint_storage_dir(checkpoints)
    reads: dict[str, Any] = {
        "text": SimpleStringSchema(),
        "rows": JsonRowDeserializationSchema.builder().type_info(ORDER).build(),
        "columns": JsonColumns(ORDER),
    }
    json_of_totals = JsonRowSerializationSchema.builder().with_type_info(TOTAL).build()
    writes: Any = SimpleStringSchema() if form == "text" else json_of_totals
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_topics(topics[0])
        .set_unbounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(reads[form])
        .build()
    )
    serializer = KafkaRecordSerializationSchema.builder().set_topic(topics[1])
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(kafka.servers)
        .set_record_serializer(serializer.set_value_serialization_schema(writes).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(topics[1])
        .set_property("linger.ms", "20")
        .build()
    )
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    counted(stream, form).sink_to(sink)
    client = env.execute_async("kafka")
    result = client.get_job_execution_result()
    while not client.get_progress().records_read and not result.done():
        time.sleep(0.01)
    begun = time.monotonic()
    result.result()
    return time.monotonic() - begun


class FirstMessage(threading.Thread):
    """Notes when a topic gets its first message, committed or not."""

    def __init__(self, kafka: Broker, topic: str) -> None:
        super().__init__(daemon=True)
        from confluent_kafka import Consumer  # not of this module: the job's functions are pickled with its names

        self._consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "first", "log_level": 0})
        self._topic = topic
        self.at: float | None = None  # on the wall clock, which the peer's process has too

    def run(self) -> None:
        from confluent_kafka import TopicPartition

        while self.at is None:
            places = (TopicPartition(self._topic, number) for number in range(PARALLELISM))
            if any(self._consumer.get_watermark_offsets(place, timeout=30)[1] for place in places):
                self.at = time.time()
            time.sleep(0.02)


def run_peer(kafka: Broker, topics: tuple[str, str], engine: str, python: str, interval_ms: int) -> float:
    """Run the same job on a peer, in a process of its own; return the seconds from its first message to its end."""
    folder, listed = JARS[engine]
    jars = download(folder, listed=listed)
    first = FirstMessage(kafka, topics[1])
    first.start()
    command = [python, "-m", f"benchmarks.peers.{engine}_kafka", kafka.servers, *topics, str(jars), str(interval_ms)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    told = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not told or first.at is None:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    return float(json.loads(told[-1])["ended"]) - first.at


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("ekorn", "pyflink", "pyspark"), default="ekorn")
    parser.add_argument("--execution", choices=("epochs", "continuous"), default="epochs")
    parser.add_argument("--form", choices=("text", "rows", "columns"), default="text")
    parser.add_argument("--python", default=sys.executable, help="the Python of an environment with the peer")
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--record-bytes", type=int, default=100)
    parser.add_argument("--interval-ms", type=int, default=2_000)
    told = parser.parse_args()
    with running_broker(AS_SHIPPED) as kafka, tempfile.TemporaryDirectory(prefix="bench-kafka-") as folder:
        topics = (new_topic(kafka, PARALLELISM), new_topic(kafka, PARALLELISM))
        fill(kafka, topics[0], told.records, told.record_bytes, told.form)
        if told.engine == "ekorn":
            seconds = run(kafka, topics, folder, told.interval_ms, execution=told.execution, form=told.form)
        else:
            seconds = run_peer(kafka, topics, told.engine, told.python, told.interval_ms)
        written = len(consume(kafka, topics[1]))
    if written != told.records:
        raise SystemExit(f"{told.engine} wrote {written:,} messages, not {told.records:,}")
    print(json.dumps({"records_per_second": told.records / seconds, "records": told.records, "seconds": seconds}))


if __name__ == "__main__":
    main()
