"""`StreamExecutionEnvironment`: where a program starts, declares what its jobs run with, and runs them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import PurePath
from typing import Any, NoReturn
from urllib.parse import urlsplit

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.choices import CheckpointingMode
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.settings.fields import read_settings
from ekorn.config.settings.job_names import chosen_job_name
from ekorn.config.settings.job_settings import JobSettings, job_settings
from ekorn.config.settings.memory_settings import JobMemory, job_memory
from ekorn.config.settings.metric_settings import state_latency_settings
from ekorn.config.starting_configuration import starting_configuration, with_current_keys
from ekorn.config.value_text import parse_map
from ekorn.driver.job_handle import JobHandle
from ekorn.driver.submit import submit_from_program
from ekorn.errors import ConfigurationError, QueryableNameTwice, warn
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.functions.state.state_descriptors import StateDescriptor
from ekorn.graph.column_specs import RollingAggregateSpec
from ekorn.graph.job_graph import CachedFile, ExecutionSettings, JobGraph, Operator
from ekorn.graph.plan import execution_plan, explain
from ekorn.graph.redrawing import Drawing
from ekorn.graph.translation import GraphSettings, build_job_graph
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.checks.program_hints import show_program_hints
from ekorn.program.environment.cached_file_registry import CachedFileRegistry
from ekorn.program.environment.data_frame_sources import DataFrameSources
from ekorn.program.environment.environment_settings import EnvironmentSettings
from ekorn.program.environment.spark_session import checked_session
from ekorn.program.running.execute_reminder import execute_failed, remind_of_execute
from ekorn.program.running.foreground import end_with_program, start_in_foreground, wait_in_foreground
from ekorn.program.running.job_client import JobClient
from ekorn.program.running.shown_errors import show_errors
from ekorn.program.streams.stream_display import html_of
from ekorn.program.streams.stream_kinds import StreamKinds
from ekorn.reporters.running import JobReporters
from ekorn.rest.driver_web import WEB
from ekorn.rest.job_socket import open_job_socket
from ekorn.slot_protocol.cached_files import checked
from ekorn.types.published import load_published

__all__ = ["StreamExecutionEnvironment", "check_queryable_names"]


class EnvironmentDependencies(CachedFileRegistry):
    """The methods of a `StreamExecutionEnvironment` that declare what functions need on the slots."""

    _configuration: Configuration

    def add_python_file(self, file_path: str) -> None:
        """Add a Python file, package folder or zip to the slots' import path."""
        _append(self._configuration, options.PYTHON_FILES, _existing("add_python_file", file_path))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive in the slots' working directory, or in a folder of that name below it."""
        path = _existing("add_python_archive", archive_path)
        entry = path if target_dir is None else f"{path}#{target_dir}"
        _append(self._configuration, options.PYTHON_ARCHIVES, entry)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter that runs the slots; a relative path is searched in unpacked archives too."""
        self._configuration.set_string(options.PYTHON_EXECUTABLE.key, os.fspath(python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install the packages of a requirements file for the slots, from a folder of packages if one is given."""
        entry = _existing("set_python_requirements", requirements_file_path)
        if requirements_cache_dir is not None:
            entry += "#" + _existing("set_python_requirements", requirements_cache_dir)
        self._configuration.set_string(options.PYTHON_REQUIREMENTS.key, entry)

    def add_jars(self, *jars_path: str) -> None:
        """Bring jars to Spark, as ``spark.jars`` does. They take effect if the Spark session is not started yet.

        A connector of Flink in a jar has no effect: sources and sinks of Ekorn are written in Python.
        """
        for path in jars_path:
            if "flink" in PurePath(path).name:
                warn(
                    f"add_jars(): {path!r} is added to Spark's class path; Ekorn itself does not use connectors from "
                    "jars"
                )
        _append(self._configuration, options.SPARK_JARS, *jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Add paths that exist on every machine to Spark's class path."""
        paths = [path.removeprefix("file://") for path in classpaths]
        for option in (options.SPARK_DRIVER_CLASSPATH, options.SPARK_EXECUTOR_CLASSPATH):
            _append(self._configuration, option, *paths, separator=os.pathsep)


def _append(configuration: Configuration, option: ConfigOption[Any], *entries: str, separator: str = ",") -> None:
    """Add entries to an option whose value is a list, each of them once."""
    present = [entry for entry in (configuration.get_string(option.key) or "").split(separator) if entry]
    present += [entry for entry in entries if entry not in present]
    configuration.set_string(option.key, separator.join(present))


def _existing(call: str, path: str) -> str:
    """Return a local path that exists as an absolute path. A URL is returned unchanged: the slots fetch it."""
    text = os.fspath(path)
    if len(urlsplit(text).scheme) > 1:
        return text
    if not os.path.exists(text):
        raise FileNotFoundError(f"{call}(): there is no {text!r}")
    return os.path.abspath(text)


DEFAULT_JOB_NAME = "Ekorn Streaming Job"


class StreamExecutionEnvironment(EnvironmentSettings, EnvironmentDependencies, DataFrameSources, SuggestsMethods):
    """Draws jobs and runs them.

    Example:
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> _ = env.set_parallelism(2).from_collection([1, 2, 3]).map(lambda x: x * 2).print()
        >>> print(env.explain().splitlines()[0])
        Job 'Ekorn Streaming Job': 2 vertices on 2 levels, 2 slots, STREAMING
    """

    _stream_kinds = StreamKinds()

    def __init__(self, configuration: Configuration | None = None) -> None:
        """Make an environment with exactly this configuration. Programs call `get_execution_environment` instead."""
        load_published()  # before any function of the program is pickled
        EnvironmentSettings.__init__(self, configuration)
        EnvironmentDependencies.__init__(self)
        DataFrameSources.__init__(self)
        remind_of_execute(self._graph)
        self._spark_session: Any = None

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None, *, spark: Any = None
    ) -> StreamExecutionEnvironment:
        """Return a new environment.

        It starts from the file ``config.yaml`` in the folder that the variable ``EKORN_CONF_DIR`` names, if the
        variable is set, and then takes over the given configuration.

        Args:
            configuration: Settings by key.
            spark: The `SparkSession` that runs the jobs. Without it jobs run on the session that is active when they
                start, or on a new one. PyFlink does not have this argument.
        """
        if configuration is not None and not isinstance(configuration, Configuration):
            raise TypeError(f"get_execution_environment() takes a Configuration, got {configuration!r}")
        combined = starting_configuration()
        if configuration is not None:
            combined.add_all(with_current_keys(configuration))
        default = EnvironmentSettings._default_local_parallelism
        if default is not None and not combined.contains_key(options.PARALLELISM.key):
            combined.set_integer(options.PARALLELISM.key, default)
        show_errors(all_frames=options.ERROR_FRAMES.read(combined) == "all")
        environment = StreamExecutionEnvironment(combined)
        environment._spark_session = None if spark is None else checked_session(spark)
        return environment

    # ------------------------------------------------------------------------------ running

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run the drawn job and wait for its end. A failure is raised as `JobExecutionError`.

        Ctrl-C and SIGTERM end the job and keep its checkpoints; one line says how to resume it.
        """
        return wait_in_foreground(start_in_foreground(lambda: self._submit(job_name)))

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start the drawn job and return at once."""
        return JobClient(self._submit(job_name))

    def get_execution_plan(self) -> str:
        """Return the drawn job as JSON for Flink's plan visualizer. Nothing runs."""
        return execution_plan(self.job_graph())

    def explain(self) -> str:
        """Return the drawn job as text: vertices and their chains by level, exchanges, keys, parallelism."""
        resources = {name: group.resources_text for name, group in self._slot_groups.items()}
        return explain(self.job_graph(), resources)

    def close(self) -> None:
        """Forget everything drawn and not yet run. Running jobs go on."""
        self._graph.clear()

    # ------------------------------------------------------------------------------ the job, for tools and tests

    def job_graph(self, job_name: str | None = None) -> JobGraph:
        """Return the graph of the drawn job: vertices, chains and exchanges. Nothing runs."""
        name = chosen_job_name(job_name, self._configuration, DEFAULT_JOB_NAME)
        return build_job_graph(self._graph, self._graph_settings(name))

    def _graph_settings(self, name: str) -> GraphSettings:
        groups = {name: group.resources() for name, group in self._slot_groups.items()}
        memory = job_memory(self._configuration, groups)
        return graph_settings(self._configuration, name, self._checkpoints, self._cached_files.values(), memory)

    def job_settings(self, job_name: str) -> JobSettings:
        """Return the settings that a job of this environment is submitted with."""
        settings = job_settings(self._configuration, job_name, self._checkpoints, self._restart)
        drawing = Drawing.of(self._graph, self._graph_settings(job_name))
        return replace(settings, spark_session=self._spark_session, graph_at=drawing.at)

    def _submit(self, job_name: str | None) -> JobHandle:
        try:
            graph = self.job_graph(job_name)
            show_errors(all_frames=graph.settings.all_frames)
            check_queryable_names(graph)
            graph = replace(graph, settings=replace(graph.settings, cached_files=checked(graph.settings.cached_files)))
            settings = WEB.opened_for(self.job_settings(graph.name))
            show_program_hints(self._graph)
            with self._deferred.started(graph, settings) as inputs, JobReporters(settings) as reporters:
                handle = submit_from_program(inputs.graph, inputs.settings)
            inputs.end_with(handle)
            reporters.start(handle)
            WEB.show(handle, settings)
            open_job_socket(handle)
        except BaseException:
            execute_failed(self._graph)
            raise
        end_with_program(handle)
        self._graph.submitted()  # Flink: a job takes its operators with it; the next execute() starts from what is new
        return handle

    def __repr__(self) -> str:
        try:
            settings = [f"parallelism {self.get_parallelism()}", options.RUNTIME_MODE.read(self._configuration).name]
            interval_ms = self._checkpoints.get_checkpoint_interval()
            settings += [f"a checkpoint every {interval_ms} ms"] if interval_ms > 0 else []
        except ConfigurationError as error:
            settings = [str(error)]
        drawn = len(self._graph.nodes())
        settings.append(f"{drawn} operator{'s' if drawn > 1 else ''} to run" if drawn else "nothing to run")
        return f"StreamExecutionEnvironment({', '.join(settings)})"

    def _repr_html_(self) -> str:
        """Return the text of this environment, above a drawing of the operators that the next job runs."""
        return html_of(repr(self), self._graph.nodes())

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an environment cannot be used inside a function: pass settings as arguments, or as global job parameters"
        )


def graph_settings(
    configuration: Configuration,
    job_name: str,
    checkpoints: CheckpointConfig,
    cached_files: Iterable[CachedFile],
    memory: JobMemory,
) -> GraphSettings:
    """Read the settings that the translation of a stream graph to a job graph depends on."""
    execution = read_settings(
        ExecutionSettings,
        configuration,
        cached_files=(*_configured_files(configuration), *cached_files),
        checkpointing=checkpoints.is_checkpointing_enabled(),
        memory=memory,
        watermark_interval_set=options.AUTO_WATERMARK_INTERVAL.find(configuration) is not None,
        state_latency=state_latency_settings(configuration),
        releases_at_once=checkpoints.get_checkpointing_mode() is CheckpointingMode.AT_LEAST_ONCE,
    )
    return read_settings(
        GraphSettings,
        configuration,
        name=job_name,
        unaligned_checkpoints=checkpoints.is_unaligned_checkpoints_enabled(),
        execution=execution,
    )


def _configured_files(configuration: Configuration) -> list[CachedFile]:
    files = []
    for entry in options.CACHED_FILES.read(configuration):
        try:
            fields = parse_map(entry)
            executable = fields.get("executable", "false").lower() == "true"
            files.append(CachedFile(fields["name"], fields["path"], executable))
        except (ValueError, KeyError):
            raise ConfigurationError(
                f"cannot read {entry!r} in {options.CACHED_FILES.key}: expected name:n,path:p,executable:false"
            ) from None
    return files


def check_queryable_names(graph: JobGraph) -> None:
    """Refuse two operators whose functions have descriptors with one queryable name.

    A function may also make its descriptors in `open`. The slots find those when they open it, and the job is refused
    then, before it reads a record.

    Raises:
        QueryableNameTwice: There are two.
    """
    known: dict[str, str] = {}
    for vertex in graph.vertices:
        for operator in vertex.operators:
            for name in dict.fromkeys(_queryable_names(operator)):
                if name in known:
                    raise QueryableNameTwice(name, f"one of operator {known[name]!r}, one of {operator.name!r}")
                known[name] = operator.name


def _queryable_names(operator: Operator) -> Iterator[str]:
    if isinstance(operator.spec, RollingAggregateSpec) and operator.spec.queryable_name is not None:
        yield operator.spec.queryable_name
    for field in fields(operator.spec):
        function = getattr(operator.spec, field.name)
        for held in vars(function).values() if hasattr(function, "__dict__") else ():
            if isinstance(held, StateDescriptor) and held.queryable_name is not None:
                yield held.queryable_name
