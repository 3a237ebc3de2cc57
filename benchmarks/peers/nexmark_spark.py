"""Nexmark's queries in Spark Structured Streaming, with its native operators: those that it has in streams.

    python -m benchmarks.peers.nexmark_spark FOLDER q0,q1 --turns 2

Left out are distinct counts, the last row of a key, aggregates of aggregates that change, and windows of processing
time. Results are dropped by the sink `noop`. A query processes all files and ends (`availableNow`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

EURO = "CAST(0.908 AS DECIMAL(4, 3)) * price"
CHANNEL = "regexp_extract(url, '(&|^)channel_id=([^&]*)', 2)"
CHANNELS = "lower(channel) IN ('apple', 'google', 'facebook', 'baidu')"


class Queries:
    """The queries over the files of a folder."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark, self._folder = spark, folder

    def _events(self, kind: str) -> DataFrame:
        path = str(self._folder / kind)
        return self._spark.readStream.schema(self._spark.read.parquet(path).schema).parquet(path)

    @property
    def bid(self) -> DataFrame:
        return self._events("bid")

    @property
    def auction(self) -> DataFrame:
        return self._events("auction")

    def q0(self) -> DataFrame:
        return self.bid.select("auction", "bidder", "price", "dateTime", "extra")

    def q1(self) -> DataFrame:
        return self.bid.selectExpr("auction", "bidder", f"{EURO} AS price", "dateTime", "extra")

    def q2(self) -> DataFrame:
        return self.bid.where("auction % 123 = 0").select("auction", "price")

    def q3(self) -> DataFrame:
        people = (
            self._events("person").where("state IN ('OR', 'ID', 'CA')").selectExpr("id AS p", "name", "city", "state")
        )
        items = self.auction.where("category = 10").select("id", "seller")
        return items.join(people, F.expr("seller = p")).select("name", "city", "state", "id")

    def q11(self) -> DataFrame:
        bids = self.bid.select("bidder", "dateTime").withWatermark("dateTime", "0 seconds")
        return bids.groupBy("bidder", F.session_window("dateTime", "10 seconds")).count()

    def q14(self) -> DataFrame:
        hour = "hour(dateTime)"
        kind = (
            f"CASE WHEN {hour} BETWEEN 8 AND 18 THEN 'dayTime' WHEN {hour} <= 6 OR {hour} >= 20 THEN 'nightTime' "
            "ELSE 'otherTime' END"
        )
        letters = "length(extra) - length(replace(extra, 'c', ''))"
        bids = self.bid.where(f"{EURO} > 1000000 AND {EURO} < 50000000")
        return bids.selectExpr("auction", "bidder", EURO, kind, "dateTime", "extra", letters)

    def q17(self) -> DataFrame:
        ranks = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
        counts = [F.expr(f"count_if({rank})").alias(f"rank{number}") for number, rank in enumerate(ranks, 1)]
        prices = [F.min("price"), F.max("price"), F.expr("sum(price) div count(*)").alias("mean"), F.sum("price")]
        day = F.date_format("dateTime", "yyyy-MM-dd").alias("day")
        return self.bid.groupBy("auction", day).agg(F.count("*").alias("total"), *counts, *prices)

    def q20(self) -> DataFrame:
        items = self.auction.where("category = 10").selectExpr(
            "id", "itemName", "description", "initialBid", "reserve", "dateTime AS opened", "expires", "seller",
            "category", "extra AS item",
        )  # fmt: skip
        return self.bid.join(items, F.expr("auction = id")).drop("id")

    def q21(self) -> DataFrame:
        named = (
            "CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' "
            f"WHEN 'baidu' THEN '3' ELSE {CHANNEL} END"
        )
        return self.bid.where(f"{CHANNEL} != '' OR {CHANNELS}").selectExpr(
            "auction", "bidder", "price", "channel", named
        )

    def q22(self) -> DataFrame:
        parts = [F.split_part("url", F.lit("/"), F.lit(number)) for number in (4, 5, 6)]
        return self.bid.select("auction", "bidder", "price", "channel", *parts)


UPDATES = ("q17",)
NATIVE = ("q0", "q1", "q2", "q3", "q11", "q14", "q17", "q20", "q21", "q22")


def seconds_of(queries: Any, query: str) -> float:
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        running = (
            getattr(queries, query)()
            .writeStream.format("noop")
            .option("checkpointLocation", folder)
            .outputMode("update" if query in UPDATES else "append")
            .trigger(availableNow=True)
            .start()
        )
        running.awaitTermination()
        return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries")
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries = Queries(spark, options.folder)
    for query in options.queries.split(","):
        if query in NATIVE:
            seconds = [seconds_of(queries, query) for _ in range(options.turns)]
            print(json.dumps({"query": query, "seconds": seconds}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
