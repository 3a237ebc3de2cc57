"""filter keeps the declared type of its input."""

from pyflink.common import Types
from pyflink.datastream.functions import FilterFunction

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


class Even(FilterFunction):

    def filter(self, value):
        return value[0] % 2 == 0


def build(env):
    typed = env.from_collection([(1, 1.1), (2, 2.2)], Types.TUPLE([Types.INT(), Types.FLOAT()]))
    return typed.filter(Even())
