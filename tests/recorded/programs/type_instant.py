"""INSTANT as the output of a function."""

from pyflink.common import Instant, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    return (env.from_collection([0, 1500, -1]).map(Instant.of_epoch_milli, Types.INSTANT())
            .rebalance().map(lambda instant: (instant.seconds, instant.nanos)))
