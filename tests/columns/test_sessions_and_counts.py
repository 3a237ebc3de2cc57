"""Sessions, count windows and `window_all` on columns: the results, late rows and state of the same windows on rows."""

import itertools
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.checkpoint.restore_plan import plan_restore
from ekorn.common import RuntimeExecutionMode
from ekorn.datastream.columns import ColumnStream, Count, First, Last, Sum
from ekorn.datastream.window import (
    CountSlidingWindowAssigner,
    CountTrigger,
    CountTumblingWindowAssigner,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    PurgingTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from tests.columns.marked_orders import (
    AGGREGATES,
    ENGINES,
    IN_ORDER,
    LATE,
    ORDER,
    Marked,
    as_set,
    collected,
    in_form,
    marked,
    millis,
    order,
)
from tests.examples_by_profile import examples
from tests.operators.windows.local_run import Run, collected_with_crashes, graph_of

sessions = st.builds(lambda gap: EventTimeSessionWindows.with_gap(*millis(gap)), st.integers(1, 12))
counts = st.builds(CountTumblingWindowAssigner.of, st.integers(1, 5)) | st.builds(
    CountSlidingWindowAssigner.of, st.integers(1, 5), st.integers(1, 7)
)
grids = st.builds(lambda size: TumblingEventTimeWindows.of(*millis(size)), st.integers(1, 12)) | st.builds(
    lambda size, slide: SlidingEventTimeWindows.of(*millis(size, slide)), st.integers(1, 12), st.integers(1, 12)
)
amounts = st.none() | st.integers(-9, 9)
one_order = st.builds(order, st.sampled_from(["a", "a", "b", None, "mark"]), amounts, st.integers(-20, 40))
marked_orders = st.lists(one_order, max_size=40) | st.lists(one_order, min_size=15, max_size=40)  # many merge


def windows_of(stream, assigner, lateness, *, keyed, tag=LATE):
    windows = stream.key_by("customer").window(assigner) if keyed else stream.window_all(assigner)
    return windows.allowed_lateness(lateness).side_output_late_data(tag)


def fired_and_late(form, records, assigner, lateness, max_rows, *, keyed):
    results = windows_of(marked(form, records, max_rows), assigner, lateness, keyed=keyed).aggregate(**IN_ORDER)
    late = results.get_side_output(LATE)
    assert isinstance(results, ColumnStream) == isinstance(late, ColumnStream) == (form == "columns")
    return collected(results.map(lambda row: ("fired", row)).union(late.map(lambda row: ("late", row))))


@settings(max_examples=examples(80), deadline=None)
@given(
    records=marked_orders,
    assigner=sessions | counts | grids,
    lateness=st.sampled_from([0, 1, 5, 30]),
    max_rows=st.integers(1, 12),
    keyed=st.booleans(),
)
def test_any_rows_in_any_batches_give_the_results_and_late_rows_of_windows_on_rows(
    *, records, assigner, lateness, max_rows, keyed
):
    on_rows, on_columns = (
        fired_and_late(form, records, assigner, lateness, max_rows, keyed=keyed) for form in ("rows", "columns")
    )
    assert as_set(on_columns) == as_set(on_rows)


@ENGINES
@pytest.mark.parametrize(
    "assigner", [EventTimeSessionWindows.with_gap(*millis(4)), CountSlidingWindowAssigner.of(3, 2)], ids=repr
)
def test_both_engines_give_the_rows_of_windows_on_rows(continuous, assigner):
    records = [order(f"c{n % 3}", None if n % 7 == 0 else n * 5 % 11, n * 3 - 40 + n % 5) for n in range(60)]
    found = []
    for form in ("rows", "columns"):
        in_order = isinstance(assigner, CountSlidingWindowAssigner)  # the subtasks before it keep no order
        stream = in_form(form, records, parallelism=1 if in_order else 2, out_of_order=200)
        keyed = stream.key_by("customer").window(assigner).aggregate(**AGGREGATES)
        everything = stream.window_all(assigner).aggregate(total=Sum("amount"), orders=Count())
        found.append([as_set(collected(each, continuous=continuous)) for each in (keyed, everything)])
    assert found[0] == found[1]
    assert all(found[0])


def restored(programs, records, assigner, first, lateness, *, keyed):
    """Run each program to a checkpoint, from which the next one goes on; return the results of each."""
    results, metadata = [], None
    with tempfile.TemporaryDirectory() as directory:
        for attempt, (form, state_backend, max_rows) in enumerate(programs):
            stream = marked(form, records, max_rows)
            stream.get_execution_environment().enable_checkpointing(1000)
            windows = windows_of(stream, assigner, lateness, keyed=keyed).aggregate(**AGGREGATES).uid("windows")
            run = Run(graph_of(windows), directory=directory, state_backend=state_backend)
            run.attempt = attempt
            plan = None
            if metadata is not None:
                plan = plan_restore(run.graph, metadata, directory, allow_non_restored_state=False)
            run.deploy(plan)
            if attempt < len(programs) - 1:
                run.checkpoint(attempt + 1, max_records=first)
                metadata = run.metadata
            else:
                while not run.finished:
                    run.step()
            run.close()
            results.append(as_set(run.records))
    return results


some_programs = st.tuples(
    st.sampled_from(["rows", "columns", "columns"]), st.sampled_from(["hashmap", "rocksdb"]), st.integers(1, 12)
)


@settings(max_examples=examples(15), deadline=None)
@given(
    records=marked_orders,
    assigner=sessions | counts | grids,
    first=st.integers(1, 15),
    lateness=st.sampled_from([0, 5]),
    programs=st.tuples(some_programs, some_programs, some_programs),
    keyed=st.booleans(),
)
def test_a_savepoint_moves_between_rows_and_columns_and_between_the_backends(
    *, records, assigner, first, lateness, programs, keyed
):
    model = restored([("rows", "hashmap", 1)] * 3, records, assigner, first, lateness, keyed=keyed)
    assert restored(programs, records, assigner, first, lateness, keyed=keyed) == model


@settings(max_examples=examples(15), deadline=None)
@given(
    records=st.lists(one_order, min_size=15, max_size=40),
    assigner=sessions | counts,
    crash_after=st.sets(st.integers(1, 12), max_size=4),
    max_records=st.integers(2, 6),
    backends=st.sampled_from([("hashmap",), ("hashmap", "rocksdb")]),
)
def test_crashes_between_checkpoints_of_changes_change_no_result(
    *, records, assigner, crash_after, max_records, backends
):
    found = []
    for form in ("rows", "columns"):

        def build(env, form=form):
            stream = env.from_collection(records, ORDER).assign_timestamps_and_watermarks(Marked())
            stream = stream if form == "rows" else stream.to_columns(max_rows=3)
            return windows_of(stream, assigner, 5, keyed=True).aggregate(**AGGREGATES).uid("windows")

        crashes = {"max_records": max_records, "crash_after": crash_after, "state_backends": backends}
        found.append(as_set(collected_with_crashes(build, **crashes)))
    assert found[0] == found[1]


@pytest.mark.parametrize("max_rows", [1, 10])
def test_a_row_that_is_too_late_is_not_in_a_session_that_a_later_row_opens(max_rows):
    records = [order("mark", 0, 10), order("a", 1, 5), order("a", 2, 8), order("a", 3, 3), order("mark", 0, 40)]
    assigner = EventTimeSessionWindows.with_gap(*millis(5))
    found = fired_and_late("columns", records, assigner, 0, max_rows, keyed=True)
    assert [row.total for kind, row in found if kind == "fired" and row.customer == "a"] == [5]  # the third one touches
    assert [row.amount for kind, row in found if kind == "late"] == [1]
    assert as_set(found) == as_set(fired_and_late("rows", records, assigner, 0, 1, keyed=True))


def test_the_trigger_of_rows_goes_on_counting_where_columns_have_stopped():
    records = [order("a", n, n) for n in range(12)]
    for backends in itertools.product(["hashmap", "rocksdb"], repeat=3):
        programs = list(zip(["rows", "columns", "rows"], backends, [1, 5, 1], strict=True))
        found = restored(programs, records, CountTumblingWindowAssigner.of(7), 2, 0, keyed=True)
        assert [len(each) for each in found] == [0, 0, 1]


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "all"])
def test_sessions_by_processing_time_end_with_the_clock(form, keyed):
    records = [order(f"c{n % 2}", n, n) for n in range(8)]
    assigner = ProcessingTimeSessionWindows.with_gap(*millis(10))
    stream = in_form(form, records)
    results = windows_of(stream, assigner, 0, keyed=keyed).aggregate(total=Sum("amount"), n=Count())
    run = Run(graph_of(results))
    run.deploy()
    start = run.clock.now_ms()
    run.step(max_records=4)
    assert run.records == []
    run.clock.advance(9)
    run.step(max_records=2)  # joins the sessions
    run.clock.advance(10)
    run.step(max_records=1)
    fired = [(row.window_start - start, row.window_end - start, row.n) for row in run.records]
    assert sorted(fired) == ([(0, 19, 3), (0, 19, 3)] if keyed else [(0, 19, 6)])
    run.close()


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (EventTimeSessionWindows.with_gap(*millis(5)), [("a", 6), ("b", 1), ("b", 2)]),
        (CountTumblingWindowAssigner.of(2), [("a", 3), ("a", 7), ("a", 11), ("b", 6)]),
    ],
    ids=repr,
)
def test_a_batch_program_takes_rows_in_the_order_of_their_timestamps(form, assigner, expected):
    times = {"a": [3, 1, 2, 0, 5, 4], "b": [9, 0, 1]}
    records = [order(key, at, at) for key, of_key in times.items() for at in of_key]
    records = list(itertools.chain(records[1::2], records[::2]))
    stream = in_form(form, records)
    stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    windows = stream.key_by("customer").window(assigner)
    found = collected(windows.aggregate(n=Count(), total=Sum("amount"), first=First("amount"), last=Last("amount")))
    if isinstance(assigner, CountTumblingWindowAssigner):
        pairs = sorted((row.customer, row.first, row.last) for row in found)
        assert pairs == [("a", 0, 1), ("a", 2, 3), ("a", 4, 5), ("b", 0, 1)]
    else:
        assert sorted((row.customer, row.n) for row in found) == expected


def test_windows_with_triggers_and_gaps_of_their_own_take_rows():
    records = [order("a", n, n * 4) for n in range(10)]
    stream = in_form("columns", records).key_by("customer")
    triggered = stream.window(CountTumblingWindowAssigner.of(5)).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    assert [row.orders for row in collected(triggered.aggregate(orders=Count()))] == [2, 2, 2, 2]
    dynamic = stream.window(EventTimeSessionWindows.with_dynamic_gap(lambda row: 5 if row.amount != 3 else 1))
    assert [row.orders for row in collected(dynamic.aggregate(orders=Count()))] == [4, 6]
    for windows in (triggered, dynamic):
        assert not isinstance(windows.aggregate(orders=Count()), ColumnStream)
