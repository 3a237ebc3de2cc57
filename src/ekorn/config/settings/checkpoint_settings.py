"""`CheckpointSettings`: the checkpoint settings of one job, read from the configuration, checked and frozen."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Literal

from ekorn.config import options
from ekorn.config.checkpoint_storage import checkpoint_uri
from ekorn.config.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = [
    "KEEP_ALL_FAILURES",
    "MINIMAL_CHECKPOINT_TIME_MS",
    "CheckpointSettings",
    "LocalCopySettings",
    "checkpoint_settings",
    "storage_name",
]

log = logging.getLogger(__name__)

KEEP_ALL_FAILURES = 2**31 - 1  # as a number of tolerable checkpoint failures: never fail the job
MINIMAL_CHECKPOINT_TIME_MS = 10
_ONE_YEAR_MS = 365 * 24 * 60 * 60 * 1000


@dataclass(frozen=True)
class LocalCopySettings:
    """Whether slots write local copies of state files, whether they read them, and in which directories.

    Without a directory the copies lie in the directory for temporary files.
    """

    write: bool = False
    read: bool = False
    directories: tuple[str, ...] = ()


@dataclass(frozen=True)
class CheckpointSettings:
    """When a job takes checkpoints, where it stores them and when it deletes them."""

    interval_ms: int | None = None  # None: no periodic checkpoints
    mode: CheckpointingMode = CheckpointingMode.EXACTLY_ONCE
    backlog_interval_ms: int | None = None  # while sources have a backlog; 0: no checkpoints during a backlog
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
    aligned_timeout_ms: int = 0  # where checkpoints are unaligned: how long they are aligned before
    after_tasks_finish: bool = True
    compression: bool = False
    prefer_checkpoint_for_recovery: bool = False
    ignored_in_flight_checkpoint_id: int | None = None
    owner_lease_ms: int = 30_000
    signing_key_file: str | None = None

    @property
    def enabled(self) -> bool:
        """Whether periodic checkpoints are taken."""
        return self.interval_ms is not None


def checkpoint_settings(
    configuration: Configuration,
    *,
    max_state_bytes: int,
    ignored_in_flight_checkpoint_id: int | None = None,
) -> CheckpointSettings:
    """Read the checkpoint settings of a job. The settings that have no key are arguments.

    Raises:
        ConfigurationError: A value is out of range, or contradicts another one.
    """
    interval = options.CHECKPOINT_INTERVAL.read(configuration) or None
    timeout = options.CHECKPOINT_TIMEOUT.read(configuration)
    for option, value in ((options.CHECKPOINT_INTERVAL, interval), (options.CHECKPOINT_TIMEOUT, timeout)):
        if value is not None and value < MINIMAL_CHECKPOINT_TIME_MS:
            raise ConfigurationError(f"{option.key} must be at least {MINIMAL_CHECKPOINT_TIME_MS} ms, got {value} ms")
    min_pause = min(options.CHECKPOINT_MIN_PAUSE.read(configuration), _ONE_YEAR_MS)
    inline_threshold = options.CHECKPOINT_INLINE_THRESHOLD.read(configuration)
    changelog = bool(options.CHANGELOG_ENABLED.read(configuration))
    settings = CheckpointSettings(
        interval_ms=None if interval is None else max(interval, min_pause),
        backlog_interval_ms=_backlog_interval(configuration, interval, min_pause),
        mode=CheckpointingMode[options.CHECKPOINT_MODE.read(configuration)],
        timeout_ms=timeout,
        min_pause_ms=min_pause,
        max_concurrent=1 if min_pause > 0 else options.CHECKPOINT_MAX_CONCURRENT.read(configuration),
        tolerable_failures=max(0, options.CHECKPOINT_TOLERABLE_FAILURES.read(configuration)),
        retention=ExternalizedCheckpointRetention[options.CHECKPOINT_RETENTION.read(configuration)],
        create_subdir=options.CHECKPOINT_CREATE_SUBDIR.read(configuration),
        max_state_bytes=max_state_bytes,
        num_retained=_num_retained(configuration),
        inline_threshold_bytes=inline_threshold,
        write_buffer_bytes=max(options.CHECKPOINT_WRITE_BUFFER.read(configuration), inline_threshold),
        incremental=changelog or options.CHECKPOINT_INCREMENTAL.read(configuration),
        asynchronous=options.STATE_BACKEND_ASYNC.read(configuration),
        local_copies=_local_copies(configuration),
        unaligned=_unaligned(configuration),
        aligned_timeout_ms=options.CHECKPOINT_ALIGNED_TIMEOUT.read(configuration),
        after_tasks_finish=options.CHECKPOINT_AFTER_TASKS_FINISH.read(configuration),
        compression=options.SNAPSHOT_COMPRESSION.read(configuration),
        prefer_checkpoint_for_recovery=options.PREFER_CHECKPOINT_FOR_RECOVERY.read(configuration),
        ignored_in_flight_checkpoint_id=ignored_in_flight_checkpoint_id,
        owner_lease_ms=options.OWNER_LEASE.read(configuration),
        signing_key_file=options.SIGNING_KEY_FILE.read(configuration),
    )
    return _with_place(configuration, settings)


def storage_name(configuration: Configuration) -> str:
    """Return the checkpoint storage: `jobmanager` or `filesystem`."""
    named = options.CHECKPOINT_STORAGE.read(configuration)
    if named is None:
        # Flink: in 1.x the name of a state backend also chose the storage of its checkpoints.
        old = {"jobmanager": "jobmanager", "memory": "jobmanager", "filesystem": "filesystem", "fs": "filesystem"}
        backend = options.STATE_BACKEND.read(configuration).strip().lower()
        return old.get(backend, "jobmanager" if options.CHECKPOINT_DIR.read(configuration) is None else "filesystem")
    if named.strip().lower() not in ("jobmanager", "filesystem"):
        raise ConfigurationError(
            f"{options.CHECKPOINT_STORAGE.key} must be 'jobmanager' or 'filesystem', got {named!r}"
        )
    return named.strip().lower()


def _backlog_interval(configuration: Configuration, interval: int | None, min_pause: int) -> int | None:
    given = options.CHECKPOINT_INTERVAL_DURING_BACKLOG.read(configuration)
    if given and interval is not None and given < interval:
        raise ConfigurationError(
            f"{options.CHECKPOINT_INTERVAL_DURING_BACKLOG.key} is {given} ms; it must be 0, for no checkpoints "
            f"during a backlog, or at least {options.CHECKPOINT_INTERVAL.key}, {interval} ms"
        )
    # A pause longer than both intervals replaces them.
    return given if not given or interval is None else max(given, min_pause)


def _local_copies(configuration: Configuration) -> LocalCopySettings:
    return LocalCopySettings(
        write=options.LOCAL_BACKUP.read(configuration),
        read=options.RECOVER_FROM_LOCAL.read(configuration),
        directories=tuple(options.LOCAL_BACKUP_DIRS.read(configuration)),
    )


def _unaligned(configuration: Configuration) -> bool:
    if not options.CHECKPOINT_UNALIGNED.read(configuration):
        return False
    if options.CHECKPOINT_MODE.read(configuration) != CheckpointingMode.EXACTLY_ONCE.name:
        log.warning("unaligned checkpoints are disabled: they need the mode EXACTLY_ONCE")
        return False
    concurrent = options.CHECKPOINT_MAX_CONCURRENT.read(configuration)
    if concurrent > 1:
        raise ConfigurationError(
            f"unaligned checkpoints need {options.CHECKPOINT_MAX_CONCURRENT.key} to be 1, got {concurrent}"
        )
    return True


def _num_retained(configuration: Configuration) -> int:
    given = options.CHECKPOINT_NUM_RETAINED.read(configuration)
    if given < 1:
        log.warning("%s is %d; one checkpoint is retained", options.CHECKPOINT_NUM_RETAINED.key, given)
    return max(1, given)


def _with_place(configuration: Configuration, settings: CheckpointSettings) -> CheckpointSettings:
    directory = options.CHECKPOINT_DIR.read(configuration)
    if directory is not None:
        directory = checkpoint_uri(directory)
    if storage_name(configuration) == "jobmanager":
        return replace(settings, storage="jobmanager", directory=directory)
    if directory is None:
        raise ConfigurationError(
            f"checkpoints are to be stored as files, but no directory is set; "
            f"set {options.CHECKPOINT_DIR.key}, or call set_checkpoint_storage_dir(...)"
        )
    return replace(settings, storage="filesystem", directory=directory)
