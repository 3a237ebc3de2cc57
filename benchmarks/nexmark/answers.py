"""What Nexmark's queries ask, as SQL, and their answers by an independent computation: SQLite, over all events at once.

The answers of an engine are rows in the order in which it gave them. In a query with keys, a later row replaces an
earlier one with the same keys.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.nexmark.events import KINDS

# How many columns at the beginning of a row are its key; all rows hold where a query is left out.
KEYS = {"q4": 1, "q9": 1, "q15": 1, "q16": 2, "q17": 2, "q18": 2}

_RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
_COUNTS = ", ".join(
    ", ".join([f"count({what})", *(f"count({what}) FILTER (WHERE {rank})" for rank in _RANKS)])
    for what in ("*", "DISTINCT bidder", "DISTINCT auction")
)
_WITH_BIDS = (
    "bid JOIN auction ON auction.id = bid.auction AND bid.dateTime BETWEEN auction.dateTime AND auction.expires"
)
_HOPS = "(SELECT auction, dateTime / 2000 * 2000 + 2000 + hop.ms AS ending FROM bid, hop)"

# Times are milliseconds. `number` is the place of a row in the order of its file.
SQL = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, euro(price), dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": "SELECT name, city, state, auction.id FROM auction JOIN person ON auction.seller = person.id "
    "WHERE category = 10 AND state IN ('OR', 'ID', 'CA')",
    "q4": f"SELECT category, sum(final) / count(*) FROM (SELECT category, max(price) AS final FROM {_WITH_BIDS} "
    "GROUP BY auction.id, category) GROUP BY category",
    "q5": "SELECT auction, num FROM (SELECT auction, num, rank() OVER (PARTITION BY ending ORDER BY num DESC) AS place "
    f"FROM (SELECT auction, ending, count(*) AS num FROM {_HOPS} GROUP BY auction, ending)) WHERE place = 1",
    "q7": "SELECT auction, price, bidder, dateTime, extra FROM (SELECT *, rank() OVER (PARTITION BY dateTime / 10000 "
    "ORDER BY price DESC) AS place FROM bid) WHERE place = 1",
    "q8": "SELECT DISTINCT person.id, name, person.dateTime / 10000 * 10000 FROM person JOIN auction "
    "ON seller = person.id AND person.dateTime / 10000 = auction.dateTime / 10000",
    "q9": "SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, item, "
    "auction, bidder, price, at, said FROM (SELECT *, auction.dateTime AS opened, auction.extra AS item, "
    "bid.dateTime AS at, bid.extra AS said, row_number() OVER (PARTITION BY auction.id ORDER BY price DESC, "
    f"bid.dateTime, bid.number) AS place FROM {_WITH_BIDS}) WHERE place = 1",
    "q11": "SELECT bidder, min(dateTime), max(dateTime) + 10000, count(*) FROM (SELECT bidder, dateTime, "
    "sum(first) OVER (PARTITION BY bidder ORDER BY dateTime) AS session FROM (SELECT bidder, dateTime, "
    "dateTime - coalesce(lag(dateTime) OVER (PARTITION BY bidder ORDER BY dateTime), 0) > 10000 AS first "
    "FROM bid)) GROUP BY bidder, session",
    "q12": "SELECT bidder, count(*) FROM bid GROUP BY bidder",
    "q14": "SELECT auction, bidder, euro(price), CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime' WHEN "
    "hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END, dateTime, extra, "
    "length(extra) - length(replace(extra, 'c', '')) FROM bid "
    "WHERE price * 908 > 1000000000 AND price * 908 < 50000000000",
    "q15": f"SELECT day(dateTime) AS day, {_COUNTS} FROM bid GROUP BY day",
    "q16": f"SELECT channel, day(dateTime) AS day, max(minute(dateTime)), {_COUNTS} FROM bid GROUP BY channel, day",
    "q17": f"SELECT auction, day(dateTime) AS day, {_COUNTS.partition(', count(DISTINCT')[0]}, min(price), max(price), "
    "sum(price) / count(*), sum(price) FROM bid GROUP BY auction, day",
    "q18": "SELECT auction, bidder, price, channel, url, dateTime, extra FROM (SELECT *, row_number() OVER "
    "(PARTITION BY bidder, auction ORDER BY dateTime DESC, number DESC) AS place FROM bid) WHERE place = 1",
    "q20": "SELECT auction, bidder, price, channel, url, bid.dateTime, bid.extra, itemName, description, initialBid, "
    "reserve, auction.dateTime, expires, seller, category, auction.extra FROM bid JOIN auction ON auction = id "
    "WHERE category = 10",
    "q21": "SELECT * FROM (SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' "
    "WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE channel_id(url) END AS named FROM bid) "
    "WHERE named IS NOT NULL",
    "q22": "SELECT auction, bidder, price, channel, folder(url, 3), folder(url, 4), folder(url, 5) FROM bid",
}


class Answers:
    """The events of a folder in SQLite."""

    def __init__(self, folder: Path) -> None:
        self._database = sqlite3.connect(":memory:")
        for name, function in _FUNCTIONS.items():
            self._database.create_function(name, 1 if name != "folder" else 2, function, deterministic=True)
        for kind in KINDS:
            self._load(kind, sorted((folder / kind).glob("*.parquet")))
        self._database.execute("CREATE INDEX of_auction ON bid (auction)")
        self._database.execute("CREATE INDEX of_seller ON auction (seller)")
        self._database.execute("CREATE TABLE hop (ms)")
        self._database.executemany("INSERT INTO hop VALUES (?)", [(ms,) for ms in range(0, 10_000, 2_000)])

    def _load(self, kind: str, files: list[Path]) -> None:
        tables = [pq.read_table(file) for file in files]
        names = tables[0].column_names
        key = " PRIMARY KEY" if names[0] == "id" else ""
        self._database.execute(f"CREATE TABLE {kind} ({names[0]}{key}, {', '.join(names[1:])}, number)")
        into = f"INSERT INTO {kind} VALUES ({', '.join('?' * (len(names) + 1))})"
        for table in tables:
            columns = [_for_sqlite(column) for column in table.columns]
            self._database.executemany(into, zip(*columns, range(table.num_rows), strict=True))

    def of(self, query: str) -> Counter[tuple[Any, ...]]:
        """Return the rows of a query and how often they occur."""
        return Counter(normal(self._database.execute(SQL[query])))


def normal(rows: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Return rows with times as milliseconds and exact numbers as texts, which is how engines are compared."""
    for row in rows:
        yield tuple(map(_value, row))


def last_of_keys(query: str, rows: Iterable[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Return the rows that hold at the end."""
    if query not in KEYS:
        return Counter(rows)
    return Counter({row[: KEYS[query]]: row for row in rows}.values())


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return int(value.replace(tzinfo=UTC).timestamp() * 1000 + 0.5)
    return str(value) if isinstance(value, Decimal) else value


def _for_sqlite(column: Any) -> list[Any]:
    return [_value(value) for value in column.to_pylist()]


def _format(pattern: str) -> Any:
    return lambda ms: datetime.fromtimestamp(ms // 1000, UTC).strftime(pattern)


def _channel_id(url: str) -> str | None:
    found = re.search("(&|^)channel_id=([^&]*)", url)
    return found and found[2]


_FUNCTIONS = {
    "euro": lambda price: f"{price * 908 // 1000}.{price * 908 % 1000:03}",
    "hour": lambda ms: ms // 3_600_000 % 24,
    "day": _format("%Y-%m-%d"),
    "minute": _format("%H:%M"),
    "channel_id": _channel_id,
    "folder": lambda url, number: url.split("/")[number],
}
