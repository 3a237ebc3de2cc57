"""Restart strategies as values. The driver decides by them whether and when a failed job is restarted.

A strategy comes from the program (`RestartStrategies`), else from the configuration (`from_configuration`), else it is
the default, which depends on whether checkpointing is enabled.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from ekorn.config import options
from ekorn.config.configuration import Configuration
from ekorn.config.settings.fields import filled_by, read_settings
from ekorn.errors import ConfigurationError
from ekorn.types.time import Duration, Time, millis_of

__all__ = [
    "ExponentialDelayRestartStrategyConfiguration",
    "FailureRateRestartStrategyConfiguration",
    "FallbackRestartStrategyConfiguration",
    "FixedDelayRestartStrategyConfiguration",
    "NoRestartStrategyConfiguration",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "from_configuration",
    "resolve",
]

Length = Duration | Time | timedelta | int


class RestartStrategyConfiguration:
    """The base of the five strategies."""

    __slots__ = ()

    def get_description(self) -> str:
        """Return the strategy as text for logs and errors."""
        raise TypeError(f"{type(self).__name__} does not describe a strategy; use RestartStrategies to create one")


@dataclass(frozen=True, slots=True)
class NoRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The first failure ends the job.

    Attributes:
        is_default: Whether neither the program nor the configuration chose this strategy.
    """

    is_default: bool = field(default=False, compare=False, repr=False)

    def get_description(self) -> str:
        return "restart deactivated"


@dataclass(frozen=True, slots=True)
class FallbackRestartStrategyConfiguration(RestartStrategyConfiguration):
    """The program sets no strategy; the configuration decides."""

    def get_description(self) -> str:
        return "use the restart strategy of the configuration"


@dataclass(frozen=True, slots=True)
class FixedDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """A limited number of restarts over the whole life of the job, each after the same delay."""

    restart_attempts: int = filled_by(options.FIXED_DELAY_ATTEMPTS)
    delay_ms: int = filled_by(options.FIXED_DELAY_DELAY)

    def __post_init__(self) -> None:
        _require_count("restart_attempts", self.restart_attempts)
        _require(self.restart_attempts >= 0, f"restart_attempts must not be negative, but is {self.restart_attempts}")
        _require(self.delay_ms >= 0, f"the delay must not be negative, but is {self.delay_ms} ms")

    def get_description(self) -> str:
        return f"restart with a fixed delay of {self.delay_ms} ms, at most {self.restart_attempts} times"


@dataclass(frozen=True, slots=True)
class FailureRateRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts while at most `max_failures` failures fall into an interval."""

    max_failures: int = filled_by(options.FAILURE_RATE_MAX)
    interval_ms: int = filled_by(options.FAILURE_RATE_INTERVAL)
    delay_ms: int = filled_by(options.FAILURE_RATE_DELAY)

    def __post_init__(self) -> None:
        _require_count("the number of failures", self.max_failures)
        _require(self.max_failures > 0, f"the number of failures must be positive, but is {self.max_failures}")
        _require(self.interval_ms > 0, f"the failure interval must be positive, but is {self.interval_ms} ms")
        _require(self.delay_ms >= 0, f"the delay must not be negative, but is {self.delay_ms} ms")

    def get_description(self) -> str:
        return (
            f"restart with a delay of {self.delay_ms} ms while there are at most {self.max_failures} failures "
            f"within {self.interval_ms} ms"
        )


@dataclass(frozen=True, slots=True)
class ExponentialDelayRestartStrategyConfiguration(RestartStrategyConfiguration):
    """Restarts after delays that grow with each failure, and are reset after a time without failures."""

    initial_backoff_ms: int = filled_by(options.EXPONENTIAL_INITIAL)
    max_backoff_ms: int = filled_by(options.EXPONENTIAL_MAX)
    multiplier: float = filled_by(options.EXPONENTIAL_MULTIPLIER)
    reset_threshold_ms: int = filled_by(options.EXPONENTIAL_RESET)
    jitter: float = filled_by(options.EXPONENTIAL_JITTER)
    attempts_before_reset: int = filled_by(options.EXPONENTIAL_ATTEMPTS)

    def __post_init__(self) -> None:
        _require(self.initial_backoff_ms > 0, f"the initial backoff must be positive, not {self.initial_backoff_ms} ms")
        _require(
            self.max_backoff_ms >= self.initial_backoff_ms,
            f"the maximum backoff, {self.max_backoff_ms} ms, is below the initial one, {self.initial_backoff_ms} ms",
        )
        for name, value in (("multiplier", self.multiplier), ("jitter", self.jitter)):
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise TypeError(f"the {name} is a number, got {value!r}")
        _require_count("attempts_before_reset", self.attempts_before_reset)
        _require(self.multiplier > 1, f"the multiplier must be greater than 1, but is {self.multiplier}")
        _require(self.reset_threshold_ms > 0, f"the reset threshold must be positive, not {self.reset_threshold_ms} ms")
        _require(0 <= self.jitter <= 1, f"the jitter must be between 0 and 1, but is {self.jitter}")
        _require(self.attempts_before_reset > 0, f"attempts must be positive, but are {self.attempts_before_reset}")

    def get_description(self) -> str:
        return (
            f"restart with a delay of {self.initial_backoff_ms} ms growing by {self.multiplier} up to "
            f"{self.max_backoff_ms} ms, reset after {self.reset_threshold_ms} ms without a failure"
        )


class RestartStrategies:
    """Makes restart strategies.

    >>> RestartStrategies.fixed_delay_restart(3, 1000).get_description()
    'restart with a fixed delay of 1000 ms, at most 3 times'
    """

    @staticmethod
    def no_restart() -> NoRestartStrategyConfiguration:
        """Return the strategy with which the first failure ends the job."""
        return NoRestartStrategyConfiguration()

    @staticmethod
    def fall_back_restart() -> FallbackRestartStrategyConfiguration:
        """Return the strategy that leaves the choice to the configuration."""
        return FallbackRestartStrategyConfiguration()

    @staticmethod
    def fixed_delay_restart(
        restart_attempts: int, delay_between_attempts: Length
    ) -> FixedDelayRestartStrategyConfiguration:
        """Return the strategy of a limited number of restarts, each after the same delay."""
        return FixedDelayRestartStrategyConfiguration(restart_attempts, millis_of(delay_between_attempts))

    @staticmethod
    def failure_rate_restart(
        failure_rate: int, failure_interval: Length, delay_interval: Length
    ) -> FailureRateRestartStrategyConfiguration:
        """Return the strategy of restarts while at most ``failure_rate`` failures fall into ``failure_interval``."""
        return FailureRateRestartStrategyConfiguration(
            failure_rate, millis_of(failure_interval), millis_of(delay_interval)
        )

    @staticmethod
    def exponential_delay_restart(  # noqa: PLR0917 - Flink's order of arguments
        initial_backoff: Length,
        max_backoff: Length,
        backoff_multiplier: float,
        reset_backoff_threshold: Length,
        jitter_factor: float,
        attempts_before_reset: int = options.EXPONENTIAL_ATTEMPTS.default,
    ) -> ExponentialDelayRestartStrategyConfiguration:
        """Return the strategy of delays that grow by ``backoff_multiplier``, each varied by ``jitter_factor``."""
        return ExponentialDelayRestartStrategyConfiguration(
            millis_of(initial_backoff),
            millis_of(max_backoff),
            backoff_multiplier,
            millis_of(reset_backoff_threshold),
            jitter_factor,
            attempts_before_reset,
        )


def from_configuration(configuration: Configuration) -> RestartStrategyConfiguration | None:
    """Return the strategy that a configuration sets, or None if it sets none.

    Raises:
        ConfigurationError: The strategy is unknown, or a number of it is out of range.
    """
    name = options.RESTART_STRATEGY.read(configuration)
    return None if name is None else _named(name, configuration)


def _named(name: str, configuration: Configuration) -> RestartStrategyConfiguration:
    """Return a strategy by its name, with the numbers that the configuration sets."""
    try:
        match name.strip().lower():
            case "none" | "off" | "disable":
                return NoRestartStrategyConfiguration()
            case "fixed-delay" | "fixeddelay":
                return read_settings(FixedDelayRestartStrategyConfiguration, configuration)
            case "failure-rate" | "failurerate":
                return read_settings(FailureRateRestartStrategyConfiguration, configuration)
            case "exponential-delay" | "exponentialdelay":
                return read_settings(ExponentialDelayRestartStrategyConfiguration, configuration)
    except ConfigurationError:
        raise
    except ValueError as error:
        raise ConfigurationError(f"the restart strategy {name!r} cannot be set up: {error}") from None
    raise ConfigurationError(
        f"unknown restart strategy {name!r} under {options.RESTART_STRATEGY.find(configuration)!r}; "
        "use none, fixed-delay, failure-rate or exponential-delay"
    )


def resolve(
    wish: RestartStrategyConfiguration | None, configuration: Configuration, *, checkpointing: bool
) -> RestartStrategyConfiguration:
    """Return the strategy of the job: the program's, else the configuration's, else the default."""
    if wish is not None and not isinstance(wish, FallbackRestartStrategyConfiguration):
        return wish
    configured = from_configuration(configuration)
    if configured is not None:
        return configured
    if not checkpointing:
        return NoRestartStrategyConfiguration(is_default=True)
    # Flink: the same since 1.20; before, a second after each failure. A bug that each attempt meets again must not cost
    # a restart per second. Flink leaves the keys of the delays aside here; a key that is set counts in Ekorn.
    return _named("exponential-delay", configuration)


def _require_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a whole number, got {value!r}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
