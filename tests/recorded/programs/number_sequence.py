"""A number sequence includes both ends."""

from pyflink.common import WatermarkStrategy
from pyflink.datastream.connectors.number_seq import NumberSequenceSource

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_source(NumberSequenceSource(-1, 3), WatermarkStrategy.no_watermarks(), "numbers")
