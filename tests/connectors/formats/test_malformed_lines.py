"""Lines of files that are not records: they fail the job, are skipped and counted, or become dead letters."""

import logging

import pytest

from ekorn.common import Configuration, Row, Types, WatermarkStrategy
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.datastream.formats.csv import CsvReaderFormat, CsvSchema
from ekorn.datastream.formats.json import JsonRowDeserializationSchema
from ekorn.errors import JobExecutionError, SchemaRegistryError
from ekorn.testing.local_run import collect_locally

SCHEMA = CsvSchema.builder().add_number_column("n").add_string_column("s").build()
GOOD = [Row(n=1, s="a"), Row(n=4, s="d")]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text("1,a\nx,b\n3\n4,d\n")
    return path


def environment(action, limit=None):
    configuration = Configuration().set_string("ekorn.on-record-error", action)
    if limit is not None:
        configuration.set_string("ekorn.on-record-error.limit", str(limit))
    return StreamExecutionEnvironment.get_execution_environment(configuration).set_parallelism(1)


def rows(env, path):
    source = FileSource.for_record_stream_format(CsvReaderFormat.for_schema(SCHEMA), str(path)).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "orders")


def test_by_default_the_job_fails_with_file_line_and_reason(path):
    with pytest.raises(
        JobExecutionError, match=rf"line 2 of '{path}': column 'n': 'x' is not a whole number"
    ) as failed:
        collect_locally(rows(environment("fail"), path))
    assert "MalformedRecordError" in repr(failed.value.cause)


def test_skipped_lines_are_counted_and_logged(path, caplog):
    with caplog.at_level(logging.WARNING):
        assert collect_locally(rows(environment("skip"), path)) == GOOD
    assert "operator 'Source: orders', subtask 0: skipped 2 record(s)" in caplog.text
    assert "line 2 of" in caplog.text


def test_malformed_lines_go_to_the_dead_letters(path):
    stream = rows(environment("fail"), path).on_record_error("dead-letter")
    letters = stream.get_dead_letters().map(lambda letter: (letter.record, letter.operator, letter.error))
    good = stream.map(lambda row: (row["n"], row["s"], ""))
    found = collect_locally(letters.union(good))
    assert (1, "a", "") in found
    assert (4, "d", "") in found
    bad = {record: error for record, _, error in found if isinstance(record, str)}
    assert set(bad) == {"x,b", "3"}
    assert bad["3"].startswith(f"MalformedRecordError: cannot read line 3 of '{path}': expected 2 columns, found 1")


def test_more_malformed_lines_than_the_limit_fail_the_job(path):
    assert collect_locally(rows(environment("skip", limit=2), path)) == GOOD
    with pytest.raises(JobExecutionError, match=r"has skipped 1 record\(s\), which is the limit"):
        collect_locally(rows(environment("skip", limit=1), path))


def test_a_message_that_a_schema_refuses_is_the_fault_of_the_record():
    schema = JsonRowDeserializationSchema.builder().type_info(Types.ROW_NAMED(["n"], [Types.INT()])).build()
    messages = environment("skip").from_collection([b'{"n": 1}', b"torn", b'{"n": 2}'])
    assert collect_locally(messages.map(schema.deserialize)) == [Row(n=1), Row(n=2)]


def unreachable(message):
    raise SchemaRegistryError("http://registry", "no route to host")


def test_a_registry_that_cannot_be_reached_fails_the_job_also_where_records_are_skipped():
    with pytest.raises(JobExecutionError, match="no route to host"):
        collect_locally(environment("skip").from_collection([b"a"]).map(unreachable))
