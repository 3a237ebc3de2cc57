"""Each side of connected streams has its own map; the types may differ."""

from pyflink.common import Types
from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def map1(self, value):
        return "number", value * 10

    def map2(self, value):
        return "word", value.upper()


def build(env):
    numbers = env.from_collection([1, 2, 3], Types.INT())
    words = env.from_collection(["a", "b"], Types.STRING())
    return numbers.connect(words).map(Both())
