"""reduce on a typed stream keeps its type, also where the function gives another kind of number."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    typed = env.from_collection([("a", 1.0), ("a", 2.0)], Types.TUPLE([Types.STRING(), Types.DOUBLE()]))
    return typed.key_by(lambda x: x[0]).reduce(lambda a, b: (a[0], int(a[1] + b[1])))
