"""`JobSettings`: everything a job is submitted with beside its graph, parsed, checked and frozen.

An environment reads one `JobSettings` from its configuration when `execute` is called. The driver, the engine and
the slots use this object; they read no keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.configuration import Configuration
from ekorn.config.job_id import JobID
from ekorn.config.python_dependencies import PythonDependencies, python_dependencies
from ekorn.config.restart_strategy import (
    NoRestartStrategyConfiguration,
    RestartStrategyConfiguration,
    resolve,
)
from ekorn.config.rocksdb_options import require_rocksdict, rocksdb_settings
from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.config.settings.elasticity_settings import ElasticitySettings, elasticity_settings
from ekorn.config.settings.link_settings import LinkSettings, link_settings
from ekorn.config.settings.metric_settings import LatencySettings, latency_settings
from ekorn.config.settings.queryable_settings import QueryableSettings, queryable_settings
from ekorn.config.settings.reporter_settings import ReporterSettings, reporter_settings
from ekorn.config.settings.rocksdb_settings import RocksDBSettings
from ekorn.config.settings.web_settings import WebSettings, web_settings
from ekorn.config.unread_keys import refuse_unread_keys
from ekorn.errors import ConfigurationError

__all__ = ["JobSettings", "buffer_timeout_ms", "for_batch", "job_settings", "state_backend_name"]


@dataclass(frozen=True)
class JobSettings:
    """The settings of one job."""

    job_name: str
    job_id: JobID = field(default_factory=JobID.generate)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    restart: RestartStrategyConfiguration = field(
        default_factory=lambda: NoRestartStrategyConfiguration(is_default=True)
    )
    restore_path: str | None = None
    resume: bool = False  # continue the job of the same name that has the newest checkpoint
    allow_non_restored_state: bool = False
    claim_mode: Literal["NO_CLAIM", "CLAIM", "LEGACY"] = "NO_CLAIM"
    state_backend: Literal["hashmap", "rocksdb"] = "hashmap"
    rocksdb: RocksDBSettings | None = None
    savepoint_directory: str | None = None
    data_frames_directory: str | None = None  # where rows of DataFrames wait between Spark and the slots
    python: PythonDependencies = field(default_factory=PythonDependencies)
    links: LinkSettings = field(default_factory=LinkSettings)
    queryable: QueryableSettings = field(default_factory=QueryableSettings)
    latency: LatencySettings = field(default_factory=LatencySettings)
    elasticity: ElasticitySettings = field(default_factory=ElasticitySettings)
    parallelism: int = 1  # of operators whose parallelism the program does not set
    heartbeat_interval_ms: int = 10_000
    heartbeat_timeout_ms: int = 50_000
    epoch_stall_timeout_ms: int = 60_000
    execution: Literal["epochs", "continuous", "auto"] = "epochs"
    buffer_timeout_ms: int = 100  # -1: output waits until a blob is full
    epoch_source_bytes: int = 64 << 20  # how much a source subtask may read in one epoch
    epoch_target_ms: int = 2_000  # how long an epoch may take under backlog; its fixed cost on Spark is some 150 ms
    epoch_latency_target_ms: int = 500  # and in a job that processes few records a second
    collect_buffer_bytes: int = 64 << 20  # how much of what is collected waits in the driver's memory
    parallelism_set: bool = False  # whether the program or the configuration says how many subtasks operators have
    progress: Literal["auto", "off"] = "auto"  # whether the job is shown on standard error, if a person reads it
    control: bool | None = None  # whether `ekorn list`, `stop` and `cancel` reach the job; None: only on Spark
    only_check_restore: bool = False  # the program ends before the job starts
    only_continue: bool = False  # a job without a checkpoint to start from fails
    most_slots: int | None = None  # a job that needs more does not start
    executions: str | None = None  # `one` or `many` jobs of a program that a service runs; None without a service
    leader: str | None = None  # `cluster:term` of the leader among services that started the driver
    web: WebSettings = field(default_factory=WebSettings)
    reporters: tuple[ReporterSettings, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)  # every key; the Spark engine uses spark.*
    spark_session: Any = None  # the session that the program names; None: the running one, or a new one
    # Draws the job graph again at another parallelism; None: the job cannot be rescaled while it runs.
    graph_at: Callable[[int], Any] | None = field(default=None, compare=False, repr=False)


def job_settings(
    configuration: Configuration,
    job_name: str,
    checkpoints: CheckpointConfig,
    restart_wish: RestartStrategyConfiguration | None,
) -> JobSettings:
    """Read the settings of a job from the configuration of its environment.

    Args:
        configuration: The keys and values of the environment.
        job_name: The name of the job.
        checkpoints: The checkpoint settings, including the few that have no key.
        restart_wish: The restart strategy that the program set, or None to leave it to the configuration.

    Raises:
        ConfigurationError: A key is not known, a value cannot be read, or two values contradict each other.
    """
    refuse_unread_keys(configuration)
    checkpoint_settings = checkpoints.to_settings()
    only_check_restore = options.ONLY_CHECK_RESTORE.read(configuration)
    web, reporters = web_settings(configuration), reporter_settings(configuration)
    if only_check_restore:  # the running job, for whose sake the check is made, has the ports
        web, reporters = replace(web, port=None, socket=None), ()
    return JobSettings(
        job_name=job_name,
        job_id=_job_id(configuration),
        checkpoints=checkpoint_settings,
        restart=resolve(restart_wish, configuration, checkpointing=checkpoint_settings.enabled),
        restore_path=options.RESTORE_PATH.read(configuration),
        resume=options.RESUME.read(configuration),
        allow_non_restored_state=options.RESTORE_IGNORE_UNCLAIMED.read(configuration),
        claim_mode=options.RESTORE_CLAIM_MODE.read(configuration),
        state_backend=state_backend_name(configuration),
        rocksdb=_rocksdb(configuration),
        savepoint_directory=options.SAVEPOINT_DIR.read(configuration),
        data_frames_directory=options.DATA_FRAMES_DIR.read(configuration),
        python=python_dependencies(configuration),
        parallelism_set=options.PARALLELISM.find(configuration) is not None,
        progress=options.PROGRESS.read(configuration),
        control=options.CONTROL.read(configuration),
        only_check_restore=only_check_restore,
        only_continue=options.ONLY_CONTINUE.read(configuration),
        most_slots=options.MOST_SLOTS.read(configuration),
        executions=options.EXECUTIONS.read(configuration),
        leader=options.LEADER.read(configuration),
        web=web,
        reporters=reporters,
        links=link_settings(configuration),
        queryable=queryable_settings(configuration),
        latency=latency_settings(configuration),
        elasticity=elasticity_settings(configuration),
        parallelism=options.PARALLELISM.read(configuration),
        heartbeat_interval_ms=options.HEARTBEAT_INTERVAL.read(configuration),
        heartbeat_timeout_ms=heartbeat_timeout_ms(configuration),
        epoch_stall_timeout_ms=options.EPOCH_STALL_TIMEOUT.read(configuration),
        execution=options.EXECUTION.read(configuration),
        buffer_timeout_ms=buffer_timeout_ms(configuration),
        epoch_target_ms=options.EPOCH_TARGET.read(configuration),
        epoch_latency_target_ms=options.EPOCH_LATENCY_TARGET.read(configuration),
        collect_buffer_bytes=options.COLLECT_BUFFER.read(configuration),
        epoch_source_bytes=options.EPOCH_SOURCE_BYTES.read(configuration),
        configuration=configuration.to_dict(),
    )


def for_batch(settings: JobSettings) -> JobSettings:
    """Return the settings of a job in BATCH mode, which takes no checkpoints and restarts from the beginning.

    Raises:
        ConfigurationError: The job was to start from a checkpoint or savepoint.
    """
    if settings.restore_path is not None:
        raise ConfigurationError(
            f"job {settings.job_name!r} runs in BATCH mode, which has no checkpoints, and cannot start from "
            f"{settings.restore_path!r}; use RuntimeExecutionMode.STREAMING"
        )
    return replace(settings, checkpoints=replace(settings.checkpoints, interval_ms=None))


# Flink: 1.x named a backend after the place of its checkpoints. The working state of all three is on the heap.
_HEAP_NAMES = frozenset({"hashmap", "jobmanager", "memory", "filesystem", "fs"})


def state_backend_name(configuration: Configuration) -> Literal["hashmap", "rocksdb"]:
    """Return the name of the backend that keeps the working state."""
    given = options.STATE_BACKEND.read(configuration)
    name = given.strip().lower()
    if name in _HEAP_NAMES:
        return "hashmap"
    if name == "rocksdb":
        return "rocksdb"
    raise ConfigurationError(f"{options.STATE_BACKEND.key} is {given!r}; there are 'hashmap' and 'rocksdb'")


def buffer_timeout_ms(configuration: Configuration) -> int:
    """Return how long output may wait to be sent together with more, or -1 if it waits until a blob is full."""
    if not options.BUFFER_TIMEOUT_ENABLED.read(configuration):
        return -1
    return options.BUFFER_TIMEOUT.read(configuration)


def _rocksdb(configuration: Configuration) -> RocksDBSettings | None:
    if state_backend_name(configuration) != "rocksdb":
        return None
    require_rocksdict()
    return rocksdb_settings(configuration)


def _job_id(configuration: Configuration) -> JobID:
    given = options.JOB_ID.read(configuration)
    if given is None:
        return JobID.generate()
    try:
        return JobID(given)
    except ValueError as error:
        raise ConfigurationError(f"cannot read the value of {options.JOB_ID.key!r}: {error}") from None


def heartbeat_timeout_ms(configuration: Configuration) -> int:
    """Return how long a slot may be silent.

    Raises:
        ConfigurationError: It is not longer than the time between two heartbeats.
    """
    interval = options.HEARTBEAT_INTERVAL.read(configuration)
    timeout = options.HEARTBEAT_TIMEOUT.read(configuration)
    if not 0 < interval < timeout:
        raise ConfigurationError(
            f"{options.HEARTBEAT_INTERVAL.key} ({interval} ms) must be above 0 and below "
            f"{options.HEARTBEAT_TIMEOUT.key} ({timeout} ms)"
        )
    return timeout
