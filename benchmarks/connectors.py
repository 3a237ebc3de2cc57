"""Rows and lines per second to and from PostgreSQL, files and DataFrames, on an embedded Spark with two cores.

    python -m benchmarks.connectors --what database-write --records 500000

`database-write` is exactly once with a checkpoint a second, `database-read` a table in two ranges, `files-write` lines
into part files that end with every checkpoint, `files-read` those lines, `frame-read` a DataFrame of Spark, and
`frame-write` records into a DataFrame that Spark counts. The seconds are those of a whole job, after a small job of the
same kind.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.servers import postgres

from ekorn.common import Types, WatermarkStrategy
from ekorn.common.serialization import Encoder
from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSink, FileSource, RollingPolicy, StreamFormat
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink, JdbcSource
from ekorn.datastream.connectors.number_seq import NumberSequenceSource
from ekorn.datastream.functions import SinkFunction
from ekorn.table import DataTypes

WARM_UP_RECORDS = 2_000
ROW = Types.ROW([Types.LONG(), Types.STRING()])


class Discard(SinkFunction):
    def invoke(self, value, context):
        pass


class Bench:
    """The jobs. Each method runs one over a number of records."""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self._folder = folder
        self._running = running
        self._url = ""

    def environment(self) -> StreamExecutionEnvironment:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.get_configuration().set_string("spark.master", "local[2]")
        env.set_parallelism(2)
        env.enable_checkpointing(1_000)
        env.get_checkpoint_config().set_checkpoint_storage_dir((self._folder / "checkpoints").as_uri())
        return env

    def numbers(self, env: StreamExecutionEnvironment, records: int) -> DataStream:
        source = NumberSequenceSource(0, records - 1)
        return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())

    def prepare(self, what: str, records: int) -> None:
        """Make what the job reads or writes; not timed."""
        if what.startswith("database"):
            if not self._url:
                server = self._running.enter_context(postgres.running_server())
                database = self._running.enter_context(server.database())
                self._url = f"{server.url(database)}?user={postgres.USER}&password={postgres.PASSWORD}"
                self._connection = self._running.enter_context(server.connect(database))
            self._connection.execute("DROP TABLE IF EXISTS rows")
            self._connection.execute("CREATE TABLE rows (id BIGINT, text VARCHAR(80))")
            if what == "database-read":
                fill = "INSERT INTO rows SELECT n, 'row ' || n FROM generate_series(0, %s::bigint) AS n"
                self._connection.execute(fill, (records - 1,))
        elif what == "files-read":
            folder = self._folder / f"lines-{records}"
            folder.mkdir()
            for part in range(4):
                lines = (f"line {n} of a file\n" for n in range(part, records, 4))
                (folder / f"part-{part}").write_text("".join(lines))

    def database_write(self, records: int) -> None:
        env = self.environment()
        rows = self.numbers(env, records).map(lambda n: (n, f"row {n}"), ROW)
        sink = JdbcSink.exactly_once_sink("INSERT INTO rows VALUES (?, ?)", ROW, JdbcConnectionOptions(self._url))
        rows.add_sink(sink)
        env.execute()
        self._check(records, self._connection.execute("SELECT count(*) FROM rows").fetchone())

    def database_read(self, records: int) -> None:
        env = self.environment()
        query = JdbcSource.builder().set_db_url(self._url).set_sql("SELECT id, text FROM rows")
        source = query.set_partition_column("id", 2).build()
        env.from_source(source, WatermarkStrategy.no_watermarks(), "rows").add_sink(Discard())
        env.execute()

    def files_write(self, records: int) -> None:
        env, target = self.environment(), self._folder / f"out-{records}"
        builder = FileSink.for_row_format(target.as_uri(), Encoder.simple_string_encoder())
        sink = builder.with_rolling_policy(RollingPolicy.on_checkpoint_rolling_policy()).build()
        self.numbers(env, records).map(lambda n: f"line {n} of a file", Types.STRING()).sink_to(sink)
        env.execute()
        self._check(records, (sum(part.read_bytes().count(b"\n") for part in target.rglob("part-*")),))

    def files_read(self, records: int) -> None:
        env, folder = self.environment(), self._folder / f"lines-{records}"
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), folder.as_uri()).build()
        env.from_source(source, WatermarkStrategy.no_watermarks(), "lines").add_sink(Discard())
        env.execute()

    def frame_read(self, records: int) -> None:
        env = self.environment()
        env.from_data_frame(_session().range(records)).add_sink(Discard())
        env.execute()

    def frame_write(self, records: int) -> None:
        env = self.environment()
        rows = self.numbers(env, records).map(lambda n: (n, f"row {n}"), ROW)
        fields = [DataTypes.FIELD("id", DataTypes.BIGINT()), DataTypes.FIELD("text", DataTypes.STRING())]
        self._check(records, (rows.to_data_frame(DataTypes.ROW(fields)).count(),))

    @staticmethod
    def _check(records: int, found: Any) -> None:
        if found[0] != records:
            raise SystemExit(f"{found[0]:,} records arrived, not {records:,}")


def _session() -> Any:
    from pyspark.sql import SparkSession

    return SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()


def main() -> None:
    jobs: dict[str, Callable[[Bench, int], None]] = {
        "database-write": Bench.database_write,
        "database-read": Bench.database_read,
        "files-write": Bench.files_write,
        "files-read": Bench.files_read,
        "frame-read": Bench.frame_read,
        "frame-write": Bench.frame_write,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--what", choices=tuple(jobs), required=True)
    parser.add_argument("--records", type=int, default=1_000_000)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-connectors-") as folder, ExitStack() as running:
        bench = Bench(Path(folder), running)
        for records in (WARM_UP_RECORDS, told.records):
            bench.prepare(told.what, records)
            begun = time.perf_counter()
            jobs[told.what](bench, records)
            seconds = time.perf_counter() - begun
    print(json.dumps({"records_per_second": told.records / seconds, "records": told.records, "seconds": seconds}))


if __name__ == "__main__":
    main()
