"""SQL_TIME as the output of a function."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    times = [datetime.time(0, 0, 0), datetime.time(23, 59, 59), datetime.time(1, 2, 3)]
    return env.from_collection(times).map(lambda x: x, Types.SQL_TIME())
