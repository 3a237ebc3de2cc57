"""SQL_DATE long before 1582, collected."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "Java's old calendar shifts the day."


def build(env):
    return env.from_collection([datetime.date(1, 1, 1)]).map(lambda x: x, Types.SQL_DATE())
