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
from ekorn.config.restart_strategy import (
    NoRestartStrategyConfiguration,
    RestartStrategyConfiguration,
    resolve,
)
from ekorn.config.settings.checkpoint_settings import CheckpointSettings
from ekorn.config.settings.deployment_settings import LinkSettings, PythonDependencies, QueryableSettings
from ekorn.config.settings.elasticity_settings import ElasticitySettings, elasticity_settings
from ekorn.config.settings.fields import filled_by, fillings, part, read_settings
from ekorn.config.settings.metric_settings import LatencySettings, ReporterSettings, reporter_settings
from ekorn.config.settings.rocksdb_settings import RocksDBSettings, require_rocksdict, rocksdb_settings
from ekorn.config.settings.web_settings import WebSettings, web_settings
from ekorn.config.unread_keys import refuse_unread_keys
from ekorn.errors import ConfigurationError

__all__ = ["JobSettings", "buffer_timeout_ms", "check_heartbeat", "for_batch", "job_settings", "state_backend_name"]


# Flink: 1.x named a backend after the place of its checkpoints. The working state of all three is on the heap.
_HEAP_NAMES = frozenset({"hashmap", "jobmanager", "memory", "filesystem", "fs"})


def _state_backend(given: str) -> Literal["hashmap", "rocksdb"]:
    name = given.strip().lower()
    if name in _HEAP_NAMES:
        return "hashmap"
    if name == "rocksdb":
        return "rocksdb"
    raise ConfigurationError(f"{options.STATE_BACKEND.key} is {given!r}; choose 'hashmap' or 'rocksdb'")


def _buffer_timeout(given: int, enabled: bool) -> int:
    return given if enabled else -1


@dataclass(frozen=True)
class JobSettings:
    """The settings of one job."""

    job_name: str
    job_id: JobID = field(default_factory=JobID.generate)
    checkpoints: CheckpointSettings = part(CheckpointSettings)
    restart: RestartStrategyConfiguration = field(
        default_factory=lambda: NoRestartStrategyConfiguration(is_default=True)
    )
    restore_path: str | None = filled_by(options.RESTORE_PATH)
    resume: bool = filled_by(options.RESUME)
    allow_non_restored_state: bool = filled_by(options.RESTORE_IGNORE_UNCLAIMED)
    claim_mode: Literal["NO_CLAIM", "CLAIM", "LEGACY"] = filled_by(options.RESTORE_CLAIM_MODE)
    state_backend: Literal["hashmap", "rocksdb"] = filled_by(options.STATE_BACKEND, by=_state_backend)
    rocksdb: RocksDBSettings | None = None
    savepoint_directory: str | None = filled_by(options.SAVEPOINT_DIR)
    data_frames_directory: str | None = filled_by(options.DATA_FRAMES_DIR)
    python: PythonDependencies = part(PythonDependencies)
    links: LinkSettings = part(LinkSettings)
    queryable: QueryableSettings = part(QueryableSettings)
    latency: LatencySettings = part(LatencySettings)
    elasticity: ElasticitySettings = part(ElasticitySettings)
    parallelism: int = filled_by(options.PARALLELISM)
    heartbeat_interval_ms: int = filled_by(options.HEARTBEAT_INTERVAL)
    heartbeat_timeout_ms: int = filled_by(options.HEARTBEAT_TIMEOUT)
    epoch_stall_timeout_ms: int = filled_by(options.EPOCH_STALL_TIMEOUT)
    execution: Literal["epochs", "continuous", "auto"] = filled_by(options.EXECUTION)
    buffer_timeout_ms: int = filled_by(  # -1: output waits until a blob is full
        options.BUFFER_TIMEOUT, options.BUFFER_TIMEOUT_ENABLED, by=_buffer_timeout
    )
    epoch_source_bytes: int = filled_by(options.EPOCH_SOURCE_BYTES)
    epoch_target_ms: int = filled_by(options.EPOCH_TARGET)
    epoch_latency_target_ms: int = filled_by(options.EPOCH_LATENCY_TARGET)
    collect_buffer_bytes: int = filled_by(options.COLLECT_BUFFER)
    parallelism_set: bool = False  # whether the program or the configuration sets the parallelism
    progress: Literal["auto", "off"] = filled_by(options.PROGRESS)
    control: bool | None = filled_by(options.CONTROL)
    only_check_restore: bool = filled_by(options.ONLY_CHECK_RESTORE)
    only_continue: bool = filled_by(options.ONLY_CONTINUE)
    most_slots: int | None = filled_by(options.MOST_SLOTS)
    executions: str | None = filled_by(options.EXECUTIONS)
    leader: str | None = filled_by(options.LEADER)  # `cluster:term`
    web: WebSettings = part(WebSettings)
    reporters: tuple[ReporterSettings, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)  # every key; the Spark engine uses spark.*
    spark_session: Any = None  # the session that the program names; None: the running one, or a new one
    # Draws the job graph again at another parallelism; None: the job cannot be rescaled while it runs.
    graph_at: Callable[[int], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_heartbeat(self.heartbeat_interval_ms, self.heartbeat_timeout_ms)


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
    settings = read_settings(
        JobSettings,
        configuration,
        job_name=job_name,
        job_id=_job_id(configuration),
        checkpoints=checkpoint_settings,
        restart=resolve(restart_wish, configuration, checkpointing=checkpoint_settings.enabled),
        rocksdb=_rocksdb(configuration),
        elasticity=elasticity_settings(configuration),
        parallelism_set=options.PARALLELISM.find(configuration) is not None,
        web=web_settings(configuration),
        reporters=reporter_settings(configuration),
        configuration=configuration.to_dict(),
    )
    if settings.only_check_restore:  # the running job, for whose sake the check is made, has the ports
        settings = replace(settings, web=replace(settings.web, port=None, socket=None), reporters=())
    return settings


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


def state_backend_name(configuration: Configuration) -> Literal["hashmap", "rocksdb"]:
    """Return the name of the backend that keeps the working state."""
    return _state_backend(options.STATE_BACKEND.read(configuration))


def buffer_timeout_ms(configuration: Configuration) -> int:
    """Return how long output may wait to be sent together with more, or -1 if it waits until a blob is full."""
    timeout_ms: int = fillings(JobSettings)["buffer_timeout_ms"].read(configuration)
    return timeout_ms


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


def check_heartbeat(interval_ms: int, timeout_ms: int) -> None:
    """Check that a slot sends at least one heartbeat before it is given up.

    Raises:
        ConfigurationError: The timeout is not longer than the interval of heartbeats.
    """
    if not 0 < interval_ms < timeout_ms:
        raise ConfigurationError(
            f"{options.HEARTBEAT_INTERVAL.key} ({interval_ms} ms) must be above 0 and below "
            f"{options.HEARTBEAT_TIMEOUT.key} ({timeout_ms} ms)"
        )
