"""The sources of an environment: the methods that begin a stream."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ekorn.columns.columns_type import has_columns
from ekorn.config.settings.job_settings import JobSettings
from ekorn.connectors.collection_source import CollectionSource
from ekorn.connectors.data_frames.deferred_source import DeferredSource
from ekorn.connectors.files.file_source import FileSource
from ekorn.connectors.files.stream_formats import InputFormat, StreamFormat
from ekorn.connectors.number_seq import NumberSequenceSource
from ekorn.connectors.socket_source import SocketTextStreamFunction
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.recovery.resume import resumed
from ekorn.engine.beside_job import BesideJob, StartingJob
from ekorn.errors import InvalidProgramError
from ekorn.functions.dead_letters import DEAD_LETTERS
from ekorn.functions.results.job_status import JobStatus
from ekorn.functions.source_contract import Boundedness, ParallelSourceFunction, Source, SourceFunction
from ekorn.functions.watermark_strategy import WatermarkStrategy
from ekorn.graph.job_graph import JobGraph, Operator, Vertex
from ekorn.graph.record_error_policies import may_skip
from ekorn.graph.specs import OperatorSpec, SourceFunctionSpec, SourceSpec
from ekorn.graph.stream_graph import Edge, StreamGraph
from ekorn.legacy.spellings import SourceSpelling
from ekorn.program.checks.argument_checks import check_function, check_instance, check_output_type
from ekorn.program.streams.data_stream import DataStream
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

if TYPE_CHECKING:
    from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment


class EnvironmentSources:
    """The methods of a `StreamExecutionEnvironment` that begin a stream."""

    def __init__(self) -> None:
        self._graph = StreamGraph()
        self._deferred = DeferredInputs()

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """Begin a stream with the records of a collection, in its order, read by one subtask.

        Args:
            collection: A list, a generator or any other iterable. It is read during this call.
            type_info: The type of the records, to which they are converted.
        """
        check_output_type("from_collection", type_info, "type_info")
        if type(collection).__module__.partition(".")[0] == "pandas" and hasattr(collection, "itertuples"):
            raise TypeError(
                "from_collection() got a pandas DataFrame, which iterates over its column names: use "
                "from_pandas(df), which returns a Row for each of its rows"
            )
        source = CollectionSource(collection, type_info)
        return self._source("Collection Source", SourceSpec(source), type_info, non_parallel=True)

    def from_elements(self, *elements: Any, type_info: TypeInformation | None = None) -> DataStream:
        """Begin a stream with the given records."""
        return self.from_collection(elements, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """Begin a stream with the whole numbers from `start` to `end`, both included, read in parallel."""
        return self.from_source(
            NumberSequenceSource(start, end), WatermarkStrategy.no_watermarks(), "Sequence Source", Types.LONG()
        )

    def from_source(
        self,
        source: Source,
        watermark_strategy: WatermarkStrategy | None,
        source_name: str,
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Begin a stream with the records of a source.

        Args:
            source: The source.
            watermark_strategy: How timestamps and watermarks are made, for each split of the source.
            source_name: The name of the operator.
            type_info: The type of the records; by default the type that the source declares.
        """
        check_instance("from_source", source, Source)
        check_output_type("from_source", type_info, "type_info")
        if watermark_strategy is not None:
            check_instance("from_source", watermark_strategy, WatermarkStrategy)
        produced = getattr(source, "get_produced_type", None)
        if type_info is None and callable(produced):
            type_info = produced()
        if has_columns(type_info) and watermark_strategy is not None and not by_columns(watermark_strategy):
            rows = self._source(source_name, SourceSpec(source, WatermarkStrategy.no_watermarks()), type_info)
            return rows.assign_timestamps_and_watermarks(watermark_strategy)
        return self._source(source_name, SourceSpec(source, watermark_strategy), type_info)

    def add_source(
        self,
        source_func: SourceFunction[Any] | SourceSpelling,
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """Begin a stream with the records that a `SourceFunction` emits.

        It runs in one subtask unless it is a `ParallelSourceFunction`.
        """
        if isinstance(source_func, SourceSpelling):
            source, strategy = source_func.as_source(), source_func.watermark_strategy
            return self.from_source(source, strategy, source_name, type_info)
        check_function("add_source", source_func, SourceFunction, None)
        check_output_type("add_source", type_info, "type_info")
        alone = not isinstance(source_func, ParallelSourceFunction)
        return self._source(source_name, SourceFunctionSpec(source_func), type_info, non_parallel=alone)

    def create_input(self, input_format: InputFormat, type_info: TypeInformation | None = None) -> DataStream:
        """Begin a stream with the records of an input format, such as `AvroInputFormat`, which is read to its end.

        Args:
            input_format: The format with its files.
            type_info: The type of the records; by default the type that the format declares.
        """
        check_instance("create_input", input_format, InputFormat)
        name = type(input_format).__name__
        return self.from_source(
            input_format.create_source(),
            WatermarkStrategy.no_watermarks(),
            f"Input {name}",
            type_info or input_format.get_produced_type(),
        )

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """Begin a stream with the lines of a text file, or of all files in a folder, as strings."""
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self.from_source(
            source, WatermarkStrategy.no_watermarks(), f"Text File Source {file_path}", Types.STRING()
        )

    def socket_text_stream(self, hostname: str, port: int, delimiter: str = "\n", max_retry: int = 0) -> DataStream:
        """Begin a stream with the text that a server sends, cut at a delimiter; for trials.

        Text that was read after the last checkpoint is lost when the job fails: a socket cannot be read again.

        Args:
            hostname: The server.
            port: The port of the server.
            delimiter: The end of a record, which is no part of it.
            max_retry: How often to connect again when the server ends the connection; -1 for without end.
        """
        source = SocketTextStreamFunction(hostname, port, delimiter, max_retry)
        return self.add_source(source, "Socket Stream", Types.STRING())

    def get_dead_letters(self) -> DataStream:
        """Return the records that no operator declared so far could process, as `DeadLetter`s.

        Call it after the last operator, if ``ekorn.on-record-error`` is ``dead-letter``.
        """
        edges = tuple(node.side_output(DEAD_LETTERS.tag_id, None) for node in self._graph.nodes() if may_skip(node))
        if not edges:
            raise InvalidProgramError(
                "get_dead_letters(): the program has no operator yet that could send dead letters"
            )
        return DataStream(cast("StreamExecutionEnvironment", self), edges)

    def _source(self, name: str, spec: OperatorSpec, type_info: TypeInformation | None, **more: bool) -> DataStream:
        node = self._graph.source(name, spec, type_info, **more)
        if has_columns(type_info):
            environment = cast("StreamExecutionEnvironment", self)
            return environment._stream_kinds.as_column_stream(environment, node)
        return DataStream(cast("StreamExecutionEnvironment", self), (Edge(node),))


def by_columns(strategy: WatermarkStrategy) -> bool:
    """Return whether a source of columns can follow a strategy by itself, without looking at rows."""
    return strategy.is_built_in and (strategy.timestamp_assigner is None or strategy.timestamp_column is not None)


class DeferredInputs:
    """The deferred sources of one environment."""

    def __init__(self) -> None:
        self._parts: dict[str, BesideJob] = {}

    def source(self, part: BesideJob, what: str, produced: TypeInformation, boundedness: Boundedness) -> DeferredSource:
        """Return the source that stands in the graph for the input that a part will make."""
        token = uuid.uuid4().hex
        self._parts[token] = part
        return DeferredSource(token, what, produced, boundedness)

    @contextlib.contextmanager
    def started(self, graph: JobGraph, settings: JobSettings) -> Iterator[StartedInputs]:
        """Start the parts of a graph's deferred sources; end them if the block raises.

        Yields:
            The graph with its real sources, and the settings to submit it with. `end_with` ties the parts to the job.
        """
        if not any(_is_deferred(operator) for vertex in graph.vertices for operator in vertex.operators):
            yield StartedInputs(graph, settings, ())
            return
        settings = resumed(settings)  # parts need the id of the job that is continued
        running: list[BesideJob] = []
        try:
            vertices = tuple(
                self._with_sources(vertex, settings, running, batch=graph.settings.batch) for vertex in graph.vertices
            )
            yield StartedInputs(replace(graph, vertices=vertices), settings, tuple(running))
        except BaseException:
            for part in running:
                part.end(JobStatus.FAILED, False)
            raise

    def _with_sources(self, vertex: Vertex, settings: JobSettings, running: list[BesideJob], *, batch: bool) -> Vertex:
        operators = []
        for operator in vertex.operators:
            spec = operator.spec
            if isinstance(spec, SourceSpec) and isinstance(spec.source, DeferredSource):
                part = self._parts[spec.source.token]
                running.append(part)
                source = part.start(StartingJob(settings, operator.id, vertex.parallelism, batch))
                operator = replace(operator, spec=replace(spec, source=source))  # noqa: PLW2901
            operators.append(operator)
        return replace(vertex, operators=tuple(operators))


class StartedInputs:
    """A graph whose deferred sources have been replaced, and the parts that make their input."""

    def __init__(self, graph: JobGraph, settings: JobSettings, running: tuple[BesideJob, ...]) -> None:
        self.graph = graph
        self.settings = settings
        self._running = running

    def end_with(self, handle: JobHandle) -> None:
        """End the parts with the job."""
        for part in self._running:
            handle.at_end(part.end)


def _is_deferred(operator: Operator) -> bool:
    return isinstance(operator.spec, SourceSpec) and isinstance(operator.spec.source, DeferredSource)
