"""`ExecutionConfig`: PyFlink's getters and setters of execution settings, over a `Configuration`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.global_job_parameters import GlobalJobParameters
from ekorn.config.option import ConfigOption
from ekorn.config.parameter_tool import ParameterTool
from ekorn.config.value_text import value_text
from ekorn.errors import ConfigurationError

__all__ = ["ExecutionConfig"]


class ExecutionConfig:
    """The execution settings of a job. Every setter returns this object, so calls can be chained.

    Args:
        configuration: The configuration that keeps the settings. An environment passes its own, so a setter and a key
            of the configuration set the same value.
    """

    PARALLELISM_DEFAULT = -1
    PARALLELISM_UNKNOWN = -2

    def __init__(self, configuration: Configuration | None = None) -> None:
        self._configuration = Configuration() if configuration is None else configuration

    def get_parallelism(self) -> int:
        """Return the parallelism of operators that have none of their own."""
        return options.PARALLELISM.read(self._configuration)

    def set_parallelism(self, parallelism: int) -> ExecutionConfig:
        """Set the parallelism of operators that have none of their own. ``PARALLELISM_DEFAULT`` removes the setting.

        Raises:
            ValueError: The parallelism is below 1 and not ``PARALLELISM_DEFAULT``.
        """
        if parallelism == ExecutionConfig.PARALLELISM_DEFAULT:
            self._configuration.remove_config(options.PARALLELISM.key)
            return self
        return self._set(options.PARALLELISM, parallelism)

    def get_max_parallelism(self) -> int:
        """Return the number of key groups; -1 if it is derived from the parallelism."""
        return options.MAX_PARALLELISM.read(self._configuration)

    def set_max_parallelism(self, max_parallelism: int) -> ExecutionConfig:
        """Set the number of key groups, which is the highest parallelism the state can ever be restored at.

        Raises:
            ValueError: The number is not between 1 and 32768.
        """
        if max_parallelism <= 0:
            raise ConfigurationError(f"the maximum parallelism must be positive, but is {max_parallelism}")
        return self._set(options.MAX_PARALLELISM, max_parallelism)

    def get_auto_watermark_interval(self) -> int:
        """Return the interval of periodic watermarks in milliseconds; 0 if there are none."""
        return options.AUTO_WATERMARK_INTERVAL.read(self._configuration)

    def set_auto_watermark_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of periodic watermarks in milliseconds; 0 for none.

        Raises:
            ValueError: The interval is negative.
        """
        return self._set_millis(options.AUTO_WATERMARK_INTERVAL, interval)

    def get_latency_tracking_interval(self) -> int:
        """Return the interval of latency markers in milliseconds; 0 if there are none."""
        return options.LATENCY_TRACKING_INTERVAL.read(self._configuration)

    def set_latency_tracking_interval(self, interval: int) -> ExecutionConfig:
        """Set the interval of latency markers in milliseconds; 0 for none."""
        return self._set_millis(options.LATENCY_TRACKING_INTERVAL, interval)

    def get_task_cancellation_interval(self) -> int:
        """Return the interval in milliseconds that `set_task_cancellation_interval` set. It has no effect."""
        return options.TASK_CANCELLATION_INTERVAL.read(self._configuration)

    def set_task_cancellation_interval(self, interval: int) -> ExecutionConfig:
        """Accept the interval of interrupts in milliseconds. It has no effect."""
        return self._set_millis(options.TASK_CANCELLATION_INTERVAL, interval)

    def get_task_cancellation_timeout(self) -> int:
        """Return the timeout in milliseconds that `set_task_cancellation_timeout` set. It has no effect."""
        return options.TASK_CANCELLATION_TIMEOUT.read(self._configuration)

    def set_task_cancellation_timeout(self, timeout: int) -> ExecutionConfig:
        """Accept the timeout of a cancellation in milliseconds. It has no effect."""
        return self._set_millis(options.TASK_CANCELLATION_TIMEOUT, timeout)

    def get_global_job_parameters(self) -> GlobalJobParameters:
        """Return the parameters that every function of the job can read."""
        return GlobalJobParameters(options.GLOBAL_JOB_PARAMETERS.read(self._configuration))

    def set_global_job_parameters(
        self, global_job_parameters_dict: Mapping[str, Any] | ParameterTool | Configuration
    ) -> ExecutionConfig:
        """Set the parameters that every function of the job can read, as text."""
        if isinstance(global_job_parameters_dict, ParameterTool):
            global_job_parameters_dict = global_job_parameters_dict.to_map()
        elif isinstance(global_job_parameters_dict, Configuration):
            global_job_parameters_dict = global_job_parameters_dict.to_dict()
        parameters = {str(key): value_text(value) for key, value in global_job_parameters_dict.items()}
        self._configuration.set_string(options.GLOBAL_JOB_PARAMETERS.key, value_text(parameters))
        return self

    def enable_object_reuse(self) -> ExecutionConfig:
        """Let chained functions pass on one object without copying it."""
        return self._set(options.OBJECT_REUSE, True)

    def disable_object_reuse(self) -> ExecutionConfig:
        """Copy records between chained functions, so that no function sees another's changes to them."""
        return self._set(options.OBJECT_REUSE, False)

    def is_object_reuse_enabled(self) -> bool:
        """Return whether chained functions may pass on one object without copying it."""
        return options.OBJECT_REUSE.read(self._configuration)

    def enable_auto_generated_uids(self) -> ExecutionConfig:
        """Generate uids for operators that have none."""
        return self._set(options.AUTO_GENERATE_UIDS, True)

    def disable_auto_generated_uids(self) -> ExecutionConfig:
        """Refuse jobs with operators that have no uid."""
        return self._set(options.AUTO_GENERATE_UIDS, False)

    def has_auto_generated_uids_enabled(self) -> bool:
        """Return whether uids are generated for operators that have none."""
        return options.AUTO_GENERATE_UIDS.read(self._configuration)

    def enable_generic_types(self) -> ExecutionConfig:
        """Accepted without effect: streams need no declared type."""
        return self._set(options.GENERIC_TYPES, True)

    def disable_generic_types(self) -> ExecutionConfig:
        """Accepted without effect: streams need no declared type."""
        return self._set(options.GENERIC_TYPES, False)

    def has_generic_types_disabled(self) -> bool:
        """Return whether `disable_generic_types` was called last."""
        return not options.GENERIC_TYPES.read(self._configuration)

    def is_use_snapshot_compression(self) -> bool:
        """Return whether keyed state is compressed in checkpoints."""
        return options.SNAPSHOT_COMPRESSION.read(self._configuration)

    def set_use_snapshot_compression(self, use_snapshot_compression: bool) -> ExecutionConfig:
        """Set whether keyed state is compressed in checkpoints."""
        return self._set(options.SNAPSHOT_COMPRESSION, bool(use_snapshot_compression))

    # Settings of the JVM's serializers. They are kept and returned, so that programs run, and have no effect.

    def enable_closure_cleaner(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.CLOSURE_CLEANER, "RECURSIVE")

    def disable_closure_cleaner(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.CLOSURE_CLEANER, "NONE")

    def is_closure_cleaner_enabled(self) -> bool:
        """Return the value that was set last."""
        return options.CLOSURE_CLEANER.read(self._configuration) != "NONE"

    def enable_force_avro(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.FORCE_AVRO, True)

    def disable_force_avro(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.FORCE_AVRO, False)

    def is_force_avro_enabled(self) -> bool:
        """Return the value that was set last."""
        return options.FORCE_AVRO.read(self._configuration)

    def enable_force_kryo(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.FORCE_KRYO, True)

    def disable_force_kryo(self) -> ExecutionConfig:
        """Accepted without effect."""
        return self._set(options.FORCE_KRYO, False)

    def is_force_kryo_enabled(self) -> bool:
        """Return the value that was set last."""
        return options.FORCE_KRYO.read(self._configuration)

    def get_default_kryo_serializer_classes(self) -> dict[str, str]:
        """Return nothing: ekorn has no Kryo serializers."""
        return {}

    def get_registered_kryo_types(self) -> list[str]:
        """Return nothing: ekorn has no Kryo serializers."""
        return []

    def get_registered_pojo_types(self) -> list[str]:
        """Return nothing: ekorn has no Java classes."""
        return []

    def to_configuration(self) -> Configuration:
        """Return the configuration that keeps the settings."""
        return self._configuration

    def _set_millis(self, option: ConfigOption[int], millis: int) -> ExecutionConfig:
        if millis < 0:
            raise ConfigurationError(f"{option.key!r} must not be negative, but is {millis} ms")
        return self._set(option, millis)

    def _set(self, option: ConfigOption[Any], value: Any) -> ExecutionConfig:
        text = value_text(value)
        option.read(Configuration().set_string(option.key, text))  # raises in the line that sets the value
        self._configuration.set_string(option.key, text)
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExecutionConfig):
            return NotImplemented
        return self._configuration == other._configuration

    def __hash__(self) -> int:
        return hash(self._configuration)
