"""Mistakes with connected streams raise at the call, or with the record that shows the mistake."""

import pytest

from ekorn.common import Types
from ekorn.datastream import (
    CoMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    MapFunction,
    StreamExecutionEnvironment,
)
from ekorn.errors import InvalidProgramError, JobExecutionError
from ekorn.testing.local_run import collect_locally
from tests.program.two_streams import LEFT, RIGHT, CountBoth, Label, Seen, Words, both, first


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment()


def test_only_streams_can_be_connected(env):
    with pytest.raises(TypeError, match=r"connect\(\) needs a stream, or the result of broadcast\(descriptor\)"):
        env.from_collection(LEFT).connect(RIGHT)


def test_streams_of_two_environments_cannot_be_connected(env):
    other = StreamExecutionEnvironment.get_execution_environment().from_collection(RIGHT)
    with pytest.raises(InvalidProgramError, match="same environment"):
        env.from_collection(LEFT).connect(other)


@pytest.mark.parametrize(
    ("left_type", "right_type", "message"),
    [
        (Types.STRING(), Types.INT(), "of type String and of type Integer"),
        (Types.STRING(), None, "of type String and of type any Python object"),
    ],
)
def test_keys_of_two_types_are_refused(env, left_type, right_type, message):
    left = env.from_collection(LEFT).key_by(first, left_type)
    right = env.from_collection(RIGHT).key_by(first, right_type)
    for call, function in (("map", Label()), ("flat_map", Words()), ("process", CountBoth())):
        with pytest.raises(InvalidProgramError, match=message):
            getattr(left.connect(right), call)(function)


def test_keys_of_two_lengths_are_refused(env):
    with pytest.raises(InvalidProgramError, match="tuples of 1 and of 2 fields"):
        both(env).key_by(0, [0, 1]).process(CountBoth())


@pytest.mark.parametrize(
    ("key_left", "key_right", "missing"),
    [
        (True, False, "the second one is not"),
        (False, True, "the first one is not"),
        (False, False, "neither stream is keyed"),
    ],
)
def test_a_keyed_function_needs_keys_on_both_sides(env, key_left, key_right, missing):
    left, right = env.from_collection(LEFT), env.from_collection(RIGHT)
    connected = (left.key_by(first) if key_left else left).connect(right.key_by(first) if key_right else right)
    with pytest.raises(InvalidProgramError, match=f"CountBoth .* needs two keyed streams, but {missing}"):
        connected.process(CountBoth())


def test_a_function_without_keys_may_have_one_keyed_side(env):
    env.set_parallelism(2)
    connected = env.from_collection([1, 1, 2]).key_by(lambda v: v).connect(env.from_collection(["a"]))
    assert sorted(collect_locally(connected.map(Label()))) == ["number 1", "number 1", "number 2", "word a"]


def test_with_one_keyed_side_there_is_no_keyed_state(env):
    connected = env.from_collection(LEFT).key_by(first).connect(env.from_collection(RIGHT))
    with pytest.raises(JobExecutionError, match=r"keyed state 'seen' was requested on a stream that is not keyed"):
        collect_locally(connected.map(Seen()))


class Same(MapFunction):
    def map(self, value):
        return value


class Yields(CoMapFunction):
    def map1(self, value):
        return value

    def map2(self, value):
        yield value


class JustKeyed(KeyedProcessFunction):
    def process_element(self, value, ctx):
        pass


@pytest.mark.parametrize(
    ("call", "function", "error", "message"),
    [
        ("map", lambda v: v, TypeError, "needs a CoMapFunction"),
        ("map", Same(), TypeError, "needs a CoMapFunction, got Same, a MapFunction"),
        ("map", Label, TypeError, "Label is a class; pass an instance of it"),
        ("map", Yields(), InvalidProgramError, "yields"),
        ("flat_map", Label(), TypeError, "needs a CoFlatMapFunction, got Label, a CoMapFunction"),
        ("process", JustKeyed(), TypeError, "needs a CoProcessFunction, got JustKeyed, a KeyedProcessFunction"),
        ("process", lambda v, ctx: v, TypeError, "needs a CoProcessFunction"),
    ],
)
def test_wrong_functions_are_refused_where_they_are_given(env, call, function, error, message):
    with pytest.raises(error, match=message):
        getattr(both(env), call)(function)


class Fails(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        if value[1] == 4:
            raise ValueError("no fours")

    def process_element2(self, value, ctx):
        if value[1] == 40:
            raise ValueError("no forties")


@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        (LEFT, [], r"'checks' .* on record \('a', 4\): ValueError: no fours"),
        ([], RIGHT, r"'checks' .* on record \('c', 40\): ValueError: no forties"),
        ([], [(None, 1)], r"on record \(None, 1\).* cannot use None as the key"),
        ([], [({1}, 1)], r"cannot use \{1\} as the key of record \(\{1\}, 1\)"),
    ],
)
def test_an_error_names_the_operator_and_the_record(env, left, right, message):
    with pytest.raises(JobExecutionError, match=message):
        collect_locally(both(env, left, right).key_by(first, first).process(Fails()).name("checks"))
