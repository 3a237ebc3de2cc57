"""SQL_TIME with fractions of a second, collected."""

import datetime

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
QUIRK = "The fraction is lost on collecting; between functions milliseconds are kept."


def build(env):
    return env.from_collection([datetime.time(1, 2, 3, 456789)]).map(lambda x: x, Types.SQL_TIME())
