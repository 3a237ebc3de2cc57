"""Looks up in the job graph what a program drew."""

import itertools

from ekorn.graph.job_graph import Operator
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.streams.data_stream import DataStream
from ekorn.program.streams.data_stream_sink import DataStreamSink

_numbers = itertools.count()


def operator_of(env: StreamExecutionEnvironment, drawn: DataStream | DataStreamSink) -> Operator:
    """Return the operator that a stream comes from, or that a sink is. The operator gets another name."""
    name = f"looked up {next(_numbers)}"
    drawn.name(name)
    return next(o for vertex in env.job_graph().vertices for o in vertex.operators if o.name.endswith(name))
