"""Nexmark's queries in Flink SQL: it runs in the JVM, in streaming mode, on the files that Ekorn reads.

    HADOOP_CLASSPATH=... python -m benchmarks.peers.nexmark_flink rates FOLDER q0,q1 --turns 2
    HADOOP_CLASSPATH=... python -m benchmarks.peers.nexmark_flink answers FOLDER q0,q1 --into FOLDER

`benchmarks.nexmark` runs this script with the jars of Flink's Parquet format and of Hadoop in HADOOP_CLASSPATH. Objects
are reused, and aggregates take small batches, as the documentation of Nexmark's runner for Flink recommends.
"""

import argparse
import json
import time
from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from pyflink.common import RowKind
from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.local-time-zone": "UTC",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "taskmanager.memory.network.max": "256 mb",
}
COLUMNS = {
    "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "`dateTime` TIMESTAMP(3), extra STRING",
    "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, "
    "`dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), "
    "extra STRING, p_time AS PROCTIME()",
}
_RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
_COUNTS = ", ".join(
    ", ".join([f"COUNT({what})", *(f"COUNT({what}) FILTER (WHERE {rank})" for rank in _RANKS)])
    for what in ("*", "DISTINCT bidder", "DISTINCT auction")
)
_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_EURO = "CAST(0.908 AS DECIMAL(4, 3)) * price"
_CHANNEL = "REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)"
_JOINED = "auction A JOIN bid B ON A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires"
_HOPS = (
    "SELECT auction, COUNT(*) AS num, window_start, window_end FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), "
    "INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end"
)


def _tumbling(table: str) -> str:
    return f"TABLE(TUMBLE(TABLE {table}, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))"


SQL = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": f"SELECT auction, bidder, {_EURO}, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": "SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id "
    "WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')",
    "q4": f"SELECT category, AVG(final) FROM (SELECT MAX(B.price) AS final, A.category FROM {_JOINED} "
    "GROUP BY A.id, A.category) GROUP BY category",
    "q5": f"SELECT C.auction, C.num FROM ({_HOPS}) C JOIN (SELECT MAX(num) AS most, window_start, window_end "
    f"FROM ({_HOPS}) GROUP BY window_start, window_end) M ON C.window_start = M.window_start "
    "AND C.window_end = M.window_end AND C.num >= M.most",
    "q7": f"SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra FROM (SELECT * FROM {_tumbling('bid')}) B "
    f"JOIN (SELECT MAX(price) AS most, window_start, window_end FROM {_tumbling('bid')} GROUP BY window_start, "
    "window_end) M ON B.window_start = M.window_start AND B.window_end = M.window_end AND B.price = M.most",
    "q8": f"SELECT P.id, P.name, P.window_start FROM (SELECT id, name, window_start, window_end FROM "
    f"{_tumbling('person')} GROUP BY id, name, window_start, window_end) P JOIN (SELECT seller, window_start, "
    f"window_end FROM {_tumbling('auction')} GROUP BY seller, window_start, window_end) A ON P.id = A.seller "
    "AND P.window_start = A.window_start AND P.window_end = A.window_end",
    "q9": "SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, item, auction, "
    "bidder, price, made, said FROM (SELECT A.id, A.itemName, A.description, A.initialBid, A.reserve, "
    "A.`dateTime` AS opened, A.expires, A.seller, A.category, A.extra AS item, B.auction, B.bidder, B.price, "
    "B.`dateTime` AS made, B.extra AS said, ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, "
    f"B.`dateTime` ASC) AS place FROM {_JOINED}) WHERE place <= 1",
    "q11": "SELECT bidder, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, "
    "DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end",
    "q12": "SELECT bidder, window_start, window_end, COUNT(*) FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(p_time), "
    "INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end",
    "q14": f"SELECT auction, bidder, {_EURO}, CASE WHEN HOUR(`dateTime`) BETWEEN 8 AND 18 THEN 'dayTime' "
    "WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime' ELSE 'otherTime' END, `dateTime`, extra, "
    "CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) FROM bid "
    f"WHERE {_EURO} > 1000000 AND {_EURO} < 50000000",
    "q15": f"SELECT {_DAY}, {_COUNTS} FROM bid GROUP BY {_DAY}",
    "q16": f"SELECT channel, {_DAY}, MAX(DATE_FORMAT(`dateTime`, 'HH:mm')), {_COUNTS} FROM bid "
    f"GROUP BY channel, {_DAY}",
    "q17": f"SELECT auction, {_DAY}, {_COUNTS.partition(', COUNT(DISTINCT')[0]}, MIN(price), MAX(price), AVG(price), "
    f"SUM(price) FROM bid GROUP BY auction, {_DAY}",
    "q18": "SELECT auction, bidder, price, channel, url, `dateTime`, extra FROM (SELECT *, ROW_NUMBER() OVER "
    "(PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS place FROM bid) WHERE place <= 1",
    "q20": "SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra, itemName, description, initialBid, "
    "reserve, A.`dateTime`, expires, seller, category, A.extra FROM bid B JOIN auction A ON B.auction = A.id "
    "WHERE A.category = 10",
    "q21": "SELECT auction, bidder, price, channel, CASE LOWER(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
    f"WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE {_CHANNEL} END FROM bid WHERE {_CHANNEL} IS NOT NULL "
    "OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    "q22": "SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3), SPLIT_INDEX(url, '/', 4), "
    "SPLIT_INDEX(url, '/', 5) FROM bid",
}


def tables(folder: Path) -> TableEnvironment:
    """Return an environment with the three tables; watermarks follow the times, which never go back in a file."""
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        environment.get_config().set(key, value)
    for kind, columns in COLUMNS.items():
        environment.execute_sql(
            f"CREATE TABLE {kind} ({columns}, WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '0.001' SECOND) "
            f"WITH ('connector' = 'filesystem', 'path' = '{(folder / kind).as_uri()}', 'format' = 'parquet')"
        )
    return environment


def seconds_of(environment: TableEnvironment, query: str, turn: int) -> float:
    """Run a query whose results are dropped."""
    table = environment.sql_query(SQL[query])
    sink = f"sink_{query}_{turn}"
    names = table.get_schema().get_field_names()
    types = [str(kind) for kind in table.get_resolved_schema().get_column_data_types()]
    columns = ", ".join(f"`{name}` {_without_time_attribute(kind)}" for name, kind in zip(names, types, strict=True))
    environment.execute_sql(f"CREATE TABLE {sink} ({columns}) WITH ('connector' = 'blackhole')")
    started = time.perf_counter()
    table.execute_insert(sink).wait()
    return time.perf_counter() - started


def answer(environment: TableEnvironment, query: str) -> Counter:
    """Return the rows that hold at the end, and how often they occur."""
    rows: Counter = Counter()
    with environment.execute_sql(SQL[query]).collect() as changes:
        for row in changes:
            added = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            rows[tuple(map(_value, row))] += 1 if added else -1
    return +rows


def _value(value: object) -> object:
    if isinstance(value, datetime):
        return int(value.replace(tzinfo=UTC).timestamp() * 1000 + 0.5)
    return str(value) if isinstance(value, Decimal) else value


def _without_time_attribute(kind: str) -> str:
    return kind.replace("*ROWTIME*", "").replace("*PROCTIME*", "").replace("NOT NULL", "").strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rates", "answers"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("queries")
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--into", type=Path)
    options = parser.parse_args()
    environment = tables(options.folder)
    for query in options.queries.split(","):
        if options.what == "rates":
            seconds = [seconds_of(environment, query, turn) for turn in range(options.turns)]
            print(json.dumps({"query": query, "seconds": seconds}), flush=True)
        else:
            found = answer(environment, query)
            (options.into / f"{query}.json").write_text(json.dumps([[*row, count] for row, count in found.items()]))
            print(json.dumps({"query": query, "rows": found.total()}), flush=True)


if __name__ == "__main__":
    main()
