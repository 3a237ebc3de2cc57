"""Rows per second from Parquet files through a keyed count to Parquet files, on columns, on two cores.

    python -m benchmarks.column_files --records 20000000 --keys 1000 [--emits last] [--form rows] [--api epochs]

The count gives a row for each row, or with `--emits last` one for the last row of each key and batch. The seconds are
those of the whole job, exactly once with a checkpoint every two seconds, after a small job of the same kind.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path
from typing import Literal

import pyarrow.parquet as pq

from benchmarks.column_jobs import PAIR, Pairs
from benchmarks.ekorn_jobs import environment
from benchmarks.peers.measuring import tell
from ekorn.common import WatermarkStrategy
from ekorn.datastream import DataStream
from ekorn.datastream.columns import Count, ParquetColumns
from ekorn.datastream.connectors.file_system import FileSink, FileSource
from ekorn.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from ekorn.table import DataTypes

FILES = 8
GROUP_ROWS = 500_000
READ = DataTypes.ROW([DataTypes.FIELD("user", DataTypes.STRING()), DataTypes.FIELD("number", DataTypes.BIGINT())])
WRITTEN = DataTypes.ROW([*READ, DataTypes.FIELD("count", DataTypes.BIGINT())])


def fill(folder: Path, records: int, keys: int) -> None:
    """Write the records."""
    pairs, each = Pairs(keys), records // FILES
    schema = pairs(0, 1).schema
    for number in range(FILES):
        with pq.ParquetWriter(folder / f"{number}.parquet", schema) as writer:
            for first in range(number * each, (number + 1) * each, GROUP_ROWS):
                writer.write_batch(pairs(first, min(GROUP_ROWS, (number + 1) * each - first)))


def counted(stream: DataStream, form: str, emits: Literal["each", "last"]) -> DataStream:
    """Return the counts of each key."""
    if form == "rows":
        stream = stream.map(lambda row: row, output_type=PAIR)
    return stream.key_by("user").aggregate(emits=emits, count=Count())


def seconds_of(source: Path, target: Path, given: argparse.Namespace) -> float:
    """Run the job; return its seconds, and check the number of rows that it wrote."""
    shutil.rmtree(target, ignore_errors=True)
    env = environment(given.parallelism, given.api)
    env.enable_checkpointing(2_000)
    env.get_checkpoint_config().set_checkpoint_storage_dir(target.with_name("checkpoints").as_uri())
    read = ParquetColumns(READ) if given.form == "columns" else ParquetColumnarRowInputFormat(READ)
    files = FileSource.for_bulk_file_format(read, str(source)).build()
    stream = env.from_source(files, WatermarkStrategy.no_watermarks(), "pairs")
    result = counted(stream, given.form, given.emits)
    row_type = getattr(result, "row_type", WRITTEN)
    result.sink_to(FileSink.for_bulk_format(str(target), ParquetBulkWriters.for_row_type(row_type)).build())
    started = time.perf_counter()
    env.execute("parquet to parquet")
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--keys", type=int, default=1_000)
    parser.add_argument("--emits", choices=("each", "last"), default="each")
    parser.add_argument("--form", choices=("columns", "rows"), default="columns")
    parser.add_argument("--api", choices=("continuous", "epochs"), default="continuous")
    parser.add_argument("--parallelism", type=int, default=2)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        small, large, target = Path(folder, "small"), Path(folder, "large"), Path(folder, "written")
        small.mkdir()
        large.mkdir()
        fill(small, 80_000, given.keys)
        fill(large, given.records, given.keys)
        seconds_of(small, target, given)
        turns = [seconds_of(large, target, given) for _ in range(given.turns)]
        rows = sum(pq.read_metadata(path).num_rows for path in target.rglob("part-*"))
        tell({"seconds": turns, "rows_written": rows, "records_per_second": [given.records / each for each in turns]})


if __name__ == "__main__":
    main()
