"""Takes the job that a program submits, in place of running it.

The graph differs from `env.job_graph()`: cached files are checked, and a stream ends in its collecting sink.
"""

from __future__ import annotations

from typing import NamedTuple

from ekorn.config.settings.job_settings import JobSettings
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.submit import jobs_submitted_by
from ekorn.graph.job_graph import JobGraph
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream


class DrawnJob(NamedTuple):
    """A job as a program submits it."""

    graph: JobGraph
    settings: JobSettings


def drawn_job(program: DataStream | StreamExecutionEnvironment, name: str | None = None) -> DrawnJob:
    """Return the job that `execute_async`, or `execute_and_collect` of a stream, would start.

    The environment then holds no operators, as after `execute`.

    Example:
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> sink = env.from_collection([1, 2]).print()
        >>> drawn_job(env, "numbers").graph.name
        'numbers'
    """
    submitted: list[DrawnJob] = []

    def keep(graph: JobGraph, settings: JobSettings) -> JobHandle:
        submitted.append(DrawnJob(graph, settings))
        return JobHandle(settings.job_id, settings.job_name)

    with jobs_submitted_by(keep):
        if isinstance(program, DataStream):
            program.execute_and_collect(name)
        else:
            program.execute_async(name)
    return submitted[0]
