"""A driver whose job has Spark on both sides, twice: from Kafka to Kafka, and from files to row files.

Run as a program, it is told where everything lies, prints its progress, and is killed by the test; told to be the last,
it ends with the input that is there.
"""

from __future__ import annotations

import json
import time
from typing import Any

from ekorn.common import Configuration, SimpleStringSchema, Types
from ekorn.connectors.data_frames.row_files_sink import RowFilesSink
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.base import DeliveryGuarantee
from ekorn.datastream.connectors.kafka import KafkaRecordSerializationSchema, KafkaSink
from ekorn.table import DataTypes, Row
from tests.spark.kafka_tally import Count

LINES = DataTypes.ROW([DataTypes.FIELD("line", DataTypes.STRING())])


def session(jars: list[str]) -> Any:
    """Start Spark with the jars of spark-sql-kafka."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    started = builder.config("spark.jars", ",".join(jars)).config("spark.sql.shuffle.partitions", "2").getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def start(spark: Any, told: dict[str, Any]) -> Any:
    """Start the job, from its newest checkpoint if there is one."""
    folder = told["folder"]
    configuration = Configuration().set_string("execution.checkpointing.interval", "300 ms")
    configuration.set_string("execution.checkpointing.dir", f"file://{folder}/checkpoints")
    configuration.set_string("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION")
    env = StreamExecutionEnvironment.get_execution_environment(configuration, spark=spark).set_parallelism(2).resume()

    topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", told["servers"])
    topic = topic.option("subscribe", told["topics"][0]).option("startingOffsets", "earliest")
    from_topic = topic.option("maxOffsetsPerTrigger", 200).load().selectExpr("CAST(value AS STRING) AS line")
    serializer = (
        KafkaRecordSerializationSchema.builder()
        .set_topic(told["topics"][1])
        .set_value_serialization_schema(SimpleStringSchema())
        .build()
    )
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(told["servers"])
        .set_record_serializer(serializer)
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(f"p-{told['topics'][1]}")
        .build()
    )
    messages = env.from_spark_source(from_topic, source_name="messages", available_now=told["last"]).uid("messages")
    counted(messages, "messages").sink_to(sink).uid("to topic")

    from_files = spark.readStream.option("maxFilesPerTrigger", 1).text(f"{folder}/in")
    lines = env.from_streaming_data_frame(
        from_files.selectExpr("value AS line"), f"{folder}/progress", source_name="lines", available_now=told["last"]
    ).uid("lines")
    rows = counted(lines, "lines").map(lambda line: Row(line=line))
    rows.sink_to(RowFilesSink(f"{folder}/out", LINES)).uid("to rows")
    return env.execute_async("both sides")


def counted(stream: Any, name: str) -> Any:
    keyed = stream.map(lambda row: row.line, output_type=Types.STRING()).key_by(lambda line: line.partition(",")[0])
    return keyed.process(Count(), output_type=Types.STRING()).uid(f"count {name}")


def read_topic(spark: Any, told: dict[str, Any]) -> list[str]:
    """Return what a streaming query reads of the topic that the job has written."""
    topic = spark.readStream.format("kafka").option("kafka.bootstrap.servers", told["servers"])
    topic = topic.option("subscribe", told["topics"][1]).option("startingOffsets", "earliest")
    frame = topic.option("kafka.isolation.level", "read_committed").load().selectExpr("CAST(value AS STRING)")
    query = frame.writeStream.format("memory").queryName("read").trigger(availableNow=True).start()
    query.awaitTermination()
    return [row.value for row in spark.table("read").collect()]


def main() -> None:
    told = json.loads(input())
    spark = session(told["jars"])
    client = start(spark, told)
    while not client.get_job_status().result().is_globally_terminal_state():
        progress = client.get_progress()
        print("PROGRESS", progress.records_read, progress.checkpoints_completed, flush=True)
        time.sleep(0.1)
    client.get_job_execution_result().result()
    print("READ", json.dumps(read_topic(spark, told)), flush=True)


if __name__ == "__main__":
    main()
