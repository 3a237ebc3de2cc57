"""Runs whole programs on the local engine: with the same runtime as on Spark, but without a JVM or processes.

DataSet programs run with the same planner and tasks, over lists in place of RDDs.

with on_local_engine():
    env.execute()

assert collect_locally(env.from_collection([1, 2]).map(lambda x: x + 1)) == [2, 3]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.runner import plans_run_by
from ekorn.driver.submit import jobs_submitted_by, submit
from ekorn.engine.execution import reason_for_epochs
from ekorn.graph.job_graph import JobGraph
from ekorn.program.streams.data_stream import DataStream
from ekorn.testing.continuous_local_engine import ContinuousLocalEngine
from ekorn.testing.local_engine import LocalEngine
from ekorn.testing.local_partitions import run_in_process


@contextmanager
def on_local_engine(*, continuous: bool = False) -> Iterator[None]:
    """Run every `execute`, `collect` and the like of this thread in this process.

    Args:
        continuous: Run jobs as the continuous engine does, except for those that need epochs.
    """
    make = _local_engine if continuous else LocalEngine
    with jobs_submitted_by(partial(submit, engine_for=lambda settings: make)), plans_run_by(run_in_process):
        yield


def _local_engine(graph: JobGraph) -> LocalEngine | ContinuousLocalEngine:
    return ContinuousLocalEngine(graph) if reason_for_epochs(graph) is None else LocalEngine(graph)


def collect_locally(stream: DataStream | DataSet) -> list[Any]:
    """Run a program on the local engine; return the records of the stream or data set."""
    if isinstance(stream, DataSet):
        with on_local_engine():
            return stream.collect()
    with on_local_engine(), stream.execute_and_collect() as records:
        return list(records)
