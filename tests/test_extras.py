"""A package that is missing is named by the call that needs it, in the driver, with one command that installs it."""

import re
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from ekorn import extras
from ekorn.common import Encoder, Row, SimpleStringSchema, Types
from ekorn.connectors.data_frames.pandas_rows import rows_of_pandas
from ekorn.dataset import ExecutionEnvironment
from ekorn.datastream import EmbeddedRocksDBStateBackend, RocksDBStateBackend, StreamExecutionEnvironment
from ekorn.datastream.columns import AvroColumns, ColumnGeneratorSource, JsonColumns, ParquetColumns
from ekorn.datastream.connectors.delta import DeltaSink, DeltaSource
from ekorn.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from ekorn.datastream.connectors.iceberg import IcebergSink, IcebergSource
from ekorn.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcSink, JdbcSource
from ekorn.datastream.connectors.kafka import (
    FlinkKafkaConsumer,
    FlinkKafkaProducer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from ekorn.datastream.connectors.rabbitmq import RMQConnectionConfig, RMQSink, RMQSource
from ekorn.datastream.formats.avro import AvroRowDeserializationSchema, AvroSchema
from ekorn.datastream.formats.orc import OrcBulkWriters
from ekorn.datastream.formats.parquet import (
    AvroParquetReaders,
    AvroParquetWriters,
    ParquetBulkWriters,
    ParquetColumnarRowInputFormat,
)
from ekorn.errors import ConfigurationError
from ekorn.state_processor.spark.registration import register_state_sources
from ekorn.table import DataTypes

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = {"bench", "dev", "docs", "mutation", "test"}
COLUMNS = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT())])
STRINGS = SimpleStringSchema()
TEXT = StreamFormat.text_line_format()


def environment():
    return StreamExecutionEnvironment.get_execution_environment()


def records():
    return AvroSchema.parse_string('{"type": "record", "name": "a", "fields": [{"name": "n", "type": "int"}]}')


def kafka_source():
    builder = KafkaSource.builder().set_bootstrap_servers("h:1").set_topics("t")
    return builder.set_value_only_deserializer(STRINGS).build()


def kafka_sink():
    to_bytes = KafkaRecordSerializationSchema.builder().set_topic("t").set_value_serialization_schema(STRINGS).build()
    return KafkaSink.builder().set_bootstrap_servers("h:1").set_record_serializer(to_bytes).build()


def kafka_consumer():
    with pytest.warns(DeprecationWarning):
        FlinkKafkaConsumer("t", STRINGS, {"bootstrap.servers": "h:1", "group.id": "g"})


def rabbitmq_source():
    config = RMQConnectionConfig.Builder().set_uri("amqp://localhost").build()
    return RMQSource(config, "queue", True, SimpleStringSchema())


def rabbitmq_sink():
    config = RMQConnectionConfig.Builder().set_uri("amqp://localhost").build()
    return RMQSink(config, "queue", SimpleStringSchema())


def kafka_producer():
    with pytest.warns(DeprecationWarning):
        FlinkKafkaProducer("t", STRINGS, {"bootstrap.servers": "h:1"})


def postgresql():
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder()
    return builder.with_url("jdbc:postgresql://h/d").with_user_name("u").build()


def jdbc_source():
    JdbcSource.builder().set_db_url("jdbc:postgresql://h/d").set_sql("SELECT 1").build()


def checkpoints_on_s3():
    env = environment().enable_checkpointing(1000)
    env.get_checkpoint_config().set_checkpoint_storage_dir("s3://bucket/dir")
    env.from_collection([1]).print()
    env.execute()


def map_batches(library):
    columns = Types.ROW_NAMED(["a"], [Types.INT()])
    return environment().from_collection([Row(1)], columns).to_columns().map_batches(len, columns, library)


def rows():
    return environment().from_collection([Row(1)], Types.ROW([Types.INT()]))


# By extra: each call that needs it, and the module that is blocked if it is not the extra's own.
CALLS: dict[str, list[Callable[[], object]]] = {
    "avro": [
        lambda: AvroSchema.parse_string('"int"'),
        lambda: AvroRowDeserializationSchema(avro_schema_string='"int"'),
        lambda: ExecutionEnvironment.get_execution_environment().read_avro("/data", AvroSchema.parse_string('"int"')),
    ],
    "columns": [
        lambda: rows().to_columns(Types.ROW_NAMED(["a"], [Types.INT()])),
        lambda: ColumnGeneratorSource(print, 1, COLUMNS),
        lambda: ParquetColumns(COLUMNS),
        lambda: JsonColumns(COLUMNS),
        lambda: AvroColumns("{}"),
    ],
    "delta": [lambda: DeltaSink("/table", COLUMNS), lambda: DeltaSource("/table")],
    "fsspec": [
        lambda: FileSource.for_record_stream_format(TEXT, "sftp://host/dir"),
        lambda: FileSink.for_row_format("sftp://host/dir", Encoder.simple_string_encoder()),
    ],
    "iceberg": [lambda: IcebergSink("main", {}, "a.b", COLUMNS), lambda: IcebergSource("main", {}, "a.b")],
    "jdbc": [lambda: JdbcSink.sink("INSERT INTO t VALUES (?)", Types.ROW([Types.INT()]), postgresql()), jdbc_source],
    "kafka": [kafka_source, kafka_sink, kafka_consumer, kafka_producer],
    "rabbitmq": [rabbitmq_source, rabbitmq_sink],
    "orc": [lambda: OrcBulkWriters.for_row_type(COLUMNS)],
    "pandas": [lambda: rows().to_pandas()],
    "parquet": [
        lambda: ParquetColumnarRowInputFormat(COLUMNS),
        lambda: ParquetBulkWriters.for_row_type(COLUMNS),
        lambda: AvroParquetReaders.for_generic_record(records()),
        lambda: AvroParquetWriters.for_generic_record(records()),
        lambda: ExecutionEnvironment.get_execution_environment().read_parquet("/data"),
    ],
    "polars": [lambda: map_batches("polars")],
    "pyarrow": [
        lambda: FileSource.for_record_stream_format(TEXT, "s3://bucket/dir"),
        lambda: FileSink.for_row_format("gs://bucket/dir", Encoder.simple_string_encoder()),
        checkpoints_on_s3,
        lambda: rows().to_data_frame(),
        lambda: rows().to_streaming_data_frame(path="/data"),
        lambda: register_state_sources(None),
    ],
    "rocksdb": [EmbeddedRocksDBStateBackend, lambda: RocksDBStateBackend("file:///checkpoints")],
    "zstd": [
        lambda: FileSource.for_record_stream_format(TEXT, "/data/lines.zst"),
        lambda: ExecutionEnvironment.get_execution_environment().read_text_file("/data/lines.zst"),
    ],
}
# Found without an error of this kind: S3 works without boto3, a link without cryptography, and Spark has its own.
TOLD_OTHERWISE = {"s3", "spark", "tls"}


def test_every_extra_for_users_is_in_the_table_and_in_these_tests():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert extras.EXTRAS.keys() == declared.keys() - NOT_FOR_USERS
    assert CALLS.keys() | TOLD_OTHERWISE == extras.EXTRAS.keys()
    for name, extra in extras.EXTRAS.items():
        packages = [re.split(r"[^\w.-]", requirement)[0] for requirement in declared[name]]
        assert extra.package in packages, name


@pytest.mark.parametrize(("extra", "number"), [(extra, n) for extra, calls in CALLS.items() for n in range(len(calls))])
def test_the_call_that_needs_a_package_names_it_and_the_command(monkeypatch, extra, number):
    block(monkeypatch, extra)
    with pytest.raises(ConfigurationError) as raised:
        CALLS[extra][number]()
    package = extras.EXTRAS[extra].package
    assert f" needs the package {package}, which is not installed: {extras.install_command(extra)}" in str(raised.value)


def block(monkeypatch, extra):
    monkeypatch.setitem(sys.modules, extras.EXTRAS[extra].module, None)
    monkeypatch.delitem(sys.modules, extras.EXTRAS[extra].module + ".schema", raising=False)


@pytest.mark.parametrize(("extra", "call"), [("delta", lambda: DeltaSink("/table", COLUMNS)), ("pandas", None)])
def test_a_second_package_of_an_extra_is_named_too(monkeypatch, extra, call):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [1]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError) as raised:
        call() if call is not None else rows_of_pandas(frame)
    assert f" needs the package pyarrow, which is not installed: {extras.install_command(extra)}" in str(raised.value)


def test_a_missing_package_of_an_export_is_named(monkeypatch):
    from ekorn.state_processor.tools.export import export_parquet

    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        ConfigurationError, match=r'an export needs the package pyarrow.*pip install "ekorn\[parquet\]"'
    ):
        export_parquet(Mock(), "/nowhere")


def test_a_package_that_is_broken_says_how(monkeypatch, tmp_path):
    (tmp_path / "confluent_kafka.py").write_text("raise ImportError('librdkafka.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "confluent_kafka", raising=False)
    with pytest.raises(ConfigurationError, match=r"which cannot be imported \(librdkafka\.so\.1: cannot open shared"):
        kafka_source()


def test_in_a_slot_the_host_is_named(monkeypatch):
    block(monkeypatch, "zstd")
    extras.set_host_of_slot("worker-3")
    try:
        with pytest.raises(ConfigurationError) as raised:
            extras.load("zstd", "content that is compressed with zstd")
    finally:
        extras.set_host_of_slot(None)
    assert str(raised.value) == (
        "content that is compressed with zstd needs the package backports.zstd, which is not installed on worker-3, "
        f'where a slot runs with {sys.executable}: run pip install "ekorn[zstd]" there'
    )


def test_nothing_else_spells_the_command():
    spelled = [path for path in (ROOT / "src").rglob("*.py") if "pip install" in code_of(path)]
    assert spelled == [ROOT / "src" / "ekorn" / "extras.py"]


def code_of(path):
    """Return a module without its docstrings."""
    return re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
