"""The order of keys of type SQL_DATE."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "BATCH"
ORDERED = True


def build(env):
    days = [(2024, 1, 1), (1969, 12, 31), (1970, 1, 1), (2020, 5, 5)]
    keys = [datetime.date(*day) for day in days]
    return env.from_collection(keys).key_by(lambda x: x, Types.SQL_DATE()).reduce(lambda a, b: a)
