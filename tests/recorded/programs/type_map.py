"""MAP as the output of a function."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return env.from_collection([0, 1]).map(lambda n: {"k": n} if n else {}, Types.MAP(Types.STRING(), Types.INT()))
