import pytest

from ekorn.common import Configuration, Duration, RestartStrategies
from ekorn.common.restart_strategy import (
    ExponentialDelayRestartStrategyConfiguration,
    FailureRateRestartStrategyConfiguration,
    FixedDelayRestartStrategyConfiguration,
    NoRestartStrategyConfiguration,
    RestartStrategyConfiguration,
)
from ekorn.config.restart_strategy import from_configuration, resolve
from ekorn.errors import ConfigurationError


def configured(**values):
    prefix = "restart-strategy"
    keys = {name.replace("__", ".").replace("_", "-"): value for name, value in values.items()}
    return Configuration.from_dict({f"{prefix}.{key}" if key else prefix: value for key, value in keys.items()})


@pytest.mark.parametrize("name", ["none", "off", "disable", "NONE"])
@pytest.mark.parametrize("key", ["restart-strategy", "restart-strategy.type"])
def test_restarts_can_be_switched_off_under_any_of_its_names(key, name):
    assert from_configuration(Configuration.from_dict({key: name})) == NoRestartStrategyConfiguration()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("fixed-delay", "fixeddelay"), FixedDelayRestartStrategyConfiguration(1, 1000)),
        (("failure-rate", "failurerate"), FailureRateRestartStrategyConfiguration(1, 60_000, 1000)),
        (
            ("exponential-delay", "exponentialdelay"),
            ExponentialDelayRestartStrategyConfiguration(1000, 60_000, 1.5, 3_600_000, 0.1),
        ),
    ],
)
def test_each_strategy_has_defaults_and_an_alias(names, expected):
    for name in names:
        assert from_configuration(configured(type=name)) == expected


def test_the_numbers_of_a_strategy_are_read_from_its_keys():
    assert from_configuration(
        configured(type="fixed-delay", fixed_delay__attempts="3", fixed_delay__delay="10 s")
    ) == RestartStrategies.fixed_delay_restart(3, 10_000)
    assert from_configuration(
        configured(
            type="failure-rate",
            failure_rate__max_failures_per_interval="3",
            failure_rate__failure_rate_interval="5 min",
            failure_rate__delay="0",
        )
    ) == RestartStrategies.failure_rate_restart(3, 300_000, 0)


def test_an_unknown_strategy_or_number_is_an_error_that_names_it():
    with pytest.raises(ConfigurationError, match=r"'sometimes' under 'restart-strategy\.type'"):
        from_configuration(configured(type="sometimes"))
    with pytest.raises(ConfigurationError, match=r"fixed-delay\.delay"):
        from_configuration(configured(type="fixed-delay", fixed_delay__delay="-1"))
    with pytest.raises(ConfigurationError, match="maximum backoff"):
        from_configuration(configured(type="exponential-delay", exponential_delay__max_backoff="1 ms"))


def test_the_programs_wish_comes_before_the_configurations_and_that_before_the_default():
    wish, config = RestartStrategies.fixed_delay_restart(7, 0), configured(type="none")
    assert resolve(wish, config, checkpointing=True) is wish
    for no_wish in (None, RestartStrategies.fall_back_restart()):
        assert resolve(no_wish, config, checkpointing=True) == NoRestartStrategyConfiguration()
        assert resolve(no_wish, Configuration(), checkpointing=False) == NoRestartStrategyConfiguration()
        assert resolve(no_wish, Configuration(), checkpointing=True) == RestartStrategies.exponential_delay_restart(
            1000, 60_000, 1.5, 3_600_000, 0.1, 2**31 - 1
        )


def test_the_default_takes_the_delays_that_are_configured():
    strategy = resolve(None, configured(exponential_delay__max_backoff="5 s"), checkpointing=True)
    assert isinstance(strategy, ExponentialDelayRestartStrategyConfiguration)
    assert (strategy.initial_backoff_ms, strategy.max_backoff_ms) == (1000, 5000)
    with pytest.raises(ConfigurationError, match="maximum backoff"):
        resolve(None, configured(exponential_delay__max_backoff="1 ms"), checkpointing=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartStrategies.fixed_delay_restart(-1, 0),
        lambda: RestartStrategies.fixed_delay_restart(1, -1),
        lambda: RestartStrategies.failure_rate_restart(0, 1, 1),
        lambda: RestartStrategies.failure_rate_restart(1, 0, 1),
        lambda: RestartStrategies.failure_rate_restart(1, 1, -1),
        lambda: RestartStrategies.exponential_delay_restart(0, 1, 2.0, 1, 0.0),
        lambda: RestartStrategies.exponential_delay_restart(1, 1, 1.0, 1, 0.0),
        lambda: RestartStrategies.exponential_delay_restart(1, 1, 2.0, 0, 0.0),
        lambda: RestartStrategies.exponential_delay_restart(1, 1, 2.0, 1, 1.5),
        lambda: RestartStrategies.exponential_delay_restart(1, 1, 2.0, 1, 0.0, 0),
    ],
)
def test_numbers_without_meaning_are_refused_at_the_call(make):
    with pytest.raises(ValueError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: RestartStrategies.fixed_delay_restart(1.5, 1),  # type: ignore[arg-type]
        lambda: RestartStrategies.fixed_delay_restart("3", 1),  # type: ignore[arg-type]
        lambda: RestartStrategies.fixed_delay_restart(True, 1),
        lambda: RestartStrategies.failure_rate_restart(0.5, 1000, 1),  # type: ignore[arg-type]
        lambda: RestartStrategies.exponential_delay_restart(1, 10, "2", 100, 0.1),  # type: ignore[arg-type]
        lambda: RestartStrategies.exponential_delay_restart(1, 10, 2, 100, None),  # type: ignore[arg-type]
        lambda: RestartStrategies.exponential_delay_restart(1, 10, 2, 100, 0.1, 2.5),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_number_is_refused_at_the_call(make):
    with pytest.raises(TypeError, match="number, got"):
        make()


def test_strategies_describe_themselves():
    assert RestartStrategies.no_restart().get_description() == "restart deactivated"
    assert "3 failures within 5000 ms" in RestartStrategies.failure_rate_restart(3, 5000, 1).get_description()
    assert "configuration" in RestartStrategies.fall_back_restart().get_description()
    description = RestartStrategies.exponential_delay_restart(1, Duration.of_seconds(5), 2.0, 10, 0.0).get_description()
    assert "growing by 2.0 up to 5000 ms" in description
    with pytest.raises(TypeError, match="RestartStrategies"):
        RestartStrategyConfiguration().get_description()
