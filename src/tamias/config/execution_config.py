"""`ExecutionConfig`: the settings of a job under the names programs know, kept in a `Configuration`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tamias.config import options
from tamias.config.configuration import Configuration
from tamias.config.option import ConfigOption
from tamias.config.parameter_tool import ParameterTool
from tamias.config.value_text import value_text
from tamias.errors import ConfigurationError

__all__ = ["ExecutionConfig"]


class ExecutionConfig:
    """Settings of a job. Every setter returns this object, so that calls can follow each other.

    Args:
        configuration: Where the settings are kept; an environment hands in its own, so that a setting made here and
            one made by key are the same.
    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def get_parallelism(self) -> int:
        """How many subtasks an operator has unless it says otherwise."""
        return options.PARALLELISM.read(self._configuration)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set how many subtasks an operator has unless it says otherwise.

        Raises:
            ValueError: It is not at least 1, nor ``PARALLELISM_DEFAULT``, which takes the setting back.
        """
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.PARALLELISM.key)
            return self
        return self._set(options.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """How many key groups there are; -1 when it is derived from the parallelism."""
        return options.MAX_PARALLELISM.read(self._configuration)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set how many key groups there are: the highest parallelism the state can ever be restored at.

        Raises:
            ValueError: It is not between 1 and 32768.
        """
        if max_parallelism <= 0:
            raise ConfigurationError(f"the maximum parallelism must be positive, but is {max_parallelism}")
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_auto_watermark_interval(self) -> int:
        """How often watermarks are emitted, in milliseconds; 0 is never."""
        return options.AUTO_WATERMARK_INTERVAL.read(self._configuration)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set how often watermarks are emitted, in milliseconds; 0 is never.

        Raises:
            ValueError: It is negative.
        """
        return self._set_millis(options.AUTO_WATERMARK_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        """How often latency markers are sent, in milliseconds; 0 is never."""
        return options.LATENCY_TRACKING_INTERVAL.read(self._configuration)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set how often latency markers are sent, in milliseconds; 0 is never."""
        return self._set_millis(options.LATENCY_TRACKING_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        """How often a cancelled subtask is reminded, in milliseconds."""
        return options.TASK_CANCELLATION_INTERVAL.read(self._configuration)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Set how often a cancelled subtask is reminded, in milliseconds."""
        return self._set_millis(options.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_timeout(self) -> int:
        """How long cancelling may take, in milliseconds; 0 waits for ever."""
        return options.TASK_CANCELLATION_TIMEOUT.read(self._configuration)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Set how long cancelling may take, in milliseconds; 0 waits for ever."""
        return self._set_millis(options.TASK_CANCELLATION_TIMEOUT, timeout)

    def get_global_job_parameters(self) -> dict[str, str]:
        """Parameters every function of the job can read."""
        return options.GLOBAL_JOB_PARAMETERS.read(self._configuration)

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any] | ParameterTool
    ) -> ExecutionConfig:
        """Set parameters every function of the job can read; values become text. A `ParameterTool` will do as well."""
        if isinstance(global_job_parameters_dict, ParameterTool):
            global_job_parameters_dict = global_job_parameters_dict.to_map()
        parameters = {str(key): value_text(value) for key, value in global_job_parameters_dict.items()}
        self._configuration.set_string(options.GLOBAL_JOB_PARAMETERS.key, value_text(parameters))
        return self

    def enable_object_reuse(self) -> ExecutionConfig:
        """Let chained functions hand on one object without copying."""
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Keep chained functions from seeing each other's changes to an object."""
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Whether chained functions may hand on one object without copying."""
        return options.OBJECT_REUSE.read(self._configuration)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Give operators without a uid one of their own."""
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse jobs with operators that have no uid."""
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Whether operators without a uid get one."""
        return options.AUTO_GENERATE_UIDS.read(self._configuration)

    def enable_generic_types(self) -> ExecutionConfig:
        """Allow streams without a declared type."""
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Refuse jobs with streams that have no declared type."""
        return self._set(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Whether streams without a declared type are refused."""
        return not options.GENERIC_TYPES.read(self._configuration)

    def is_use_snapshot_compression(self) -> bool:
        """Whether keyed state is compressed in checkpoints."""
        return options.SNAPSHOT_COMPRESSION.read(self._configuration)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether keyed state is compressed in checkpoints."""
        return self._set(options.SNAPSHOT_COMPRESSION, bool(use_snapshot_compression))

    # Settings of the JVM's serializers. They are kept and answered, so that programs run; nothing here reads them.

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """What was set last."""
        return options.CLOSURE_CLEANER.read(self._configuration) != "NONE"

    def enable_force_avro(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """What was set last."""
        return options.FORCE_AVRO.read(self._configuration)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Kept for programs that call it."""
        return self._set(options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """What was set last."""
        return options.FORCE_KRYO.read(self._configuration)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Empty: there is no Kryo here."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Empty: there is no Kryo here."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Empty: there are no Java classes here."""
        return []

    def to_configuration(self) -> Configuration:
        """The configuration the settings are kept in."""
        return self._configuration

    def _set_millis(self, option: ConfigOption[int], millis: int) -> ExecutionConfig:
        if millis < 0:
            raise ConfigurationError(f"{option.key!r} must not be negative, but is {millis} ms")
        return self._set(option, millis)

    def _set(self, option: ConfigOption[Any], value: Any) -> ExecutionConfig:
        text = value_text(value)
        option.read(Configuration().set_string(option.key, text))  # refuse here, where the call was written
        self._configuration.set_string(option.key, text)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionConfig):
            return NotImplemented
        return self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
