"""Turns a drawn operator into one that writes its state to a savepoint, for the state processor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ekorn.config import options
from ekorn.config.choices import RuntimeExecutionMode
from ekorn.graph.specs import BootstrapSpec, ProcessSpec, SavepointFilesSpec, WindowSpec
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream

__all__ = ["bootstrapped", "check_bounded", "run_bootstraps"]


def check_bounded(call: str, stream: DataStream) -> None:
    """Refuse a stream that does not end: the state is written at the end of the input."""
    stream._refuse_endless(call, "a bounded source")


def bootstrapped(
    result: DataStream,
    files: SavepointFilesSpec,
    *,
    operator_id: str,
    uid: str | None,
    max_parallelism: int,
    one_subtask: bool = False,
) -> DataStream:
    """Let the operator that a stream comes from write its state to a savepoint when its input ends.

    Args:
        result: The output of the operator: a process function or windows. The operator may not have been read yet.
        files: Where the state is written.
        operator_id: The id under which the state is saved.
        uid: The uid of that id, if it is known.
        max_parallelism: The number of key groups of the state.
        one_subtask: Whether one subtask gets all records.

    Returns:
        The stream of the `SubtaskSnapshot` of each subtask.
    """
    node = result._operator("bootstrap")
    assert isinstance(node.spec, ProcessSpec | WindowSpec), node.spec
    node.spec = BootstrapSpec(node.spec, operator_id, uid, files)
    node.output_type = None
    node.set_max_parallelism(max_parallelism)
    node.set_parallelism(
        1 if one_subtask else min(result.get_execution_environment().get_parallelism(), max_parallelism)
    )
    return result


def run_bootstraps(environment: StreamExecutionEnvironment, results: DataStream, job_name: str) -> list[Any]:
    """Run the job that writes the state, and return the records of the stream.

    The job runs in STREAMING mode: in BATCH mode an operator keeps the state of one key at a time.
    """
    with _streaming(environment), results.execute_and_collect(job_name) as snapshots:
        return list(snapshots)


@contextmanager
def _streaming(environment: StreamExecutionEnvironment) -> Iterator[None]:
    mode = options.RUNTIME_MODE.read(environment._configuration)
    environment.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    try:
        yield
    finally:
        environment.set_runtime_mode(mode)
