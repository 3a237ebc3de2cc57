"""A typed collection as a function sees it: narrowed to the declared types."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.FLOAT(), Types.DOUBLE(),
                         Types.STRING(), Types.BOOLEAN()])
    values = [(1, 2, 3, 4, 1.1, 2.2, "s", True), (300, 43878, 2 ** 31, 2 ** 40, 16777217.0, 1e300, "", False)]
    return env.from_collection(values, types).map(lambda x: x)
