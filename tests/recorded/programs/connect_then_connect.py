"""Connected streams, connected again."""

from pyflink.common import Types
from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False


class Both(CoMapFunction):
    def __init__(self, name):
        self.name = name

    def map1(self, value):
        return f"{self.name}1({value})"

    def map2(self, value):
        return f"{self.name}2({value})"


def build(env):
    first = env.from_collection([1, 2]).connect(env.from_collection(["a"])).map(Both("f"), Types.STRING())
    second = first.connect(env.from_collection([0.5])).map(Both("s"), Types.STRING())
    return first.connect(second).map(Both("t"), Types.STRING())
