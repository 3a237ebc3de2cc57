"""The settings of jobs that change their parallelism by themselves: reactive mode and the autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.fields import filled_by, read_settings
from ekorn.errors import ConfigurationError

__all__ = ["AutoscalerSettings", "ElasticitySettings", "ReactiveSettings", "elasticity_settings"]


@dataclass(frozen=True)
class ReactiveSettings:
    """How the parallelism of a job follows the number of tasks that Spark can run at a time.

    Attributes:
        cooldown_ms: How long the job keeps its parallelism after a rescale.
        stabilization_ms: How long the number of tasks must stay the same before the job is rescaled.
    """

    cooldown_ms: int = filled_by(options.RESCALE_COOLDOWN)
    stabilization_ms: int = filled_by(options.RESOURCE_STABILIZATION)


@dataclass(frozen=True)
class AutoscalerSettings:
    """How the parallelism of a job follows its load.

    Attributes:
        target: The utilization to aim at: the share of its time that the job is busy.
        boundary: How far the utilization may be from the target before the job is rescaled.
        stabilization_ms: How long the autoscaler waits after the start of a job and after a rescale.
        window_ms: The time over which the utilization is averaged.
        least: The lowest parallelism.
        most: The highest parallelism.
    """

    target: float = filled_by(options.AUTOSCALER_TARGET)
    boundary: float = filled_by(options.AUTOSCALER_BOUNDARY)
    stabilization_ms: int = filled_by(options.AUTOSCALER_STABILIZATION)
    window_ms: int = filled_by(options.AUTOSCALER_WINDOW)
    least: int = filled_by(options.AUTOSCALER_MIN_PARALLELISM)
    most: int = filled_by(options.AUTOSCALER_MAX_PARALLELISM)

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ConfigurationError(
                f"{options.AUTOSCALER_MIN_PARALLELISM.key} is {self.least}, above "
                f"{options.AUTOSCALER_MAX_PARALLELISM.key}, which is {self.most}"
            )


@dataclass(frozen=True)
class ElasticitySettings:
    """What the parallelism of a job follows.

    Attributes:
        reactive: How it follows the tasks that Spark can run; None if it does not.
        autoscaler: How it follows the load; None if it does not.
        preloads: Whether slots read state before a rescale switches to them.
    """

    reactive: ReactiveSettings | None = None
    autoscaler: AutoscalerSettings | None = None
    preloads: bool = filled_by(options.PRELOAD)

    def __post_init__(self) -> None:
        if self.reactive is not None and self.autoscaler is not None:
            raise ConfigurationError(
                f"a job follows the task slots of Spark ({options.SCHEDULER_MODE.key}: reactive) or its load "
                f"({options.AUTOSCALER.key}: true), not both: remove one of the two"
            )


def elasticity_settings(configuration: Configuration) -> ElasticitySettings:
    """Read what the parallelism of a job follows.

    Raises:
        ConfigurationError: The job is to follow both, or the bounds of the autoscaler contradict each other.
    """
    reactive = options.SCHEDULER_MODE.read(configuration) == "reactive"
    autoscaler = options.AUTOSCALER.read(configuration)
    return read_settings(
        ElasticitySettings,
        configuration,
        reactive=read_settings(ReactiveSettings, configuration) if reactive else None,
        autoscaler=read_settings(AutoscalerSettings, configuration) if autoscaler else None,
    )
