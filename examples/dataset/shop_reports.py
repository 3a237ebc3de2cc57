"""Two reports on the orders of a shop, after the queries 3 and 10 of the TPC-H benchmark.

    python examples/dataset/shop_reports.py

Report 3: the ten orders not yet shipped that are worth most, of one kind of customers. Report 10: the customers who
cost the shop most by returns in a quarter.
"""

from __future__ import annotations

import datetime
import random
from dataclasses import dataclass
from typing import NamedTuple

from ekorn.dataset import DataSet, ExecutionEnvironment, Order

START = datetime.date(1995, 1, 1)


class Customer(NamedTuple):
    """Somebody who orders."""

    key: int
    name: str
    segment: str
    nation: str


class Ordered(NamedTuple):
    """An order."""

    key: int
    customer: int
    day: datetime.date
    priority: int


class Item(NamedTuple):
    """One line of an order."""

    order: int
    price: float
    discount: float
    shipped: datetime.date
    returned: bool

    @property
    def revenue(self) -> float:
        """Return what the shop gets for it."""
        return self.price * (1 - self.discount)


@dataclass
class Shop:
    """The tables."""

    customers: list[Customer]
    orders: list[Ordered]
    items: list[Item]


def generated(customers: int = 60) -> Shop:
    """Return a shop, the same in every run."""
    chance = random.Random(3)
    segments, nations = ["BUILDING", "MACHINERY", "FURNITURE"], ["KENYA", "PERU", "CHINA"]
    shop = Shop([], [], [])
    for key in range(customers):
        shop.customers.append(Customer(key, f"Customer#{key:03d}", chance.choice(segments), chance.choice(nations)))
    for key in range(customers * 6):
        day = START + datetime.timedelta(days=chance.randrange(360))
        shop.orders.append(Ordered(key, chance.randrange(customers), day, chance.randrange(3)))
        for _ in range(chance.randrange(1, 5)):
            shipped = day + datetime.timedelta(days=chance.randrange(1, 90))
            price, discount = chance.randrange(100, 10_000) / 4, chance.randrange(0, 11) / 100
            shop.items.append(Item(key, price, discount, shipped, chance.random() < 0.3))
    return shop


def unshipped_orders(
    env: ExecutionEnvironment, shop: Shop, segment: str, day: datetime.date
) -> list[tuple[int, float, datetime.date, int]]:
    """Return key, revenue, day and priority of the ten orders of most value, placed before a day and not shipped."""
    customers = env.from_collection(shop.customers).filter(lambda each: each.segment == segment)
    orders = env.from_collection(shop.orders).filter(lambda each: each.day < day)
    items = env.from_collection(shop.items).filter(lambda each: each.shipped > day)
    wanted = customers.join_with_huge(orders).where("key").equal_to("customer").using(lambda _, order: order)
    lines = wanted.join(items).where("key").equal_to("order")
    worth = lines.using(lambda order, item: (order.key, item.revenue, order.day, order.priority))
    return most_valuable(worth.group_by(0, 2, 3).sum(1), 10)


def returns(
    env: ExecutionEnvironment, shop: Shop, first: datetime.date, last: datetime.date
) -> list[tuple[int, float, str, str]]:
    """Return key, lost revenue, name and nation of the twenty customers who returned most of what they ordered."""
    orders = env.from_collection(shop.orders).filter(lambda each: first <= each.day <= last)
    items = env.from_collection(shop.items).filter(lambda each: each.returned)
    lost = orders.join(items).where("key").equal_to("order").using(lambda order, item: (order.customer, item.revenue))
    sums = lost.group_by(0).sum(1)
    customers = env.from_collection(shop.customers)
    found = sums.join(customers).where(0).equal_to("key")
    return most_valuable(found.using(lambda lost, each: (each.key, lost[1], each.name, each.nation)), 20)


def most_valuable(rows: DataSet, count: int) -> list[tuple]:
    """Return the rows with the highest second field, ordered by it and then by the first."""
    ordered = rows.sort_partition(1, Order.DESCENDING).set_parallelism(1)
    return ordered.sort_partition(0, Order.ASCENDING).set_parallelism(1).first(count).collect()


def main() -> None:
    """Print both reports."""
    env = ExecutionEnvironment.get_execution_environment().set_parallelism(2)
    shop = generated()
    print("order  revenue    day")
    for key, revenue, day, _ in unshipped_orders(env, shop, "BUILDING", datetime.date(1995, 7, 1)):
        print(f"{key:>5}  {revenue:>9.2f}  {day}")
    print("customer      returned")
    for _, revenue, name, nation in returns(env, shop, datetime.date(1995, 4, 1), datetime.date(1995, 6, 30))[:5]:
        print(f"{name}  {revenue:>9.2f}  {nation}")


if __name__ == "__main__":
    main()
