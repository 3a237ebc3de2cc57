"""Orders, and jobs on both in-process engines, for tests of streams of columns."""

import pytest

from ekorn.common import Row, Types
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.testing.local_run import on_local_engine

ORDER = Types.ROW_NAMED(["customer", "amount", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
ORDERS = [Row(customer=f"c{n % 5}", amount=n, at=n * 10) for n in range(100)]
ENGINES = pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])


def environment(parallelism=2):
    return StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)


def orders(env, records=None):
    return env.from_collection(ORDERS if records is None else records, ORDER)


def collected(stream, *, continuous=False):
    with on_local_engine(continuous=continuous), stream.execute_and_collect() as records:
        return list(records)


def as_set(records):
    return sorted(map(str, records))
