"""From Kafka through a keyed count to Kafka on PyFlink, exactly once: `benchmarks.kafka` starts it.

The arguments are the servers, the two topics, the folder of Flink's Kafka connector and the checkpoint interval. At the
end, one line of JSON says when the job ended. Python workers run in processes of their own, as on a cluster.
"""

import json
import os
import sys
import time
from pathlib import Path

try:
    from pyflink.common import SimpleStringSchema, Types, WatermarkStrategy
    from pyflink.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
    from pyflink.datastream.connectors.base import DeliveryGuarantee
    from pyflink.datastream.connectors.kafka import (
        KafkaOffsetsInitializer,
        KafkaRecordSerializationSchema,
        KafkaSink,
        KafkaSource,
    )
    from pyflink.datastream.state import ValueStateDescriptor
except ModuleNotFoundError as missing:
    raise SystemExit(
        "this script needs apache-flink: run it with the Python of an environment that has it"
    ) from missing


class Count(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value, ctx):
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value


def main() -> None:
    servers, source_topic, target_topic, jars, interval_ms = sys.argv[1:]
    os.environ["_python_worker_execution_mode"] = "process"  # noqa: SIM112  the name PyFlink reads
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(sys.executable)
    env.add_jars(*(jar.as_uri() for jar in Path(jars).glob("*.jar")))
    env.set_parallelism(2)
    env.enable_checkpointing(int(interval_ms))
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(source_topic)
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_bounded(KafkaOffsetsInitializer.latest())
        .set_value_only_deserializer(SimpleStringSchema())
        .build()
    )
    serializer = KafkaRecordSerializationSchema.builder().set_topic(target_topic)
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(servers)
        .set_record_serializer(serializer.set_value_serialization_schema(SimpleStringSchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix(target_topic)
        .set_property("linger.ms", "20")
        .set_property("transaction.timeout.ms", "900000")
        .build()
    )
    (
        env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
        .key_by(lambda line: line[: line.index(",")], Types.STRING())
        .process(Count(), Types.STRING())
        .sink_to(sink)
    )
    env.execute("kafka")
    print(json.dumps({"ended": time.time()}), flush=True)


if __name__ == "__main__":
    main()
