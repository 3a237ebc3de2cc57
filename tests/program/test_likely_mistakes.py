"""Mistakes of a first program: the error or the warning names the line, the operator and what to do."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from ekorn.common import Row, Time, Types, WatermarkStrategy
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream import (
    AsyncDataStream,
    AsyncFunction,
    BroadcastProcessFunction,
    CoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from ekorn.datastream.functions import CoFlatMapFunction, CoGroupFunction, FlatJoinFunction, ProcessJoinFunction
from ekorn.datastream.state import MapStateDescriptor
from ekorn.datastream.window import (
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from ekorn.errors import InvalidProgramError, JobExecutionError, ProgramWarning
from ekorn.testing.local_run import collect_locally, on_local_engine

SOURCE = Path(__file__).parents[2] / "src"


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def failure_of(stream):
    with pytest.raises(JobExecutionError) as failed:
        collect_locally(stream)
    return str(failed.value).splitlines()[0]


class Returning(KeyedProcessFunction):
    def __init__(self, result):
        self.result = result

    def process_element(self, value, ctx):
        return self.result


# ------------------------------------------------------------------------------------------- results of functions


class Point(NamedTuple):
    x: int
    y: int


SINGLE = ["abc", b"abc", {"a": 1}, Counter("a"), Row(1, 2), Point(1, 2), 5, 0.5, True, np.float64(0.5), np.str_("abc")]


@pytest.mark.parametrize("result", SINGLE, ids=repr)
def test_a_single_value_that_is_returned_is_not_taken_apart(env, result):
    ones = env.from_collection([1])
    said = failure_of(ones.key_by(lambda v: v).process(Returning(result)))
    assert (
        "failed in operator 'KEYED PROCESS' (subtask 0) on record 1: TypeError: Returning.process_element returned one"
        in said
    )
    assert "yield each result, or return a list of results" in said
    assert "TypeError: <lambda> returned one" in failure_of(ones.flat_map(lambda v: result))


@pytest.mark.parametrize(
    "result", [[1, 2], (1, 2), iter([1, 2]), range(1, 3)], ids=["list", "tuple", "iterator", "range"]
)
def test_an_iterable_of_results_may_be_returned(env, result):
    stream = env.from_collection([1])
    assert collect_locally(stream.flat_map(lambda v: result)) == [1, 2]


@pytest.mark.parametrize(
    "result", [[1, 2], {1, 2}, iter([1, 2]), range(1, 3)], ids=lambda result: type(result).__name__
)
def test_a_process_function_may_return_an_iterable_of_results(env, result):
    stream = env.from_collection([1]).key_by(lambda v: v)
    assert collect_locally(stream.process(Returning(result))) == [1, 2]


def test_an_empty_tuple_is_no_result(env):
    assert collect_locally(env.from_collection([1]).key_by(lambda v: v).process(Returning(()))) == []


TWO_MEANINGS = (
    "returned the tuple (1, 2), which may mean one record or 2: write `yield (a, b)` or `return [(a, b)]` for one "
    "record; write `yield a` and `yield b`, or `return [a, b]`, for a record for each part"
)


def test_a_tuple_that_a_process_function_returns_is_not_taken_apart(env):
    said = failure_of(env.from_collection([1]).key_by(lambda v: v).process(Returning((1, 2))))
    assert f"on record 1: TypeError: Returning.process_element {TWO_MEANINGS}" in said


def test_a_tuple_with_an_output_tag_is_not_taken_apart(env):
    late = (OutputTag("late", Types.INT()), 1)
    said = failure_of(env.from_collection([1]).key_by(lambda v: v).process(Returning(late)))
    assert "write `yield tag, value` for a record of a side output" in said


class PairOfTwoStreams(CoProcessFunction):
    def process_element1(self, value, ctx):
        return 1, 2

    def process_element2(self, value, ctx):
        return 1, 2


class PairOfBroadcast(BroadcastProcessFunction):
    def process_element(self, value, ctx):
        return 1, 2

    def process_broadcast_element(self, value, ctx):
        return 1, 2


class PairOfWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        return 1, 2


class PairOfGroups(CoGroupFunction):
    def co_group(self, first, second):
        return 1, 2


class PairOfJoin(FlatJoinFunction):
    def join(self, first, second):
        return 1, 2


class PairOfTimes(ProcessJoinFunction):
    def process_element(self, left, right, ctx):
        return 1, 2


class TupleOfTwoStreams(CoFlatMapFunction):
    def flat_map1(self, value):
        return value, value

    def flat_map2(self, value):
        return value, value


class PairOfAsync(AsyncFunction):
    async def async_invoke(self, value):
        return 1, 2


DESCRIPTOR = MapStateDescriptor("rules", Types.INT(), Types.INT())


@pytest.mark.parametrize(
    ("function", "apply"),
    [
        ("PairOfTwoStreams.process_element1", lambda s, none: s.connect(none).process(PairOfTwoStreams())),
        ("PairOfTwoStreams.process_element2", lambda s, none: none.connect(s).process(PairOfTwoStreams())),
        (
            "PairOfBroadcast.process_element",
            lambda s, none: s.connect(none.broadcast(DESCRIPTOR)).process(PairOfBroadcast()),
        ),
        (
            "PairOfBroadcast.process_broadcast_element",
            lambda s, none: none.connect(s.broadcast(DESCRIPTOR)).process(PairOfBroadcast()),
        ),
        ("PairOfWindow.process", lambda s, none: s.key_by(lambda v: v).count_window(1).process(PairOfWindow())),
        (
            "PairOfGroups.co_group",
            lambda s, none: (
                s.co_group(s)
                .where(lambda v: v)
                .equal_to(lambda v: v)
                .window(TumblingEventTimeWindows.of(Time.seconds(1)))
                .apply(PairOfGroups())
            ),
        ),
        (
            "PairOfJoin.join",
            lambda s, none: (
                s.join(s)
                .where(lambda v: v)
                .equal_to(lambda v: v)
                .window(TumblingEventTimeWindows.of(Time.seconds(1)))
                .apply(PairOfJoin())
            ),
        ),
        (
            "PairOfTimes.process_element",
            lambda s, none: (
                s.key_by(lambda v: v)
                .interval_join(s.key_by(lambda v: v))
                .between(Time.seconds(-1), Time.seconds(1))
                .process(PairOfTimes())
            ),
        ),
        ("async_invoke or timeout", lambda s, none: AsyncDataStream.ordered_wait(s, PairOfAsync(), Time.seconds(20))),
    ],
)
def test_a_tuple_is_refused_from_every_function_that_yields_results(env, function, apply):
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value)
    ones = env.from_collection([1]).assign_timestamps_and_watermarks(timed)
    assert f"{function} {TWO_MEANINGS}" in failure_of(apply(ones, ones.filter(lambda v: False)))


def test_a_flat_map_of_two_streams_may_return_a_tuple(env):
    connected = env.from_collection([1]).connect(env.from_collection([2]))
    assert sorted(collect_locally(connected.flat_map(TupleOfTwoStreams()))) == [1, 1, 2, 2]


def test_a_flat_map_of_a_data_set_may_return_a_tuple():
    data_set = ExecutionEnvironment.get_execution_environment().from_elements(1, 2, 3)
    assert sorted(collect_locally(data_set.flat_map(lambda v: (v, v)))) == [1, 1, 2, 2, 3, 3]


def test_a_timer_that_returns_a_single_value_is_refused(env):
    class Late(KeyedProcessFunction):
        def process_element(self, value, ctx):
            ctx.timer_service().register_event_time_timer(1)

        def on_timer(self, timestamp, ctx):
            return "done"

    assert "Late.on_timer returned one str, 'done'" in failure_of(
        env.from_collection([1]).key_by(lambda v: v).process(Late())
    )


def forgetful(value):
    value + 1


class Forgetful(MapFunction):
    def map(self, value):
        value + 1


@pytest.mark.parametrize("function", [forgetful, Forgetful()])
def test_a_map_without_a_return_is_warned_about_at_its_line(env, function):
    with pytest.warns(ProgramWarning, match="has no return statement with a value, so every result is None") as warned:
        env.from_collection([1]).map(function)
    assert warned[0].filename == __file__


def test_a_filter_and_a_reduce_without_a_return_are_warned_about(env):
    with pytest.warns(ProgramWarning, match="so no record passes"):
        env.from_collection([1]).filter(forgetful)

    def merge(one, other):
        one + other

    with pytest.warns(ProgramWarning, match="so every result is None"):
        env.from_collection([1]).key_by(lambda v: v).reduce(merge)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_flat_map_that_neither_yields_nor_returns_is_warned_about(env, keyed):
    stream = env.from_collection([1])
    with pytest.warns(ProgramWarning, match="has no return statement with a value, so nothing is emitted"):
        (stream.key_by(lambda v: v) if keyed else stream).flat_map(forgetful)


def either(value):
    if value:
        return value
    return None


def raising(value):
    raise ValueError(value)


def last_of(value):
    return value and None


@pytest.mark.parametrize("function", [either, raising, last_of, str, lambda value: None])
def test_a_function_that_may_return_a_value_is_not_warned_about(env, function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env.from_collection([1]).map(function)


def test_a_result_that_cannot_be_serialized_is_named_with_its_input(env):
    locks = env.from_collection([7]).map(lambda v: threading.Lock()).name("make locks")
    said = failure_of(locks.key_by(lambda lock: 1).map(lambda lock: 1))
    assert "failed in the serialization of a result of operator 'make locks' (subtask 0) on record 7: TypeError" in said
    assert "(lock) cannot be serialized: cannot pickle '_thread.lock' object; emit plain data instead" in said


# --------------------------------------------------------------------------------------------- who is to blame


def test_an_error_in_a_key_selector_is_not_blamed_on_the_operator_before_it(env):
    stream = env.from_collection([{"a": 1}]).map(lambda v: v).name("first").key_by(lambda v: v["b"]).map(lambda v: v)
    assert "failed in the key selector of key_by() after operator 'first' (subtask 0) on record {'a': 1}" in failure_of(
        stream
    )


def test_an_error_in_a_partitioner_is_not_blamed_on_the_operator_before_it(env):
    stream = env.from_collection([1]).map(lambda v: v).name("first")
    said = failure_of(stream.partition_custom(lambda key, count: key / 0, lambda v: v).map(lambda v: v))
    assert "failed in partition_custom() after operator 'first' (subtask 0) on record 1" in said


def test_a_uid_that_nobody_set_is_not_shown(env):
    said = failure_of(env.from_collection([1]).map(raising))
    assert said.endswith("failed in operator 'Map' (subtask 0) on record 1: ValueError: 1")
    assert "(uid 'mine', subtask 0)" in failure_of(env.from_collection([1]).map(raising).uid("mine"))


# ------------------------------------------------------------------------------------------------- declarations


def test_a_keyed_function_on_a_stream_without_keys_is_warned_about(env):
    with pytest.warns(ProgramWarning, match=r"this stream has no keys.*call key_by\(\.\.\.\) before process"):
        env.from_collection([1]).process(Returning([1]))


@pytest.mark.parametrize(
    "make",
    [
        TumblingEventTimeWindows.of,
        TumblingProcessingTimeWindows.of,
        lambda size: SlidingEventTimeWindows.of(size, size),
        lambda size: SlidingProcessingTimeWindows.of(Time.seconds(1), size),
        EventTimeSessionWindows.with_gap,
        ProcessingTimeSessionWindows.with_gap,
    ],
)
def test_a_window_size_is_a_positive_length_of_time(make):
    with pytest.raises(TypeError, match=r"takes a Time or a Duration, got 10: write Time.milliseconds\(10\)"):
        make(10)
    with pytest.raises(ValueError, match=r"must be positive.* -1000"):
        make(Time.seconds(-1))


def test_a_frame_of_pandas_is_not_a_collection_of_rows(env):
    frame = type("DataFrame", (), {"__module__": "pandas.core.frame", "itertuples": None})()
    with pytest.raises(TypeError, match=r"iterates over its column names: use from_pandas\(df\)"):
        env.from_collection(frame)


def test_a_captured_spark_session_is_not_to_be_created_in_open(env):
    def refuse(self):
        raise RuntimeError("the session belongs to the driver")

    session = type("SparkSession", (), {"__module__": "pyspark.sql.session", "__getstate__": refuse})()
    with pytest.raises(
        InvalidProgramError, match=r"captures 'session'.*Spark can be used in the driver only; collect what"
    ):
        env.from_collection([1]).map(lambda v: session)


def test_a_captured_spark_session_is_named_and_not_its_parts(env):
    session = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    session.gateway = threading.Lock()
    with pytest.raises(
        InvalidProgramError, match=r"captures 'session' \(SparkSession\).*Spark can be used in the driver"
    ):
        env.from_collection([1]).map(lambda v: session)


def test_a_second_execute_says_that_the_first_took_the_job(env):
    env.from_collection([1]).map(lambda v: v)
    with on_local_engine():
        env.execute()
        with pytest.raises(InvalidProgramError, match=r"an earlier execute\(\) ran all operators and sinks"):
            env.execute()


# ------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("keyBy", "the method is key_by()"),
        ("flatmap", "did you mean flat_map?"),
        ("fold", "it is a method of keyed streams: call key_by(...) before fold()"),
        ("window", "it is a method of keyed streams: call key_by(...) before window(), or use window_all()"),
        (
            "countWindow",
            "it is a method of keyed streams: call key_by(...) before count_window(), or use count_window_all()",
        ),
        ("collect", "execute_and_collect() runs the job and returns the records"),
        ("nonsense", ""),
    ],
)
def test_a_misspelt_method_is_answered_with_its_name(env, wrong, right):
    with pytest.raises(AttributeError) as missing:
        getattr(env.from_collection([1]), wrong)
    assert str(missing.value) == f"'DataStream' object has no attribute {wrong!r}" + (right and f"; {right}")
    assert not right or missing.value.obj is None, "Python adds no suggestion of its own"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("from ekorn.commmon import Types", "Ekorn has no ekorn.commmon; did you mean ekorn.common"),
        ("from ekorn import datastreams", "Ekorn has no ekorn.datastreams; did you mean ekorn.datastream"),
        ("from ekorn.table import TableEnvironment", "Ekorn has no ekorn.table"),
        (
            "import ekorn.datastream.connectors.mongodb",
            "Ekorn has no ekorn.datastream.connectors.mongodb; for other",
        ),
        (
            "import ekorn.datastream.connectors.pulsar",
            "use KafkaSource and KafkaSink with Pulsar's handler of the Kafka",
        ),
        ("from ekorn.common import MapFunction", "ekorn.datastream has MapFunction"),
        ("from ekorn.common import Typs", "ekorn.common has Types"),
        ("from ekorn.datastream import Nonsense", "and nothing like it in ekorn.datastream"),
    ],
)
def test_an_import_of_a_missing_name_says_what_to_use(statement, said):
    with pytest.raises(ImportError, match=said.replace(".", r"\.")):
        exec(statement)


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("import ekorn.util", "ekorn.util"),
        ("import ekorn.util.exceptions", "ekorn.util"),
        ("from ekorn.util import exceptions", "ekorn.util"),
        ("import importlib; importlib.import_module('ekorn.common.nonsense')", "ekorn.common.nonsense"),
        ("from ekorn.datastream.connectors.pulsar import PulsarSource", "ekorn.datastream.connectors.pulsar"),
        ("from ekorn import util", None),  # Python would replace the message
        ("from ekorn.common import Nonsense", None),
    ],
)
def test_the_error_of_a_missing_module_has_its_name_where_python_lets_it(statement, name):
    with pytest.raises(ModuleNotFoundError, match="Ekorn has no ekorn") as raised:
        exec(statement)
    assert raised.value.name == name


def test_a_missing_module_of_a_room_stays_an_ordinary_error():
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'ekorn\.driver\.nonsense'"):
        exec("import ekorn.driver.nonsense")


# -------------------------------------------------------------------------------------------- the program's end

DECLARES = """
from ekorn.common import Configuration
from ekorn.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).print()
MISSPELT = Configuration().set_string("ekorn.nonsense", "1")
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "ekorn: the program ended without env.execute(), so operator 'Sink: Print to Std. Out' (written at"),
        ("env.close()", None),
        ("raise SystemError('on purpose')", None),
        ("env.configure(MISSPELT)\ntry:\n    env.execute()\nexcept ValueError:\n    pass", None),
    ],
)
def test_a_program_that_ends_without_execute_is_told_that_nothing_ran(tmp_path, more, said):
    script = tmp_path / "program.py"
    script.write_text(DECLARES + more)
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env={"PYTHONPATH": str(SOURCE)}
    )
    assert (said in done.stderr) if said else ("execute" not in done.stderr)
