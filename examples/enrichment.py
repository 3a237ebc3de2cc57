"""Enrichment: every order gets the name of its customer, from a service that is slow to answer.

    python examples/enrichment.py

Asked one after the other, 200 orders would wait 200 times. Asynchronous I/O keeps up to fifty requests in flight, so
the job waits a few times only. A customer that the service does not know in time gets a stand-in: the stream goes on.
"""

from __future__ import annotations

import asyncio

from ekorn.common import Time
from ekorn.datastream import AsyncDataStream, AsyncFunction, StreamExecutionEnvironment

ORDERS = 200
ANSWER_S = 0.01
NAMES = {"c0": "Ada", "c1": "Ben", "c2": "Cem", "c3": "Dot"}  # the service does not answer about c4


def order(number: int) -> tuple[int, str]:
    """Return the number and the customer of an order."""
    return number, f"c{number * 7 % 5}"


class CustomerService:
    """Stands for a service on the network; counts how many requests it has at the same time."""

    def __init__(self) -> None:
        self.open = 0
        self.most_open = 0

    async def name_of(self, customer: str) -> str:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            await asyncio.sleep(ANSWER_S if customer in NAMES else 3600)
        finally:
            self.open -= 1
        return NAMES[customer]


class AddName(AsyncFunction):
    """Asks for the name of an order's customer."""

    def open(self, runtime_context):
        self.service = CustomerService()

    async def async_invoke(self, value):
        number, customer = value
        return [(number, await self.service.name_of(customer), self.service.most_open)]

    def timeout(self, value):
        return [(value[0], "unknown", self.service.most_open)]


def enriched() -> list[tuple[int, str, int]]:
    """Run the job; return number, name and the most requests in flight so far, in the order of the orders."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    orders = env.from_collection([order(number) for number in range(ORDERS)])
    named = AsyncDataStream.ordered_wait(orders, AddName(), Time.milliseconds(300), capacity=50)
    with named.execute_and_collect("enrichment") as results:
        return list(results)


def main() -> None:
    """Draw a bar for each customer."""
    results = enriched()
    for name in (*NAMES.values(), "unknown"):
        count = sum(found == name for _, found, _ in results)
        print(f"{name:<8}{count:>4}  {'#' * count}")
    print(f"up to {max(most for *_, most in results)} requests at the same time")


if __name__ == "__main__":
    main()
