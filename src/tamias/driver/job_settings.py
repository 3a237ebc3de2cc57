"""What a job is submitted with, beside its graph: parsed, checked and frozen.

The environment makes one from its configuration when `execute` is called; nothing deeper reads keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from tamias.config.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.config.python_dependencies import PythonDependencies
from tamias.config.restart_strategy import NoRestartStrategyConfiguration, RestartStrategyConfiguration
from tamias.errors import ConfigurationError
from tamias.functions.job_id import JobID
from tamias.slot.local_copies import LocalCopySettings
from tamias.state.rocksdb.settings import RocksDBSettings

KEEP_ALL_FAILURES = 2**31 - 1  # as a number of tolerable checkpoint failures: never fail the job


@dataclass(frozen=True)
class CheckpointSettings:
    """When checkpoints are taken, where they go and what becomes of them."""

    interval_ms: int | None = None  # None: off
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    backlog_interval_ms: int | None = None  # while sources have a backlog; 0: none then
    timeout_ms: int = 600_000
    min_pause_ms: int = 0
    max_concurrent: int = 1
    tolerable_failures: int = 0
    retention: ExternalizedCheckpointRetention = ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
    storage: Literal["jobmanager", "filesystem"] = "jobmanager"
    directory: str | None = None
    create_subdir: bool = True
    max_state_bytes: int = 5 * 1024 * 1024  # of a single state, with storage "jobmanager"
    num_retained: int = 1
    inline_threshold_bytes: int = 20 * 1024
    write_buffer_bytes: int = 20 * 1024
    incremental: bool = False
    asynchronous: bool = True
    local_copies: LocalCopySettings = field(default_factory=LocalCopySettings)
    unaligned: bool = False
    after_tasks_finish: bool = True
    compression: bool = False
    forced: bool = False  # although the job has iterations
    prefer_checkpoint_for_recovery: bool = False
    ignored_in_flight_checkpoint_id: int | None = None
    owner_lease_ms: int = 30_000

    @property
    def enabled(self) -> bool:
        """Whether checkpoints are taken."""
        return self.interval_ms is not None


@dataclass(frozen=True)
class JobSettings:
    """A job's settings."""

    job_name: str
    job_id: JobID = field(default_factory=JobID.generate)
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    restart: RestartStrategyConfiguration = field(default_factory=NoRestartStrategyConfiguration)
    failover: Literal["region", "full"] = "region"  # what starts anew after a failure
    restore_path: str | None = None
    allow_non_restored_state: bool = False
    claim_mode: Literal["NO_CLAIM", "CLAIM", "LEGACY"] = "NO_CLAIM"
    state_backend: Literal["hashmap", "rocksdb"] = "hashmap"
    rocksdb: RocksDBSettings | None = None
    savepoint_directory: str | None = None
    python: PythonDependencies = field(default_factory=PythonDependencies)
    heartbeat_interval_ms: int = 10_000
    heartbeat_timeout_ms: int = 50_000
    buffer_timeout_ms: int = 100  # -1: until enough is there
    control: bool | None = None  # whether other processes may ask the job something; None: if it runs on Spark
    configuration: Mapping[str, str] = field(default_factory=dict)  # all keys: spark.*, tamias.* and the rest
    collect: bool = False


def for_batch(settings: JobSettings) -> JobSettings:
    """The settings of a job in BATCH mode: it takes no checkpoints, and after a failure begins anew.

    Raises:
        ConfigurationError: It was to start from a checkpoint.
    """
    if settings.restore_path is not None:
        raise ConfigurationError(
            f"job {settings.job_name!r} runs in BATCH mode, which has no checkpoints, and cannot start from "
            f"{settings.restore_path!r}; use RuntimeExecutionMode.STREAMING"
        )
    return replace(settings, checkpoints=replace(settings.checkpoints, interval_ms=None))
