"""reduce to a value that does not fit the stream's type."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    typed = env.from_collection([("a", 1), ("a", 2)], Types.TUPLE([Types.STRING(), Types.INT()]))
    return typed.key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], "text"))
