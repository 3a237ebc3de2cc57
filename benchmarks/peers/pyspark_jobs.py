"""The benchmark workloads on PySpark: its three ways to keep state in Python, and two ways to map.

    python -m benchmarks.peers.pyspark_jobs --workload keyed-count --records 500000 --keys 1000 --api transformWithState

The numbers are written to Parquet files first, and read as a stream with trigger(availableNow=True), so Spark reads all
records in one micro-batch. A SQL expression creates the pairs of the keyed workloads. The keyed functions access their
state once for each key and call, as Spark's interfaces intend; the other engines access it once for each record.
`transformWithState-per-record` also accesses it once for each record.
"""

import importlib.util
import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.peers.measuring import arguments, measure

try:
    import pandas as pd
    from pyspark.sql import DataFrame, Row, SparkSession
    from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
    from pyspark.sql.types import LongType, StringType, StructField, StructType
except ModuleNotFoundError as missing:
    raise SystemExit(
        "this script needs pyspark and pandas: run it with the Python of an environment that has them"
    ) from missing

APIS = {
    "keyed-count": (
        "transformWithState",
        "transformWithStateInPandas",
        "applyInPandasWithState",
        "transformWithState-per-record",
    ),
    "rolling-reduce": ("transformWithState", "transformWithState-per-record"),
    "stateless-chain": ("mapInPandas", "rdd"),
}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
TOTAL = StructType([StructField("total", LongType())])
PAIR = StructType([StructField("key", StringType()), StructField("value", LongType())])


class Rolling(StatefulProcessor):
    """Counts (step "count") or sums (step "sum") the values of a key, with one result for each record."""

    def __init__(self, step: str) -> None:
        self.counting = step == "count"

    def init(self, handle: StatefulProcessorHandle) -> None:
        self.total = handle.getValueState("total", TOTAL)

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        total = self.total.get()[0] if self.total.exists() else 0
        for row in rows:
            total += 1 if self.counting else row.value
            yield Row(key=key[0], value=total)
        self.total.update((total,))

    def close(self) -> None:
        pass


class RollingPerRecord(Rolling):
    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:
        for row in rows:
            before = self.total.get()
            total = (before[0] if before else 0) + (1 if self.counting else row.value)
            self.total.update((total,))
            yield Row(key=key[0], value=total)


class CountInPandas(Rolling):
    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any) -> Iterator[pd.DataFrame]:
        total = self.total.get()[0] if self.total.exists() else 0
        for frame in rows:
            yield pd.DataFrame({"key": key[0], "value": range(total + 1, total + len(frame) + 1)})
            total += len(frame)
        self.total.update((total,))


def count_in_pandas(key: Any, frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    total = state.get[0] if state.exists else 0
    for frame in frames:
        yield pd.DataFrame({"key": key[0], "value": range(total + 1, total + len(frame) + 1)})
        total += len(frame)
    state.update((total,))


def pair_of(i: int, keys: int) -> tuple[str, int]:
    return "user_%d" % (i * 7919 % keys), i  # noqa: UP031  as in the other engines


def is_even(pair: tuple[str, int]) -> bool:
    return pair[1] % 2 == 0


def triple(pair: tuple[str, int]) -> tuple[str, int]:
    return pair[0], pair[1] * 3


def with_negative(pair: tuple[str, int]) -> Iterator[tuple[str, int]]:
    yield pair
    yield pair[0], -pair[1]


def chain_in_pandas(frames: Iterator[pd.DataFrame], keys: int) -> Iterator[pd.DataFrame]:
    """Apply the four functions to each record, between reading columns and writing columns."""
    for frame in frames:
        pairs = map(triple, filter(is_even, (pair_of(i, keys) for i in frame["id"].tolist())))
        results = [result for pair in pairs for result in with_negative(pair)]
        yield pd.DataFrame(results, columns=["key", "value"])


def keyed(numbers: DataFrame, workload: str, api: str, keys: int) -> DataFrame:
    grouped = numbers.selectExpr(f"format_string('user_%d', id * 7919 % {keys}) as key", "id as value").groupBy("key")
    if api == "applyInPandasWithState":
        return grouped.applyInPandasWithState(count_in_pandas, PAIR, TOTAL, "update", "NoTimeout")
    if api == "transformWithStateInPandas":
        return grouped.transformWithStateInPandas(CountInPandas("count"), PAIR, "Update", "none")
    processor = RollingPerRecord if api.endswith("per-record") else Rolling
    step = "count" if workload == "keyed-count" else "sum"
    return grouped.transformWithState(processor(step), PAIR, "Update", "none")


def run_stream(spark: SparkSession, options: Any, directory: Path, records: int) -> None:
    numbers = spark.readStream.schema("id long").parquet(str(directory / f"numbers-{records}"))
    if options.workload == "stateless-chain":
        results = numbers.mapInPandas(partial(chain_in_pandas, keys=options.keys), PAIR)
    else:
        results = keyed(numbers, options.workload, options.api, options.keys)
    query = (
        results.writeStream.format("noop")
        .outputMode("update")
        .trigger(availableNow=True)
        .option("checkpointLocation", str(directory / f"checkpoint-{records}"))
        .start()
    )
    query.awaitTermination()


def run_rdd(spark: SparkSession, options: Any, records: int) -> None:
    keys = options.keys
    results = (
        spark.sparkContext.range(records, numSlices=options.parallelism)
        .map(lambda i: pair_of(i, keys))
        .filter(is_even)
        .map(triple)
        .flatMap(with_negative)
    )
    results.foreachPartition(lambda pairs: sum(1 for _ in pairs))


def session(options: Any) -> SparkSession:
    builder = (
        SparkSession.builder.master(f"local[{options.parallelism}]")
        .appName("peer")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", options.parallelism)
        .config("spark.python.unix.domain.socket.enabled", "true")
        .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    )
    if options.api != "applyInPandasWithState":  # applyInPandasWithState is faster with Spark's default store
        builder = builder.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    return builder.getOrCreate()


def has_protobuf() -> bool:
    try:
        return importlib.util.find_spec("google.protobuf.descriptor") is not None
    except ModuleNotFoundError:
        return False


def main() -> None:
    options = arguments("pyspark", tuple(dict.fromkeys(api for apis in APIS.values() for api in apis)))
    if options.api not in APIS[options.workload]:
        sys.exit(f"the workload {options.workload!r} has --api {', '.join(APIS[options.workload])}")
    if options.api.startswith("transformWithState") and not has_protobuf():
        sys.exit("transformWithState talks to its Python workers in protobuf: install protobuf for this Python")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = session(options)
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)

        def job(records: int) -> None:
            if options.api == "rdd":
                run_rdd(spark, options, records)
            else:
                run_stream(spark, options, directory, records)

        def prepare(records: int) -> None:
            spark.range(records, numPartitions=options.parallelism).write.parquet(str(directory / f"numbers-{records}"))

        measure("pyspark", options, job, prepare)


if __name__ == "__main__":
    main()
