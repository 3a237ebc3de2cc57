"""When a warning says that one of several inputs holds the watermark back."""

from ekorn.operators.time.held_watermark import HeldWatermark
from ekorn.types.time_bounds import MAX_TIMESTAMP


def test_the_input_with_the_least_watermark_is_named_when_others_advance():
    watch = HeldWatermark[str](after_ms=10_000)
    assert watch.check({"a": 5, "b": 7}, now=0.0) is None
    assert watch.check({"a": 5, "b": 9}, now=9.9) is None
    held = watch.check({"a": 5, "b": 11}, now=10.0)
    assert held is not None and (held.input, held.watermark_ms, held.furthest_ms) == ("a", 5, 11)


def test_a_pause_of_all_inputs_is_no_standstill():
    watch = HeldWatermark[str](after_ms=10_000)
    assert all(watch.check({"a": 5, "b": 7}, now=float(now)) is None for now in range(0, 100, 5))


def test_an_input_that_advances_slowly_holds_nothing_back():
    watch = HeldWatermark[str](after_ms=10_000)
    assert all(watch.check({"a": now, "b": 1000 + now}, now=float(now)) is None for now in range(0, 100, 5))


def test_warnings_about_one_standstill_become_rarer_and_a_new_one_starts_anew():
    watch = HeldWatermark[str](after_ms=10_000)
    warned = [now for now in range(200) if watch.check({"a": 5, "b": now + 10}, now=float(now)) is not None]
    assert warned == [10, 20, 40, 80, 160]
    watch.check({"a": 6, "b": 1_000}, now=200.0)
    assert watch.check({"a": 6, "b": 1_001}, now=210.0) is not None


def test_a_single_input_and_an_interval_of_zero_are_never_warned_about():
    assert all(HeldWatermark[str](after_ms=0).check({"a": 5, "b": n}, now=n) is None for n in range(100))
    watch = HeldWatermark[str](after_ms=10)
    assert all(watch.check({"a": 5}, now=float(now)) is None for now in range(100))


def test_an_input_that_has_ended_is_at_the_end_of_input():
    watch = HeldWatermark[str](after_ms=10_000)
    watch.check({"a": 5, "b": 7}, now=0.0)
    held = watch.check({"a": 5, "b": MAX_TIMESTAMP}, now=10.0)
    assert str(held).startswith(
        "stands at 5 ms for 10 s, while the most advanced one is at end of input: windows and timers wait"
    )
