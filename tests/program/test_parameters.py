"""The ways in which parameters reach a function."""

import pytest

from ekorn.common import Configuration, ParameterTool
from ekorn.datastream import MapFunction, SinkFunction, StreamExecutionEnvironment
from ekorn.testing.local_run import collect_locally, on_local_engine


class Told(MapFunction):
    """Emits the parameters that it was given."""

    def __init__(self, by_constructor):
        self.by_constructor = by_constructor

    def open(self, runtime_context):
        own = runtime_context.get_operator_parameters()
        self.told = (
            self.by_constructor,
            own.get_string("factor", "none"),
            own.get_integer("count", 0),
            runtime_context.get_job_parameter("input", "none"),
            runtime_context.get_job_parameter("missing", "none"),
            runtime_context.get_execution_config().get_global_job_parameters(),
        )

    def map(self, value):
        return self.told


@pytest.fixture
def env():
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(1)


def test_by_constructor_by_configuration_and_globally(env):
    arguments = ParameterTool.from_args(["--input", "words, and: more", "--verbose"])
    env.get_config().set_global_job_parameters(arguments)
    own = Configuration().set_string("factor", "2.5").set_integer("count", 7)
    told = env.from_collection([1]).map(Told("by hand")).with_parameters(own)
    everything = {"input": "words, and: more", "verbose": "__NO_VALUE_KEY"}
    assert collect_locally(told) == [("by hand", "2.5", 7, "words, and: more", "none", everything)]


def test_each_operator_has_parameters_of_its_own(env):
    numbers = env.from_collection([1])
    first = numbers.map(Told(1)).with_parameters(Configuration().set_integer("count", 1))
    second = first.map(Told(2)).with_parameters(Configuration().set_integer("count", 2))
    third = numbers.map(Told(3))
    found = collect_locally(first.union(second, third))
    assert sorted((told[0], told[2]) for told in found) == [(1, 1), (2, 2), (3, 0)]


def test_what_is_set_after_with_parameters_does_not_count(env):
    own = Configuration().set_integer("count", 1)
    told = env.from_collection([1]).map(Told(1)).with_parameters(own)
    own.set_integer("count", 2)
    assert collect_locally(told)[0][2] == 1


class Shows(SinkFunction):
    def open(self, runtime_context):
        self.word = runtime_context.get_operator_parameters().get_string("word", "none")

    def invoke(self, value, context):
        SHOWN.append((value, self.word))


SHOWN = []


def test_sinks_have_parameters_too(env):
    SHOWN.clear()
    env.from_collection([1]).add_sink(Shows()).with_parameters(Configuration().set_string("word", "yes"))
    with on_local_engine():
        env.execute()
    assert SHOWN == [(1, "yes")]


def test_global_parameters_of_the_configuration(env):
    env.configure(Configuration().set_string("pipeline.global-job-parameters", "input:words,limit:3"))
    assert collect_locally(env.from_collection([1]).map(Told(1)))[0][-1] == {"input": "words", "limit": "3"}


def test_parameters_are_a_configuration(env):
    with pytest.raises(TypeError, match="takes a Configuration"):
        env.from_collection([1]).map(Told(1)).with_parameters({"count": 1})
