"""A sum that leaves the declared type."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    typed = env.from_collection([("a", 2 ** 31 - 1), ("a", 1)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0]).sum(1)
