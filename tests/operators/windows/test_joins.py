"""Window joins, co-groups and interval joins, each against the pairs that a loop finds."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ekorn.common import Time, Types
from ekorn.datastream import OutputTag, ProcessFunction
from ekorn.datastream.functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from ekorn.datastream.window import CountTrigger, EventTimeSessionWindows, TumblingEventTimeWindows
from ekorn.errors import InvalidProgramError, UserFunctionError
from ekorn.state.heap.heap_backend import HeapStateBackend
from tests.examples_by_profile import examples
from tests.operators.windows.local_run import collected, collected_with_crashes, environment, timed

LEFT_LATE, RIGHT_LATE = OutputTag("left late"), OutputTag("right late")


def ms(n):
    return Time.milliseconds(n)


def stream(env, records):
    """Return a stream of records (key, number, time) with their times as timestamps."""
    return timed(env, [(r, r[2], None) for r in records])


def key(record):
    return record[0]


class Pair(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        yield left, right, ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp()


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield value, ctx.timestamp()


LEFT = [("a", 1, 1), ("b", 2, 2), ("a", 3, 12)]
RIGHT = [("a", 10, 3), ("a", 11, 4), ("b", 12, 25)]


def joined(left=LEFT, right=RIGHT, assigner=None):
    env = environment()
    both = stream(env, left).join(stream(env, right)).where(key).equal_to(key)
    return both.window(assigner or TumblingEventTimeWindows.of(ms(10)))


def test_a_window_join_gives_every_pair_of_a_key_in_a_window():
    assert sorted(collected(joined().apply(lambda one, other: (one[1], other[1])))) == [(1, 10), (1, 11)]


def test_a_join_function_class():
    class Both(JoinFunction):
        def join(self, first, second):
            return first[1], second[1]

    assert sorted(collected(joined().apply(Both()))) == [(1, 10), (1, 11)]


def test_a_flat_join_function():
    class Some(FlatJoinFunction):
        def join(self, first, second):
            if second[1] == 11:
                yield first[1]
                yield second[1]

    assert collected(joined().apply(Some())) == [1, 11]


def test_results_have_the_last_time_of_their_window():
    assert {t for _, t in collected(joined().apply(lambda one, other: 0).process(Stamped()))} == {9}


def test_a_session_join_needs_both_in_the_merged_session():
    result = joined([("a", 1, 0)], [("a", 2, 8), ("a", 3, 30)], EventTimeSessionWindows.with_gap(ms(10)))
    assert collected(result.apply(lambda one, other: (one[1], other[1]))) == [(1, 2)]


def test_a_join_with_a_trigger():
    result = joined().trigger(CountTrigger.of(2)).apply(lambda one, other: (one[1], other[1]))
    assert len(collected(result)) <= 2


def test_a_stream_joins_with_itself():
    env = environment()
    source = stream(env, LEFT)
    result = source.join(source).where(key).equal_to(key).window(TumblingEventTimeWindows.of(ms(100)))
    assert sorted(collected(result.apply(lambda one, other: (one[1], other[1])))) == [
        (1, 1),
        (1, 3),
        (2, 2),
        (3, 1),
        (3, 3),
    ]


def test_a_co_group_sees_both_sides_and_either_may_be_empty():
    class Sides(CoGroupFunction):
        def co_group(self, first, second):
            yield sorted(r[1] for r in first), sorted(r[1] for r in second)

    env = environment()
    both = stream(env, LEFT).co_group(stream(env, RIGHT)).where(key).equal_to(key)
    assert sorted(collected(both.window(TumblingEventTimeWindows.of(ms(10))).apply(Sides()))) == [
        ([], [12]),
        ([1], [10, 11]),
        ([2], []),
        ([3], []),
    ]


def test_the_order_of_the_calls_is_checked():
    env = environment()
    both = stream(env, LEFT).join(stream(env, RIGHT))
    with pytest.raises(InvalidProgramError, match="where"):
        both.equal_to(key)
    with pytest.raises(InvalidProgramError, match="equal_to"):
        both.where(key).window(TumblingEventTimeWindows.of(ms(10)))


def test_keys_must_be_of_one_type():
    env = environment()
    both = stream(env, LEFT).join(stream(env, RIGHT)).where(key, Types.STRING()).equal_to(key, Types.INT())
    with pytest.raises(InvalidProgramError, match="the same type"):
        both.window(TumblingEventTimeWindows.of(ms(10)))


# ------------------------------------------------------------------------------------------- interval joins


def interval(env, left, right, lower, upper):
    return stream(env, left).key_by(key).interval_join(stream(env, right).key_by(key)).between(ms(lower), ms(upper))


def test_the_example_of_the_reference():
    right = [("a", t, t) for t in (3, 4, 6, 7)]
    pairs = collected(interval(environment(), [("a", 5, 5)], right, -2, 1).process(Pair()))
    assert sorted((one[1], other[1]) for one, other, *_ in pairs) == [(5, 3), (5, 4), (5, 6)]
    assert all((lt, rt, t) == (5, other[2], max(5, other[2])) for _, other, lt, rt, t in pairs)


def test_bounds_may_be_exclusive():
    right = [("a", t, t) for t in (3, 4, 6, 7)]
    join = interval(environment(), [("a", 5, 5)], right, -2, 1).lower_bound_exclusive().upper_bound_exclusive()
    assert [other[1] for _, other, *_ in collected(join.process(Pair()))] == [4]


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="above"):
        interval(environment(), [], [], 2, 1)
    with pytest.raises(ValueError, match="empty"):
        interval(environment(), [], [], 1, 1).lower_bound_exclusive().process(Pair())


def test_records_behind_the_watermark_are_late():
    def build():
        env = environment()
        left = timed(env, [(("a", n, t), t, after) for n, t, after in ((1, 5, 8), (2, 7, 8), (3, 8, None))])
        join = left.key_by(key).interval_join(left.key_by(key)).between(ms(-100), ms(100))
        return join.side_output_left_late_data(LEFT_LATE).side_output_right_late_data(RIGHT_LATE).process(Pair())

    assert sorted((one[1], other[1]) for one, other, *_ in collected(build(), max_records=1)) == [
        (1, 1),
        (1, 3),
        (3, 1),
        (3, 3),
    ]
    assert collected(build().get_side_output(LEFT_LATE), max_records=1) == [("a", 2, 7)]
    assert collected(build().get_side_output(RIGHT_LATE), max_records=1) == [("a", 2, 7)]


def test_interval_joins_need_timestamps():
    env = environment()
    keyed = env.from_collection([("a", 1, 1)]).key_by(key)
    with pytest.raises(UserFunctionError, match="timestamp"):
        collected(keyed.interval_join(keyed).between(ms(0), ms(1)).process(Pair()))


records = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 99), st.integers(0, 20)), max_size=15)
bounds = st.tuples(st.integers(-6, 6), st.integers(0, 8)).map(lambda b: (b[0], b[0] + b[1]))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(records, records, bounds, st.integers(1, 6), st.sets(st.integers(1, 4), max_size=2))
def test_an_interval_join_gives_the_pairs_that_a_loop_finds_whatever_crashes(left, right, bound, epoch, crashes):
    lower, upper = bound
    pairs = [(a, b) for a in left for b in right if a[0] == b[0] and a[2] + lower <= b[2] <= a[2] + upper]
    found = collected_with_crashes(
        lambda env: interval(env, left, right, lower, upper).process(Pair()), max_records=epoch, crash_after=crashes
    )
    assert sorted((a, b) for a, b, *_ in found) == sorted(pairs)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(records, records, st.integers(1, 8), st.integers(1, 6), st.sets(st.integers(1, 4), max_size=2))
def test_a_window_join_gives_the_pairs_that_a_loop_finds_whatever_crashes(left, right, size, epoch, crashes):
    pairs = [(a, b) for a in left for b in right if a[0] == b[0] and a[2] // size == b[2] // size]

    def build(env):
        both = stream(env, left).join(stream(env, right)).where(key).equal_to(key)
        return both.window(TumblingEventTimeWindows.of(ms(size))).apply(lambda one, other: (one, other))

    assert sorted(collected_with_crashes(build, max_records=epoch, crash_after=crashes)) == sorted(pairs)


def test_the_records_of_an_interval_join_go_when_no_partner_can_come():
    from tests.operators.windows.local_run import Run, graph_of

    env = environment()
    left = timed(env, [(("a", n, n), n, n) for n in range(100)])
    run = Run(graph_of(left.key_by(key).interval_join(left.key_by(key)).between(ms(-2), ms(1)).process(Pair())))
    run.deploy()
    run.step(max_records=50)
    (operator,) = [
        s.operators[0] for h in run.engine.hosts for s in h.subtasks.values() if s.operators[0].backend is not None
    ]
    assert isinstance(operator.backend, HeapStateBackend)
    kept = {name: table.whole() for name, table in operator.backend.heap.by_name.items()}
    run.close()
    assert len(kept["_join/left"].values[0]) <= 3
    assert len(kept["_join/right"].values[0]) <= 3
