"""Two connected streams: each record goes to the method of its side; with keys, state and timers are shared."""

from typing import Any

import pytest

from ekorn.common import Types
from ekorn.datastream import (
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
    TimeDomain,
)
from ekorn.errors import JobExecutionError, UnsupportedOperationError
from ekorn.testing.by_epoch import by_epoch, timed
from ekorn.testing.local_run import collect_locally
from ekorn.testing.scripted import run_scripted
from ekorn.types.time_bounds import MAX_TIMESTAMP, MIN_TIMESTAMP
from tests.program.two_streams import LEFT, RIGHT, CountBoth, Label, Seen, Sides, Words, both, first, last_counts


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


# ------------------------------------------------------------------------------------------------ each function


def test_a_co_map_calls_the_method_of_the_side(env):
    assert collect_locally(both(env, [1, 2], ["a"]).map(Label())) == ["number 1", "number 2", "word a"]


def test_a_co_map_that_gives_none_gives_nothing(env):
    assert collect_locally(both(env, [-1, 2], ["", "b"]).map(Label())) == ["number 2", "word b"]


def test_a_co_flat_map_gives_any_number(env):
    assert collect_locally(both(env, ["to be", "", "or"], [2, 0, -1, 1]).flat_map(Words())) == [
        "to", "be", "or", 2, 2, 1,
    ]  # fmt: skip


def test_a_co_process_sees_time(env):
    left = timed(env.from_collection([("x", 5, 4), ("y", 6, None)]))
    found = collect_locally(left.connect(env.from_collection(["z", None])).process(Sides()))
    assert found == [(1, "x", 5, MIN_TIMESTAMP), (1, "y", 6, MIN_TIMESTAMP), (2, "z", None, MIN_TIMESTAMP)]


class Lifecycle(CoMapFunction):
    def open(self, runtime_context):
        self.name = runtime_context.get_task_name()
        print("open", self.name)

    def map1(self, value):
        return value

    def map2(self, value):
        return value

    def close(self):
        print("close", self.name)


def test_a_function_is_opened_and_closed_once(env, capsys):
    collect_locally(both(env, [1, 2], [3, 4]).map(Lifecycle()))
    names = "Co-Map -> Sink: Data stream collect sink"
    assert capsys.readouterr().out.splitlines() == [f"open {names}", f"close {names}"]


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (lambda c: c.map(Label()), "Co-Map"),
        (lambda c: c.flat_map(Words()), "Co-Flat Map"),
        (lambda c: c.process(Sides()), "Co-Process"),
        (lambda c: c.key_by(first, first).process(CountBoth()), "Keyed Co-Process"),
    ],
)
def test_operators_are_called_as_in_pyflink(env, draw, name):
    assert draw(both(env)).get_name() == name


def test_the_declared_type_of_the_output_holds(env):
    bad = both(env, [1], ["a"]).map(Label(), output_type=Types.INT()).rebalance().map(lambda v: v)
    with pytest.raises(JobExecutionError, match=r"'number 1' does not fit the declared type Integer"):
        collect_locally(bad)


# ----------------------------------------------------------------------------------------------- state and keys


@pytest.mark.parametrize("parallelism", [1, 3])
def test_both_sides_share_the_state_of_a_key(env, parallelism):
    env.set_parallelism(parallelism)
    found = collect_locally(both(env).key_by(first, first).process(CountBoth()))
    assert last_counts(found) == {"a": 7, "b": 3, "c": 1}
    for key in "abc":
        assert [f[2] for f in found if f[0] == "left" and f[1] == key] == [v for k, v in LEFT if k == key]
        assert [f[2] for f in found if f[0] == "right" and f[1] == key] == [v for k, v in RIGHT if k == key]


def test_two_keyed_streams_are_keyed_together(env):
    left, right = (env.from_collection(records).key_by(first) for records in (LEFT, RIGHT))
    assert last_counts(collect_locally(left.connect(right).process(CountBoth()))) == {"a": 7, "b": 3, "c": 1}


def test_key_by_gives_keyed_streams_other_keys(env):
    left, right = (env.from_collection(records).key_by(lambda v: v[1]) for records in (LEFT, RIGHT))
    found = collect_locally(left.connect(right).key_by(first, first).process(CountBoth()))
    assert last_counts(found) == {"a": 7, "b": 3, "c": 1}


def test_the_two_sides_find_their_keys_in_their_own_way(env):
    env.set_parallelism(2)
    connected = both(env, [("a", 1), ("b", 2)], [(10, "b"), (20, "a")])
    found = collect_locally(connected.key_by(first, lambda v: v[1]).process(CountBoth()))
    assert sorted(f[:2] for f in found) == [("left", "a"), ("left", "b"), ("right", "a"), ("right", "b")]
    assert last_counts(found) == {"a": 2, "b": 2}


def test_keys_can_be_fields(env):
    assert last_counts(collect_locally(both(env).key_by(0, [0]).process(CountBoth()))) == {
        ("a",): 7,
        ("b",): 3,
        ("c",): 1,
    }


def test_declared_key_types_bring_keys_together(env):
    connected = both(env, [(1, "x")], [(1.0, "y"), (True, "z")])
    found = collect_locally(connected.key_by(first, first, Types.DOUBLE()).process(CountBoth()))
    assert last_counts(found) == {1.0: 3}


class Opened(KeySelector):
    def open(self, runtime_context):
        self.field = 0

    def get_key(self, value):
        return value[self.field]


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_key_selectors_of_both_sides_are_opened(env, mode):
    env.set_runtime_mode(mode).set_parallelism(2)
    assert last_counts(collect_locally(both(env).key_by(Opened(), Opened()).process(CountBoth()))) == {
        "a": 7,
        "b": 3,
        "c": 1,
    }


class SeenFlat(CoFlatMapFunction):
    seen: Any
    open = Seen.open

    def flat_map1(self, value):
        self.seen.add(value[1])

    def flat_map2(self, value):
        yield value[0], list(self.seen.get())


@pytest.mark.parametrize("draw", [lambda c: c.map(Seen()), lambda c: c.flat_map(SeenFlat())])
def test_co_maps_have_state_per_key(env, draw):
    found = collect_locally(draw(both(env, LEFT, [("a", 0), ("b", 0), ("c", 0)]).key_by(first, first)))
    assert found == [("a", [1, 2, 4]), ("b", [3, 5]), ("c", [])]


class CountInCoProcess(CoProcessFunction):
    open = CountBoth.open
    process_element1 = CountBoth.process_element1
    process_element2 = CountBoth.process_element2
    _next = CountBoth._next


def test_a_plain_co_process_function_has_keys_too_where_both_streams_do(env):
    found = collect_locally(both(env).key_by(first, first).process(CountInCoProcess()))
    assert last_counts(found) == {"a": 7, "b": 3, "c": 1}


def test_a_stream_can_be_connected_with_itself(env):
    stream = env.from_collection(LEFT)
    found = collect_locally(stream.connect(stream).key_by(first, first).process(CountBoth()))
    assert last_counts(found) == {"a": 6, "b": 4}


def test_unions_and_side_outputs_can_be_connected(env):
    odd = OutputTag("odd")

    class Split(ProcessFunction):
        def process_element(self, value, ctx):
            if value[1] % 2:
                yield odd, value
            else:
                yield value

    split = env.from_collection(LEFT).process(Split())
    union = split.union(env.from_collection([("c", 0)]))
    found = collect_locally(union.connect(split.get_side_output(odd)).key_by(first, first).process(CountBoth()))
    assert last_counts(found) == {"a": 3, "b": 2, "c": 1}
    assert sorted(f[2] for f in found if f[0] == "right") == [1, 3, 5]


def test_what_follows_is_chained_and_gets_both_sides(env):
    results = both(env, [1, 2], ["a"]).map(Label()).map(str.upper).filter(lambda v: "2" not in v)
    assert collect_locally(results) == ["NUMBER 1", "WORD A"]


def test_records_that_one_side_changes_are_its_own(env):
    class Spoil(CoMapFunction):
        def map1(self, value):
            value.append("changed")
            return "one", value

        def map2(self, value):
            return "two", value

    stream = env.from_collection([[1], [2]])
    assert collect_locally(stream.connect(stream).map(Spoil())) == [
        ("one", [1, "changed"]), ("one", [2, "changed"]), ("two", [1]), ("two", [2]),
    ]  # fmt: skip


# ------------------------------------------------------------------------------------------------------- timers


class Reminder(KeyedCoProcessFunction):
    """The first side registers event-time timers, the second side deletes one of the same key."""

    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])
        yield "asked", value, ctx.timer_service().current_watermark()

    def process_element2(self, value, ctx):
        ctx.timer_service().delete_event_time_timer(value[1])
        yield "deleted", value, ctx.timer_service().current_watermark()

    def on_timer(self, timestamp, ctx):
        yield "fired", ctx.get_current_key(), timestamp, ctx.time_domain(), ctx.timer_service().current_watermark()


def test_time_is_the_lesser_of_both_sides_and_timers_belong_to_both(env):
    left = timed(env.from_collection([(("a", 5), 0, None), (("b", 6), 0, None), (("a", 9), 0, 7)]))
    right = timed(env.from_collection([(("b", 6), 0, 5), (("c", 1), 0, 20)]))
    found = collect_locally(left.connect(right).key_by(first, first).process(Reminder()))
    event = TimeDomain.EVENT_TIME
    assert found == [
        ("asked", ("a", 5), MIN_TIMESTAMP),
        ("asked", ("b", 6), MIN_TIMESTAMP),
        ("asked", ("a", 9), MIN_TIMESTAMP),
        ("deleted", ("b", 6), MIN_TIMESTAMP),  # the first side is at 7, this one has no watermark yet
        ("fired", "a", 5, event, 5),
        ("deleted", ("c", 1), 5),
        ("fired", "a", 9, event, 20),  # the first side has ended
    ]


class Late(KeyedCoProcessFunction):
    """The second side registers a processing-time timer."""

    def process_element1(self, value, ctx):
        pass

    def process_element2(self, value, ctx):
        clock = ctx.timer_service()
        clock.register_processing_time_timer(clock.current_processing_time() + 3)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key(), ctx.time_domain()


def test_processing_time_timers_fire(env):
    left, right = by_epoch(env, [[("a", n)] for n in range(20)], "left"), by_epoch(env, [[("a", 0), ("b", 1)]], "right")
    env.enable_checkpointing(10)  # the script's clock moves on with checkpoints
    found = run_scripted(left.connect(right).key_by(first, first).process(Late())).records
    assert found == [("a", TimeDomain.PROCESSING_TIME), ("b", TimeDomain.PROCESSING_TIME)]


class TimerInCoProcess(CoProcessFunction):
    process_element1 = Reminder.process_element1
    process_element2 = Reminder.process_element2
    on_timer = Reminder.on_timer


def test_a_plain_co_process_function_on_keyed_streams_has_timers(env):
    found = collect_locally(both(env, [("a", 5)], [("b", 1)]).key_by(first, first).process(TimerInCoProcess()))
    assert found[-1] == ("fired", "a", 5, TimeDomain.EVENT_TIME, MAX_TIMESTAMP)


def test_without_keys_there_are_no_timers(env):
    with pytest.raises(JobExecutionError, match="timers need a keyed stream"):
        collect_locally(both(env).process(TimerInCoProcess()))


class Times(ProcessFunction):
    def process_element(self, value, ctx):
        yield value[0], ctx.timestamp()


def test_results_have_the_time_of_their_record_or_timer(env):
    left = timed(env.from_collection([(("a", 5), 3, None)]))
    right = timed(env.from_collection([(("b", 1), 4, None)]))
    found = collect_locally(left.connect(right).key_by(first, first).process(Reminder()).process(Times()))
    assert found == [("asked", 3), ("deleted", 4), ("fired", 5)]


# ------------------------------------------------------------------------------------------------- side outputs

ODD, FIRED = OutputTag("odd", Types.INT()), OutputTag("fired")


class Aside(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        ctx.timer_service().register_event_time_timer(value[1])
        yield value
        if value[1] % 2:
            yield ODD, value[1]

    def process_element2(self, value, ctx):
        yield OutputTag("odd"), value[1] + 1  # another object, the same output
        yield OutputTag("nobody asks for this one"), value

    def on_timer(self, timestamp, ctx):
        yield FIRED, (ctx.get_current_key(), timestamp)
        yield ctx.get_current_key(), -timestamp


def aside(env):
    left, right = (timed(env.from_collection([(v, 7, None) for v in values])) for values in (LEFT[:3], RIGHT[:2]))
    return left.connect(right).key_by(first, first).process(Aside())


def test_both_sides_and_timers_have_side_outputs(env):
    assert collect_locally(aside(env).get_side_output(ODD)) == [1, 3, 11, 21]
    assert collect_locally(aside(env).get_side_output(FIRED)) == [("a", 1), ("a", 2), ("b", 3)]
    assert collect_locally(aside(env)) == [*LEFT[:3], ("a", -1), ("a", -2), ("b", -3)]


def test_a_side_output_nothing_is_put_into_is_empty(env):
    assert collect_locally(aside(env).get_side_output(OutputTag("empty"))) == []


def test_records_of_a_side_output_have_the_time_of_their_record_or_timer(env):
    results = aside(env)
    tagged = results.get_side_output(ODD).map(lambda v: (str(v), 0)).union(results.get_side_output(FIRED))
    assert sorted(collect_locally(tagged.process(Times()))) == [
        ("1", 7), ("11", 7), ("21", 7), ("3", 7), ("a", 1), ("a", 2), ("b", 3),
    ]  # fmt: skip


class AsideWithoutKeys(CoProcessFunction):
    def process_element1(self, value, ctx):
        yield ODD, value

    def process_element2(self, value, ctx):
        yield value
        yield ODD, -value


def test_a_co_process_without_keys_has_side_outputs(env):
    results = both(env, [1, 2], [3]).process(AsideWithoutKeys())
    assert collect_locally(results.get_side_output(ODD)) == [1, 2, -3]
    assert collect_locally(both(env, [1, 2], [3]).process(AsideWithoutKeys())) == [3]


def test_a_side_output_is_of_one_type(env):
    results = aside(env)
    results.get_side_output(ODD)
    results.get_side_output(OutputTag("odd", Types.INT()))
    for other in (OutputTag("odd"), OutputTag("odd", Types.STRING())):
        with pytest.raises(UnsupportedOperationError, match=r"side output 'odd' of .* was requested as Integer"):
            results.get_side_output(other)
    aside(env).get_side_output(OutputTag("odd"))  # of another operator
