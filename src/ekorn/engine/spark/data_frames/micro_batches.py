"""Runs in the driver: reads a source of Structured Streaming from one offset to another, without a streaming query.

A source of Spark is a `MicroBatchStream`: it says where it begins and how far it could be read, and plans what lies
between two offsets. Spark's streaming query does no more with it, and notes the offsets in its checkpoint location.
Here the offsets belong to the job. The classes are internal to Spark, and are reached through the driver's JVM; Spark
4.1 to 4.3 have all that is used here (decision 32).

Steps that look at one row at a time may stand behind the source: they are put on top of each batch. Everything else
needs a streaming query, and so does a source of Spark's older interface, which keeps what it has read to itself.
"""

from __future__ import annotations

from typing import Any, Protocol

from ekorn.errors import ConfigurationError
from ekorn.types.data_types import RowType

__all__ = ["MicroBatches", "SparkMicroBatches"]

_READING = "org.apache.spark.sql.connector.read.streaming"
_ROW_BY_ROW = {"Project", "Filter", "Generate", "SubqueryAlias"}
_SOURCE, _OLD_SOURCE = "StreamingRelationV2", "StreamingRelation"
_ANY_PLAN = "from_streaming_data_frame(df, checkpoint_location) runs any plan"


class MicroBatches(Protocol):
    """A source that is read between offsets. An offset is text that only the source understands."""

    row_type: RowType

    def open(self, notes_url: str, *, available_now: bool) -> None:
        """Begin to use the source, which keeps notes of its own in a folder.

        Args:
            notes_url: The folder, as Spark names it.
            available_now: Whether the source ends with what is there now, if it can.
        """

    def initial_offset(self) -> str:
        """Return the offset at which the source begins, as its options say."""

    def latest_offset(self, start: str) -> str:
        """Return how far the source can be read from an offset, within the limit that its options set."""

    @property
    def ends_by_itself(self) -> bool:
        """Whether `latest_offset` stays at the end of what was there when the source was opened."""

    def frame(self, start: str, end: str) -> Any:
        """Return the DataFrame of the rows between two offsets."""

    def commit(self, end: str) -> None:
        """Tell the source that rows before an offset are not needed again."""

    def close(self) -> None:
        """Stop using the source."""


class SparkMicroBatches:
    """The source at the end of a streaming DataFrame's plan."""

    def __init__(self, frame: Any, row_type: RowType) -> None:
        """Check the plan.

        Raises:
            ConfigurationError: The plan needs a streaming query.
        """
        self.row_type = row_type
        self._session = frame.sparkSession
        self._schema = frame.schema
        self._steps, self._leaf = _row_by_row_plan(frame)
        self._jvm = self._session._jvm
        self._stream: Any = None
        self._ends_by_itself = False

    def open(self, notes_url: str, *, available_now: bool) -> None:
        """Begin to use the source. Called on the thread that calls the other methods."""
        from pyspark.sql import SparkSession

        SparkSession._get_j_spark_session_class(self._jvm).setActiveSession(self._session._jsparkSession)
        scan = self._leaf.table().newScanBuilder(self._leaf.extraOptions()).build()
        self._stream = scan.toMicroBatchStream(notes_url)
        self._ends_by_itself = available_now and self._is("SupportsTriggerAvailableNow")
        if self._ends_by_itself:
            self._stream.prepareForTriggerAvailableNow()

    @property
    def ends_by_itself(self) -> bool:
        """Whether the source was told to end with what is there, and can do so in several batches."""
        return self._ends_by_itself

    def initial_offset(self) -> str:
        """Return the offset at which the source begins."""
        return str(self._stream.initialOffset().json())

    def latest_offset(self, start: str) -> str:
        """Return how far the source can be read from an offset."""
        stream = self._stream
        if self._is("SupportsAdmissionControl"):
            latest = stream.latestOffset(stream.deserializeOffset(start), stream.getDefaultReadLimit())
        else:
            latest = stream.latestOffset()
        return start if latest is None else str(latest.json())

    def frame(self, start: str, end: str) -> Any:
        """Return the DataFrame of the rows between two offsets."""
        from pyspark.sql import DataFrame

        stream, jvm, session = self._stream, self._jvm, self._session._jsparkSession
        planned = stream.planInputPartitions(stream.deserializeOffset(start), stream.deserializeOffset(end))
        # Spark 4.1 gives a task several partitions, later versions one at most.
        several = str(self._session.version).startswith("4.1.")
        partitions = _seq(jvm, [_seq(jvm, [each]) if several else jvm.scala.Option.apply(each) for each in planned])
        python = jvm.org.apache.spark.api.python.PythonUtils
        no_metrics = python.toScalaMap(jvm.java.util.HashMap())
        rows = jvm.org.apache.spark.sql.execution.datasources.v2.DataSourceRDD(
            session.sparkContext(), partitions, stream.createReaderFactory(), False, no_metrics
        )
        # The plan of the rows gets the columns of the source, to which the steps behind it refer by their ids.
        batch = session.internalCreateDataFrame(rows, self._leaf.schema(), False).logicalPlan()
        parts = self._session.sparkContext._gateway.new_array(jvm.java.lang.Object, batch.productArity())
        for number in range(batch.productArity()):
            parts[number] = batch.productElement(number)
        parts[0] = self._leaf.output()
        plan = batch.makeCopy(parts)
        for step in self._steps:
            plan = step.withNewChildren(_seq(jvm, [plan]))
        return DataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, plan), self._session)

    def commit(self, end: str) -> None:
        """Tell the source that rows before an offset are not needed again."""
        self._stream.commit(self._stream.deserializeOffset(end))

    def close(self) -> None:
        """Stop using the source."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.stop()

    def _is(self, interface: str) -> bool:
        return bool(self._jvm.java.lang.Class.forName(f"{_READING}.{interface}").isInstance(self._stream))


def _row_by_row_plan(frame: Any) -> tuple[list[Any], Any]:
    """Return the steps behind the source, from the source on, and the source."""
    steps: list[Any] = []
    node = frame._jdf.queryExecution().analyzed()
    while (kind := str(node.getClass().getSimpleName())) in _ROW_BY_ROW:
        steps.insert(0, node)
        node = node.children().head()
    if kind == _SOURCE:
        return steps, node
    if kind == _OLD_SOURCE:
        raise ConfigurationError(
            f"from_spark_source(): {node.sourceName()} is a source of Spark's older interface, which keeps what it has "
            f"read in the checkpoint location of a query: {_ANY_PLAN}, and env.from_source(FileSource...) reads files "
            "without one"
        )
    if kind == "EventTimeWatermark":
        raise ConfigurationError(
            "from_spark_source(): withWatermark() has no effect in a job; leave it out and pass a watermark_strategy"
        )
    raise ConfigurationError(
        f"from_spark_source(): the plan has the step {kind} after its source, but only select, where and explode, "
        f"which work on one row at a time, are allowed there: do this step in the job, or {_ANY_PLAN}"
    )


def _seq(jvm: Any, items: list[Any]) -> Any:
    """Return a sequence of Scala."""
    java = jvm.java.util.ArrayList()
    for item in items:
        java.add(item)
    return jvm.org.apache.spark.api.python.PythonUtils.toSeq(java)
