"""Asynchronous calls with a second try, results in the order of the records."""

import asyncio

from pyflink.common import Time, Types
from pyflink.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    StreamExecutionEnvironment,
    async_retry_predicates,
)


class Lookup(AsyncFunction):
    def open(self, runtime_context):
        self.tried = set()

    async def async_invoke(self, value):
        await asyncio.sleep(0.01 * (3 - value % 3))
        if value not in self.tried:
            self.tried.add(value)
            raise ConnectionError(value)
        return [f"answer to {value}"] * (value % 3)


env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
again = AsyncRetryStrategy.fixed_delay(2, 10, None, async_retry_predicates.has_exception_predicate)
AsyncDataStream.ordered_wait_with_retry(
    env.from_collection([1, 2, 3, 4, 5]), Lookup(), Time.seconds(30), again, output_type=Types.STRING()).print()
env.execute()
