"""DataSet programs beside the same programs written by hand for PySpark: RDDs, and DataFrames with Python functions.

    python -m benchmarks.data_sets [--records 1000000] [--only word-count,join] [--rounds 4] [--alone]

All run in one Spark session, in turn, so that load from outside falls on each alike. The first round warms up Spark
and its workers; of the others the best of each program counts. Every program makes its input in the tasks, and counts
its results. With `--alone` only the program of ekorn runs: two runs with different `--records` show how it scales.
The inputs of the join have ten and two records of each key, however many there are; the other programs have a fixed
number of keys.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from operator import add
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StringType, StructField, StructType

from ekorn.dataset import ExecutionEnvironment, GroupCombineFunction, GroupReduceFunction

PARTITIONS = 2
WORDS_IN_LINE = 10
VERTICES = 20_000
SUPERSTEPS = 10


def words_of(line: int) -> list[str]:
    """Return the words of a line; there are 50,000 words, some of them much more frequent than others."""
    start = line * WORDS_IN_LINE
    return [f"w{(i * i * 7919) % 50_000}" for i in range(start, start + WORDS_IN_LINE)]


def keyed_by(keys: int) -> Callable[[int], tuple[str, int]]:
    """Return the function from numbers to pairs with so many keys."""
    return lambda number: (f"key-{number * 7919 % keys}", number)


def counted(number: int) -> tuple[str, int, int]:
    """Return the pair of a number, with one of 100,000 keys, and a count of one."""
    return f"key-{number * 7919 % 100_000}", number, 1


def scattered(number: int) -> tuple[int, str]:
    """Return a pair whose first field is in no order."""
    return number * 2_654_435_761 % 4_294_967_291, "payload"


def edge(number: int) -> tuple[int, int]:
    """Return an edge of a graph in which every vertex has an outgoing one."""
    return number % VERTICES, (number * 7919 + number // VERTICES) % VERTICES


class Mean(GroupReduceFunction, GroupCombineFunction):
    """The mean of a group's values, combined as (key, sum, count)."""

    def combine(self, values: Iterator[Any]) -> list[Any]:
        return [_summed(values)]

    def reduce(self, values: Iterator[Any]) -> list[Any]:
        key, total, count = _summed(values)
        return [(key, total / count)]


def _summed(values: Iterator[Any]) -> tuple[str, int, int]:
    key, total, count = next(values)
    for _, more, further in values:
        total += more
        count += further
    return key, total, count


class Programs:
    """The programs of one session."""

    def __init__(self, records: int) -> None:
        self.records = records
        self.env = ExecutionEnvironment.get_execution_environment().set_parallelism(PARTITIONS)
        self.env.from_elements(1).count()  # starts Spark
        self.spark: Any = SparkSession.builder.getOrCreate()
        self.context: Any = self.spark.sparkContext
        self.spark.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
        self.spark.conf.set("spark.sql.autoBroadcastJoinThreshold", -1)

    def numbers(self, count: int) -> Any:
        return self.env.generate_sequence(0, count - 1)

    def rdd(self, count: int) -> Any:
        return self.context.range(0, count, numSlices=PARTITIONS)

    def frame(self, count: int) -> Any:
        return self.spark.range(0, count, numPartitions=PARTITIONS)

    # ------------------------------------------------------------------------------ word count

    def word_count(self) -> dict[str, Callable[[], Any]]:
        lines = self.records // WORDS_IN_LINE
        words = F.udf(words_of, ArrayType(StringType()))
        return {
            "ekorn": lambda: (
                self.numbers(lines).flat_map(words_of).map(lambda word: (word, 1)).group_by(0).sum(1).count()
            ),
            "rdd": lambda: self.rdd(lines).flatMap(words_of).map(lambda w: (w, 1)).reduceByKey(add, PARTITIONS).count(),
            "frame": lambda: self.frame(lines).select(F.explode(words("id")).alias("w")).groupBy("w").count().count(),
        }

    # ------------------------------------------------------------------------------ join

    def join(self) -> dict[str, Callable[[], Any]]:
        few = self.records // 5
        keyed = keyed_by(max(self.records // 10, 1))
        pair = F.udf(keyed, StructType([StructField("k", StringType()), StructField("v", LongType())]))
        difference = F.udf(lambda one, other: one - other, LongType())

        def frame() -> Any:
            left = self.frame(self.records).select(pair("id").alias("p")).select("p.k", F.col("p.v").alias("a"))
            right = self.frame(few).select(pair("id").alias("p")).select("p.k", F.col("p.v").alias("b"))
            return left.join(right, "k").select(difference("a", "b").alias("d")).agg(F.count("d")).collect()[0][0]

        def ekorn() -> int:
            left, right = self.numbers(self.records).map(keyed), self.numbers(few).map(keyed)
            return left.join(right).where(0).equal_to(0).using(lambda a, b: a[1] - b[1]).count()

        def rdd() -> Any:
            left, right = self.rdd(self.records).map(keyed), self.rdd(few).map(keyed)
            return left.join(right, PARTITIONS).map(lambda pair: pair[1][0] - pair[1][1]).count()

        return {"ekorn": ekorn, "rdd": rdd, "frame": frame}

    # ------------------------------------------------------------------------------ group-reduce with combiner

    def group_reduce(self) -> dict[str, Callable[[], Any]]:
        keyed = keyed_by(100_000)

        def ekorn() -> int:
            values = self.numbers(self.records).map(counted)
            return values.group_by(0).reduce_group(Mean()).count()

        def rdd() -> Any:
            sums = (
                self.rdd(self.records)
                .map(keyed)
                .combineByKey(
                    lambda v: (v, 1),
                    lambda s, v: (s[0] + v, s[1] + 1),
                    lambda s, t: (s[0] + t[0], s[1] + t[1]),
                    PARTITIONS,
                )
            )
            return sums.map(lambda pair: (pair[0], pair[1][0] / pair[1][1])).count()

        def frame() -> Any:
            pair = F.udf(keyed, StructType([StructField("k", StringType()), StructField("v", LongType())]))
            pairs = self.frame(self.records).select(pair("id").alias("p")).select("p.k", "p.v")
            return pairs.groupBy("k").agg(F.avg("v")).count()

        return {"ekorn": ekorn, "rdd": rdd, "frame": frame}

    # ------------------------------------------------------------------------------ sort

    def sort(self) -> dict[str, Callable[[], Any]]:
        def frame() -> Any:
            pair = F.udf(scattered, StructType([StructField("k", LongType()), StructField("v", StringType())]))
            pairs = self.frame(self.records).select(pair("id").alias("p")).select("p.k", "p.v")
            return pairs.sort("k").rdd.count()

        def ekorn() -> int:
            return self.numbers(self.records).map(scattered).partition_by_range(0).sort_partition(0).count()

        return {
            "ekorn": ekorn,
            "rdd": lambda: self.rdd(self.records).map(scattered).sortByKey(numPartitions=PARTITIONS).count(),
            "frame": frame,
        }

    # ------------------------------------------------------------------------------ PageRank

    def page_rank(self) -> dict[str, Callable[[], Any]]:
        edges = self.records // 5

        def ekorn() -> int:
            links = self.numbers(edges).map(edge).group_by(0).reduce_group(_targets)
            ranks = self.numbers(VERTICES).map(lambda vertex: (vertex, 1.0))
            iteration = ranks.iterate(SUPERSTEPS)
            sent = iteration.join(links).where(0).equal_to(0).using_flat(_sent)
            summed = sent.group_by(0).sum(1).map(lambda pair: (pair[0], 0.15 + 0.85 * pair[1]))
            return iteration.close_with(summed.with_forwarded_fields("f0")).count()  # as `mapValues` of an RDD

        def rdd() -> Any:
            links = self.rdd(edges).map(edge).groupByKey(PARTITIONS).mapValues(list).cache()
            ranks = self.rdd(VERTICES).map(lambda vertex: (vertex, 1.0))
            for _ in range(SUPERSTEPS):
                sent = links.join(ranks, PARTITIONS).flatMap(
                    lambda item: [(target, item[1][1] / len(item[1][0])) for target in item[1][0]]
                )
                ranks = sent.reduceByKey(add, PARTITIONS).mapValues(lambda rank: 0.15 + 0.85 * rank)
            count = ranks.count()
            links.unpersist()
            return count

        return {"ekorn": ekorn, "rdd": rdd}


def _targets(edges: Iterator[tuple[int, int]]) -> list[Any]:
    found = list(edges)
    return [(found[0][0], [target for _, target in found])]


def _sent(rank: tuple[int, float], links: tuple[int, list[int]]) -> list[tuple[int, float]]:
    share = rank[1] / len(links[1])
    return [(target, share) for target in links[1]]


def main() -> None:
    """Run the programs and print the figures, then a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--only", default="word-count,join,group-reduce,sort,page-rank")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds must be at least 2: the first round warms up")
    programs = Programs(options.records)
    ratios = {}
    for name in options.only.split(","):
        seconds: dict[str, float] = {}
        results = set()
        for number in range(options.rounds):
            for kind, program in getattr(programs, name.replace("-", "_"))().items():
                if options.alone and kind != "ekorn":
                    continue
                started = time.perf_counter()
                results.add(program())
                if number > 0:
                    seconds[kind] = min(seconds.get(kind, float("inf")), time.perf_counter() - started)
        assert len(results) == 1, f"{name}: the programs do not agree: {results}"
        shown = ", ".join(f"{kind} {value:.2f} s" for kind, value in seconds.items())
        if not options.alone:
            ratios[name] = seconds["ekorn"] / min(value for kind, value in seconds.items() if kind != "ekorn")
            shown += f"; ekorn takes {ratios[name]:.2f} of the better time"
        print(f"{name:<14}{shown}", flush=True)
    print(json.dumps({"records": options.records, "ratios": ratios}))


if __name__ == "__main__":
    main()
