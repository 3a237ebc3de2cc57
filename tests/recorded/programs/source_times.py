"""A collection of dates and times."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()])
    values = [(datetime.date(2024, 2, 29), datetime.time(1, 2, 3), datetime.datetime(2024, 2, 29, 1, 2, 3, 456789))]
    return env.from_collection(values, types).map(lambda x: x)
