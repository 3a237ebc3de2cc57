import logging

import pytest

from ekorn.common import ManualClock
from ekorn.metrics import Counter, MetricGroup


def test_a_tree_of_groups_is_reported_flat():
    group = MetricGroup(ManualClock())
    group.counter("records").inc(3)
    group.add_group("shop").counter("orders").dec()
    group.add_group("shop").add_group("deep").gauge("size", lambda: 7)
    assert group.snapshot() == {"records": 3, "shop.orders": -1, "shop.deep.size": 7}


def test_a_group_with_a_value_is_a_variable():
    group = MetricGroup(variables={"operator": "map"}).add_group("partition", "0")
    group.counter("n").inc()
    assert group.get_all_variables() == {"operator": "map", "partition": "0"}
    root = MetricGroup()
    root.add_group("partition", "0").counter("n").inc()
    assert root.snapshot() == {"partition.0.n": 1}


def test_a_meter_reports_events_per_second_over_its_span():
    clock = ManualClock()
    meter = MetricGroup(clock).meter("m", time_span_in_seconds=10)
    meter.mark_event(20)
    assert (meter.get_count(), meter.get_rate()) == (20, 2.0)
    clock.advance(9_000)
    meter.mark_event(10)
    assert meter.get_rate() == 3.0
    clock.advance(1_000)
    assert meter.get_rate() == 1.0
    clock.advance(60_000)
    assert (meter.get_count(), meter.get_rate()) == (30, 0.0)
    with pytest.raises(ValueError, match="time span"):
        MetricGroup().meter("bad", 0)


def test_meters_and_distributions_report_several_values():
    group = MetricGroup(ManualClock())
    group.meter("m").mark_event(60)
    distribution = group.distribution("d")
    assert group.snapshot()["d.mean"] is None
    for value in (1, 2, 6):
        distribution.update(value)
    assert group.snapshot() == {
        "m.count": 60,
        "m.rate": 1.0,
        "d.count": 3,
        "d.sum": 9,
        "d.min": 1,
        "d.max": 6,
        "d.mean": 3.0,
    }


def test_the_first_metric_of_a_name_is_reported_and_a_warning_logged(caplog):
    group = MetricGroup()
    first = group.counter("n")
    first.inc()
    with caplog.at_level(logging.WARNING):
        second = group.counter("n")
        other_kind = group.distribution("n")
        group.gauge("n", lambda: 5)
    other_kind.update(100)
    assert isinstance(second, Counter)
    assert group.snapshot() == {"n": 1}
    assert caplog.text.count("'n' is already registered") == 3


def test_a_gauge_that_raises_does_not_spoil_the_report(caplog):
    group = MetricGroup()
    group.gauge("bad", lambda: 1 / 0)
    group.counter("good").inc()
    assert group.snapshot() == {"good": 1}
    assert "'bad' raised" in caplog.text
    with pytest.raises(TypeError, match="function without arguments"):
        group.gauge("worse", 5)  # type: ignore[arg-type]
