"""From configuration keys to the checkpoint settings of a job: read, checked against each other, frozen."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TypeVar

from tamias.config import options
from tamias.config.checkpointing import CheckpointingMode, ExternalizedCheckpointRetention
from tamias.config.configuration import Configuration
from tamias.config.option import ConfigOption
from tamias.driver.job_settings import CheckpointSettings
from tamias.errors import ConfigurationError
from tamias.program.checkpoint_storage import checkpoint_uri
from tamias.slot.local_copies import LocalCopySettings

__all__ = ["CHANGELOG_ENABLED", "MINIMAL_CHECKPOINT_TIME_MS", "checkpoint_settings", "storage_name"]

log = logging.getLogger(__name__)

T = TypeVar("T")

MINIMAL_CHECKPOINT_TIME_MS = 10
_ONE_YEAR_MS = 365 * 24 * 60 * 60 * 1000
CHANGELOG_ENABLED = "state.changelog.enabled"


def checkpoint_settings(
    configuration: Configuration,
    *,
    max_state_bytes: int,
    forced: bool = False,
    ignored_in_flight_checkpoint_id: int | None = None,
) -> CheckpointSettings:
    """All settings of a job's checkpoints; those that have no key are given.

    Raises:
        ConfigurationError: A value is out of range, or contradicts another one.
    """
    interval = _get(configuration, options.CHECKPOINT_INTERVAL) or None
    timeout = _get(configuration, options.CHECKPOINT_TIMEOUT)
    for option, value in ((options.CHECKPOINT_INTERVAL, interval), (options.CHECKPOINT_TIMEOUT, timeout)):
        if value is not None and value < MINIMAL_CHECKPOINT_TIME_MS:
            raise ConfigurationError(f"{option.key} must be at least {MINIMAL_CHECKPOINT_TIME_MS} ms, got {value} ms")
    min_pause = min(_get(configuration, options.CHECKPOINT_MIN_PAUSE), _ONE_YEAR_MS)
    inline_threshold = _get(configuration, options.CHECKPOINT_INLINE_THRESHOLD)
    changelog = bool(configuration.get_boolean(CHANGELOG_ENABLED, False))
    settings = CheckpointSettings(
        interval_ms=None if interval is None else max(interval, min_pause),
        backlog_interval_ms=_backlog_interval(configuration, interval, min_pause),
        mode=CheckpointingMode[_get(configuration, options.CHECKPOINT_MODE)],
        timeout_ms=timeout,
        min_pause_ms=min_pause,
        max_concurrent=1 if min_pause > 0 else _get(configuration, options.CHECKPOINT_MAX_CONCURRENT),
        tolerable_failures=max(0, _get(configuration, options.CHECKPOINT_TOLERABLE_FAILURES)),
        retention=ExternalizedCheckpointRetention[_get(configuration, options.CHECKPOINT_RETENTION)],
        create_subdir=_get(configuration, options.CHECKPOINT_CREATE_SUBDIR),
        max_state_bytes=max_state_bytes,
        num_retained=_num_retained(configuration),
        inline_threshold_bytes=inline_threshold,
        write_buffer_bytes=max(_get(configuration, options.CHECKPOINT_WRITE_BUFFER), inline_threshold),
        incremental=changelog or _get(configuration, options.CHECKPOINT_INCREMENTAL),
        asynchronous=_get(configuration, options.STATE_BACKEND_ASYNC),
        local_copies=_local_copies(configuration),
        unaligned=_unaligned(configuration),
        after_tasks_finish=_get(configuration, options.CHECKPOINT_AFTER_TASKS_FINISH),
        compression=_get(configuration, options.SNAPSHOT_COMPRESSION),
        forced=forced,
        prefer_checkpoint_for_recovery=_get(configuration, options.PREFER_CHECKPOINT_FOR_RECOVERY),
        ignored_in_flight_checkpoint_id=ignored_in_flight_checkpoint_id,
        owner_lease_ms=_get(configuration, options.OWNER_LEASE),
    )
    return _with_place(configuration, settings)


def storage_name(configuration: Configuration) -> str:
    """Where checkpoints go: `jobmanager` or `filesystem`."""
    named = _get(configuration, options.CHECKPOINT_STORAGE)
    if named is None:
        # Flink: the names that 1.x gave to state backends also said where their checkpoints go.
        old = {"jobmanager": "jobmanager", "memory": "jobmanager", "filesystem": "filesystem", "fs": "filesystem"}
        backend = _get(configuration, options.STATE_BACKEND).strip().lower()
        return old.get(backend, "jobmanager" if _get(configuration, options.CHECKPOINT_DIR) is None else "filesystem")
    if named.strip().lower() not in ("jobmanager", "filesystem"):
        raise ConfigurationError(
            f"{options.CHECKPOINT_STORAGE.key} must be 'jobmanager' or 'filesystem', got {named!r}"
        )
    return named.strip().lower()


def _backlog_interval(configuration: Configuration, interval: int | None, min_pause: int) -> int | None:
    given = _get(configuration, options.CHECKPOINT_INTERVAL_DURING_BACKLOG)
    if given and interval is not None and given < interval:
        raise ConfigurationError(
            f"{options.CHECKPOINT_INTERVAL_DURING_BACKLOG.key} is {given} ms; it must be 0, for none then, or at "
            f"least {options.CHECKPOINT_INTERVAL.key}, {interval} ms"
        )
    # With a pause longer than both, neither counts.
    return given if not given or interval is None else max(given, min_pause)


def _local_copies(configuration: Configuration) -> LocalCopySettings:
    directories: list[str] = _get(configuration, options.LOCAL_BACKUP_DIRS)
    return LocalCopySettings(
        write=_get(configuration, options.LOCAL_BACKUP),
        read=_get(configuration, options.RECOVER_FROM_LOCAL),
        directories=tuple(directories),
    )


def _unaligned(configuration: Configuration) -> bool:
    if not _get(configuration, options.CHECKPOINT_UNALIGNED):
        return False
    if _get(configuration, options.CHECKPOINT_MODE) != CheckpointingMode.EXACTLY_ONCE.name:
        log.warning("unaligned checkpoints are disabled: they need the mode EXACTLY_ONCE")
        return False
    concurrent = _get(configuration, options.CHECKPOINT_MAX_CONCURRENT)
    if concurrent > 1:
        raise ConfigurationError(
            f"unaligned checkpoints need {options.CHECKPOINT_MAX_CONCURRENT.key} to be 1, got {concurrent}"
        )
    return True


def _num_retained(configuration: Configuration) -> int:
    given = _get(configuration, options.CHECKPOINT_NUM_RETAINED)
    if given < 1:
        log.warning("%s is %d; one checkpoint is kept", options.CHECKPOINT_NUM_RETAINED.key, given)
    return max(1, given)


def _with_place(configuration: Configuration, settings: CheckpointSettings) -> CheckpointSettings:
    directory = _get(configuration, options.CHECKPOINT_DIR)
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


def _get(configuration: Configuration, option: ConfigOption[T]) -> T:
    return options.get(configuration, option)
