"""Sliding windows in slices after crashes, at another parallelism, on another backend, in another program."""

import itertools
import math
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.datastream.window import (
    CountTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from ekorn.errors import UserFunctionError
from ekorn.functions.rolling_aggregates import MaxFunction
from tests.examples_by_profile import examples
from tests.operators.windows.local_run import Run, environment, graph_of, timed
from tests.operators.windows.sliced_programs import (
    CHOICES,
    SLOW_IS_FINE,
    Show,
    ShowOne,
    events_of,
    functions,
    in_panes,
    in_slices,
    latenesses,
    ms,
    odd_streams,
    of_keys,
    program,
    streams,
    timed_values,
    window_operators,
    windows,
)

# ------------------------------------------------------------------------------------------- crashes and rescaling


def collected_in_attempts(build, cuts, layout):
    """Return the output of a job that is restarted from checkpoints, at another parallelism each time.

    There is an attempt per cut: (records per epoch, number of epochs, parallelism). `layout` returns how the windows of
    an attempt are kept, given its number.
    """
    records, metadata = [], None
    with tempfile.TemporaryDirectory() as directory:
        for attempt, (epoch_records, epochs, parallelism) in enumerate([*cuts, (1 << 30, 1 << 30, 1)]):
            env = environment(parallelism, checkpoints=True)
            env.set_max_parallelism(8)
            keeps, backend = layout(attempt)
            run = Run(graph_of(build(env).uid("windows")), directory=directory, state_backend=backend)
            run.attempt = attempt
            with keeps():
                run.deploy(metadata and plan_restore(run.graph, metadata, directory, allow_non_restored_state=False))  # type: ignore[arg-type]
            for epoch in range(epochs):
                run.checkpoint(attempt * 100 + epoch + 1, epoch_records)
                metadata = run.metadata
                if run.finished:
                    break
            run.close()
            records += run.records
            if run.finished:
                return records
    raise AssertionError("the last attempt goes on to the end")


attempts = st.lists(st.tuples(st.integers(1, 8), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=4)
SLICES, PANES, ROCKSDB = (in_slices, "hashmap"), (in_panes, "hashmap"), (in_slices, "rocksdb")
layouts = st.lists(st.sampled_from([SLICES, SLICES, SLICES, SLICES, PANES, ROCKSDB]), min_size=5, max_size=5)


def always_in_panes(attempt):
    return PANES


@settings(max_examples=examples(50), **SLOW_IS_FINE)
@given(streams, windows, st.lists(latenesses, min_size=1, max_size=2), functions, attempts, layouts)
def test_crashes_and_other_parallelisms_do_to_slices_what_they_do_to_panes(  # noqa: PLR0917
    stream, window, lateness, function, cuts, layout
):
    """Records arrive in any order; after a restore, when time starts again, also for windows that were over before.

    Every attempt may have another layout, and another allowed lateness unless one of the attempts uses RocksDB.
    """
    events = timed_values(events_of(stream))
    lateness = lateness[:1] if ROCKSDB in layout else lateness

    def run(layout):
        turns = itertools.cycle(lateness)
        build = lambda env: program(timed(env, events), function, window, lateness=next(turns))  # noqa: E731
        return of_keys(collected_in_attempts(build, cuts, layout))

    assert run(lambda attempt: layout[attempt]) == run(always_in_panes)


@settings(max_examples=examples(50), **SLOW_IS_FINE)
@given(odd_streams, windows, latenesses, st.sampled_from(CHOICES), attempts, layouts)
def test_subtasks_that_had_to_leave_slices_are_restored_with_those_that_had_not(  # noqa: PLR0917
    stream, window, lateness, choose, cuts, layout
):
    events = [((key, value, i), time, after) for i, (key, value, time, after) in enumerate(stream)]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        windowed = keyed.window(SlidingEventTimeWindows.of(ms(window[0]), ms(window[1]), ms(window[2])))
        return windowed.allowed_lateness(lateness).reduce(choose, ShowOne())

    sliced = of_keys(collected_in_attempts(build, cuts, lambda attempt: layout[attempt]))
    assert sliced == of_keys(collected_in_attempts(build, cuts, always_in_panes))


def test_keys_that_had_come_to_different_times_go_on_from_there_in_one_subtask():
    """One of two subtasks has left slices: its windows are in panes up to a much later time than those of the other."""
    values = [(key, number) for number in range(4) for key in "abcdefgh"]
    events = [((key, number), number * 2, None) for key, number in values]
    events[20:20] = [(("a", math.nan), 3, 3)]  # type: ignore[list-item]

    def build(env):
        keyed = timed(env, events).key_by(lambda v: v[0])
        return keyed.window(SlidingEventTimeWindows.of(ms(6), ms(2))).reduce(MaxFunction(1), ShowOne())

    def run(parallelism, layout):
        return of_keys(collected_in_attempts(build, [(22, 1, 2), (5, 1, parallelism)], layout))

    wanted = run(1, always_in_panes)
    assert run(1, lambda attempt: SLICES) == run(3, lambda attempt: SLICES) == wanted


# ------------------------------------------------------------------------------------------- checkpoints


def restored_as(before, after):
    """Take a checkpoint of one program, start another program from it, and return its output."""

    def job(draw, directory):
        stream = timed(environment(checkpoints=True), [(("a", n), n, None) for n in (1, 2, 3)]).key_by(lambda v: v[0])
        return Run(graph_of(draw(stream).uid("windows")), directory=directory)

    with in_slices(), tempfile.TemporaryDirectory() as directory:
        old, new = job(before, directory), job(after, directory)
        old.deploy()
        old.checkpoint(1, max_records=2)
        new.attempt = 1
        new.deploy(plan_restore(new.graph, old.metadata, directory, allow_non_restored_state=False))
        new.step()
        old.close()
        new.close()
        return new.records


def sliding(size, slide, offset=0):
    return lambda stream: stream.window(SlidingEventTimeWindows.of(ms(size), ms(slide), ms(offset)))


@pytest.mark.parametrize(
    "after",
    [
        lambda s: sliding(10, 2)(s).process(Show()),
        lambda s: sliding(10, 5, 1)(s).process(Show()),
        lambda s: sliding(20, 5)(s).process(Show()),
        lambda s: sliding(10, 5)(s).reduce(lambda one, other: one),
        lambda s: sliding(10, 5)(s).trigger(CountTrigger.of(2)).process(Show()),
        lambda s: s.window(TumblingEventTimeWindows.of(ms(10))).process(Show()),
    ],
)
def test_slices_are_not_restored_as_other_windows(after):
    with pytest.raises(UserFunctionError, match="another uid"):
        restored_as(lambda s: sliding(10, 5)(s).process(Show()), after)


def test_a_checkpoint_has_what_changed_and_no_more():
    """A record is written once, not with each of its windows. Other slices of its key are not written again."""
    events = [((str(key), slide), slide, None) for slide in range(20) for key in range(50)]
    events += [(("7", n), 19, None) for n in range(3)]
    stream = timed(environment(checkpoints=True), events)
    with in_slices(), tempfile.TemporaryDirectory() as directory:
        run = Run(graph_of(program(stream, "all records", (20, 1, 0), lateness=0)), directory=directory)
        run.deploy()
        run.checkpoint(1, max_records=1000)
        (operator,) = window_operators(run)
        whole = operator.backend.heap.by_name["_window/slices"].whole()
        run.step(max_records=2)
        table = operator.backend.heap.by_name["_window/slices"]
        changed = table.some(table.take_changed())
        run.close()
    assert len(whole.keys) == 1000 and sum(len(contents) for contents, _ in whole.values) == 1000
    assert (changed.keys, changed.gone) == ([("7", (19, 20))], [])
    assert changed.values[0][0] == [("7", 19), ("7", 0), ("7", 1)]
