"""Names that operators of connected streams have by default."""

from pyflink.datastream.functions import CoFlatMapFunction, CoMapFunction, CoProcessFunction, KeyedCoProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


class Map(CoMapFunction):
    def map1(self, value):
        return value

    map2 = map1


class FlatMap(CoFlatMapFunction):
    def flat_map1(self, value):
        yield value

    flat_map2 = flat_map1


class Process(CoProcessFunction):
    def process_element1(self, value, ctx: CoProcessFunction.Context):
        yield value

    process_element2 = process_element1


class KeyedProcess(KeyedCoProcessFunction):
    def process_element1(self, value, ctx: KeyedCoProcessFunction.Context):
        yield value

    process_element2 = process_element1


def build(env):
    plain = env.from_collection([1]).connect(env.from_collection([2]))
    keyed = plain.key_by(lambda value: value, lambda value: value)
    return [
        stream.get_name()
        for stream in (plain.map(Map()), plain.flat_map(FlatMap()), plain.process(Process()),
                       keyed.map(Map()), keyed.flat_map(FlatMap()), keyed.process(KeyedProcess()))
    ]
