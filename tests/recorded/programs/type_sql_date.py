"""SQL_DATE as the output of a function."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True


def build(env):
    dates = [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), datetime.date(1900, 1, 1)]
    return env.from_collection(dates).map(lambda x: x, Types.SQL_DATE())
