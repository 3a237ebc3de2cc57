"""Runs whole programs on the local engine: with the same runtime as on Spark, but without a JVM or processes.

with on_local_engine():
    env.execute()

assert collect_locally(env.from_collection([1, 2]).map(lambda x: x + 1)) == [2, 3]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tamias.driver.submit import jobs_submitted_by, submit
from tamias.engine.continuous_local_engine import ContinuousLocalEngine
from tamias.engine.execution import reason_for_epochs
from tamias.engine.local_engine import LocalEngine
from tamias.graph.job_graph import JobGraph
from tamias.program.data_stream import DataStream


@contextmanager
def on_local_engine(*, continuous: bool = False) -> Iterator[None]:
    """Run every `execute`, `execute_async` and `execute_and_collect` of this thread in this process.

    Args:
        continuous: Run jobs as the continuous engine does, except for those that need epochs.
    """
    make = _local_engine if continuous else LocalEngine
    with jobs_submitted_by(partial(submit, engine_for=lambda settings: make)):
        yield


def _local_engine(graph: JobGraph) -> LocalEngine:
    return ContinuousLocalEngine(graph) if reason_for_epochs(graph) is None else LocalEngine(graph)


def collect_locally(stream: DataStream) -> list[Any]:
    """Run a program on the local engine; return the records of the stream."""
    with on_local_engine(), stream.execute_and_collect() as records:
        return list(records)
