"""Runs in the driver: moves rows between stages, and from the last stage to the driver, one row at a time.

PySpark's `partitionBy` and `collect` gather rows and pickle them together (`task_side/rows.py` says why that is not
wanted). The steps below are those of PySpark's own `partitionBy`, without the gathering.
"""

from __future__ import annotations

from typing import Any

from ekorn.engine.spark.task_side.rows import rows_of_driver, shuffle_pairs


def shuffled(rdd: Any, partitions: int) -> Any:
    """Return the rows of an RDD, encoded, each in the partition of its `via`."""
    from pyspark import RDD
    from pyspark.serializers import NoOpSerializer

    context = rdd.ctx
    pairs = _as_bytes(rdd.mapPartitions(shuffle_pairs))
    java_pairs = context._jvm.PairwiseRDD(pairs._jrdd.rdd()).asJavaPairRDD()
    partitioner = context._jvm.PythonPartitioner(partitions, id(shuffled))  # a row's key is its partition
    moved = context._jvm.PythonRDD.valueOfPair(java_pairs.partitionBy(partitioner))
    return RDD(moved, context, NoOpSerializer())


def collected(rdd: Any) -> list[bytes]:
    """Return the data of the rows for the driver."""
    found: list[bytes] = _as_bytes(rdd.mapPartitions(rows_of_driver)).collect()
    return found


def _as_bytes(rdd: Any) -> Any:
    """Let the elements of an RDD, which are bytes, travel without being pickled."""
    rdd._bypass_serializer = True
    return rdd
