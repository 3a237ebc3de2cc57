"""The settings of jobs that change their parallelism by themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.errors import ConfigurationError

__all__ = ["AutoscalerSettings", "ElasticitySettings", "ReactiveSettings", "elasticity_settings"]


@dataclass(frozen=True)
class ReactiveSettings:
    """How a job follows the places for its tasks."""

    cooldown_ms: int = 30_000
    stabilization_ms: int = 60_000


@dataclass(frozen=True)
class AutoscalerSettings:
    """How a job follows its load.

    Attributes:
        target: The share of its time that the job is to be busy.
        boundary: How far from it the utilization may be.
        stabilization_ms: How long nothing happens after a start and after a rescale.
        window_ms: The time over which the mean of the utilization is taken.
        least: The lowest parallelism.
        most: The highest parallelism.
    """

    target: float = 0.7
    boundary: float = 0.3
    stabilization_ms: int = 300_000
    window_ms: int = 900_000
    least: int = 1
    most: int = 200


@dataclass(frozen=True)
class ElasticitySettings:
    """What a job follows; None for what it does not. With `preloads`, slots read state before a rescale."""

    reactive: ReactiveSettings | None = None
    autoscaler: AutoscalerSettings | None = field(default=None)
    preloads: bool = True


def elasticity_settings(configuration: Configuration) -> ElasticitySettings:
    """Read the settings from a configuration.

    Raises:
        ConfigurationError: The job is to follow both, or the bounds of the autoscaler contradict each other.
    """
    reactive = autoscaler = None
    if options.SCHEDULER_MODE.read(configuration) == "reactive":
        reactive = ReactiveSettings(
            options.RESCALE_COOLDOWN.read(configuration), options.RESOURCE_STABILIZATION.read(configuration)
        )
    if options.AUTOSCALER.read(configuration):
        autoscaler = AutoscalerSettings(
            target=options.AUTOSCALER_TARGET.read(configuration),
            boundary=options.AUTOSCALER_BOUNDARY.read(configuration),
            stabilization_ms=options.AUTOSCALER_STABILIZATION.read(configuration),
            window_ms=options.AUTOSCALER_WINDOW.read(configuration),
            least=options.AUTOSCALER_MIN_PARALLELISM.read(configuration),
            most=options.AUTOSCALER_MAX_PARALLELISM.read(configuration),
        )
        if autoscaler.least > autoscaler.most:
            raise ConfigurationError(
                f"{options.AUTOSCALER_MIN_PARALLELISM.key} is {autoscaler.least}, above "
                f"{options.AUTOSCALER_MAX_PARALLELISM.key}, which is {autoscaler.most}"
            )
    if reactive is not None and autoscaler is not None:
        raise ConfigurationError(
            f"a job follows its places ({options.SCHEDULER_MODE.key}: reactive) or its load "
            f"({options.AUTOSCALER.key}: true), not both: remove one of the two"
        )
    return ElasticitySettings(reactive, autoscaler, options.PRELOAD.read(configuration))
