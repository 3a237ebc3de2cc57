import pickle
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Clock, Duration, Instant, ManualClock, SystemClock, Time
from ekorn.types.time import millis_of


def test_lengths_are_given_in_any_unit():
    assert Duration.of_days(1) == Duration.of_hours(24) == Duration.of_minutes(1440) == Duration.of_seconds(86400)
    assert Duration.of_millis(1) == Duration.of_nanos(1_000_000)
    assert Time.days(1) == Time.hours(24) == Time.minutes(1440) == Time.seconds(86400) == Time.milliseconds(86_400_000)
    assert str(Time.seconds(3)) == "3000 ms"


def test_durations_print_as_java_prints_them():
    assert repr(Duration.of_hours(49)) == "PT49H"
    assert repr(Duration.of_millis(90_500)) == "PT1M30.5S"
    assert repr(Duration.of_millis(0)) == "PT0S"
    assert repr(Duration.of_minutes(-1)) == "PT-1M"


def test_a_length_must_be_whole():
    with pytest.raises(TypeError, match="seconds must be an int"):
        Duration.of_seconds(1.5)  # type: ignore[arg-type]


def test_a_length_is_taken_in_four_ways():
    assert (
        millis_of(Duration.of_seconds(1)) == millis_of(Time(1000)) == millis_of(timedelta(seconds=1)) == millis_of(1000)
    )
    for wrong in ("1 s", 1.5, True, None):
        with pytest.raises(TypeError, match="length of time"):
            millis_of(wrong)  # type: ignore[arg-type]


@given(st.integers(-(10**15), 10**15))
def test_an_instant_keeps_its_milliseconds_on_both_sides_of_the_epoch(millis):
    instant = Instant.of_epoch_milli(millis)
    assert instant.to_epoch_milli() == millis
    assert 0 <= instant.nanos < 10**9


def test_times_compare_hash_and_pickle():
    pairs: list[tuple[Any, Any]] = [
        (Duration.of_millis(1), Duration.of_millis(2)),
        (Time(1), Time(2)),
        (Instant(1, 2), Instant(2, 0)),
    ]
    for small, big in pairs:
        assert small < big
        assert len({small, pickle.loads(pickle.dumps(small)), big}) == 2
    assert repr(Instant.of_epoch_milli(-1)) == "Instant<-1, 999000000>"


def test_a_manual_clock_moves_only_when_told():
    clock = ManualClock(now_ms=100)
    clock.sleep(1.5)
    clock.advance(500)
    assert (clock.now_ms(), clock.monotonic()) == (2100, 2.0)
    clock.set_ms(50)
    assert (clock.now_ms(), clock.monotonic()) == (50, 2.0)
    with pytest.raises(ValueError, match="set_ms"):
        clock.advance(-1)


def test_both_clocks_are_clocks():
    assert isinstance(ManualClock(), Clock)
    assert isinstance(SystemClock(), Clock)
    assert SystemClock().now_ms() > 1_600_000_000_000
    SystemClock().sleep(0)
