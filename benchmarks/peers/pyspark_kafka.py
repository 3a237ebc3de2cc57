"""From Kafka through a keyed count to Kafka on PySpark: `benchmarks.kafka` starts it.

The arguments are the servers, the two topics, the folder of spark-sql-kafka's jars and an interval, which
`availableNow` has no use for. The state is Python's, by `applyInPandasWithState`, Spark's fastest for many records of
few keys. Spark's Kafka sink writes at least once. At the end, one line of JSON says when the query ended.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

try:
    import pandas as pd
    from pyspark.sql import SparkSession
except ModuleNotFoundError as missing:
    raise SystemExit(
        "this script needs pyspark and pandas: run it with the Python of an environment that has them"
    ) from missing


def count(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    total = state.get[0] if state.exists else 0
    for frame in frames:
        total += len(frame)
        yield frame[["value"]]
    state.update((total,))


def main() -> None:
    servers, source_topic, target_topic, jars, _ = sys.argv[1:]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("peer")
        .config("spark.ui.enabled", "false")
        .config("spark.jars", ",".join(str(jar) for jar in Path(jars).glob("*.jar")))
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    lines = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source_topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("CAST(value AS STRING) AS value", "substring_index(CAST(value AS STRING), ',', 1) AS key")
    )
    counted = lines.groupBy("key").applyInPandasWithState(count, "value string", "total long", "update", "NoTimeout")
    with tempfile.TemporaryDirectory() as folder:
        query = (
            counted.writeStream.format("kafka")
            .option("kafka.bootstrap.servers", servers)
            .option("topic", target_topic)
            .option("checkpointLocation", folder)
            .outputMode("update")
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        print(json.dumps({"ended": time.time()}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
