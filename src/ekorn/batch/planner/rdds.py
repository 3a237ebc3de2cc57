"""The seam between the planner and the partitions: Spark's RDDs, or lists of this process in tests."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Protocol

import cloudpickle

from ekorn.batch.tasks.blobs import FIRST, REPORTS, encode
from ekorn.columns.row_columns import RowColumns
from ekorn.engine.spark.driver_side.worker_python import DriverPythonContext, KnownClassesContext
from ekorn.types.data_types import RowType

__all__ = ["NoRdds", "Rdds", "SparkRdds", "blobs_of_frame", "frame_of_blobs", "passed_on"]

Task = Callable[[int, Iterable[Any]], Iterator[bytes]]

_MOST_WITH_TASK_BYTES = 1 << 15  # the limit for all partitions together, because each task gets all of them
_PARTITIONER = 0x7461  # the same for all shuffles, so that Spark puts partition i of two inputs together


class Rdds(Protocol):
    """Makes and runs RDDs. To the planner an RDD is an opaque value with numbered partitions."""

    memory_mb: int
    local: bool
    """Whether tasks run on this machine."""

    def of_elements(self, partitions: Sequence[list[Any]]) -> Any:
        """Return an RDD of the elements that each partition is given."""
        ...

    def of_frame(self, frame: Any, row_type: RowType) -> tuple[Any, int]:
        """Return an RDD of the blobs of a DataFrame's rows, and the number of its partitions."""
        ...

    def frame(self, rdd: Any, row_type: RowType, *, copies: int) -> Any:
        """Run an RDD of blobs, keep it as long as the result is used, and return a DataFrame of its records.

        Args:
            rdd: The blobs.
            row_type: The columns.
            copies: On how many executors each block is kept: 1, or 2 if Spark cannot compute a lost one again.
        """
        ...

    def staged(self, rdd: Any, task: Task, *, keeps_partitions: bool) -> Any:
        """Return the RDD of the blobs that a task yields for each partition.

        Args:
            rdd: The input.
            task: Called with the number of a partition and its elements.
            keeps_partitions: Whether records stay where a shuffle has put them.
        """
        ...

    def number_of(self, rdd: Any) -> int | None:
        """Return the number by which Spark's status names an RDD; None outside of Spark."""
        ...

    def in_order(self, rdd: Any) -> Any:
        """Return an RDD of blobs whose order matters to what reads it.

        If the order is not fixed, a lost result cannot be computed again by itself: it would not fit the other results.
        Spark then computes all of them again, or fails the job if some were used already.
        """
        ...

    def may_change(self, rdd: Any) -> bool:
        """Return whether a partition that is lost, and computed again, may have other records on a cluster."""
        ...

    def shuffled(self, rdd: Any, partitions: int) -> Any:
        """Return the blobs of an RDD whose elements are, in turn, the number of a partition and a blob for it."""
        ...

    def union(self, rdds: Sequence[Any]) -> Any:
        """Return the blobs of several RDDs. Partitions of equal number are one if all come from equal shuffles."""
        ...

    def fewer(self, rdd: Any, partitions: int) -> Any:
        """Return an RDD with fewer partitions, each made of whole ones."""
        ...

    def kept(self, rdd: Any) -> Any:
        """Return an RDD that is computed once, until `release`."""
        ...

    def collected(self, rdd: Any) -> list[bytes]:
        """Run an RDD, and return its blobs in the order of the partitions."""
        ...

    def broadcast(self, value: Any) -> Any:
        """Return an object whose `value`, in every task, is the given one, until `release`."""
        ...

    def release(self) -> None:
        """Drop what `kept` and `broadcast` keep."""
        ...

    def drop_shuffles(self) -> None:
        """Remove the files of all shuffles, which nothing reads any more."""
        ...


def _worker_memory_mb(context: Any) -> int:
    """Return the memory that a Python worker may use."""
    from pyspark.util import _parse_memory

    # `getConf` would copy the whole configuration, with several calls of the JVM for each entry.
    return int(_parse_memory(context._conf.get("spark.python.worker.memory", "512m")))


class SparkRdds:
    """RDDs of Spark.

    Args:
        context: Spark's context.
        frame_session: The session of the DataFrames that are made; None for the active one.
    """

    def __init__(self, context: Any, frame_session: Any = None) -> None:
        self._frame_session = frame_session
        self.local = context.master.startswith("local")
        self._context = DriverPythonContext(context) if self.local else KnownClassesContext(context)
        self._kept: list[Any] = []
        self._shuffles: list[Any] = []
        self._empty: dict[int, Any] = {}  # RDDs without elements, by the number of their partitions
        self.memory_mb = _worker_memory_mb(context)

    def again(self) -> SparkRdds:
        """Return a factory for further RDDs, which reuses what this one has already asked Spark for."""
        further = copy(self)
        further._kept, further._shuffles = [], []
        return further

    def of_elements(self, partitions: Sequence[list[Any]]) -> Any:
        """Return an RDD of the elements. A few of them are sent with the tasks, which asks less of the JVM."""
        pickled, count = [cloudpickle.dumps(each) for each in partitions], len(partitions)
        if sum(map(len, pickled)) > _MOST_WITH_TASK_BYTES:
            return self._parallelized(pickled).flatMap(cloudpickle.loads)
        if count not in self._empty:
            self._empty[count] = self._parallelized([None] * count)
        return self._empty[count].mapPartitionsWithIndex(_Given(pickled))

    def _parallelized(self, partitions: Sequence[Any]) -> Any:
        rdd = self._context.parallelize(partitions, len(partitions))
        rdd.ctx = self._context
        return rdd

    def of_frame(self, frame: Any, row_type: RowType) -> tuple[Any, int]:
        rows = blobs_of_frame(frame, row_type)
        rows.ctx = self._context
        return self.staged(rows, passed_on, keeps_partitions=True), rows.getNumPartitions()

    def frame(self, rdd: Any, row_type: RowType, *, copies: int) -> Any:
        from pyspark import StorageLevel
        from pyspark.sql import SparkSession

        in_one, in_two = StorageLevel.MEMORY_AND_DISK, StorageLevel.MEMORY_AND_DISK_2
        # Spark drops the blocks when the DataFrame is garbage.
        rdd.persist(in_two if copies > 1 and not self.local else in_one)
        rdd._jrdd.count()
        session = self._frame_session or SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        return frame_of_blobs(session, rdd, row_type)

    def staged(self, rdd: Any, task: Task, *, keeps_partitions: bool) -> Any:
        staged = rdd.mapPartitionsWithIndex(task, preservesPartitioning=keeps_partitions)
        staged._bypass_serializer = True  # stages yield bytes
        return self._of_bytes(staged._jrdd)

    def number_of(self, rdd: Any) -> int:
        return int(rdd.id())

    def in_order(self, rdd: Any) -> Any:
        # A sample of all elements passes every element through. Spark considers the result of a sample dependent on the
        # order of its input, so the result is indeterminate after a shuffle (`RDD.outputDeterministicLevel`).
        return rdd if self.local else self._of_bytes(rdd._jrdd.sample(False, 1.0, 0))

    def may_change(self, rdd: Any) -> bool:
        return not self.local and rdd._jrdd.rdd().outputDeterministicLevel().toString() == "INDETERMINATE"

    def shuffled(self, rdd: Any, partitions: int) -> Any:
        jvm = self._context._jvm
        paired = jvm.PairwiseRDD(rdd._jrdd.rdd()).asJavaPairRDD()
        moved = paired.partitionBy(jvm.PythonPartitioner(partitions, _PARTITIONER))
        self._shuffles.append(moved)
        return self._of_bytes(jvm.PythonRDD.valueOfPair(moved))

    def union(self, rdds: Sequence[Any]) -> Any:
        return self._of_bytes(self._context.union(list(rdds))._jrdd)

    def fewer(self, rdd: Any, partitions: int) -> Any:
        return self._of_bytes(rdd._jrdd.coalesce(partitions, False))

    def kept(self, rdd: Any) -> Any:
        from pyspark import StorageLevel

        rdd.persist(StorageLevel.MEMORY_AND_DISK)
        self._kept.append(rdd)
        if not self.local:  # two executors may each compute a partition, and a function need not repeat its results
            rdd._jrdd.count()
        return rdd

    def collected(self, rdd: Any) -> list[bytes]:
        blobs: list[bytes] = rdd.collect()
        return blobs

    def broadcast(self, value: Any) -> Any:
        shared = self._context.broadcast(value)
        self._kept.append(shared)
        return shared

    def release(self) -> None:
        while self._kept:
            self._kept.pop().unpersist()

    def drop_shuffles(self) -> None:
        # Spark removes the files only when the JVM collects garbage, which may take a thousand supersteps.
        cleaner = self._context._jsc.sc().cleaner()
        while self._shuffles:
            shuffle_id = self._shuffles.pop().rdd().dependencies().head().shuffleId()
            if cleaner.isDefined():
                cleaner.get().doCleanupShuffle(shuffle_id, False)

    def _of_bytes(self, java_rdd: Any) -> Any:
        """Return an RDD whose elements are bytes to Spark and to Python."""
        from pyspark import RDD
        from pyspark.serializers import NoOpSerializer

        return RDD(java_rdd, self._context, NoOpSerializer())


@dataclass(frozen=True)
class _Given:
    """The elements of each partition, pickled."""

    partitions: Sequence[bytes]

    def __call__(self, number: int, nothing: Iterable[None]) -> list[Any]:
        for _ in nothing:  # Spark ends a Python worker that has not read all of its input
            pass
        elements: list[Any] = cloudpickle.loads(self.partitions[number])
        return elements


def blobs_of_frame(frame: Any, row_type: RowType) -> Any:
    """Return the RDD of a DataFrame's rows: elements whose only field is a blob."""
    return frame.mapInArrow(_RowsToBlobs(row_type), "blob binary").rdd


def passed_on(number: int, rows: Iterable[Any]) -> Iterator[bytes]:
    """Yield the blobs of what `blobs_of_frame` returns."""
    for row in rows:
        yield bytes(row[0])


def frame_of_blobs(session: Any, blobs: Any, row_type: RowType) -> Any:
    """Return the DataFrame of the records in an RDD of blobs."""
    # Imported here, because programs are drawn without PySpark.
    from ekorn.engine.spark.data_frames.spark_schemas import spark_schema

    stored = session.createDataFrame(blobs.map(_alone), "blob binary", verifySchema=False)
    return stored.mapInArrow(_BlobsToRows(row_type), spark_schema(row_type))


def _alone(blob: bytes) -> tuple[bytes]:
    return (blob,)


@dataclass(frozen=True)
class _RowsToBlobs:
    row_type: RowType

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        columns = RowColumns(self.row_type)
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([encode(FIRST, columns.rows(batch))], pa.binary())], ["blob"])


@dataclass(frozen=True)
class _BlobsToRows:
    row_type: RowType

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        columns = RowColumns(self.row_type)
        for batch in batches:
            for blob in batch.column(0):
                data = blob.as_buffer()
                if data[0] != REPORTS:
                    yield columns.batch(pickle.loads(memoryview(data)[1:]))


class NoRdds:
    """RDDs without partitions: a plan is translated to see how it would run, without Spark."""

    memory_mb = 0
    local = True

    def of_elements(self, partitions: Sequence[list[Any]]) -> None:
        return None

    def of_frame(self, frame: Any, row_type: RowType) -> tuple[None, int]:
        return None, frame.rdd.getNumPartitions()

    def frame(self, rdd: Any, row_type: RowType, *, copies: int) -> None:
        return None

    def number_of(self, rdd: Any) -> None:
        return None

    def in_order(self, rdd: Any) -> None:
        return None

    def may_change(self, rdd: Any) -> bool:
        return False

    def staged(self, rdd: Any, task: Task, *, keeps_partitions: bool) -> None:
        return None

    def shuffled(self, rdd: Any, partitions: int) -> None:
        return None

    def union(self, rdds: Sequence[Any]) -> None:
        return None

    def fewer(self, rdd: Any, partitions: int) -> None:
        return None

    def kept(self, rdd: Any) -> None:
        return None

    def collected(self, rdd: Any) -> list[bytes]:
        return []

    def broadcast(self, value: Any) -> None:
        return None

    def release(self) -> None:
        pass

    def drop_shuffles(self) -> None:
        pass
