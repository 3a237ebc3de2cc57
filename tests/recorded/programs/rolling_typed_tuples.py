"""sum of a DOUBLE field of typed tuples."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    typed = env.from_collection([("a", 1.5), ("a", 2.0), ("b", 0.1)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    return typed.key_by(lambda x: x[0]).sum(1)
