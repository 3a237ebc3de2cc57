"""`CheckpointConfig`: PyFlink's getters and setters of checkpoint settings, over a `Configuration`.

Every setting that has a key is kept in the configuration, so a setter, `env.configure` and the configuration file set
the same value, and the last one counts.
"""

from __future__ import annotations

import logging
import os
import warnings
from typing import Any

from ekorn.config import options
from ekorn.config.checkpoint_storage import (
    CheckpointStorage,
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
    checkpoint_uri,
)
from ekorn.config.choices import CheckpointingMode, ExternalizedCheckpointRetention
from ekorn.config.configuration import Configuration
from ekorn.config.option import ConfigOption
from ekorn.config.settings.checkpoint_settings import (
    KEEP_ALL_FAILURES,
    MINIMAL_CHECKPOINT_TIME_MS,
    CheckpointSettings,
    checked_concurrency,
    storage_name,
)
from ekorn.config.settings.fields import read_settings
from ekorn.errors import warn
from ekorn.types.time import Duration, Time, millis_of

__all__ = ["CheckpointConfig"]

log = logging.getLogger(__name__)


class CheckpointConfig:
    """The checkpoint settings of an environment, returned by `env.get_checkpoint_config()`."""

    DEFAULT_MODE = CheckpointingMode.EXACTLY_ONCE
    DEFAULT_TIMEOUT = 10 * 60 * 1000
    DEFAULT_MIN_PAUSE_BETWEEN_CHECKPOINTS = 0
    DEFAULT_MAX_CONCURRENT_CHECKPOINTS = 1
    ExternalizedCheckpointCleanup = ExternalizedCheckpointRetention  # its name in Flink 1.x, which nests the class

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration
        self._tolerable_by_flag = False  # set by set_fail_on_checkpointing_errors, which a number overrides
        self._forced = False
        self._ignored_in_flight: int | None = None
        self._max_state_bytes = JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE
        self._has_own_directory = False  # the directory was set by a setter; a storage without a directory removes it

    # ------------------------------------------------------------------------------ when

    def is_checkpointing_enabled(self) -> bool:
        """Return whether periodic checkpoints are taken."""
        return self.get_checkpoint_interval() > 0

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds from one checkpoint to the next; -1 if checkpointing is off."""
        return options.CHECKPOINT_INTERVAL.read(self._configuration) or -1

    def set_checkpoint_interval(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the milliseconds from one checkpoint to the next, at least 10."""
        interval = _whole("checkpoint interval", checkpoint_interval, MINIMAL_CHECKPOINT_TIME_MS)
        return self._set(options.CHECKPOINT_INTERVAL, interval)

    def get_checkpoint_interval_during_backlog(self) -> int:
        """Return the milliseconds from one checkpoint to the next during a backlog; 0 if none are taken then."""
        interval = options.CHECKPOINT_INTERVAL_DURING_BACKLOG.read(self._configuration)
        return self.get_checkpoint_interval() if interval is None else interval

    def set_checkpoint_interval_during_backlog(self, checkpoint_interval: int) -> CheckpointConfig:
        """Set the milliseconds from one checkpoint to the next while sources have a backlog.

        With 0 no checkpoints are taken during a backlog. A source has a backlog when it has more to read than fits
        into one epoch.
        """
        interval = _whole("checkpoint interval during backlog", checkpoint_interval, 0)
        return self._set(options.CHECKPOINT_INTERVAL_DURING_BACKLOG, interval)

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee for the state after a failure."""
        return CheckpointingMode[options.CHECKPOINT_MODE.read(self._configuration)]

    def set_checkpointing_mode(self, checkpointing_mode: CheckpointingMode) -> CheckpointConfig:
        """Set the guarantee for the state after a failure."""
        if not isinstance(checkpointing_mode, CheckpointingMode):
            raise TypeError(f"expected a CheckpointingMode, got {checkpointing_mode!r}")
        return self._set(options.CHECKPOINT_MODE, checkpointing_mode.name)

    def get_checkpoint_timeout(self) -> int:
        """Return the milliseconds after which a checkpoint that is not complete expires."""
        return options.CHECKPOINT_TIMEOUT.read(self._configuration)

    def set_checkpoint_timeout(self, checkpoint_timeout: int) -> CheckpointConfig:
        """Set the milliseconds after which a checkpoint that is not complete expires, at least 10."""
        timeout = _whole("checkpoint timeout", checkpoint_timeout, MINIMAL_CHECKPOINT_TIME_MS)
        return self._set(options.CHECKPOINT_TIMEOUT, timeout)

    def get_min_pause_between_checkpoints(self) -> int:
        """Return the minimum number of milliseconds from the end of one checkpoint to the start of the next."""
        return options.CHECKPOINT_MIN_PAUSE.read(self._configuration)

    def set_min_pause_between_checkpoints(self, min_pause_between_checkpoints: int) -> CheckpointConfig:
        """Set the minimum number of milliseconds from the end of one checkpoint to the start of the next.

        A pause above 0 leaves one checkpoint at a time: a job with more than one concurrent checkpoint is refused.
        """
        pause = _whole("min pause", min_pause_between_checkpoints, 0)
        checked_concurrency(self.get_max_concurrent_checkpoints(), pause)
        return self._set(options.CHECKPOINT_MIN_PAUSE, pause)

    def get_max_concurrent_checkpoints(self) -> int:
        """Return the largest number of checkpoints in flight."""
        return options.CHECKPOINT_MAX_CONCURRENT.read(self._configuration)

    def set_max_concurrent_checkpoints(self, max_concurrent_checkpoints: int) -> CheckpointConfig:
        """Set the largest number of checkpoints in flight. More than one cannot be used with a minimum pause."""
        count = _whole("number of concurrent checkpoints", max_concurrent_checkpoints, 1)
        checked_concurrency(count, self.get_min_pause_between_checkpoints())
        return self._set(options.CHECKPOINT_MAX_CONCURRENT, count)

    # ------------------------------------------------------------------------------ failures

    def get_tolerable_checkpoint_failure_number(self) -> int:
        """Return how many consecutive checkpoints may fail before the job fails."""
        return max(0, options.CHECKPOINT_TOLERABLE_FAILURES.read(self._configuration))

    def set_tolerable_checkpoint_failure_number(self, tolerable_checkpoint_failure_number: int) -> CheckpointConfig:
        """Set how many consecutive checkpoints may fail before the job fails; with 0 the first failure does."""
        count = _whole("number of tolerable checkpoint failures", tolerable_checkpoint_failure_number, 0)
        self._tolerable_by_flag = False
        return self._set(options.CHECKPOINT_TOLERABLE_FAILURES, count)

    def is_fail_on_checkpointing_errors(self) -> bool:
        """Return whether the first failed checkpoint fails the job."""
        return self.get_tolerable_checkpoint_failure_number() == 0

    def set_fail_on_checkpointing_errors(self, fail_on_checkpointing_errors: bool) -> CheckpointConfig:
        """Set whether failed checkpoints fail the job.

        Deprecated: use `set_tolerable_checkpoint_failure_number`, which overrides this setting.
        """
        _deprecated("set_fail_on_checkpointing_errors", "set_tolerable_checkpoint_failure_number")
        if self._configuration.contains_key(options.CHECKPOINT_TOLERABLE_FAILURES.key) and not self._tolerable_by_flag:
            log.warning(
                "set_fail_on_checkpointing_errors(%s) has no effect: the tolerable number of failures is set to %d",
                fail_on_checkpointing_errors,
                self.get_tolerable_checkpoint_failure_number(),
            )
            return self
        self._tolerable_by_flag = True
        tolerable = 0 if fail_on_checkpointing_errors else KEEP_ALL_FAILURES
        return self._set(options.CHECKPOINT_TOLERABLE_FAILURES, tolerable)

    # ------------------------------------------------------------------------------ after the end

    def is_externalized_checkpoints_enabled(self) -> bool:
        """Return whether checkpoints may outlive the job."""
        return (
            self.get_externalized_checkpoint_retention()
            is not ExternalizedCheckpointRetention.NO_EXTERNALIZED_CHECKPOINTS
        )

    def get_externalized_checkpoint_retention(self) -> ExternalizedCheckpointRetention:
        """Return whether checkpoints are kept when the job fails or is cancelled."""
        return ExternalizedCheckpointRetention[options.CHECKPOINT_RETENTION.read(self._configuration)]

    def set_externalized_checkpoint_retention(
        self, retention_mode: ExternalizedCheckpointRetention
    ) -> CheckpointConfig:
        """Set whether checkpoints are kept when the job fails or is cancelled."""
        if not isinstance(retention_mode, ExternalizedCheckpointRetention):
            raise TypeError(f"expected an ExternalizedCheckpointRetention, got {retention_mode!r}")
        return self._set(options.CHECKPOINT_RETENTION, retention_mode.name)

    def set_externalized_checkpoint_cleanup(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Set the retention. Deprecated: use `set_externalized_checkpoint_retention`."""
        _deprecated("set_externalized_checkpoint_cleanup", "set_externalized_checkpoint_retention")
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def enable_externalized_checkpoints(self, cleanup_mode: ExternalizedCheckpointRetention) -> CheckpointConfig:
        """Set the retention. Deprecated: use `set_externalized_checkpoint_retention`."""
        _deprecated("enable_externalized_checkpoints", "set_externalized_checkpoint_retention")
        return self.set_externalized_checkpoint_retention(cleanup_mode)

    def is_prefer_checkpoint_for_recovery(self) -> bool:
        """Return whether a restart restores the last checkpoint even if a savepoint is newer."""
        return options.PREFER_CHECKPOINT_FOR_RECOVERY.read(self._configuration)

    def set_prefer_checkpoint_for_recovery(self, prefer_checkpoint_for_recovery: bool) -> CheckpointConfig:
        """Set whether a restart restores the last checkpoint even if a savepoint is newer."""
        return self._set(options.PREFER_CHECKPOINT_FOR_RECOVERY, bool(prefer_checkpoint_for_recovery))

    # ------------------------------------------------------------------------------ unaligned, forced

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints are enabled, which only the mode EXACTLY_ONCE has."""
        exactly_once = self.get_checkpointing_mode() is CheckpointingMode.EXACTLY_ONCE
        return exactly_once and options.CHECKPOINT_UNALIGNED.read(self._configuration)

    def enable_unaligned_checkpoints(self, enabled: bool = True) -> CheckpointConfig:
        """Enable unaligned checkpoints.

        In a job that runs continuously, the marks of a checkpoint overtake the records in flight, which become part of
        the checkpoint: under back-pressure it completes without waiting for them. In a job that runs in epochs no
        record is in flight at a checkpoint, and the setting changes nothing. Flink's rules are checked: exactly once,
        one checkpoint at a time, and no `partition_custom` unless forced.
        """
        return self._set(options.CHECKPOINT_UNALIGNED, bool(enabled))

    def disable_unaligned_checkpoints(self) -> CheckpointConfig:
        """Disable unaligned checkpoints."""
        return self.enable_unaligned_checkpoints(False)

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether unaligned checkpoints are allowed with `partition_custom`."""
        return options.CHECKPOINT_UNALIGNED_FORCED.read(self._configuration)

    def set_force_unaligned_checkpoints(self, force_unaligned_checkpoints: bool = True) -> CheckpointConfig:
        """Allow unaligned checkpoints with `partition_custom`."""
        return self._set(options.CHECKPOINT_UNALIGNED_FORCED, bool(force_unaligned_checkpoints))

    def get_aligned_checkpoint_timeout(self) -> Duration:
        """Return how long an unaligned checkpoint stays aligned before its marks overtake records."""
        return Duration.of_millis(options.CHECKPOINT_ALIGNED_TIMEOUT.read(self._configuration))

    def set_aligned_checkpoint_timeout(self, alignment_timeout: Duration | Time) -> CheckpointConfig:
        """Set how long an unaligned checkpoint stays aligned before its marks overtake records; 0 for no time."""
        return self._set(
            options.CHECKPOINT_ALIGNED_TIMEOUT, _whole("alignment timeout", millis_of(alignment_timeout), 0)
        )

    def get_alignment_timeout(self) -> Duration:
        """Return the same as `get_aligned_checkpoint_timeout`, under its old name."""
        return self.get_aligned_checkpoint_timeout()

    def set_alignment_timeout(self, alignment_timeout: Duration | Time) -> CheckpointConfig:
        """Set the same as `set_aligned_checkpoint_timeout`, under its old name."""
        return self.set_aligned_checkpoint_timeout(alignment_timeout)

    def is_force_checkpointing(self) -> bool:
        """Return the value that was set last."""
        return self._forced

    def set_force_checkpointing(self, force_checkpointing: bool = True) -> CheckpointConfig:
        """Warn that there is nothing to force.

        Flink: refuses to checkpoint a job with iterations unless forced, and then loses the records in the loop. Here
        such jobs always take checkpoints, and the records in the loop are part of them.
        """
        self._forced = bool(force_checkpointing)
        if self._forced:
            warn(
                "forcing checkpoints has no effect: a job with iterations takes checkpoints anyway, and they include "
                "the records in the loop; remove the call or the argument"
            )
        return self

    def get_checkpoint_id_of_ignored_in_flight_data(self) -> int:
        """Return the id of the checkpoint whose in-flight data is dropped on restore; -1 if there is none."""
        return -1 if self._ignored_in_flight is None else self._ignored_in_flight

    def set_checkpoint_id_of_ignored_in_flight_data(
        self, checkpoint_id_of_ignored_in_flight_data: int
    ) -> CheckpointConfig:
        """Set the checkpoint whose in-flight data is dropped on restore. Only unaligned checkpoints have any."""
        given = _whole("checkpoint id", checkpoint_id_of_ignored_in_flight_data, -1)
        self._ignored_in_flight = None if given == -1 else given
        return self

    # ------------------------------------------------------------------------------ where

    def get_checkpoint_storage(self) -> CheckpointStorage:
        """Return the checkpoint storage."""
        directory = options.CHECKPOINT_DIR.read(self._configuration)
        if storage_name(self._configuration) == "jobmanager" or directory is None:
            return JobManagerCheckpointStorage(directory, self._max_state_bytes)
        return FileSystemCheckpointStorage(
            directory,
            options.CHECKPOINT_INLINE_THRESHOLD.read(self._configuration),
            options.CHECKPOINT_WRITE_BUFFER.read(self._configuration),
        )

    def set_checkpoint_storage(self, storage: CheckpointStorage) -> CheckpointConfig:
        """Set the checkpoint storage."""
        if isinstance(storage, FileSystemCheckpointStorage):
            self._set(options.CHECKPOINT_STORAGE, "filesystem")
            self._set_directory(storage.get_checkpoint_path())
            self._set(options.CHECKPOINT_INLINE_THRESHOLD, storage.get_min_file_size_threshold())
            return self._set(options.CHECKPOINT_WRITE_BUFFER, storage.get_write_buffer_size())
        if isinstance(storage, JobManagerCheckpointStorage):
            self._set(options.CHECKPOINT_STORAGE, "jobmanager")
            self._max_state_bytes = storage.get_max_state_size()
            return self._set_directory(storage.get_checkpoint_path())
        raise TypeError(
            f"expected a FileSystemCheckpointStorage or a JobManagerCheckpointStorage, got {storage!r}; "
            "use set_checkpoint_storage_dir for a directory"
        )

    def set_checkpoint_storage_dir(self, checkpoint_path: str | os.PathLike[str]) -> CheckpointConfig:
        """Store checkpoints as files in a directory."""
        uri = checkpoint_uri(checkpoint_path)
        self._set(options.CHECKPOINT_STORAGE, "filesystem")
        return self._set_directory(uri)

    def _set_directory(self, directory: str | None) -> CheckpointConfig:
        """Set the directory; None leaves it to the configuration."""
        if directory is not None:
            self._set(options.CHECKPOINT_DIR, directory)
        elif self._has_own_directory:
            self._configuration.remove_config(options.CHECKPOINT_DIR.key)
        self._has_own_directory = directory is not None
        return self

    # ------------------------------------------------------------------------------ for the job

    def to_settings(self) -> CheckpointSettings:
        """Return all settings, checked and frozen, as the job uses them.

        Raises:
            ConfigurationError: A value is out of range, or contradicts another one.
        """
        return read_settings(
            CheckpointSettings,
            self._configuration,
            max_state_bytes=self._max_state_bytes,
            ignored_in_flight_checkpoint_id=self._ignored_in_flight,
        )

    def _set(self, option: ConfigOption[Any], value: str | int | bool) -> CheckpointConfig:
        if isinstance(value, bool):
            self._configuration.set_boolean(option.key, value)
        elif isinstance(value, int):
            self._configuration.set_integer(option.key, value)
        else:
            self._configuration.set_string(option.key, value)
        return self


def _whole(what: str, given: int, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError(f"the {what} must be a whole number, got {given!r}")
    if given < least:
        raise ValueError(f"the {what} must be at least {least}, got {given}")
    return given


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated, use {new}", DeprecationWarning, stacklevel=3)
