"""print writes str() of untyped records."""

from pyflink.common import Row

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    (env.from_collection([1, 1.0, "text", ("a", 1), [1, "b"], {"k": 1}, Row(1, "a"), Row(id=1), True])
     .map(lambda x: x).print())
