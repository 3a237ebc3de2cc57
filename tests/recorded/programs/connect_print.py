"""What connected streams give is printed like anything else."""

from pyflink.common import Types
from pyflink.datastream.functions import CoMapFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = False
RESULT = "stdout"


class Both(CoMapFunction):
    def map1(self, value):
        return value * 2

    def map2(self, value):
        return len(value)


def build(env):
    env.from_collection([1, 2]).connect(env.from_collection(["a", "bbb"])).map(Both(), Types.LONG()).print("both")
