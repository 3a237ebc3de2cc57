"""What operators are called when nobody names them."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource
from pyflink.datastream.functions import KeyedProcessFunction, ProcessFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "facts"


class Keep(KeyedProcessFunction):

    def process_element(self, value, ctx: KeyedProcessFunction.Context):
        yield value


class Pass(ProcessFunction):

    def process_element(self, value, ctx: ProcessFunction.Context):
        yield value


def build(env):
    source = env.from_collection([1])
    sequence = env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers")
    keyed = source.key_by(lambda x: x)
    tuples = env.from_collection([(1, 2)], Types.TUPLE([Types.INT(), Types.INT()]))
    custom = source.partition_custom(lambda key, n: 0, lambda x: x)
    streams = {
        "collection": source, "sequence": sequence, "map": source.map(lambda x: x),
        "flat_map": source.flat_map(lambda x: [x]), "filter": source.filter(lambda x: True),
        "process": source.process(Pass()), "keyed map": keyed.map(lambda x: x),
        "keyed flat_map": keyed.flat_map(lambda x: [x]), "keyed filter": keyed.filter(lambda x: True),
        "keyed process": keyed.process(Keep()), "reduce": keyed.reduce(lambda a, b: a), "sum": keyed.sum(),
        "min_by": keyed.min_by(), "project": tuples.project(0), "partition_custom": custom,
        "timestamps": source.assign_timestamps_and_watermarks(WatermarkStrategy.for_monotonous_timestamps()),
        "named": source.map(lambda x: x).name("mine")}
    return [(what, stream.get_name()) for what, stream in streams.items()]
