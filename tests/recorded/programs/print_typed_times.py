"""print of dates, times and decimals."""

import datetime
from decimal import Decimal

from pyflink.common import Types

PARALLELISM = 1
MODE = "STREAMING"
ORDERED = True
RESULT = "stdout"


def build(env):
    types = Types.TUPLE([Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP(), Types.BIG_DEC()])
    date, time, stamp = datetime.date, datetime.time, datetime.datetime
    values = [(date(2024, 2, 29), time(1, 2, 3), stamp(2024, 2, 29, 1, 2, 3), Decimal("1E+3")),
              (date(1970, 1, 1), time(0, 0), stamp(2024, 1, 1, 1, 2, 3, 456700), Decimal("1.10"))]
    env.from_collection(values, types).print()
