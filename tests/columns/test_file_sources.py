"""Sources of files that give columns: the rows and the errors are those of the readers of rows."""

import datetime
import gzip
import io
from decimal import Decimal

import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ekorn.columns.row_columns import RowColumns, row_type_of_arrow
from ekorn.common import Row, WatermarkStrategy
from ekorn.connectors.formats.csv_dialect import CsvDialect
from ekorn.connectors.formats.json_values import JsonWriter
from ekorn.connectors.formats.text_values import TimestampFormat
from ekorn.datastream import StreamExecutionEnvironment
from ekorn.datastream.columns import ArrowColumns, CsvColumns, JsonColumns, OrcColumns, ParquetColumns
from ekorn.datastream.connectors.file_system import FileSource
from ekorn.datastream.formats.csv import CsvBulkWriters, CsvReaderFormat, CsvSchema
from ekorn.datastream.formats.json import JsonBulkWriters
from ekorn.datastream.formats.orc import OrcBulkWriters
from ekorn.errors import ConfigurationError, JobExecutionError
from ekorn.operators.columns.source_batches import checked_batches
from ekorn.table import DataTypes
from ekorn.testing.local_run import collect_locally, on_local_engine
from tests.columns.written_files import CSV_ROWS, CSV_TYPE, NAMES, ROWS, written
from tests.connectors.formats.values_of_types import WITH_MAP
from tests.examples_by_profile import examples

PARTS = st.lists(st.integers(1, 9), min_size=1, max_size=4)


def read_all(file_format, path, parts=(1000,), *, start=0, end=None):
    """Read a file with many readers, each from the position of the one before; return its rows and its errors."""
    rows, errors, position, turn = [], [], None, 0
    while True:
        reader = file_format.create_reader(str(path), start, end, position)
        batch = reader.read(parts[turn % len(parts)])
        turn += 1
        values = batch.values
        declared = file_format.get_produced_type()
        if hasattr(declared, "schema"):
            columns = RowColumns(row_type_of_arrow(declared.schema, exact=True))
            batches = checked_batches(values, declared, "a split", None)
            values = [row for each in batches for row in columns.rows(each.data)]
        rows += values
        errors += [(str(each.error)) for each in batch.malformed]
        position, finished = reader.position(), reader.finished
        reader.close()
        if finished:
            return rows, errors


# ----------------------------------------------------------------------------------------------------------------- CSV

DIALECTS = st.builds(
    CsvDialect,
    separator=st.sampled_from(",;|"),
    quote=st.sampled_from(['"', "'", None]),
    escape=st.sampled_from([None, None, "\\"]),
    null_literal=st.sampled_from([None, "", "NULL"]),
    comments=st.booleans(),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("files")


def both_ways(folder, content, schema, parts, *, single=False):
    path = folder / "some.csv"
    path.write_bytes(content)
    by_rows = CsvReaderFormat(schema, single_lines=single)
    by_columns = CsvColumns(schema, single_line_records=single)
    expected, found = read_all(by_rows, path), read_all(by_columns, path, parts)
    columns = RowColumns(schema.row_type)
    try:
        rows = columns.rows(columns.batch(expected[0]))  # with the precision that columns have
    except Exception:
        rows = expected[0]
    assert repr(found[0]) == repr(rows)
    assert sorted(found[1]) == sorted(expected[1])


@settings(max_examples=examples(60), deadline=None)
@given(rows=CSV_ROWS, dialect=DIALECTS, header=st.booleans(), parts=PARTS)
def test_what_a_csv_writer_writes_is_read_as_rows_are(folder, rows, dialect, header, parts):
    schema = CsvSchema(CSV_TYPE, dialect, use_header=header)
    both_ways(folder, written(CsvBulkWriters.for_schema(schema), rows), schema, parts)


PIECES = st.sampled_from(
    ["1", "-7", "+3", " 4", "0x1", "99999999999", "a", '"', '""', "'", ",", ";", "\n", "\r\n", "\r", "#", "\\", "",
     "NULL", "true", "True", "1.5", "1e5", "nan", "2024-01-02", "ä", '"a,b"', '"a\nb"', '"a""b"', "1,x,2.50\n"]
)  # fmt: skip
SMALL = DataTypes.ROW(
    [
        DataTypes.FIELD("n", DataTypes.INT()),
        DataTypes.FIELD("s", DataTypes.STRING()),
        DataTypes.FIELD("d", DataTypes.DECIMAL(4, 2)),
    ]
)
ONE = DataTypes.ROW([DataTypes.FIELD("s", DataTypes.STRING())])


@settings(max_examples=examples(250), deadline=None)
@given(
    content=st.lists(PIECES, max_size=25).map("".join),
    row_type=st.sampled_from([SMALL, ONE]),
    form=st.tuples(DIALECTS, st.booleans()),
    parts=PARTS,
)
@example(content='a"b\n"x\ny"\n', row_type=ONE, form=(CsvDialect(), False), parts=[5])
@example(content='""a\n"" ""\n', row_type=ONE, form=(CsvDialect(), False), parts=[5])
@example(content="1,a,2\n\n", row_type=SMALL, form=(CsvDialect(null_literal=""), False), parts=[5])
@example(content="\n\na\n", row_type=ONE, form=(CsvDialect(), False), parts=[5])
def test_any_text_is_read_as_csv_as_rows_are(folder, content, row_type, form, parts):
    dialect, single = form
    both_ways(folder, content.encode(), CsvSchema(row_type, dialect), parts, single=single)


VALUES_AS_TEXT = st.sampled_from(
    ["1", "-1", "1.", ".5", "1.25", "-0", "0.005", "1e3", "1E+2", "inf", "NaN", "12345678901234567890", "127", "128",
     "true", "TRUE", " false", "2024-02-30", "2024-02-29", "0000-01-01", "12:30", "12:30:01.1234567", "24:00",
     "2024-02-29 12:30", "2024-02-29 12:30:59.123456", "2024-02-29T12:30", "2024-02-29 12:30Z", "YQ==", "YQ=", "a;b",
     "1;2", "", "9" * 17, "99.999", "1_0", "\u0663"]
)  # fmt: skip
EACH_TYPE = [
    DataTypes.TINYINT(), DataTypes.BIGINT(), DataTypes.FLOAT(), DataTypes.DOUBLE(), DataTypes.DECIMAL(4, 2),
    DataTypes.DECIMAL(3, 3), DataTypes.DECIMAL(20, 0), DataTypes.BOOLEAN(), DataTypes.DATE(), DataTypes.TIME(3),
    DataTypes.TIME(6), DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP(6), DataTypes.TIMESTAMP_LTZ(6), DataTypes.BYTES(),
    DataTypes.ARRAY(DataTypes.INT()), DataTypes.STRING(),
]  # fmt: skip


@pytest.mark.parametrize("data_type", EACH_TYPE, ids=str)
@settings(max_examples=examples(25), deadline=None)
@given(texts=st.lists(VALUES_AS_TEXT, max_size=8), null=st.sampled_from([None, ""]))
def test_texts_of_every_type_are_read_as_rows_are(folder, data_type, texts, null):
    schema = CsvSchema(DataTypes.ROW([DataTypes.FIELD("v", data_type)]), CsvDialect(null_literal=null))
    content = "".join(f"{text}\n" for text in texts).encode()
    both_ways(folder, content, schema, [1000])


def test_arrow_reads_plain_lines_and_the_reader_of_rows_only_the_others(folder, monkeypatch):
    from ekorn.connectors.formats.csv_fields import CsvFields

    lines = [f'{n},"name, {n}",{n % 90}.25' for n in range(5000)]
    lines[3333] = "3333,x,too many digits"
    path = folder / "plain.csv"
    path.write_text("\n".join(lines) + "\n")
    by_rows = []
    read = CsvFields.read
    monkeypatch.setattr(CsvFields, "read", lambda self, texts: by_rows.append(texts) or read(self, texts))
    rows, errors = read_all(CsvColumns(CsvSchema(SMALL)), path, [100_000])
    assert len(rows) == 4999
    assert rows[17] == Row(n=17, s="name, 17", d=Decimal("17.25"))
    assert len(errors) == 1 and "line 3334 of" in errors[0] and "'too many digits' is not a decimal" in errors[0]
    assert len(by_rows) < 100


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_ranges_of_lines_have_each_line_once(tmp_path, end, mark):
    lines = [f"{n},{'x' * (n % 7)}ä,1" for n in range(200)]
    path = tmp_path / "lines.csv"
    path.write_bytes(mark + end.join(lines).encode())
    size = path.stat().st_size
    for width in (7, 97, 500) if mark else (1, 7, 97, 500):  # a mark is in the first range
        found = []
        for start in range(0, size, width) if width > 90 else range(0, 40 * width, width):
            stop = start + width
            found += read_all(CsvColumns(CsvSchema(SMALL, CsvDialect(quote=None))), path, [3], start=start, end=stop)[0]
        numbers = [row.n for row in found]
        assert numbers == list(range(len(numbers)))
        assert width <= 90 or len(numbers) == 200


def test_a_compressed_csv_file_is_read(tmp_path):
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(b'1,"a\nb",2.5\n2,"c",1\n'))
    rows, errors = read_all(CsvColumns(CsvSchema(SMALL)), path, [1])
    assert [(row.n, row.s) for row in rows] == [(1, "a\nb"), (2, "c")]
    assert errors == []
    assert not CsvColumns(CsvSchema(SMALL), single_line_records=True).can_split(str(path))


def test_bytes_that_are_not_text_are_refused(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("1,\xe4,2\n".encode("latin-1"))
    with pytest.raises(ConfigurationError, match="as UTF-8"):
        read_all(CsvColumns(CsvSchema(SMALL)), path)


# ---------------------------------------------------------------------------------------------------------- JSON lines


@settings(max_examples=examples(30), deadline=None)
@given(rows=ROWS, parts=PARTS)
def test_what_a_writer_of_json_lines_writes_is_read(folder, rows, parts):
    path = folder / "rows.jsonl"
    path.write_bytes(written(JsonBulkWriters.for_row_type(WITH_MAP), rows))
    found, errors = read_all(JsonColumns(WITH_MAP), path, parts)
    write = JsonWriter(TimestampFormat.ISO_8601).of(WITH_MAP)
    assert [write(row) for row in found] == [write(row) for row in rows]
    assert errors == []
    assert WITH_MAP.field_names() == NAMES


ORDER_TYPE = DataTypes.ROW([DataTypes.FIELD("name", DataTypes.STRING()), DataTypes.FIELD("n", DataTypes.INT())])


def test_a_line_that_is_no_object_is_named(tmp_path):
    path = tmp_path / "orders.jsonl"
    lines = [f'{{"name": "n{n}", "n": {n}}}' for n in range(500)]
    lines[123] = '{"name": "torn'
    path.write_text("\r\n".join(lines))
    rows, errors = read_all(JsonColumns(ORDER_TYPE), path, [77])
    assert [row.n for row in rows] == [n for n in range(500) if n != 123]
    (error,) = errors
    assert "line 124 of" in error and "orders.jsonl" in error and '"torn' in error


# -------------------------------------------------------------------------------------------------- files of columns

N = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("gone", DataTypes.STRING())])


def orc_file(path, rows=1000):
    table = pa.table({"n": pa.array(range(rows), pa.int32()), "t": ["x" * 500] * rows})
    with pa.orc.ORCWriter(str(path), stripe_size=65536, batch_size=64) as writer:
        for start in range(0, rows, 100):
            writer.write(table.slice(start, 100))


def arrow_file(path, rows=1000):
    table = pa.table({"n": pa.array(range(rows), pa.int32()), "t": ["x"] * rows})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=150):
            writer.write_batch(batch)


def arrow_stream(path, rows=1000):
    table = pa.table({"n": pa.array(range(rows), pa.int32()), "t": ["x"] * rows})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        for batch in table.to_batches(max_chunksize=150):
            writer.write_batch(batch)


@pytest.mark.parametrize(
    ("write", "columns"),
    [(orc_file, OrcColumns), (arrow_file, ArrowColumns), (arrow_stream, ArrowColumns)],
    ids=["orc", "arrow file", "arrow stream"],
)
def test_files_of_columns_are_read_in_any_pieces_and_ranges(write, columns, tmp_path):
    path = tmp_path / "numbers"
    write(path)
    file_format = columns(N)
    for parts in ([70], [1, 333], [5000]):
        rows, _ = read_all(file_format, path, parts)
        assert [row.n for row in rows] == list(range(1000))
        assert {row.gone for row in rows} == {None}
    size = path.stat().st_size
    for width in (size // 7, size // 3, size):
        found = []
        for start in range(0, size, width):
            end = start + width if start + width < size else None
            found += read_all(file_format, path, [400], start=start, end=end)[0]
        assert [row.n for row in found] == list(range(1000))


@settings(max_examples=examples(15), deadline=None)
@given(rows=ROWS.filter(bool), parts=PARTS)
def test_values_of_every_type_come_back_from_arrow_files(folder, rows, parts):
    batch = RowColumns(WITH_MAP).batch(rows)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    path = folder / "rows.arrow"
    path.write_bytes(sink.getvalue())
    assert read_all(ArrowColumns(WITH_MAP), path, parts)[0] == RowColumns(WITH_MAP).rows(batch)


MODERN = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(2100, 1, 1))


@settings(max_examples=examples(15), deadline=None)
@given(rows=ROWS.filter(bool), parts=PARTS, at=MODERN)
def test_values_of_every_type_come_back_from_orc_files(folder, rows, parts, at):
    row_type = DataTypes.ROW([field for field in WITH_MAP if field.name not in ("clock", "inner", "instant", "at")])
    modern = [Row(**{**row.as_dict(), "fine": at}) for row in rows]
    path = folder / "rows.orc"
    path.write_bytes(written(OrcBulkWriters.for_row_type(row_type), modern))
    columns = RowColumns(row_type)
    assert read_all(OrcColumns(row_type), path, parts)[0] == columns.rows(columns.batch(modern))


# ------------------------------------------------------------------------------------------------------------ programs


def stream_of(file_format, path, parallelism=2):
    env = StreamExecutionEnvironment.get_execution_environment().set_parallelism(parallelism)
    source = FileSource.for_bulk_file_format(file_format, str(path)).build()
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "files")


@pytest.mark.parametrize("continuous", [False, True], ids=["epochs", "continuous"])
@pytest.mark.parametrize("kind", ["orc", "arrow", "csv", "json"])
def test_a_program_reads_files_as_columns(kind, continuous, tmp_path):
    numbers = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT())])
    for part in range(3):
        path = tmp_path / f"part-{part}.{kind}"
        if kind == "orc":
            orc_file(path)
        elif kind == "arrow":
            arrow_file(path)
        elif kind == "csv":
            path.write_text("".join(f"{n}\n" for n in range(1000)))
        else:
            path.write_text("".join(f'{{"n":{n}}}\n' for n in range(1000)))
    formats = {
        "orc": OrcColumns(numbers),
        "arrow": ArrowColumns(numbers),
        "csv": CsvColumns(CsvSchema(numbers)),
        "json": JsonColumns(numbers),
    }
    stream = stream_of(formats[kind], tmp_path)
    assert stream.row_type == numbers
    with on_local_engine(continuous=continuous), stream.execute_and_collect() as found:
        assert sorted(row.n for row in found) == sorted(list(range(1000)) * 3)


@pytest.mark.parametrize("file_format", [ParquetColumns, OrcColumns, ArrowColumns])
def test_a_value_that_does_not_fit_names_its_row_and_can_be_skipped(file_format, tmp_path):

    table = pa.table({"n": pa.array([*range(50), 2**40, *range(50)], pa.int64())})
    path = tmp_path / "numbers"
    if file_format is ParquetColumns:
        pa.parquet.write_table(table, path)
    elif file_format is OrcColumns:
        pa.orc.write_table(table, path)
    else:
        pa.feather.write_feather(table, str(path))
    ints = file_format(DataTypes.ROW([DataTypes.FIELD("n", DataTypes.INT())]))
    with pytest.raises(JobExecutionError, match=r"row 50 of .*numbers'.*1099511627776 .int64. in column 'n'"):
        collect_locally(stream_of(ints, path, 1))
    assert len(collect_locally(stream_of(ints, path, 1).on_record_error("skip"))) == 100


def test_a_column_of_another_type_and_a_file_of_another_format_are_refused(tmp_path):
    path = tmp_path / "texts"
    pa.feather.write_feather(pa.table({"n": [["a"]]}), str(path))
    with pytest.raises(ConfigurationError, match=r"column 'n' of '.*texts' is list.*but the schema declares int64"):
        read_all(ArrowColumns(N), path)
    path.write_text("no ORC")
    with pytest.raises(ConfigurationError, match=r"cannot read '.*texts'"):
        read_all(OrcColumns(N), path)


def test_mistakes_in_formats_are_refused():
    with pytest.raises(TypeError, match="CsvColumns takes a CsvSchema"):
        CsvColumns(SMALL)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="OrcColumns takes a batch_size above 0"):
        OrcColumns(SMALL, batch_size=0)
