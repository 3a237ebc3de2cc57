"""`ExecutionEnvironment`: where a DataSet program starts, and what runs it."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NoReturn, Self

from ekorn.batch.jobs.data_set_job import DataSetJob
from ekorn.batch.outputs.file_output import FileOutput
from ekorn.batch.plan.data_set_specs import InputSpec, OutputSpec
from ekorn.batch.plan.operators import Plan, PlanOperator
from ekorn.batch.planner.explained_plan import plan_as_json
from ekorn.batch.planner.plan_runner import RunSettings, engine_description
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.data_set_core import DataSetCore
from ekorn.batch.program.data_set_iterations import IterationResult
from ekorn.batch.program.data_set_kinds import DataSetKinds
from ekorn.batch.program.environment_inputs import EnvironmentInputs
from ekorn.batch.program.runner import cancel_plan, parallelism_of_runner, runner, runs_on_spark, start_runner
from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.restart_strategy import RestartStrategyConfiguration
from ekorn.config.settings.job_names import chosen_job_name
from ekorn.config.settings.job_settings import for_batch, job_settings
from ekorn.config.starting_configuration import starting_configuration, with_current_keys
from ekorn.driver.submit import numbered
from ekorn.errors import InvalidProgramError
from ekorn.functions.results.job_execution_result import JobExecutionResult
from ekorn.graph.stream_graph import PARALLELISM_DEFAULT, checked_parallelism
from ekorn.program.checks.argument_checks import check_output_type
from ekorn.program.checks.attribute_suggestions import SuggestsMethods
from ekorn.program.environment.cached_file_registry import CachedFileRegistry
from ekorn.program.environment.spark_session import checked_session
from ekorn.program.environment.stream_execution_environment import StreamExecutionEnvironment
from ekorn.program.running.execute_reminder import remind_of_execute
from ekorn.program.running.foreground import end_with_program, start_in_foreground, wait_in_foreground
from ekorn.program.running.job_client import JobClient
from ekorn.program.running.shown_errors import show_errors
from ekorn.storage.locations import split_last
from ekorn.types.by_value import dumps
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.factory import Types
from ekorn.types.published import load_published
from ekorn.types.type_information import TypeInformation

__all__ = ["CollectionInput", "DrawnSinks", "ExecutionEnvironment", "SequenceInput", "drawn_plan", "type_of_all"]

DEFAULT_JOB_NAME = "Ekorn Batch Job"


class ExecutionEnvironment(EnvironmentInputs, CachedFileRegistry, SuggestsMethods):
    """Draws DataSet programs and runs them on Spark.

    Example:
        >>> env = ExecutionEnvironment.get_execution_environment()
        >>> words = env.from_elements("to be or not to be").flat_map(str.split)
        >>> counts = words.map(lambda word: (word, 1)).group_by(0).reduce(lambda a, b: (a[0], a[1] + b[1]))
        >>> counts.get_name().split(" ")[0]
        'Reduce'
    """

    kinds = DataSetKinds()

    def __init__(self, configuration: Configuration | None = None) -> None:
        """Make an environment with exactly this configuration. Programs call `get_execution_environment` instead."""
        super().__init__()
        load_published()  # must run before any function of the program is pickled
        self._configuration = Configuration()
        if configuration is not None:
            self._configuration.add_all(with_current_keys(configuration))
        self._config = ExecutionConfig(self._configuration)
        self._spark_session: Any = None
        self._restart: RestartStrategyConfiguration | None = None
        self._sinks = DrawnSinks()
        remind_of_execute(self._sinks)
        self._last_result: JobExecutionResult | None = None
        self._streams: StreamExecutionEnvironment | None = None

    @staticmethod
    def get_execution_environment(
        configuration: Configuration | None = None, *, spark: Any = None
    ) -> ExecutionEnvironment:
        """Return a new environment.

        It starts from the file ``config.yaml`` in the folder that the variable ``EKORN_CONF_DIR`` names, if the
        variable is set, and then takes over the given configuration.

        Args:
            configuration: Settings by key.
            spark: The `SparkSession` that runs the programs. Without it they run on the session that is active when
                they start, or on a new one.
        """
        if configuration is not None and not isinstance(configuration, Configuration):
            raise TypeError(f"get_execution_environment() takes a Configuration, got {configuration!r}")
        combined = starting_configuration()
        if configuration is not None:
            combined.add_all(with_current_keys(configuration))
        show_errors(all_frames=options.ERROR_FRAMES.read(combined) == "all")
        environment = ExecutionEnvironment(combined)
        environment._spark_session = None if spark is None else checked_session(spark)
        return environment

    # ------------------------------------------------------------------------------ settings

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the parallelism of operators that have none of their own; without it, Spark's number of cores."""
        self._config.set_parallelism(checked_parallelism(parallelism) or PARALLELISM_DEFAULT)
        return self

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that have none of their own; -1 if Spark's number of cores applies."""
        if not self._configuration.contains_key(options.PARALLELISM.key):
            return PARALLELISM_DEFAULT
        return self._config.get_parallelism()

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set whether and when a program is run again, from its beginning, after a function has failed."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise TypeError(
                "set_restart_strategy() takes what RestartStrategies makes, such as "
                f"RestartStrategies.fixed_delay_restart(3, 1000), got {restart_strategy_configuration!r}"
            )
        self._restart = restart_strategy_configuration

    def get_config(self) -> ExecutionConfig:
        """Return the execution settings."""
        return self._config

    def get_configuration(self) -> Configuration:
        """Return the configuration that holds all settings by key. A value set in it takes effect."""
        return self._configuration

    def stream_environment(self) -> StreamExecutionEnvironment:
        """Return the environment of the jobs that read data sets as streams, with the settings of this moment."""
        if self._streams is None:
            self._streams = StreamExecutionEnvironment.get_execution_environment(
                self._configuration, spark=self._spark_session
            )
        self._streams.configure(self._configuration)
        return self._streams

    # ------------------------------------------------------------------------------ inputs

    def from_elements(self, *elements: Any) -> DataSet:
        """Return the given values as a data set."""
        if not elements:
            raise InvalidProgramError("from_elements() needs an element; use from_collection([]) for an empty data set")
        return self.from_collection(elements)

    def from_collection(self, values: Iterable[Any], type_info: TypeInformation | None = None) -> DataSet:
        """Return the elements of a collection as a data set. With a type they are converted to it."""
        check_output_type("from_collection", type_info, "type_info")
        elements = list(values)
        if type_info is not None:
            elements = [type_info.narrow(element) for element in elements]
        spec = InputSpec(CollectionInput(elements))
        data_set = DataSet(self, "DataSource", spec, known_type=type_of_all(elements))
        return data_set if type_info is None else data_set.returns(type_info)

    def generate_sequence(self, start: int, end: int) -> DataSet:
        """Return the integers from `start` to `end`, both included."""
        if end < start:
            raise InvalidProgramError(f"generate_sequence({start}, {end}): the end is before the start")
        return DataSet(self, "Sequence", InputSpec(SequenceInput(start, end)), known_type=Types.LONG())

    # ------------------------------------------------------------------------------ running

    def execute(self, job_name: str | None = None) -> JobExecutionResult:
        """Run all sinks that were drawn since the last `execute`, and wait for their end.

        Raises:
            RuntimeError: There is no such sink.
            JobExecutionError: A function failed.
        """
        return self._run(self._taken_sinks(), job_name)[1]

    def execute_async(self, job_name: str | None = None) -> JobClient:
        """Start all sinks that were drawn since the last `execute`, and return at once.

        The plan is that of this moment: what is drawn or set later does not change it.

        Raises:
            RuntimeError: There is no such sink.
        """
        job = self._started(self._taken_sinks(), job_name)
        end_with_program(job.handle)
        return JobClient(job.handle)

    def get_execution_plan(self) -> str:
        """Return, as JSON, the operators that `execute` would run, and how records get from one to the next.

        Raises:
            InvalidProgramError: There is no sink to execute.
        """
        if not self._sinks.pending():
            raise InvalidProgramError("there is no plan: no sink was added since the last execute()")
        return plan_as_json(self.plan())

    def get_last_job_execution_result(self) -> JobExecutionResult | None:
        """Return the result of the last job of this environment, however it was started; None before the first."""
        return self._last_result

    def add_sink(self, sink: DataSetCore) -> None:
        """Let the next `execute` run a sink."""
        sink.scope.refuse_outside(sink.get_name())
        self._sinks.add(sink)

    def run_now(self, sink: DataSetCore) -> list[Any]:
        """Run one sink and return what it sent to the driver."""
        sink.scope.refuse_outside(sink.get_name())
        return self._run((sink,), None)[0][0]

    def start_spark(self) -> None:
        """Start Spark if it does not run yet. A test that runs plans in process starts nothing."""
        start_runner(self._settings(None))

    def plan(self, sinks: Iterable[DataSetCore] | None = None) -> Plan:
        """Return the plan of some sinks, or of all that `execute` would run. Nothing runs."""
        return drawn_plan(tuple(self._sinks.pending() if sinks is None else sinks), self._parallelism())

    def _taken_sinks(self) -> tuple[DataSetCore, ...]:
        """Return the sinks to run, and remove them from what the next `execute` runs."""
        sinks = self._sinks.take()
        if not sinks:
            raise RuntimeError(
                "there is nothing to execute: no sink was added since the last execute(); "
                "collect(), count() and print() run the program themselves"
            )
        return sinks

    def _run(self, sinks: tuple[DataSetCore, ...], job_name: str | None) -> tuple[list[list[Any]], JobExecutionResult]:
        job = start_in_foreground(lambda: self._started(sinks, job_name))
        result = wait_in_foreground(job.handle)
        return job.records, result

    def _started(self, sinks: tuple[DataSetCore, ...], job_name: str | None) -> DataSetJob:
        """Start a job. Its plan is that of this moment."""
        plan, run = self.plan(sinks), self._settings(job_name)
        checkpoints = CheckpointConfig(self._configuration)
        settings = for_batch(job_settings(self._configuration, run.job_name, checkpoints, self._restart))
        job = DataSetJob(
            plan,
            run,
            numbered(settings, may_repeat=True),
            runner=runner(plan, run),
            cancel=cancel_plan,
            engine=engine_description(run) if runs_on_spark() else "this process",
            on_spark=runs_on_spark(),
            at_result=self._take_result,
        )
        job.start()
        return job

    def _take_result(self, result: JobExecutionResult) -> None:
        self._last_result = result

    def _parallelism(self) -> int:
        set_one = self.get_parallelism()
        return parallelism_of_runner(self._settings(None)) if set_one == PARALLELISM_DEFAULT else set_one

    def _settings(self, job_name: str | None) -> RunSettings:
        return RunSettings(
            chosen_job_name(job_name, self._configuration, DEFAULT_JOB_NAME),
            self._configuration.to_dict(),
            dict(options.GLOBAL_JOB_PARAMETERS.read(self._configuration)),
            tuple(self._cached_files.values()),
            self._spark_session,
            self._restart,
        )

    def __repr__(self) -> str:
        return f"ExecutionEnvironment({len(self._sinks.pending())} sinks to run)"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an environment cannot be used inside a function: pass settings as arguments, or as global job parameters"
        )


def drawn_plan(sinks: tuple[DataSetCore, ...], parallelism: int) -> Plan:
    """Return the operators that the sinks need. A data set that is read twice is one operator.

    Args:
        sinks: The data sets where the plan ends.
        parallelism: The parallelism of operators that have none of their own.
    """
    made: dict[DataSetCore, PlanOperator] = {}
    for sink in sinks:
        for each in _inputs_first(sink, made):
            made[each] = _operator(each, made, parallelism)
    return Plan(tuple([made[sink] for sink in sinks]))


def _inputs_first(sink: DataSetCore, made: dict[DataSetCore, PlanOperator]) -> Iterator[DataSetCore]:
    """Yield a data set and what it needs, inputs first, leaving out what is made already."""
    pending = [sink]
    while pending:  # no recursion, because a program may be deeper than Python recurses
        each = pending[-1]
        missing = [needed for needed in each.upstream() if needed not in made]
        if missing:
            pending += missing
            continue
        pending.pop()
        if each not in made:
            yield each


def _operator(data_set: DataSetCore, made: dict[DataSetCore, PlanOperator], parallelism: int) -> PlanOperator:
    own = data_set.get_parallelism()
    if isinstance(data_set, IterationResult):
        spec, inputs = data_set.drawn(made)
    else:
        spec, inputs = data_set.spec, tuple([made[each] for each in data_set.inputs])
    return PlanOperator(
        name=data_set.get_name(),
        spec=spec,
        inputs=inputs,
        parallelism=parallelism if own == -1 else own,
        type_info=data_set.get_type(),
        declares_type=data_set.declares_type,
        parameters=data_set.parameters,
        broadcasts={name: made[each] for name, each in data_set.broadcasts.items()},
        forwarded=data_set.copied_fields(),
        call_site=data_set.site,
    )


class DrawnSinks:
    """The sinks in the order in which the program drew them."""

    def __init__(self) -> None:
        self._sinks: list[DataSetCore] = []

    def add(self, sink: DataSetCore) -> None:
        """Add a sink; refuse one whose file or directory another sink writes."""
        target = _file_target(sink)
        for other in self._sinks if target is not None else ():
            if _file_target(other) == target:
                raise InvalidProgramError(
                    f"{sink.get_name()} writes to the same path as {other.get_name()}, and one would replace the "
                    "other; write to another path, or write the union() of the two data sets"
                )
        self._sinks.append(sink)

    def pending(self) -> list[DataSetCore]:
        """Return the sinks that no `execute` has run yet."""
        return list(self._sinks)

    def take(self) -> tuple[DataSetCore, ...]:
        """Return the sinks, and forget them."""
        taken, self._sinks = tuple(self._sinks), []
        return taken


def _file_target(sink: DataSetCore) -> tuple[str, str] | None:
    """Return the directory and name that a sink writes to; None if it does not write files."""
    output = sink.spec.output if isinstance(sink.spec, OutputSpec) else None
    return split_last(output.address) if isinstance(output, FileOutput) else None


_PLAIN = {str: Types.STRING, int: Types.LONG, float: Types.DOUBLE, bool: Types.BOOLEAN}


def type_of_all(values: Sequence[Any]) -> TypeInformation | None:
    """Return the type of some values: of tuples of one length, or of plain values of one class; None if they differ.

    >>> type_of_all([(1, "a"), (2, "b")])
    TupleTypeInfo(Long, String)
    """
    kinds = set(map(type, values))
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind in _PLAIN:
        return _PLAIN[kind]()
    if kind is not tuple or len({len(value) for value in values}) != 1 or not values[0]:
        return None
    unknown = Types.PICKLED_BYTE_ARRAY()
    return TupleTypeInfo([type_of_all(column) or unknown for column in zip(*values, strict=True)])


class CollectionInput:
    """The elements of a collection, as they were when the program gave them."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._values = list(values)

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[PickledSplit]:
        """Return one slice for each subtask."""
        values = self._values
        bounds = [len(values) * number // parallelism for number in range(parallelism + 1)]
        return [PickledSplit(dumps(values[low:high])) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class PickledSplit:
    """Some records, pickled."""

    records: bytes

    def read(self) -> Iterator[Any]:
        """Return the records."""
        return iter(pickle.loads(self.records))


@dataclass(frozen=True)
class SequenceInput:
    """The integers from `first` to `last`, both included."""

    first: int
    last: int

    def splits(self, parallelism: int, parameters: Mapping[str, str]) -> Sequence[RangeSplit]:
        """Return one range for each subtask."""
        count = max(self.last - self.first + 1, 0)
        bounds = [self.first + count * number // parallelism for number in range(parallelism + 1)]
        return [RangeSplit(range(low, high)) for low, high in pairwise(bounds)]


@dataclass(frozen=True)
class RangeSplit:
    """Some integers."""

    numbers: range

    def read(self) -> Iterator[int]:
        """Return the integers."""
        return iter(self.numbers)
