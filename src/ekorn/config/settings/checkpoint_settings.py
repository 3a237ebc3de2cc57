"""`CheckpointSettings`: the checkpoint settings of one job, read from the configuration, checked and frozen."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, Literal

from ekorn.config import options
from ekorn.config.checkpoint_storage import JobManagerCheckpointStorage, checkpoint_uri
from ekorn.config.choices import CheckpointingMode, ExternalizedCheckpointRetention
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.settings.fields import filled_by, fillings, part
from ekorn.errors import ConfigurationError

__all__ = [
    "KEEP_ALL_FAILURES",
    "MINIMAL_CHECKPOINT_TIME_MS",
    "CheckpointSettings",
    "LocalCopySettings",
    "checked_concurrency",
    "storage_name",
]

log = logging.getLogger(__name__)

KEEP_ALL_FAILURES = 2**31 - 1  # as a number of tolerable checkpoint failures: never fail the job
MINIMAL_CHECKPOINT_TIME_MS = 10
_ONE_YEAR_MS = 365 * 24 * 60 * 60 * 1000

Storage = Literal["jobmanager", "filesystem"]


# ------------------------------------------------------------------------------- the values of fields, and their checks


def _pause(given: int) -> int:
    return min(given, _ONE_YEAR_MS)


def _interval(given: int | None, min_pause: int) -> int | None:
    """Return the interval of periodic checkpoints, which a longer pause between checkpoints replaces."""
    if not given:
        return None
    _check_length(options.CHECKPOINT_INTERVAL, given)
    return max(given, _pause(min_pause))


def _backlog_interval(given: int | None, interval: int | None, min_pause: int) -> int | None:
    if given and interval and given < interval:
        raise ConfigurationError(
            f"{options.CHECKPOINT_INTERVAL_DURING_BACKLOG.key} is {given} ms; it must be 0 (no checkpoints during "
            f"a backlog), or at least {options.CHECKPOINT_INTERVAL.key}, {interval} ms"
        )
    return max(given, _pause(min_pause)) if given and interval else given


def _timeout(given: int) -> int:
    _check_length(options.CHECKPOINT_TIMEOUT, given)
    return given


def _check_length(option: ConfigOption[Any], given: int) -> None:
    if given < MINIMAL_CHECKPOINT_TIME_MS:
        raise ConfigurationError(f"{option.key} must be at least {MINIMAL_CHECKPOINT_TIME_MS} ms, got {given} ms")


def checked_concurrency(given: int, min_pause: int) -> int:
    """Return the largest number of checkpoints in flight.

    Raises:
        ConfigurationError: It is above 1, and there is a minimum pause between checkpoints.
    """
    # Flink: the documents exclude the combination, and the coordinator then allows one checkpoint, without a word.
    if given > 1 and min_pause > 0:
        raise ConfigurationError(
            f"{options.CHECKPOINT_MAX_CONCURRENT.key} is {given} and {options.CHECKPOINT_MIN_PAUSE.key} is {min_pause} "
            "ms: a pause between checkpoints leaves one checkpoint at a time; set one of the two only"
        )
    return given


def _storage(named: str | None, backend: str, directory: str | None) -> Storage:
    if named is None:
        # Flink: in 1.x the name of a state backend also chose the storage of its checkpoints.
        old: dict[str, Storage] = {
            "jobmanager": "jobmanager",
            "memory": "jobmanager",
            "filesystem": "filesystem",
            "fs": "filesystem",
        }
        return old.get(backend.strip().lower(), "jobmanager" if directory is None else "filesystem")
    match named.strip().lower():
        case "jobmanager":
            return "jobmanager"
        case "filesystem":
            return "filesystem"
    raise ConfigurationError(f"{options.CHECKPOINT_STORAGE.key} must be 'jobmanager' or 'filesystem', got {named!r}")


def _unaligned(given: bool, mode: str, max_concurrent: int) -> bool:
    if not given:
        return False
    if mode != CheckpointingMode.EXACTLY_ONCE.name:
        log.warning("unaligned checkpoints are disabled: they need the mode EXACTLY_ONCE")
        return False
    if max_concurrent > 1:
        raise ConfigurationError(
            f"unaligned checkpoints need {options.CHECKPOINT_MAX_CONCURRENT.key} to be 1, got {max_concurrent}"
        )
    return True


def _num_retained(given: int) -> int:
    if given < 1:
        log.warning("%s is %d; one checkpoint is retained", options.CHECKPOINT_NUM_RETAINED.key, given)
    return max(1, given)


# --------------------------------------------------------------------------------------------------------- the settings


@dataclass(frozen=True)
class LocalCopySettings:
    """Whether slots write local copies of state files, whether they read them, and in which directories.

    Without a directory the copies lie in the directory for temporary files.
    """

    write: bool = filled_by(options.LOCAL_BACKUP)
    read: bool = filled_by(options.RECOVER_FROM_LOCAL)
    directories: tuple[str, ...] = filled_by(options.LOCAL_BACKUP_DIRS, by=tuple)


@dataclass(frozen=True)
class CheckpointSettings:
    """When a job takes checkpoints, where it stores them and when it deletes them.

    Raises:
        ConfigurationError: Checkpoints are to be stored as files, and no directory is set.
    """

    interval_ms: int | None = filled_by(  # None: no periodic checkpoints
        options.CHECKPOINT_INTERVAL, options.CHECKPOINT_MIN_PAUSE, by=_interval
    )
    mode: CheckpointingMode = filled_by(options.CHECKPOINT_MODE, by=lambda name: CheckpointingMode[name])
    backlog_interval_ms: int | None = filled_by(  # while sources have a backlog; 0: no checkpoints during a backlog
        options.CHECKPOINT_INTERVAL_DURING_BACKLOG,
        options.CHECKPOINT_INTERVAL,
        options.CHECKPOINT_MIN_PAUSE,
        by=_backlog_interval,
    )
    timeout_ms: int = filled_by(options.CHECKPOINT_TIMEOUT, by=_timeout)
    min_pause_ms: int = filled_by(options.CHECKPOINT_MIN_PAUSE, by=_pause)
    max_concurrent: int = filled_by(
        options.CHECKPOINT_MAX_CONCURRENT, options.CHECKPOINT_MIN_PAUSE, by=checked_concurrency
    )
    tolerable_failures: int = filled_by(options.CHECKPOINT_TOLERABLE_FAILURES, by=lambda given: max(0, given))
    retention: ExternalizedCheckpointRetention = filled_by(
        options.CHECKPOINT_RETENTION, by=lambda name: ExternalizedCheckpointRetention[name]
    )
    storage: Storage = filled_by(options.CHECKPOINT_STORAGE, options.STATE_BACKEND, options.CHECKPOINT_DIR, by=_storage)
    directory: str | None = filled_by(
        options.CHECKPOINT_DIR, by=lambda given: None if given is None else checkpoint_uri(given)
    )
    create_subdir: bool = filled_by(options.CHECKPOINT_CREATE_SUBDIR)
    max_state_bytes: int = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE  # of a state, with storage "jobmanager"
    acknowledged_bytes: int = filled_by(options.FRAME_SIZE)  # at most, from one subtask, with storage "jobmanager"
    num_retained: int = filled_by(options.CHECKPOINT_NUM_RETAINED, by=_num_retained)
    inline_threshold_bytes: int = filled_by(options.CHECKPOINT_INLINE_THRESHOLD)
    write_buffer_bytes: int = filled_by(options.CHECKPOINT_WRITE_BUFFER, options.CHECKPOINT_INLINE_THRESHOLD, by=max)
    incremental: bool = filled_by(
        options.CHECKPOINT_INCREMENTAL, options.CHANGELOG_ENABLED, by=lambda given, logged: given or bool(logged)
    )
    asynchronous: bool = filled_by(options.STATE_BACKEND_ASYNC)
    local_copies: LocalCopySettings = part(LocalCopySettings)
    unaligned: bool = filled_by(
        options.CHECKPOINT_UNALIGNED, options.CHECKPOINT_MODE, options.CHECKPOINT_MAX_CONCURRENT, by=_unaligned
    )
    aligned_timeout_ms: int = filled_by(options.CHECKPOINT_ALIGNED_TIMEOUT)  # then unaligned checkpoints overtake
    after_tasks_finish: bool = filled_by(options.CHECKPOINT_AFTER_TASKS_FINISH)
    compression: bool = filled_by(options.SNAPSHOT_COMPRESSION)
    prefer_checkpoint_for_recovery: bool = filled_by(options.PREFER_CHECKPOINT_FOR_RECOVERY)
    ignored_in_flight_checkpoint_id: int | None = None
    owner_lease_ms: int = filled_by(options.OWNER_LEASE)
    signing_key_file: str | None = filled_by(options.SIGNING_KEY_FILE)

    def __post_init__(self) -> None:
        if self.storage == "filesystem" and self.directory is None:
            raise ConfigurationError(
                f"checkpoints are stored as files, but no directory is set; "
                f"set {options.CHECKPOINT_DIR.key}, or call set_checkpoint_storage_dir(...)"
            )

    @property
    def enabled(self) -> bool:
        """Whether periodic checkpoints are taken."""
        return self.interval_ms is not None


def storage_name(configuration: Configuration) -> str:
    """Return the checkpoint storage: `jobmanager` or `filesystem`."""
    name: str = fillings(CheckpointSettings)["storage"].read(configuration)
    return name
