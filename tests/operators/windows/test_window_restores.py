"""Windows that are restored by a program that has changed."""

import tempfile

import pytest

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from ekorn.errors import UserFunctionError
from tests.operators.windows.local_run import Run, environment, graph_of, timed
from tests.operators.windows.window_programs import Values, in_any_order, ms


def restored_as(before, after, events=None, max_records=2, state_backend="hashmap"):
    """Take a checkpoint of one program, start another program from it, and return its output."""

    def job(windowed, directory):
        stream = timed(environment(checkpoints=True), events or in_any_order(1, 2, 3)).key_by(lambda v: 0)
        return Run(
            graph_of(windowed(stream).process(Values()).uid("windows")),
            directory=directory,
            state_backend=state_backend,
        )

    with tempfile.TemporaryDirectory() as directory:
        old, new = job(before, directory), job(after, directory)
        old.deploy()
        old.checkpoint(1, max_records=max_records)
        new.attempt = 1
        new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        new.step()
        old.close()
        new.close()
        return new.records


def test_lateness_may_change_between_a_savepoint_and_a_restore():
    def windowed(lateness):
        return lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).allowed_lateness(lateness)

    assert restored_as(windowed(0), windowed(5)) == [[1, 2, 3]]
    assert restored_as(windowed(5), windowed(0)) == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("assigner", "fires"),
    [
        (TumblingEventTimeWindows.of(ms(10)), [[1, 2]]),
        (SlidingEventTimeWindows.of(ms(10), ms(2), ms(1)), [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]),
        (EventTimeSessionWindows.with_gap(ms(5)), [[1, 2]]),
    ],
)
def test_a_window_that_was_kept_for_late_records_gets_them_though_none_are_allowed_any_more(assigner, fires):
    """Time starts again after a restore: a record that was late before is in time, and its window fires once more."""
    before, after = (lambda s, late=late: s.window(assigner).allowed_lateness(late) for late in (50, 0))
    assert restored_as(before, after, [(1, 1, 30), (2, 2, None)], max_records=1) == fires


@pytest.mark.parametrize(
    "after",
    [
        lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).trigger(CountTrigger.of(2)),
        lambda s: s.window(EventTimeSessionWindows.with_gap(ms(10))),
        lambda s: s.window(TumblingEventTimeWindows.of(ms(20))),
    ],
)
@pytest.mark.parametrize("state_backend", ["hashmap", "rocksdb"])
def test_windows_of_another_layout_are_refused(after, state_backend):
    with pytest.raises(UserFunctionError, match="another uid"):
        restored_as(lambda s: s.window(TumblingEventTimeWindows.of(ms(10))), after, state_backend=state_backend)


def tumbling(stream):
    return stream.window(TumblingEventTimeWindows.of(ms(10)))


def sessions(stream):
    return stream.window(EventTimeSessionWindows.with_gap(ms(5)))


def by_count(windowed):
    return lambda stream: windowed(stream).trigger(CountTrigger.of(3))


@pytest.mark.parametrize("state_backend", ["hashmap", "rocksdb"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (tumbling, sessions),
        (sessions, tumbling),
        (by_count(tumbling), by_count(sessions)),
        (by_count(sessions), by_count(tumbling)),
    ],
    ids=["to sessions", "from sessions", "to sessions, own trigger", "from sessions, own trigger"],
)
def test_windows_that_merge_are_not_restored_as_windows_that_do_not_nor_the_other_way_round(
    before, after, state_backend
):
    assert restored_as(before, before, state_backend=state_backend) == [[1, 2, 3]]
    with pytest.raises(UserFunctionError, match=r"the restored state belongs to .*Restore with the old windows"):
        restored_as(before, after, state_backend=state_backend)
