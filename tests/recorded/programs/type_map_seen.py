"""MAP with several entries and a None value, behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.MAP(Types.STRING(), Types.INT())
    return (env.from_collection([1]).map(lambda n: {"b": 1, "a": None, "c": 3}, types)
            .rebalance().map(lambda x: (type(x).__name__, sorted(x.items()))))
