"""When the next periodic checkpoint is due: by the interval, by a pause, more rarely while sources have a backlog."""

import pytest

from ekorn.checkpoint.schedule import CoordinatorSettings, Schedule


def schedule(now_ms=1_000, **settings):
    made = Schedule(CoordinatorSettings(**{"interval_ms": 100, **settings}))
    made.begin(now_ms)
    return made


def test_checkpoints_are_due_at_multiples_of_the_interval_after_the_start():
    due = schedule()
    assert due.due_ms() == 1_100
    due.triggered(1_100)
    assert due.due_ms() == 1_200
    due.triggered(1_350)  # late: what was missed is not made up for
    assert due.due_ms() == 1_400
    due.triggered(1_400)
    assert due.due_ms() == 1_500


def test_without_an_interval_none_is_due():
    assert schedule(interval_ms=None).due_ms() is None


def test_a_pause_begins_with_the_end_of_a_checkpoint():
    due = schedule(min_pause_ms=70)
    due.triggered(1_100)
    due.completed(1_120)
    assert due.due_ms() == 1_200
    due.completed(1_150)
    assert due.due_ms() == 1_220


def test_an_interval_is_never_shorter_than_the_pause():
    assert schedule(min_pause_ms=250).due_ms() == 1_250


def test_during_a_backlog_checkpoints_are_as_rare_as_configured_counted_from_the_start_or_the_last_one():
    due = schedule(backlog_interval_ms=300)
    due.backlog = True
    assert due.due_ms() == 1_300
    due.triggered(1_300)
    assert due.due_ms() == 1_600
    due.backlog = False
    assert due.due_ms() == 1_400
    due.backlog = True
    due.begin(5_000)  # the job restarts
    assert due.due_ms() == 5_300


@pytest.mark.parametrize(("slower", "expected"), [(0, None), (None, 1_100), (100, 1_100)])
def test_during_a_backlog_there_are_no_checkpoints_or_the_usual_ones_where_that_is_configured(slower, expected):
    due = schedule(backlog_interval_ms=slower)
    due.backlog = True
    assert due.due_ms() == expected
