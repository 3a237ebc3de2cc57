"""None where STRING is declared, behind an exchange."""

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection(["a", None, "b"]).map(lambda x: x, Types.STRING())
            .rebalance().map(repr))
