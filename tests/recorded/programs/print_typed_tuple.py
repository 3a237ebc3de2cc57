"""print of typed tuples."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    types = Types.TUPLE([Types.INT(), Types.STRING(), Types.BOOLEAN(), Types.DOUBLE(), Types.FLOAT(),
                         Types.LIST(Types.INT()), Types.MAP(Types.STRING(), Types.INT())])
    values = [(1, "a", True, 0.5, 1.1, [1, 2], {"k": 1}), (2, "b c", False, 1e10, 1e-5, [], {})]
    env.from_collection(values, types).print()
