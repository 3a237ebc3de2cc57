"""The methods of a stream that end it: sinks, and bringing the records to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from ekorn.connectors.delivery import SupportsPreprocessing
from ekorn.functions.sink_contract import GloballyCommittedSink, Sink, SinkFunction
from ekorn.graph.specs import (
    CollectSpec,
    Global,
    GlobalCommitterSpec,
    PreparingWriterSpec,
    PrintSpec,
    SinkFunctionSpec,
    WriterSpec,
)
from ekorn.graph.stream_graph import Edge, Node
from ekorn.legacy.spellings import SinkSpelling
from ekorn.program.checks.argument_checks import check_function, check_instance
from ekorn.program.running.closeable_iterator import CloseableIterator
from ekorn.program.streams.data_stream_sink import DataStreamSink, GloballyCommittedStreamSink
from ekorn.program.streams.stream_core import StreamCore

if TYPE_CHECKING:
    from ekorn.program.streams.data_stream import DataStream


class SinkMethods(StreamCore):
    """Printing, sinks and `execute_and_collect`."""

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Write each record to standard output, after the identifier and the number of the subtask if there are any."""
        if sink_identifier is not None and not isinstance(sink_identifier, str):
            raise TypeError(f"print() takes a string to put before each line, got {sink_identifier!r}")
        return self._sink("Print to Std. Out", PrintSpec(sink_identifier))

    def add_sink(self, sink_func: SinkFunction[Any] | SinkSpelling) -> DataStreamSink:
        """Call a `SinkFunction` with each record."""
        if isinstance(sink_func, SinkSpelling):
            return self.sink_to(sink_func.as_sink())
        check_function("add_sink", sink_func, SinkFunction, None)
        return self._called(sink_func)

    def sink_to(self, sink: Sink[Any]) -> DataStreamSink:
        """Write the records to a sink, such as a `FileSink`."""
        check_instance("sink_to", sink, Sink)
        if isinstance(sink, SupportsPreprocessing):
            transformer = sink.get_transformer()
            if transformer is not None:
                prepared: DataStream = transformer.apply(self)
                return prepared._written_by(sink)
        return self._written_by(sink)

    def _written_by(self, sink: Sink[Any]) -> DataStreamSink:
        """Draw the writers of a sink, in the form that the sink takes."""
        return self._writers(sink, self._edges)

    def _called(self, sink: SinkFunction[Any]) -> DataStreamSink:
        """Draw a sink function, in the form that it takes."""
        return self._sink("Unnamed", SinkFunctionSpec(sink))

    def _taken_by(self, sink: Sink[Any]) -> tuple[Sink[Any], tuple[Edge, ...]]:
        """Return a sink of the engine's own for the form of this stream, and the edges that it reads."""
        return sink, self._edges

    def _writers(self, sink: Sink[Any], edges: tuple[Edge, ...]) -> DataStreamSink:
        if isinstance(sink, GloballyCommittedSink):
            return self._globally_committed(sink, edges)
        graph = self._environment._graph
        return DataStreamSink(self._environment, graph.sink("Writer", WriterSpec(sink), edges))

    def _globally_committed(self, sink: GloballyCommittedSink[Any], edges: tuple[Edge, ...]) -> DataStreamSink:
        graph = self._environment._graph
        writer = graph.operator("Writer", PreparingWriterSpec(sink), edges, None)
        committer = graph.sink("Global Committer", GlobalCommitterSpec(sink), (Edge(writer, Global()),))
        committer.set_parallelism(1)
        committer.set_max_parallelism(1)
        return GloballyCommittedStreamSink(self._environment, writer, committer)

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, limit: None = None) -> CloseableIterator: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None = None, *, limit: int) -> list[Any]: ...

    @overload
    def execute_and_collect(self, job_execution_name: str | None, limit: int) -> list[Any]: ...

    def execute_and_collect(
        self, job_execution_name: str | None = None, limit: int | None = None
    ) -> CloseableIterator | list[Any]:
        """Run the job and bring the records of this stream to the program.

        Args:
            job_execution_name: The name of the job.
            limit: Stop the job after this many records and return them as a list. Without a limit an iterator is
                returned, which stops the job when it is closed.
        """
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit <= 0):
            raise ValueError(f"execute_and_collect() takes a limit above 0, got {limit!r}")
        collector = self._collector()
        try:
            records = CloseableIterator(self._environment._submit(job_execution_name))
        except BaseException:
            # The program may correct the mistake and run again; the collector must not be in that job.
            self._environment._graph.discard(collector)
            raise
        if limit is None:
            return records
        with records:
            return [record for _, record in zip(range(limit), records, strict=False)]

    def _collector(self) -> Node:
        spec = CollectSpec()
        return self._environment._graph.sink("Data stream collect sink", spec, self._edges, like_input=True)
