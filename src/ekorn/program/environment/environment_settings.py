"""The settings of an environment: parallelism, mode and time of its jobs, their state and their recovery.

Every setting that has a key is kept in the environment's configuration, so a setter, `env.configure` and the
configuration file set the same value, and the last one counts.
"""

from __future__ import annotations

import os
from typing import ClassVar, Self

from ekorn.config import options
from ekorn.config.checkpoint_config import CheckpointConfig
from ekorn.config.choices import CheckpointingMode, RuntimeExecutionMode
from ekorn.config.configuration import Configuration
from ekorn.config.execution_config import ExecutionConfig
from ekorn.config.restart_strategy import FallbackRestartStrategyConfiguration, RestartStrategyConfiguration
from ekorn.config.settings.job_settings import buffer_timeout_ms, state_backend_name
from ekorn.config.starting_configuration import from_command_line, with_current_keys
from ekorn.config.state_backend import EmbeddedRocksDBStateBackend, HashMapStateBackend, StateBackend
from ekorn.errors import warn
from ekorn.graph.stream_graph import PARALLELISM_DEFAULT, checked_max_parallelism, checked_parallelism
from ekorn.legacy.time_characteristic import TimeCharacteristic
from ekorn.program.streams.slot_sharing_group import SlotSharingGroup


class EnvironmentSettings:
    """The setters and getters of a `StreamExecutionEnvironment`."""

    _default_local_parallelism: ClassVar[int | None] = None

    def __init__(self, configuration: Configuration | None) -> None:
        self._configuration = Configuration()
        if configuration is not None:
            self._configuration.add_all(with_current_keys(configuration))
        self._config = ExecutionConfig(self._configuration)
        self._checkpoints = CheckpointConfig(self._configuration)
        self._slot_groups: dict[str, SlotSharingGroup] = {}
        self._restart: RestartStrategyConfiguration | None = None
        self._state_backend: StateBackend | None = None

    # ------------------------------------------------------------------------------ all settings

    def get_config(self) -> ExecutionConfig:
        """Return the execution settings."""
        return self._config

    def get_configuration(self) -> Configuration:
        """Return the configuration that holds all settings by key. A value set in it takes effect."""
        return self._configuration

    def configure(self, configuration: Configuration) -> None:
        """Take over all values of a configuration. Unknown keys are kept."""
        if not isinstance(configuration, Configuration):
            raise TypeError(f"configure() takes a Configuration, got {configuration!r}")
        self._configuration.add_all(with_current_keys(configuration))

    # ------------------------------------------------------------------------------ how the job runs

    def set_parallelism(self, parallelism: int) -> Self:
        """Set the parallelism of operators that have none of their own, from 1 to 32768."""
        self._config.set_parallelism(checked_parallelism(parallelism) or PARALLELISM_DEFAULT)
        wanted = from_command_line(options.PARALLELISM.key)
        if wanted is not None and wanted != str(parallelism):
            warn(
                f"-p {wanted} of the command line has no effect, because the program sets the parallelism to "
                f"{parallelism} here: remove the call of set_parallelism"
            )
        return self

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that have none of their own."""
        return self._config.get_parallelism()

    def set_max_parallelism(self, max_parallelism: int) -> Self:
        """Set the maximum parallelism of operators that have none of their own, from 1 to 32768."""
        self._config.set_max_parallelism(checked_max_parallelism(max_parallelism))
        return self

    def get_max_parallelism(self) -> int:
        """Return the maximum parallelism; -1 if each operator's is derived from its parallelism."""
        return self._config.get_max_parallelism()

    def get_default_local_parallelism(self) -> int:
        """Return the parallelism of new environments for which nothing else sets one."""
        default = EnvironmentSettings._default_local_parallelism
        return (os.cpu_count() or 1) if default is None else default

    def set_default_local_parallelism(self, parallelism: int) -> None:
        """Set the parallelism of environments made from now on for which nothing else sets one."""
        EnvironmentSettings._default_local_parallelism = checked_parallelism(parallelism)

    def set_runtime_mode(self, execution_mode: RuntimeExecutionMode) -> Self:
        """Set whether results are emitted as records arrive (STREAMING) or as final ones (BATCH)."""
        if not isinstance(execution_mode, RuntimeExecutionMode):
            raise TypeError(f"set_runtime_mode() takes a RuntimeExecutionMode, got {execution_mode!r}")
        self._configuration.set_string(options.RUNTIME_MODE.key, execution_mode.name)
        return self

    def set_stream_time_characteristic(self, characteristic: TimeCharacteristic) -> None:
        """Set the time that the job uses, as in Flink 1.x: the meaning of `time_window`, and what sources stamp.

        The auto-watermark interval is set as well: to 0 for processing time, else to its default.
        """
        if not isinstance(characteristic, TimeCharacteristic):
            raise TypeError(
                "set_stream_time_characteristic() takes a TimeCharacteristic such as TimeCharacteristic.EventTime, "
                f"got {characteristic!r}"
            )
        self._configuration.set_string(options.TIME_CHARACTERISTIC.key, characteristic.name)
        interval = options.AUTO_WATERMARK_INTERVAL
        if characteristic is TimeCharacteristic.ProcessingTime:
            self._configuration.set_string(interval.key, "0 ms")
        else:
            self._configuration.remove_config(interval.key)

    def get_stream_time_characteristic(self) -> TimeCharacteristic:
        """Return the time that the job uses."""
        return TimeCharacteristic[options.TIME_CHARACTERISTIC.read(self._configuration)]

    def set_buffer_timeout(self, timeout_millis: int) -> Self:
        """Set how long output may wait to be sent together with more; with -1 it waits until a blob is full."""
        if isinstance(timeout_millis, bool) or not isinstance(timeout_millis, int) or timeout_millis < -1:
            raise ValueError(
                f"a buffer timeout is a number of milliseconds of at least 0, or -1, got {timeout_millis!r}"
            )
        self._configuration.set_boolean(options.BUFFER_TIMEOUT_ENABLED.key, timeout_millis >= 0)
        if timeout_millis >= 0:
            self._configuration.set_integer(options.BUFFER_TIMEOUT.key, timeout_millis)
        return self

    def get_buffer_timeout(self) -> int:
        """Return how long output may wait to be sent together with more, in milliseconds."""
        return buffer_timeout_ms(self._configuration)

    def disable_operator_chaining(self) -> Self:
        """Give each operator a vertex of its own."""
        self._configuration.set_boolean(options.OPERATOR_CHAINING.key, False)
        return self

    def is_chaining_enabled(self) -> bool:
        """Return whether operators share vertices where they can."""
        return options.OPERATOR_CHAINING.read(self._configuration)

    def is_chaining_of_operators_with_different_max_parallelism_enabled(self) -> bool:
        """Return whether operators whose maximum parallelism differs may share a vertex."""
        return options.CHAIN_DIFFERENT_MAX_PARALLELISM.read(self._configuration)

    def register_slot_sharing_group(self, slot_sharing_group: SlotSharingGroup) -> Self:
        """Declare the resources of each slot of a group. Operators join the group by its name."""
        if not isinstance(slot_sharing_group, SlotSharingGroup):
            raise TypeError(f"register_slot_sharing_group() takes a SlotSharingGroup, got {slot_sharing_group!r}")
        known = self._slot_groups.setdefault(slot_sharing_group.get_name(), slot_sharing_group)
        if known != slot_sharing_group:
            raise ValueError(
                f"slot-sharing group {known.get_name()!r} is already registered with "
                f"{known.resources_text or 'nothing'}, not {slot_sharing_group.resources_text or 'nothing'}"
            )
        return self

    # ------------------------------------------------------------------------------ state and checkpoints

    def set_state_backend(self, state_backend: StateBackend) -> Self:
        """Set the backend that keeps the working state."""
        if not isinstance(state_backend, StateBackend):
            raise TypeError(
                f"set_state_backend() takes a StateBackend such as HashMapStateBackend(), got {state_backend!r}"
            )
        state_backend._apply(self._configuration, self._checkpoints)
        self._state_backend = state_backend
        return self

    def get_state_backend(self) -> StateBackend:
        """Return the backend that keeps the working state."""
        name = state_backend_name(self._configuration)
        if self._state_backend is not None and self._state_backend.backend_name == name:
            return self._state_backend
        return EmbeddedRocksDBStateBackend._of(self._configuration) if name == "rocksdb" else HashMapStateBackend()

    def enable_changelog_state_backend(self, enabled: bool) -> Self:
        """Let a checkpoint write only what changed since the last one, as incremental checkpoints do."""
        self._configuration.set_boolean(options.CHANGELOG_ENABLED.key, bool(enabled))
        return self

    def is_changelog_state_backend_enabled(self) -> bool | None:
        """Return the argument of `enable_changelog_state_backend`, or None if it was not called."""
        return options.CHANGELOG_ENABLED.read(self._configuration)

    def enable_checkpointing(self, interval: int, mode: CheckpointingMode | None = None, force: bool = False) -> Self:
        """Take periodic checkpoints.

        Args:
            interval: The milliseconds from one checkpoint to the next, at least 10.
            mode: The guarantee for the state after a failure; exactly once unless set otherwise.
            force: Without effect, which a warning says: jobs with iterations take checkpoints anyway.
        """
        self._checkpoints.set_checkpoint_interval(interval)
        if mode is not None:
            self._checkpoints.set_checkpointing_mode(mode)
        if force:
            self._checkpoints.set_force_checkpointing(True)
        return self

    def get_checkpoint_config(self) -> CheckpointConfig:
        """Return all settings of checkpoints."""
        return self._checkpoints

    def get_checkpoint_interval(self) -> int:
        """Return the milliseconds from one checkpoint to the next; -1 if checkpointing is off."""
        return self._checkpoints.get_checkpoint_interval()

    def get_checkpointing_mode(self) -> CheckpointingMode:
        """Return the guarantee for the state after a failure."""
        return self._checkpoints.get_checkpointing_mode()

    def get_checkpointing_consistency_mode(self) -> CheckpointingMode:
        """Return the same as `get_checkpointing_mode`."""
        return self.get_checkpointing_mode()

    def is_unaligned_checkpoints_enabled(self) -> bool:
        """Return whether unaligned checkpoints are enabled."""
        return self._checkpoints.is_unaligned_checkpoints_enabled()

    def is_force_unaligned_checkpoints(self) -> bool:
        """Return whether unaligned checkpoints are allowed with custom partitioning."""
        return self._checkpoints.is_force_unaligned_checkpoints()

    # ------------------------------------------------------------------------------ restarts and savepoints

    def set_restart_strategy(self, restart_strategy_configuration: RestartStrategyConfiguration) -> None:
        """Set whether and when the job is restarted after a failure."""
        if not isinstance(restart_strategy_configuration, RestartStrategyConfiguration):
            raise TypeError(
                "set_restart_strategy() takes what RestartStrategies makes, such as "
                f"RestartStrategies.fixed_delay_restart(3, 1000), got {restart_strategy_configuration!r}"
            )
        self._restart = restart_strategy_configuration

    def get_restart_strategy(self) -> RestartStrategyConfiguration:
        """Return the argument of `set_restart_strategy`; before it is called, the strategy of the configuration."""
        return self._restart or FallbackRestartStrategyConfiguration()

    def set_default_savepoint_directory(self, directory: str) -> Self:
        """Set the directory of savepoints that are taken without one."""
        self._configuration.set_string(options.SAVEPOINT_DIR.key, os.fspath(directory))
        return self

    def get_default_savepoint_directory(self) -> str | None:
        """Return the directory of savepoints that are taken without one."""
        return options.SAVEPOINT_DIR.read(self._configuration)

    def resume(self) -> Self:
        """Continue the job of the same name from its newest checkpoint; start from the beginning if there is none.

        The checkpoint is looked for in the job's checkpoint directory, among those of all earlier jobs with its name.
        PyFlink does not have this method.
        """
        self._configuration.set_boolean(options.RESUME.key, True)
        return self

    def set_restore_path(self, path: str, allow_non_restored_state: bool = False) -> Self:
        """Start the job from a checkpoint or savepoint.

        Args:
            path: The directory of the checkpoint, or the ``_metadata`` file in it.
            allow_non_restored_state: Drop saved state for which the job has no operator, instead of failing.
        """
        self._configuration.set_string(options.RESTORE_PATH.key, os.fspath(path))
        self._configuration.set_boolean(options.RESTORE_IGNORE_UNCLAIMED.key, bool(allow_non_restored_state))
        return self
