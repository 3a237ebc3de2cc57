"""A number sequence read by two subtasks."""

from pyflink.common import Types, WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

PARALLELISM = 2
MODE = "STREAMING"
ORDERED = False


def build(env):
    source = NumberSequenceSource(1, 10)
    numbers = env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
    return numbers.map(lambda x: x * x)
