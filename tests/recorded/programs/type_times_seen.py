"""Dates and times as the next function sees them behind an exchange."""

import datetime

from pyflink.common import Instant, Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    values = [(datetime.date(2024, 2, 29), datetime.time(1, 2, 3, 456789),
               datetime.datetime(2024, 2, 29, 1, 2, 3, 456789), Instant(1, 5))]
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.INSTANT()])
    return env.from_collection(values).map(lambda x: x, types).rebalance().map(lambda x: x)
