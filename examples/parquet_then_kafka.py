"""History from Parquet files, then live messages of Kafka, as one stream of columns.

    python examples/parquet_then_kafka.py localhost:9092 sales history

The files in the folder `history` are read to their end, then the job goes on with the JSON messages of the topic
`sales`. Both give columns of the same type, so one operator sums up both. Each result is the revenue of a shop so far.
With `--bounded` the program ends at what the topic holds when it starts. `--make` writes a history and some messages
first.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ekorn.common import Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ColumnStream, Count, JsonColumns, ParquetColumns, Sum
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.datastream.connectors.hybrid_source import HybridSource
from ekorn.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from ekorn.table import DataTypes

SALE = DataTypes.ROW([DataTypes.FIELD("shop", DataTypes.STRING()), DataTypes.FIELD("cents", DataTypes.BIGINT())])
IN_FILES, LIVE = 9_000, 1_000


def sale(number: int) -> dict[str, str | int]:
    """Return a sale."""
    return {"shop": f"shop {number * 5 % 7}", "cents": 500 + number * 37 % 900}


def write_history(folder: Path) -> None:
    """Write the older sales to three files, as an archive has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for part in range(3):
        sales = [sale(number) for number in range(part * IN_FILES // 3, (part + 1) * IN_FILES // 3)]
        pq.write_table(pa.Table.from_pylist(sales), folder / f"sales-{part}.parquet")


def send_sales(servers: str, topic: str) -> None:
    """Send the newer sales to the topic."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers})
    for number in range(IN_FILES, IN_FILES + LIVE):
        producer.produce(topic, json.dumps(sale(number)).encode())
    producer.flush()


def revenue(env: StreamExecutionEnvironment, servers: str, topic: str, history: str, *, bounded: bool) -> ColumnStream:
    """Draw the job; its results are revenue and sales of each shop, one for each batch in which the shop sells."""
    files = FileSource.for_bulk_file_format(ParquetColumns(SALE), history).build()
    messages = (
        KafkaSource.builder()
        .set_bootstrap_servers(servers)
        .set_topics(topic)
        .set_group_id(f"revenue of {topic}")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(JsonColumns(SALE))
    )
    if bounded:
        messages.set_bounded(KafkaOffsetsInitializer.latest())
    source = HybridSource.builder(files).add_source(messages.build()).build()
    sales = env.from_source(source, WatermarkStrategy.no_watermarks(), "sales")
    assert isinstance(sales, ColumnStream)
    return sales.key_by("shop").aggregate(emits="last", cents=Sum("cents"), sales=Count())


def main(arguments: list[str] | None = None) -> None:
    """Print the revenue of each shop as it grows; with `--bounded` the last of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("servers", help="the brokers, as host:port,host:port")
    parser.add_argument("topic", help="the topic of live sales")
    parser.add_argument("history", help="the folder of older sales")
    parser.add_argument("--bounded", action="store_true", help="end at what the topic holds now")
    parser.add_argument("--make", action="store_true", help="write a history and some messages first")
    told = parser.parse_args(arguments)
    if told.make:
        write_history(Path(told.history))
        send_sales(told.servers, told.topic)
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = revenue(env, told.servers, told.topic, told.history, bounded=told.bounded)
    if not told.bounded:
        stream.print()
        env.execute("revenue")
        return
    last: dict[str, Row] = {}
    with stream.execute_and_collect("revenue") as results:
        for row in results:
            if row["shop"] not in last or row["sales"] > last[row["shop"]]["sales"]:
                last[row["shop"]] = row
    for shop, row in sorted(last.items()):
        print(f"{shop}  {row['sales']:>5} sales  {row['cents'] / 100:>9.2f}")


if __name__ == "__main__":
    main()
