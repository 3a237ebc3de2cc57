"""An exception of user code names the operator and the record, and shows the user's own lines."""

import re
import threading
from typing import Any, cast

import pytest

from ekorn.codegen.blame import Blame
from ekorn.common import Time, Types, WatermarkStrategy
from ekorn.common.watermark_strategy import TimestampAssigner
from ekorn.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from ekorn.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ProcessWindowFunction,
    ReduceFunction,
)
from ekorn.datastream.state import ValueStateDescriptor
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    Trigger,
    TriggerResult,
    TumblingEventTimeWindows,
)
from ekorn.errors import JobExecutionError
from ekorn.testing.local_run import collect_locally


def boom(value):
    if value == (2, "two"):
        raise LookupError(f"no {value[1]}")
    return value


class Map(MapFunction):
    def map(self, value):
        return boom(value)


class FlatMap(FlatMapFunction):
    def flat_map(self, value):
        yield "before"
        boom(value)
        yield "after"


class Filter(FilterFunction):
    def filter(self, value):
        return boom(value)


class Process(ProcessFunction):
    def process_element(self, value, ctx):
        yield boom(value)


class KeyedProcess(KeyedProcessFunction):
    def process_element(self, value, ctx):
        return [boom(value)]


class Reduce(ReduceFunction):
    def reduce(self, a, b):
        return boom(b)


CALLS = {
    "map": lambda s: s.map(Map()),
    "map with a function": lambda s: s.map(boom),
    "flat_map": lambda s: s.flat_map(FlatMap()),
    "flat_map with a list": lambda s: s.flat_map(lambda v: [boom(v)]),
    "filter": lambda s: s.filter(Filter()),
    "process": lambda s: s.process(Process()),
    "keyed process": lambda s: s.key_by(lambda v: 0).process(KeyedProcess()),
    "keyed map": lambda s: s.key_by(lambda v: v[0]).map(Map()),
    "reduce": lambda s: s.key_by(lambda v: 0).reduce(Reduce()),
    "fold": lambda s: s.key_by(lambda v: 0).fold(0, lambda acc, v: boom(v) and 1),
    "map_with_state": lambda s: s.key_by(lambda v: 0).map_with_state(lambda v, state: (boom(v), 1)),
}
RECORDS = [(1, "one"), (2, "two"), (3, "three")]


def failure(stream):
    with pytest.raises(JobExecutionError) as caught:
        collect_locally(stream)
    return caught.value


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("behind", [0, 3, 30], ids=lambda n: f"{n} operators before")
def test_the_operator_and_the_record_are_named(call, behind):
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection(RECORDS)
    for _ in range(behind):
        stream = stream.flat_map(lambda v: [v])
    error = failure(CALLS[call](stream).name("the culprit").uid("culprit-uid").map(lambda v: v).name("after"))
    assert (error.operator_name, error.uid) == ("the culprit", "culprit-uid")
    assert error.record_preview == "(2, 'two')"
    assert error.message == "LookupError: no two"
    assert 'raise LookupError(f"no {value[1]}")' in error.user_traceback
    assert "src/ekorn" not in error.user_traceback


@pytest.mark.parametrize("kind", [KeyboardInterrupt, GeneratorExit, SystemExit])
@pytest.mark.parametrize("call", ["map", "flat_map"])
def test_an_exception_that_is_no_error_is_blamed_too(kind, call):
    def ends(value):
        if value == (2, "two"):
            raise kind("enough")
        return [value]

    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_collection(RECORDS)
    error = failure((stream.map(ends) if call == "map" else stream.flat_map(ends)).name("the culprit"))
    assert error.operator_name == "the culprit"
    assert error.record_preview == "(2, 'two')"
    assert error.message == f"{kind.__name__}: enough"


def test_ctrl_c_and_the_end_of_a_generator_are_not_blamed():
    blame: Any = Blame(cast(Any, None), 0)
    with pytest.raises(KeyboardInterrupt), blame.operator():
        raise KeyboardInterrupt

    names: dict[str, Any] = {"blame": blame}
    exec(compile("def run():\n with blame.operator():\n  yield 1", "<chain of ekorn>", "exec"), names)
    running = names["run"]()
    next(running)
    running.close()


def test_a_key_selector_is_blamed_with_the_record_it_was_given():
    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection(RECORDS).map(lambda v: v).name("before").key_by(boom).map(lambda v: v))
    assert error.operator_name == "before", "the operator that hands the record over"
    assert error.record_preview == "(2, 'two')"
    assert "no two" in error.user_traceback


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (None, "cannot use None as the key of record (2, 'two'): None is not a key"),
        ({1}, "cannot use {1} as the key of record (2, 'two'): a set is mutable"),
        ({"a": {}}, "cannot use {'a': {}} as the key of record (2, 'two'): a dict is mutable"),
        (("a", [{}]), "cannot use {} as the key of record (2, 'two'): a dict is mutable"),
    ],
)
def test_a_key_that_is_none_is_refused_with_the_record(key, words):
    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection(RECORDS[1:2]).key_by(lambda v: key).map(lambda v: v))
    assert error.message.startswith(f"InvalidKeyError: {words}")
    assert error.record_preview == "(2, 'two')"


def test_a_user_s_own_unhashable_value_is_not_taken_for_a_key():
    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection([[[1]]]).map(frozenset).name("sets").key_by(lambda v: 1).map(lambda v: v))
    assert error.message.startswith("TypeError: unhashable type")
    assert error.operator_name == "sets"


@pytest.mark.parametrize("next_step", [lambda s: s, lambda s: s.rebalance().map(lambda v: v)])
def test_a_result_of_another_type_than_declared_is_blamed_on_the_function_that_gave_it(next_step):
    env = StreamExecutionEnvironment.get_execution_environment()
    first = env.from_collection([1, 2]).map(lambda v: v).name("first")
    stream = first.map(lambda v: "x" * v, Types.INT()).name("wrong")
    error = failure(next_step(stream))
    assert error.operator_name == "wrong"
    assert "RecordTypeError" in error.message and "'x'" in error.message


def test_a_cause_is_shown_with_its_effect():
    def chained(value):
        try:
            boom(value)
        except LookupError as error:
            raise RuntimeError("could not look up") from error

    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection(RECORDS[1:2]).map(chained))
    assert "LookupError: no two" in error.user_traceback
    assert "RuntimeError: could not look up" in error.user_traceback


def test_an_exception_that_cannot_be_printed_or_imported_still_names_the_operator():
    class Unprintable(Exception):
        def __str__(self):
            raise ValueError("not even this")

    def fail(value):
        raise Unprintable

    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection([1]).map(fail).name("culprit"))
    assert error.operator_name == "culprit"
    assert "Unprintable" in error.message


def test_state_in_a_stream_without_keys_is_refused_when_the_function_opens():
    class Asks(MapFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("count"))

        def map(self, value):
            return value

    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection([1]).map(Asks()).name("asks"))
    assert error.operator_name == "asks"
    assert "key_by" in error.message and "count" in error.message


def test_state_used_in_open_says_that_there_is_no_key_yet():
    class Early(MapFunction):
        def open(self, runtime_context):
            runtime_context.get_state(ValueStateDescriptor("count")).value()

        def map(self, value):
            return value

    env = StreamExecutionEnvironment.get_execution_environment()
    assert "NoCurrentKey" in failure(env.from_collection([1]).key_by(lambda v: v).map(Early())).message


def test_an_error_that_says_what_is_wrong_shows_no_line_of_ekorn():
    env = StreamExecutionEnvironment.get_execution_environment()
    assert failure(env.from_collection(RECORDS).flat_map(lambda v: v[1])).user_traceback == ""
    assert failure(env.from_collection(["x"]).map(int)).user_traceback == ""  # the message has it all
    locks = env.from_collection([1]).map(lambda v: threading.Lock()).rebalance().map(id)
    assert failure(locks).user_traceback == ""


class Undecided(Trigger):
    """Breaks its contract: it returns no decision."""

    def on_element(self, element, timestamp, window, ctx):
        return None

    def on_processing_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_event_time(self, time, window, ctx):
        return TriggerResult.CONTINUE

    def on_merge(self, window, ctx):
        return None

    def clear(self, window, ctx):
        return None


def test_an_error_inside_ekorn_that_nobody_foresaw_shows_where_it_was_raised():
    env = StreamExecutionEnvironment.get_execution_environment()
    windows = env.from_collection(RECORDS).count_window_all(2).trigger(Undecided())
    error = failure(windows.reduce(lambda one, other: one))
    assert error.message.startswith("AttributeError: 'NoneType'")
    assert "ekorn/operators/windows/" in error.user_traceback


def test_a_failing_reduce_of_a_result_is_shown():
    class Sealed:
        def __reduce__(self):
            raise TypeError("this object stays here")

    env = StreamExecutionEnvironment.get_execution_environment()
    error = failure(env.from_collection([1]).map(lambda v: Sealed()).name("seal").rebalance().map(lambda v: 1))
    assert "in __reduce__" in error.user_traceback and "cloudpickle" not in error.user_traceback


class Alarm(KeyedProcessFunction):
    """Sets a timer for each record, which raises or emits."""

    def __init__(self, *, raises=True, processing_time=False):
        self._raises, self._processing_time = raises, processing_time

    def process_element(self, value, ctx):
        timers = ctx.timer_service()
        if self._processing_time:
            timers.register_processing_time_timer(1)
        else:
            timers.register_event_time_timer(7000)

    def on_timer(self, timestamp, ctx):
        if self._raises:
            raise LookupError("no limit")
        yield (2, "two")


@pytest.mark.parametrize(
    ("mode", "processing_time", "which"),
    [
        (RuntimeExecutionMode.STREAMING, False, "event-time timer at 7000 ms"),
        (RuntimeExecutionMode.BATCH, False, "event-time timer at 7000 ms"),
        (RuntimeExecutionMode.BATCH, True, "processing-time timer at 1 ms"),
    ],
)
def test_an_exception_in_a_timer_names_its_key_and_its_time(mode, processing_time, which):
    env = StreamExecutionEnvironment.get_execution_environment().set_runtime_mode(mode)
    keyed = env.from_collection(RECORDS[:1]).key_by(lambda v: v[1])
    error = failure(keyed.process(Alarm(processing_time=processing_time)).name("alarm"))
    assert (error.operator_name, error.record_preview) == ("alarm", None)
    assert f"failed in the {which} of key 'one' in operator 'alarm'" in str(error)


def test_what_a_timer_emits_is_the_record_of_the_operator_that_it_fails_in():
    env = StreamExecutionEnvironment.get_execution_environment()
    keyed = env.from_collection(RECORDS[:1]).key_by(lambda v: v[1])
    error = failure(keyed.process(Alarm(raises=False)).name("alarm").map(boom).name("the culprit"))
    assert (error.operator_name, error.record_preview, error.activity) == ("the culprit", "(2, 'two')", None)


class Refusing(ProcessWindowFunction):
    def process(self, key, context, elements):
        raise LookupError("no limit")


@pytest.mark.parametrize(
    "assigned",
    [
        lambda windows: windows(TumblingEventTimeWindows.of(Time.seconds(5))),
        lambda windows: windows(SlidingEventTimeWindows.of(Time.seconds(5), Time.seconds(5))),
        lambda windows: windows(EventTimeSessionWindows.with_gap(Time.milliseconds(4999))),
        lambda windows: windows(TumblingEventTimeWindows.of(Time.seconds(5))).trigger(EventTimeTrigger.create()),
    ],
    ids=["tumbling", "sliding", "session", "trigger"],
)
def test_an_exception_in_a_window_names_its_key_and_its_window(assigned):
    env = StreamExecutionEnvironment.get_execution_environment()
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Second())
    keyed = env.from_collection(RECORDS[:1]).assign_timestamps_and_watermarks(times).key_by(lambda v: v[1])
    error = failure(assigned(keyed.window).process(Refusing()).name("means"))
    assert error.operator_name == "means"
    assert re.search(r"failed in TimeWindow\(start=[01], end=5000\) of key 'one' in operator 'means'", str(error))


class Second(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value[0]
