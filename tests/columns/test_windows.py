"""Windows on columns: the results, late rows and state of the same windows on rows."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ekorn.common import Row, RuntimeExecutionMode, Time, Types
from ekorn.datastream import OutputTag, ProcessFunction
from ekorn.datastream.columns import (
    ColumnStream,
    Count,
    Min,
    Sum,
)
from ekorn.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.errors import InvalidProgramError, JobExecutionError
from tests.columns.marked_orders import (
    AGGREGATES,
    ENGINES,
    IN_ORDER,
    LATE,
    ORDER,
    as_set,
    collected,
    environment,
    in_form,
    marked,
    millis,
    order,
    watermarked,
)
from tests.examples_by_profile import examples
from tests.operators.windows.local_run import Run, graph_of


def keyed_windows(stream, assigner, lateness=0, tag=None):
    windows = stream.key_by("customer").window(assigner).allowed_lateness(lateness)
    return windows if tag is None else windows.side_output_late_data(tag)


@ENGINES
@pytest.mark.parametrize(
    "assigner",
    [
        TumblingEventTimeWindows.of(*millis(10)),
        TumblingEventTimeWindows.of(*millis(10, -3)),
        SlidingEventTimeWindows.of(*millis(10, 5)),
        SlidingEventTimeWindows.of(*millis(10, 4, 1)),
        SlidingEventTimeWindows.of(*millis(3, 10)),
    ],
    ids=repr,
)
def test_windows_give_the_rows_of_windows_on_rows(continuous, assigner):
    records = [order(f"c{n % 3}", None if n % 7 == 0 else n * 5 % 11, n * 3 - 40) for n in range(60)]
    rows, columns = (
        keyed_windows(in_form(form, records, parallelism=2), assigner).aggregate(**AGGREGATES)
        for form in ("rows", "columns")
    )
    assert isinstance(columns, ColumnStream)
    found = collected(columns, continuous=continuous)
    assert found
    assert as_set(found) == as_set(collected(rows, continuous=continuous))


def test_a_result_has_the_key_the_bounds_of_the_window_and_its_last_instant_as_its_timestamp():
    found = keyed_windows(in_form("columns", [order("a", 5, 12)]), TumblingEventTimeWindows.of(*millis(10)))
    result = found.aggregate(total=Sum("amount"))
    assert collected(result) == [Row(customer="a", window_start=10, window_end=20, total=5)]
    again = in_form("columns", [order("a", 5, 12)]).key_by("customer").window(TumblingEventTimeWindows.of(*millis(10)))
    next_windows = again.aggregate(total=Sum("amount")).key_by("total").window(TumblingEventTimeWindows.of(*millis(7)))
    assert collected(next_windows.aggregate(n=Count())) == [Row(total=5, window_start=14, window_end=21, n=1)]


grids = st.builds(
    lambda size, slide, offset, tumbling: (
        TumblingEventTimeWindows.of(*millis(size, offset % size))
        if tumbling
        else SlidingEventTimeWindows.of(*millis(size, slide, offset % slide))
    ),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 11),
    st.booleans(),
)
amounts = st.none() | st.integers(-9, 9)
some_orders = st.lists(
    st.builds(order, st.sampled_from(["a", "b", "", None]), amounts, st.integers(-20, 40)), max_size=40
)


@settings(max_examples=examples(40), deadline=None)
@given(
    records=some_orders,
    assigner=grids,
    lateness=st.sampled_from([0, 0, 3, 20]),
    out_of_order=st.integers(0, 15),
    max_rows=st.integers(1, 10),
    parallelism=st.integers(1, 2),
)
def test_any_rows_in_any_batches_give_the_windows_of_rows(
    *, records, assigner, lateness, out_of_order, max_rows, parallelism
):
    """Without late rows the results are equal; the watermarks of both forms come at other places of the stream."""
    span = max((r.at for r in records), default=0) - min((r.at for r in records), default=0)
    results = [
        keyed_windows(
            in_form(form, records, parallelism=parallelism, out_of_order=span + out_of_order, max_rows=max_rows),
            assigner,
            lateness,
        ).aggregate(**(IN_ORDER if parallelism == 1 else AGGREGATES))
        for form in ("rows", "columns")
    ]
    assert as_set(collected(results[1])) == as_set(collected(results[0]))


def results_and_late_rows(form, records, assigner, lateness, max_rows):
    windows = keyed_windows(marked(form, records, max_rows), assigner, lateness, LATE)
    results = windows.aggregate(**IN_ORDER)
    late = results.get_side_output(LATE)
    assert isinstance(late, ColumnStream) == (form == "columns")
    return collected(results.map(lambda row: ("fired", row)).union(late.map(lambda row: ("late", row))))


marked_orders = st.lists(
    st.builds(order, st.sampled_from(["a", "b", None, "mark"]), amounts, st.integers(-20, 40)), max_size=40
)


@settings(max_examples=examples(60), deadline=None)
@given(
    records=marked_orders,
    assigner=grids,
    lateness=st.sampled_from([0, 1, 5, 30]),
    max_rows=st.integers(1, 10),
)
def test_late_rows_fire_again_or_leave_one_by_one_as_on_rows(records, assigner, lateness, max_rows):
    on_rows = results_and_late_rows("rows", records, assigner, lateness, max_rows)
    on_columns = results_and_late_rows("columns", records, assigner, lateness, max_rows)
    assert as_set(on_columns) == as_set(on_rows)

    def of_each_window(found):
        windows = {}
        for kind, row in found:
            if kind == "fired":
                windows.setdefault((row.customer, row.window_start), []).append(row)
        return windows

    assert of_each_window(on_columns) == of_each_window(on_rows)  # also the order of the results of a window


def test_a_late_row_gives_a_result_with_its_own_timestamp():
    class Times(ProcessFunction):
        def process_element(self, value, ctx):
            yield value.window_start, value.orders, ctx.timestamp()

    records = [order("a", 1, 5), order("mark", 0, 19), order("a", 1, 3), order("a", 1, 9), order("mark", 0, 100)]
    for form in ("rows", "columns"):
        windows = keyed_windows(marked(form, records, 10), TumblingEventTimeWindows.of(*millis(10)), 50)
        found = collected(windows.aggregate(orders=Count()).process(Times()))
        assert found == [(0, 1, 9), (10, 1, 19), (0, 2, 3), (0, 3, 9), (100, 1, 109)]


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_rows_behind_the_allowed_lateness_are_counted(form):
    records = [order("mark", 0, 50), order("a", 1, 3), order("a", 1, 4), order("a", 1, 48), order("a", 1, 45)]
    windows = keyed_windows(marked(form, records, 10), TumblingEventTimeWindows.of(*millis(10)), 3)
    run = Run(graph_of(windows.aggregate(orders=Count())))
    run.deploy()
    run.step()
    run.close()
    counted = [v.values[""] for a in run.acks for k, v in a.metrics.items() if "numLateRecordsDropped" in k]
    assert sum(counted) == 2


@pytest.mark.parametrize("form", ["rows", "columns"])
@pytest.mark.parametrize(
    "assigner", [TumblingEventTimeWindows.of(*millis(10)), TumblingProcessingTimeWindows.of(Time.hours(1))], ids=repr
)
def test_a_batch_program_fires_every_window_once(form, assigner):
    records = [order(f"c{n % 3}", n, n * 7 % 40) for n in range(50)]
    stream = in_form(form, records, parallelism=2)
    stream.get_execution_environment().set_runtime_mode(RuntimeExecutionMode.BATCH)
    found = collected(keyed_windows(stream, assigner).aggregate(orders=Count(), total=Sum("amount")))
    assert sum(row.orders for row in found) == 50
    assert sum(row.total for row in found) == sum(range(50))
    assert len({(row.customer, row.window_start) for row in found}) == len(found)
    assert len(found) == (12 if assigner.is_event_time() else 3)


def test_windows_with_rules_of_their_own_take_rows():
    records = [order("a", n, n * 4) for n in range(10)]
    gap = EventTimeSessionWindows.with_dynamic_gap(lambda row: 10)
    sessions = keyed_windows(in_form("columns", records), gap)
    assert collected(sessions.aggregate(**IN_ORDER)) == [
        Row(
            customer="a",
            window_start=0,
            window_end=46,
            total=45,
            orders=10,
            known=10,
            largest=9,
            mean=4.5,
            distinct=10,
            times=10,
            halves=[4.0, 9.0],
            squares=285,
            first=0,
            last=36,
        )
    ]
    tumbling = TumblingEventTimeWindows.of(*millis(20))
    triggered = keyed_windows(in_form("columns", records), tumbling).trigger(CountTrigger.of(2))
    assert [row.orders for row in collected(triggered.aggregate(orders=Count()))] == [2, 4, 2, 4]
    reduced = keyed_windows(in_form("columns", records), tumbling).reduce(lambda one, other: other)
    assert [row.amount for row in collected(reduced)] == [4, 9]


def test_sessions_that_merge_have_the_aggregates_of_all_their_rows():
    records = [order("a", 5, 0), order("a", 1, 14), order("a", None, 20), order("a", 3, 8)]
    sessions = keyed_windows(in_form("rows", records), EventTimeSessionWindows.with_gap(Time.milliseconds(10)))
    (found,) = collected(sessions.aggregate(smallest=Min("amount"), **AGGREGATES))
    assert found.as_dict() == {
        "customer": "a",
        "window_start": 0,
        "window_end": 30,
        "smallest": 1,
        "total": 9,
        "orders": 4,
        "known": 3,
        "largest": 5,
        "mean": 3.0,
        "distinct": 3,
        "times": 4,
        "halves": [3.0, 5.0],
        "squares": 35,
    }


def test_mistakes_are_refused_where_they_are_written():
    windows = keyed_windows(in_form("columns", []), TumblingEventTimeWindows.of(*millis(10)))
    with pytest.raises(InvalidProgramError, match=r"aggregate\(\): there is no column 'x'"):
        windows.aggregate(total=Sum("x"))
    with pytest.raises(InvalidProgramError, match="have a column 'window_end' with a bound of the window"):
        windows.aggregate(window_end=Count())
    with pytest.raises(TypeError, match="an AggregateFunction, or aggregates by name, and not both"):
        windows.aggregate(None, lambda key, window, values: [], total=Sum("amount"))
    with pytest.raises(TypeError):
        windows.aggregate()
    late = windows.side_output_late_data(OutputTag("late", Types.STRING()))
    with pytest.raises(InvalidProgramError, match=r"late rows have the columns .* of the input"):
        late.aggregate(total=Sum("amount"))
    with pytest.raises(InvalidProgramError, match="needs rows of a declared type with keys by name"):
        by_function = in_form("rows", []).key_by(lambda row: row.customer)
        by_function.window(TumblingEventTimeWindows.of(*millis(10))).aggregate(total=Sum("amount"))


def test_rows_without_timestamps_are_refused_with_advice():
    stream = environment().from_collection([order("a", 1, 2)], ORDER).to_columns()
    with pytest.raises(JobExecutionError, match="has no timestamp, but its windows use event time"):
        collected(keyed_windows(stream, TumblingEventTimeWindows.of(*millis(10))).aggregate(total=Sum("amount")))


def test_a_sum_beyond_64_bits_fails_the_job():
    stream = in_form("columns", [order("a", 2**62, 1), order("a", 2**62, 2)])
    with pytest.raises(JobExecutionError, match=r"Sum\('amount'\) of a key is \d+ with this row, which exceeds"):
        collected(keyed_windows(stream, TumblingEventTimeWindows.of(*millis(10))).aggregate(total=Sum("amount")))


def test_the_plan_has_no_conversion_before_windows_on_columns():
    env = environment()
    stream, strategy = watermarked(env, [])
    columns = stream.to_columns().assign_timestamps_and_watermarks(strategy)
    windows = keyed_windows(columns, TumblingEventTimeWindows.of(*millis(10)))
    windows.aggregate(total=Sum("amount")).map_batches(lambda batch: None, ORDER).print()
    plan = env.explain()
    assert "Window(TumblingEventTimeWindows(10, 0), EventTimeTrigger, WindowRows)" in plan
    assert plan.index("Map Batches") < plan.index("To Rows")  # before the print alone
