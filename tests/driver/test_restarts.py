"""Restart strategies: the worked examples of the reference, and properties of any sequence of failures."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common.restart_strategy import NoRestartStrategyConfiguration, RestartStrategies
from ekorn.driver.recovery.restarts import restart_strategy
from ekorn.errors import ConfigurationError

SECOND, MINUTE = 1_000, 60_000


def strategy(settings, seed=0):
    return restart_strategy(settings, random.Random(seed))


def answers(settings, *times_ms):
    rule = strategy(settings)
    return [rule.on_failure(t).restart for t in times_ms]


def exponential(*, initial_ms=1000, max_ms=5000, multiplier=2.0, reset_ms=60_000, jitter=0.0, attempts=2**31 - 1):
    return RestartStrategies.exponential_delay_restart(initial_ms, max_ms, multiplier, reset_ms, jitter, attempts)


def test_without_restarts_the_first_failure_is_fatal():
    decision = strategy(RestartStrategies.no_restart()).on_failure(0)
    assert (decision.restart, decision.delay_ms) == (False, 0)
    assert not decision.reason  # the user chose it, so it is no advice
    by_default = strategy(NoRestartStrategyConfiguration(is_default=True)).on_failure(0)
    assert "enable checkpointing, or set restart-strategy.type" in by_default.reason


def test_fixed_delay_restarts_as_often_as_it_says():
    assert answers(RestartStrategies.fixed_delay_restart(3, 10), 0, 1, 2, 3) == [True, True, True, False]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (
            RestartStrategies.fixed_delay_restart(1, 10),
            "the strategy is to restart with a fixed delay of 10 ms, at most 1",
        ),
        (RestartStrategies.failure_rate_restart(1, 10_000, 10), "failure 2 within"),
        (exponential(attempts=1), "failure 2 in a row"),
    ],
)
def test_a_restart_that_is_refused_has_no_delay_and_a_reason(settings, reason):
    rule = strategy(settings)
    first, second = (rule.on_failure(now_ms) for now_ms in (0, 2_000))
    assert (first.restart, second.restart, second.delay_ms) == (True, False, 0)
    assert second.reason.startswith(reason)


def test_fixed_delay_never_forgets_a_failure():
    day = 24 * 3600 * SECOND
    assert answers(RestartStrategies.fixed_delay_restart(1, 10), 0, 1000 * day) == [True, False]


def test_fixed_delay_with_no_attempts_gives_up_at_once():
    assert answers(RestartStrategies.fixed_delay_restart(0, 10), 0) == [False]


def test_fixed_delay_waits_before_every_restart():
    rule = strategy(RestartStrategies.fixed_delay_restart(2, 750))
    assert [rule.on_failure(t).delay_ms for t in (0, 5)] == [750, 750]


@pytest.mark.parametrize(("fourth_ms", "restarts"), [(4 * MINUTE, False), (5 * MINUTE, False), (5 * MINUTE + 1, True)])
def test_failure_rate_counts_the_failures_of_the_last_interval(fourth_ms, restarts):
    settings = RestartStrategies.failure_rate_restart(3, 5 * MINUTE, 1 * SECOND)
    assert answers(settings, 0, 1 * MINUTE, 2 * MINUTE, fourth_ms) == [True, True, True, restarts]


def test_failure_rate_lets_old_failures_go():
    settings = RestartStrategies.failure_rate_restart(1, 100, 7)
    assert answers(settings, 0, 101, 202, 303, 304) == [True, True, True, True, False]
    assert strategy(settings).on_failure(0).delay_ms == 7


def test_exponential_delays_double_up_to_the_longest():
    rule = strategy(exponential())
    now_ms, delays = 0, []
    for _ in range(6):
        delay_ms = rule.on_failure(now_ms).delay_ms
        delays.append(delay_ms)
        now_ms += delay_ms + 1
    assert delays == [1000, 2000, 4000, 5000, 5000, 5000]


@pytest.mark.parametrize(("quiet_ms", "next_delay_ms"), [(59_999, 4000), (60_000, 1000)])
def test_exponential_delay_starts_over_after_a_quiet_time_since_the_planned_restart(quiet_ms, next_delay_ms):
    rule = strategy(exponential())
    assert rule.on_failure(0).delay_ms == 1000
    assert rule.on_failure(1000).delay_ms == 2000  # restart planned for 3000
    assert rule.on_failure(3000 + quiet_ms).delay_ms == next_delay_ms


def test_failures_before_the_planned_restart_join_it():
    rule = strategy(exponential(attempts=2))
    assert rule.on_failure(0).delay_ms == 1000
    assert [rule.on_failure(t).delay_ms for t in (100, 999)] == [900, 1]
    assert rule.on_failure(1000).delay_ms == 2000
    assert rule.on_failure(3000).restart is False


def test_exponential_delay_gives_up_after_so_many_in_a_row():
    assert answers(exponential(attempts=2), 0, 2000, 10_000) == [True, True, False]


def test_a_quiet_time_also_resets_the_count_of_attempts():
    assert answers(exponential(attempts=1, reset_ms=100), 0, 1100, 2200, 3300) == [True, True, True, True]


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=30), st.integers(0, 100), st.floats(0, 1))
def test_jitter_stays_within_its_share_and_the_limits(gaps_ms, seed, jitter):
    settings = exponential(jitter=jitter, reset_ms=10**9)
    rule, plain = strategy(settings, seed), strategy(exponential(reset_ms=10**9))
    now_ms = 0
    for gap_ms in gaps_ms:
        delay_ms = rule.on_failure(now_ms).delay_ms
        expected_ms = plain.on_failure(now_ms * 1000).delay_ms  # far enough apart to be separate failures
        assert 1000 <= delay_ms <= 5000
        assert abs(delay_ms - expected_ms) <= expected_ms * jitter + 1
        now_ms += delay_ms + gap_ms + 1


def test_the_same_seed_gives_the_same_delays():
    def delays(seed):
        rule = strategy(exponential(jitter=0.5), seed)
        return [rule.on_failure(t).delay_ms for t in (0, 10_000, 20_000)]

    assert delays(1) == delays(1) != delays(2)


def test_an_enormous_number_of_failures_does_not_overflow():
    rule = strategy(exponential(multiplier=1e300))
    assert [rule.on_failure(t * 10_000).delay_ms for t in range(5)] == [1000, 5000, 5000, 5000, 5000]


@given(st.lists(st.integers(0, 500), max_size=40), st.integers(1, 4), st.integers(1, 1000))
def test_failure_rate_is_fatal_exactly_when_too_many_fall_into_an_interval(gaps_ms, most, interval_ms):
    rule = strategy(RestartStrategies.failure_rate_restart(most, interval_ms, 0))
    times_ms = [sum(gaps_ms[:i]) for i in range(1, len(gaps_ms) + 1)]
    for count, now_ms in enumerate(times_ms, start=1):
        recent = [t for t in times_ms[:count] if now_ms - t <= interval_ms]
        decision = rule.on_failure(now_ms)
        assert decision.restart == (len(recent) <= most)
        if not decision.restart:
            break


def test_the_fall_back_strategy_must_be_resolved_first():
    with pytest.raises(ConfigurationError, match="resolve"):
        strategy(RestartStrategies.fall_back_restart())
