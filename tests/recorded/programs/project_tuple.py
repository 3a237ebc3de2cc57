"""project picks and reorders fields of tuples; a field may come twice."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    typed = env.from_collection([(1, "a", 2.5), (2, "b", 3.5)],
                                Types.TUPLE([Types.INT(), Types.STRING(), Types.DOUBLE()]))
    return typed.project(2, 0, 0)
