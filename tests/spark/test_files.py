"""Files on Spark: slots that are killed while parts on S3 are committed, and PyFlink's format programs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow.orc
import pytest

from ekorn.common import Configuration, RestartStrategies, Row, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.datagen import DataGeneratorSource, RateLimiterStrategy
from ekorn.datastream.connectors.file_system import BucketAssigner, FileSink, FileSource
from ekorn.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from ekorn.table import DataTypes
from ekorn.types.data_type_info import row_type_info
from tests.s3_server import s3_endpoint, s3_url
from tests.spark.processes import ROOT

__all__ = ["s3_endpoint", "s3_url"]

ORDER = DataTypes.ROW([DataTypes.FIELD("id", DataTypes.INT()), DataTypes.FIELD("item", DataTypes.STRING())])
COUNT = 1200


def order(number: int) -> Row:
    return Row(id=number, item=f"item {number}")


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment(Configuration()).set_parallelism(2)


def test_slots_killed_while_parts_on_s3_are_committed_lose_no_row_and_write_none_twice(
    s3_url: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "faults").mkdir()
    monkeypatch.setenv("EKORN_FAULT", "sink-file:*:2:kill,sink-file-copied:*:3:kill")
    monkeypatch.setenv("EKORN_FAULT_DIR", str(tmp_path / "faults"))
    env = environment()
    env.enable_checkpointing(200).get_checkpoint_config().set_checkpoint_storage_dir(str(tmp_path / "checkpoints"))
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(10, 0))
    source = DataGeneratorSource(order, COUNT, RateLimiterStrategy.per_second(COUNT / 3), row_type_info(ORDER))
    sink = FileSink.for_bulk_format(s3_url("orders"), ParquetBulkWriters.for_row_type(ORDER))
    sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    env.from_source(source, WatermarkStrategy.no_watermarks(), "orders").sink_to(sink.build())
    env.execute("write orders")
    assert len(list((tmp_path / "faults").iterdir())) == 2, "every slot was killed where it should be"

    files = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(ORDER), s3_url("orders")).build()
    rows = environment().from_source(files, WatermarkStrategy.no_watermarks(), "files")
    with rows.map(lambda row: (row.id, row.item)).execute_and_collect("read orders") as results:
        found = sorted(results)
    assert found == [tuple(order(number)) for number in range(COUNT)]


PROGRAM = '''
import sys

from pyflink.common import WatermarkStrategy
from pyflink.datastream import StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource
from pyflink.datastream.formats.avro import AvroBulkWriters, AvroInputFormat, AvroSchema, GenericRecordAvroTypeInfo
from pyflink.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from pyflink.datastream.formats.orc import OrcBulkWriters
from pyflink.datastream.formats.parquet import ParquetBulkWriters, ParquetColumnarRowInputFormat
from pyflink.table.types import DataTypes

folder = sys.argv[1]
schema = CsvSchema.builder() \\
    .add_number_column('id', number_type=DataTypes.INT()) \\
    .add_string_column('name') \\
    .add_array_column('list', '#', element_type=DataTypes.STRING()) \\
    .set_column_separator('|') \\
    .set_escape_char('\\\\') \\
    .set_use_header() \\
    .set_strict_headers() \\
    .build()
row_type = DataTypes.ROW([
    DataTypes.FIELD('id', DataTypes.INT()),
    DataTypes.FIELD('name', DataTypes.STRING()),
    DataTypes.FIELD('list', DataTypes.ARRAY(DataTypes.STRING())),
])
avro = AvroSchema.parse_string("""
    {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]}
""")

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(schema), folder + '/in.csv').build()
ds = env.from_source(source, WatermarkStrategy.no_watermarks(), 'csv-source')
ds.sink_to(FileSink.for_bulk_format(folder + '/csv', CsvBulkWriters.for_schema(schema)).build())
ds.sink_to(FileSink.for_bulk_format(folder + '/parquet', ParquetBulkWriters.for_row_type(row_type)).build())
ds.sink_to(FileSink.for_bulk_format(folder + '/orc', OrcBulkWriters.for_row_type(row_type)).build())
ds.map(lambda e: {'id': e['id'], 'name': e['name']}, output_type=GenericRecordAvroTypeInfo(avro)) \\
    .sink_to(FileSink.for_bulk_format(folder + '/avro', AvroBulkWriters.for_generic_record(avro)).build())
env.execute()

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(1)
source = FileSource.for_bulk_file_format(ParquetColumnarRowInputFormat(row_type), folder + '/parquet').build()
ds = env.from_source(source, WatermarkStrategy.no_watermarks(), 'parquet-source')
ds.map(lambda e: ('parquet', e['name'])).print()
env.create_input(AvroInputFormat(folder + '/avro', avro)).map(lambda e: ('avro', e['name'])).print()
env.execute()
'''


def test_a_pyflink_program_of_all_file_formats_runs_on_spark(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id|name|list\n1|ab\\|c|x#y\n2|d|\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "ekorn.pyflink", str(tmp_path / "program.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "('avro', 'ab|c')", "('avro', 'd')", "('parquet', 'ab|c')", "('parquet', 'd')",
    ]  # fmt: skip
    (written,) = (tmp_path / "csv").rglob("part-*")
    assert written.read_text() == '"id"|"name"|"list"\n1|"ab|c"|"x#y"\n2|"d"|\n'
    (orc,) = (tmp_path / "orc").rglob("part-*")
    assert pyarrow.orc.read_table(orc).column("list").to_pylist() == [["x", "y"], []]
