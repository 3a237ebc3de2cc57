"""`StreamExecutionEnvironment`: where a program starts, sets what it runs with, and runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, ClassVar, NoReturn
from urllib.parse import urlsplit

from tamias.config import options
from tamias.config.checkpoint_config import CheckpointConfig
from tamias.config.checkpointing import CheckpointingMode
from tamias.config.configuration import Configuration
from tamias.config.execution_config import ExecutionConfig
from tamias.config.execution_mode import RuntimeExecutionMode
from tamias.config.job_settings import buffer_timeout_ms, job_settings, state_backend_name
from tamias.config.option import ConfigOption
from tamias.config.restart_strategy import FallbackRestartStrategyConfiguration, RestartStrategyConfiguration
from tamias.config.starting_configuration import starting_configuration, with_current_keys
from tamias.config.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from tamias.config.time_characteristic import TimeCharacteristic
from tamias.connectors.collection_source import CollectionSource
from tamias.driver.job_handle import JobHandle
from tamias.driver.submit import submit_from_program
from tamias.functions.job_execution_result import JobExecutionResult
from tamias.functions.source_contract import ParallelSourceFunction, Source, SourceFunction
from tamias.functions.watermark_strategy import WatermarkStrategy
from tamias.graph.job_graph import CachedFile, JobGraph
from tamias.graph.plan import execution_plan, explain
from tamias.graph.specs import SourceFunctionSpec, SourceSpec
from tamias.graph.stream_graph import (
    PARALLELISM_DEFAULT,
    Edge,
    StreamGraph,
    checked_max_parallelism,
    checked_parallelism,
)
from tamias.graph.translation import build_job_graph
from tamias.program.closure_check import check_function, check_instance
from tamias.program.data_stream import DataStream, check_output_type
from tamias.program.graph_settings import graph_settings
from tamias.program.job_client import JobClient
from tamias.program.slot_sharing_group import SlotSharingGroup
from tamias.slot.cached_files import checked
from tamias.types.factory import Types
from tamias.types.type_information import TypeInformation

__all__ = ["StreamExecutionEnvironment"]

DEFAULT_JOB_NAME = "Tamias Streaming Job"


class StreamExecutionEnvironment:
    """Draws jobs and runs them.

    Example:
        >>> env = StreamExecutionEnvironment.get_execution_environment()
        >>> _ = env.set_parallelism(2).from_collection([1, 2, 3]).map(lambda x: x * 2).print()
        >>> print(env.explain().splitlines()[0])
        Job 'Tamias Streaming Job': 2 vertices on 2 levels, 2 slots, STREAMING
    """

    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration | None = None) -> None:
        """Make an environment with exactly this configuration; programs use `get_execution_environment`."""
        self._configuration = Configuration()
        if configuration is not None:
            self._configuration.add_all(with_current_keys(configuration))
        self._config = ExecutionConfig(self._configuration)
        self._checkpoints = CheckpointConfig(self._configuration)
        self._graph = StreamGraph()
        self._cached_files: dict[str, CachedFile] = {}
        self._slot_groups: dict[str, SlotSharingGroup] = {}
        self._restart: RestartStrategyConfiguration | None = None
        self._state_backend: StateBackend | None = None

    @staticmethod
    def get_execution_environment(configuration: Configuration | None = None) -> StreamExecutionEnvironment:
        """A new environment.

        It starts from the file ``config.yaml`` in the folder that the variable ``TAMIAS_CONF_DIR`` names, if it
        is set, and then takes over the configuration given here.
        """
        if configuration is not None and not isinstance(configuration, Configuration):
            raise TypeError(f"get_execution_environment() takes a Configuration, got {configuration!r}")
        combined = starting_configuration()
        if configuration is not None:
            combined.add_all(with_current_keys(configuration))
        default = StreamExecutionEnvironment._default_local_parallelism
        if default is not None and not combined.contains_key(options.PARALLELISM.key):
            combined.set_integer(options.PARALLELISM.key, default)
        return StreamExecutionEnvironment(combined)

    # ------------------------------------------------------------------------------ settings of the job

    def get_config(self) -> ExecutionConfig:
        """The execution settings."""
        return self._config

    def get_configuration(self) -> Configuration:
        """All settings by key; what is set here holds."""
        return self._configuration

    def configure(self, configuration: Configuration) -> None:
        """Take over all values of a configuration. Unknown keys are kept."""
        if not isinstance(configuration, Configuration):
            raise TypeError(f"configure() takes a Configuration, got {configuration!r}")
        self._configuration.add_all(with_current_keys(configuration))

    def set_parallelism(self, parallelism: int) -> StreamExecutionEnvironment:
        """Set the parallelism of operators that have none of their own, from 1 to 32768."""
        self._config.set_parallelism(checked_parallelism(parallelism) or PARALLELISM_DEFAULT)
        return self

    def get_parallelism(self) -> int:
        """The parallelism of operators that have none of their own."""
        return self._config.get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> StreamExecutionEnvironment:
        """Set the maximum parallelism of operators that have none of their own, from 1 to 32768."""
        self._config.set_max_parallelism(checked_max_parallelism(max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        """The maximum parallelism; -1 when each operator's follows from its parallelism."""
        return self._config.get_max_parallelism()

    def get_default_local_parallelism(self) -> int:
        """The parallelism of new environments to which nothing else gives one."""
        default = StreamExecutionEnvironment._default_local_parallelism
        return (os.cpu_count() or 1) if default is None else default

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism of environments made from now on to which nothing else gives one."""
        StreamExecutionEnvironment._default_local_parallelism = checked_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> StreamExecutionEnvironment:
        """Set whether the job runs on as its input does, or once to the end of it."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise TypeError(f"set_runtime_mode() takes a RuntimeExecutionMode, got {execution_mode!r}")
        self._configuration.set_string(options.RUNTIME_MODE.key, execution_mode.name)
        return self

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Say which time the job goes by, as in Flink 1.x: what `time_window` means, and what sources stamp.

        It also sets the auto-watermark interval: to 0 for processing time, else to 200 ms.
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise TypeError(f"TimeCharacteristic.EventTime or one of its kin is needed, got {characteristic!r}")
        self._configuration.set_string(options.TIME_CHARACTERISTIC.key, characteristic.name)
        interval_ms = 0 if characteristic is TimeCharacteristic.ProcessingTime else 200
        self._configuration.set_string(options.AUTO_WATERMARK_INTERVAL.key, f"{interval_ms} ms")

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Which time the job goes by."""
        return TimeCharacteristic[options.TIME_CHARACTERISTIC.read(self._configuration)]

    def set_buffer_timeout(self, timeout_millis: int) -> StreamExecutionEnvironment:
        """Set how long output may wait to be sent with more; -1 for until enough is there."""
        if isinstance(timeout_millis, bool) or not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise ValueError(f"a buffer timeout is a number of milliseconds from 0 on, or -1, got {timeout_millis!r}")
        self._configuration.set_boolean(options.BUFFER_TIMEOUT_ENABLED.key, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set_integer(options.BUFFER_TIMEOUT.key, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """How long output may wait to be sent with more, in milliseconds."""
        return buffer_timeout_ms(self._configuration)

    def disable_operator_chaining(self) -> StreamExecutionEnvironment:
        """Give each operator a vertex of its own."""
        self._configuration.set_boolean(options.OPERATOR_CHAINING.key, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Whether operators share vertices where they can."""
        return options.OPERATOR_CHAINING.read(self._configuration)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Whether operators whose maximum parallelism differs may share a vertex."""
        return options.CHAIN_DIFFERENT_MAX_PARALLELISM.read(self._configuration)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> StreamExecutionEnvironment:
        """Say what each slot of a group asks for; operators join it by its name."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise TypeError(f"register_slot_sharing_group() takes a SlotSharingGroup, got {slot_sharing_group!r}")
        known = self._slot_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise ValueError(
                f"slot-sharing group {known.get_name()!r} is registered already, and asks for "
                f"{known.resources_text or 'nothing'}, not {slot_sharing_group.resources_text or 'nothing'}"
            )
        return self

    # ------------------------------------------------------------------------------ state and recovery

    def enable_checkpointing(
        self, interval: int, mode: CheckpointingMode | None = None, force: bool = False
    ) -> StreamExecutionEnvironment:
        """Take checkpoints.

        Args:
            interval: milliseconds from one to the next, 10 at least.
            mode: what a record counts for after a failure; exactly once unless set otherwise.
            force: take them also of jobs with iterations.
        """
        self._checkpoints.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoints.set_checkpointing_mode(mode)
        if force:
            self._checkpoints.set_force_checkpointing(True)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """All settings of checkpoints."""
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        """Milliseconds from one checkpoint to the next; -1 when checkpointing is off."""
        return self._checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """What a record counts for after a failure."""
        return self._checkpoints.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """The same as `get_checkpointing_mode`."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Whether unaligned checkpoints are asked for."""
        return self._checkpoints.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Whether they are allowed with custom partitioning."""
        return self._checkpoints.is_force_unaligned_checkpoints()

    def set_state_backend(self, state_backend: StateBackend) -> StreamExecutionEnvironment:
        """Set where working state is kept."""
        if not isinstance(state_backend, StateBackend):
            raise TypeError(
                f"set_state_backend() takes a StateBackend such as HashMapStateBackend(), got {state_backend!r}"
            )
        state_backend._apply(self._configuration, self._checkpoints)
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend:
        """Where working state is kept."""
        name = state_backend_name(self._configuration)
        if self._state_backend is not None and self._state_backend.backend_name == name:
            return self._state_backend
        return EmbeddedRocksDBStateBackend._of(self._configuration) if name == "rocksdb" else HashMapStateBackend()

    def enable_changelog_state_backend(self, enabled: bool) -> StreamExecutionEnvironment:
        """Let checkpoints write what changed since the last one; the same as incremental checkpoints."""
        self._configuration.set_boolean(options.CHANGELOG_ENABLED.key, bool(enabled))
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """What `enable_changelog_state_backend` was told; None if nothing."""
        return options.CHANGELOG_ENABLED.read(self._configuration)

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set whether and when the job is started again after a failure."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise TypeError(
                "set_restart_strategy() takes what RestartStrategies makes, such as "
                f"RestartStrategies.fixed_delay_restart(3, 1000), got {restart_strategy_configuration!r}"
            )
        self._restart = restart_strategy_configuration

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """What `set_restart_strategy` was told; otherwise that the configuration decides."""
        return self._restart or FallbackRestartStrategyConfiguration()

    def set_default_savepoint_directory(self, directory: str) -> StreamExecutionEnvironment:
        """Set where savepoints go that are taken without a directory."""
        self._configuration.set_string(options.SAVEPOINT_DIR.key, os.fspath(directory))
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Where savepoints go that are taken without a directory."""
        return options.SAVEPOINT_DIR.read(self._configuration)

    def set_restore_path(self, path: str, allow_non_restored_state: bool = False) -> StreamExecutionEnvironment:
        """Start the job from a checkpoint or savepoint.

        Args:
            path: its directory, or the ``_metadata`` file in it.
            allow_non_restored_state: drop saved state for which the job has no operator, instead of failing.
        """
        self._configuration.set_string(options.RESTORE_PATH.key, os.fspath(path))
        self._configuration.set_boolean(options.RESTORE_IGNORE_UNCLAIMED.key, bool(allow_non_restored_state))
        return self

    # ------------------------------------------------------------------------------ what functions need

    def register_cached_file(self, file_path: str, name: str, executable: bool = False) -> None:
        """Bring a file or folder to every slot; functions find it through `get_distributed_cache`.

        Args:
            file_path: a path or a URL. What is on this machine is sent to slots that cannot see it; from elsewhere
                (``s3://``, ``hdfs://``, ``https://``, whatever pyarrow or fsspec opens) each slot fetches a copy.
            name: what functions ask for.
            executable: whether the copy, or all files of the folder, may be executed.
        """
        if not isinstance(name, str) or not name:
            raise ValueError(f"a cached file needs a name, got {name!r}")
        given = CachedFile(name, os.fspath(file_path), bool(executable))
        known = self._cached_files.setdefault(name, given)
        if known != given:
            raise ValueError(f"a cached file is registered as {name!r} already: {known.path!r}")

    def add_python_file(self, file_path: str) -> None:
        """Bring a Python file, package folder or zip to the slots' import path."""
        _append(self._configuration, options.PYTHON_FILES, _existing("add_python_file", file_path))

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """Unpack an archive in the slots' working directory, or in a folder of that name below it."""
        path = _existing("add_python_archive", archive_path)
        entry = path if target_dir is None else f"{path}#{target_dir}"
        _append(self._configuration, options.PYTHON_ARCHIVES, entry)

    def set_python_executable(self, python_exec: str) -> None:
        """Set the interpreter that runs the slots; a relative path is looked for in unpacked archives too."""
        self._configuration.set_string(options.PYTHON_EXECUTABLE.key, os.fspath(python_exec))

    def set_python_requirements(self, requirements_file_path: str, requirements_cache_dir: str | None = None) -> None:
        """Install what a requirements file lists for the slots, from a folder of packages if one is given."""
        entry = _existing("set_python_requirements", requirements_file_path)
        if requirements_cache_dir is not None:
            entry += "#" + _existing("set_python_requirements", requirements_cache_dir)
        self._configuration.set_string(options.PYTHON_REQUIREMENTS.key, entry)

    def add_jars(self, *jars_path: str) -> None:
        """Bring jars to Spark, as ``spark.jars`` does; they count when the session is not started yet."""
        _append(self._configuration, options.SPARK_JARS, *jars_path)

    def add_classpaths(self, *classpaths: str) -> None:
        """Put paths that exist on every machine on Spark's class path."""
        paths = [path.removeprefix("file://") for path in classpaths]
        for option in (options.SPARK_DRIVER_CLASSPATH, options.SPARK_EXECUTOR_CLASSPATH):
            _append(self._configuration, option, *paths, separator=os.pathsep)

    # ------------------------------------------------------------------------------ sources

    def from_collection(self, collection: Iterable[Any], type_info: TypeInformation | None = None) -> DataStream:
        """A stream of the records of a collection, in its order, read by one subtask.

        Args:
            collection: a list, a generator or any other iterable; it is read here and now.
            type_info: type of the records, to which they are converted.
        """
        check_output_type("from_collection", type_info, "type_info")
        source = CollectionSource(collection, type_info)
        node = self._graph.source("Collection Source", SourceSpec(source), type_info, non_parallel=True)
        return DataStream(self, (Edge(node),))

    def from_elements(self, *elements: Any, type_info: TypeInformation | None = None) -> DataStream:
        """A stream of the records given."""
        return self.from_collection(elements, type_info)

    def from_sequence(self, start: int, end: int) -> DataStream:
        """The whole numbers from `start` to `end`, both included, read in parallel."""
        from tamias.connectors.number_seq import NumberSequenceSource

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
        """A stream of the records of a source.

        Args:
            source: where they come from.
            watermark_strategy: how timestamps and watermarks are made, for each split of the source.
            source_name: name of the operator.
            type_info: type of the records; by default what the source says.
        """
        check_instance("from_source", source, Source)
        check_output_type("from_source", type_info, "type_info")
        if watermark_strategy is not None:
            check_instance("from_source", watermark_strategy, WatermarkStrategy)
        produced = getattr(source, "get_produced_type", None)
        if type_info is None and callable(produced):
            type_info = produced()
        node = self._graph.source(source_name, SourceSpec(source, watermark_strategy), type_info)
        return DataStream(self, (Edge(node),))

    def add_source(
        self,
        source_func: SourceFunction[Any],
        source_name: str = "Custom Source",
        type_info: TypeInformation | None = None,
    ) -> DataStream:
        """A stream of what a `SourceFunction` emits; with one subtask unless it is a `ParallelSourceFunction`."""
        check_function("add_source", source_func, SourceFunction, None)
        check_output_type("add_source", type_info, "type_info")
        alone = not isinstance(source_func, ParallelSourceFunction)
        node = self._graph.source(source_name, SourceFunctionSpec(source_func), type_info, non_parallel=alone)
        return DataStream(self, (Edge(node),))

    def read_text_file(self, file_path: str, charset_name: str = "UTF-8") -> DataStream:
        """The lines of a text file, or of all files in a folder, as strings."""
        from tamias.connectors.file_source import FileSource, StreamFormat

        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(charset_name), file_path).build()
        return self.from_source(
            source, WatermarkStrategy.no_watermarks(), f"Text File Source {file_path}", Types.STRING()
        )

    # ------------------------------------------------------------------------------ running

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run what was drawn and wait for its end. A failure is raised as `JobExecutionError`."""
        return self._submit(job_name, collect=False).wait()

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start what was drawn and return at once."""
        return JobClient(self._submit(job_name, collect=False))

    def get_execution_plan(self) -> str:
        """What was drawn, as JSON for Flink's plan visualizer. Nothing runs."""
        return execution_plan(self._job_graph(None))

    def explain(self) -> str:
        """What was drawn, as text: vertices and their chains by level, exchanges, keys, parallelism."""
        resources = {name: group.resources_text for name, group in self._slot_groups.items()}
        return explain(self._job_graph(None), resources)

    def close(self) -> None:
        """Forget what was drawn and not run. Running jobs go on."""
        self._graph.clear()

    # ------------------------------------------------------------------------------ within this package

    def _submit(self, job_name: str | None, *, collect: bool) -> JobHandle:
        graph = self._job_graph(job_name)
        graph = replace(graph, settings=replace(graph.settings, cached_files=checked(graph.settings.cached_files)))
        handle = submit_from_program(
            graph,
            job_settings(self._configuration, graph.name, self._checkpoints, self._restart, collect=collect),
        )
        self._graph.clear()  # Flink: a job takes its operators with it; the next execute() starts from what is new
        return handle

    def _job_graph(self, job_name: str | None) -> JobGraph:
        name = job_name or options.JOB_NAME.read(self._configuration) or DEFAULT_JOB_NAME
        if not isinstance(name, str):
            raise TypeError(f"a job's name is a string, got {name!r}")
        return build_job_graph(
            self._graph,
            graph_settings(self._configuration, name, self._checkpoints, self._cached_files.values()),
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an environment is part of the program, not of a function: "
            "pass settings as arguments, or as global job parameters"
        )


def _append(configuration: Configuration, option: ConfigOption[Any], *entries: str, separator: str = ",") -> None:
    """Add entries to an option whose value is a list, each of them once."""
    present = [entry for entry in (configuration.get_string(option.key) or "").split(separator) if entry]
    present += [entry for entry in entries if entry not in present]
    configuration.set_string(option.key, separator.join(present))


def _existing(call: str, path: str) -> str:
    """A local path that must exist, as an absolute one; an address with a scheme is left to those who fetch it."""
    text = os.fspath(path)
    if len(urlsplit(text).scheme) > 1:
        return text
    if not os.path.exists(text):
        raise FileNotFoundError(f"{call}(): there is no {text!r}")
    return os.path.abspath(text)
