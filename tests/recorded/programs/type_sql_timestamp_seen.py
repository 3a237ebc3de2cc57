"""SQL_TIMESTAMP as the next function sees it behind an exchange: to the millisecond."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    stamps = [datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 456789),
              datetime.datetime(1969, 12, 31, 23, 59, 59, 999000)]
    return env.from_collection(stamps).map(lambda x: x, Types.SQL_TIMESTAMP()).rebalance().map(lambda x: x)
