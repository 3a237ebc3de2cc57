"""SQL_TIMESTAMP as the output of a function, collected."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The bridge returns bytes where a timestamp is expected."


def build(env):
    return env.from_collection([datetime.datetime(1970, 1, 1)]).map(lambda x: x, Types.SQL_TIMESTAMP())
