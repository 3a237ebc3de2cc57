"""CSV as Flink reads and writes it: types of columns, quotes, escapes, headers, null literals, malformed lines."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Instant, Row, Types
from ekorn.datastream.formats.csv import (
    CsvBulkWriters,
    CsvReaderFormat,
    CsvRowDeserializationSchema,
    CsvRowSerializationSchema,
    CsvSchema,
)
from ekorn.errors import ConfigurationError, RecordFormatError
from ekorn.table import DataTypes
from tests.connectors.formats.files import read_file, write_file

NUMBERED = CsvSchema.builder().add_number_column("n").add_string_column("s").build()


def read(tmp_path, schema, text, batch=100):
    path = tmp_path / "in.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return read_file(CsvReaderFormat.for_schema(schema), path, batch)


def rows(tmp_path, schema, text):
    found, malformed = read(tmp_path, schema, text)
    assert not malformed
    return [tuple(row) for row in found]


def written(tmp_path, schema, *records):
    return write_file(tmp_path / "out.csv", CsvBulkWriters.for_schema(schema), records).read_text(encoding="utf-8")


# The lines and results of PyFlink's own tests of its CSV formats.
PRIMITIVE = (
    CsvSchema.builder()
    .add_number_column("tinyint", DataTypes.TINYINT())
    .add_number_column("smallint", DataTypes.SMALLINT())
    .add_number_column("int", DataTypes.INT())
    .add_number_column("bigint", DataTypes.BIGINT())
    .add_number_column("float", DataTypes.FLOAT())
    .add_number_column("double", DataTypes.DOUBLE())
    .add_number_column("decimal", DataTypes.DECIMAL(2, 0))
    .add_boolean_column("boolean")
    .add_string_column("string")
    .build()
)


def test_columns_of_all_primitive_types(tmp_path):
    line = "127,-32767,2147483647,-9223372036854775808,3e38,2e-308,1.5,true,string\n"
    ((*whole, single, double, decimal, boolean, string),) = rows(tmp_path, PRIMITIVE, line)
    assert whole == [127, -32767, 2147483647, -9223372036854775808]
    assert single == pytest.approx(3e38, rel=1e-7)
    assert (double, decimal, boolean, string) == (2e-308, Decimal(2), True, "string")
    again = written(tmp_path, PRIMITIVE, *read(tmp_path, PRIMITIVE, line)[0])
    assert again == "127,-32767,2147483647,-9223372036854775808,3.0E38,2.0E-308,2,true,string\n"


def test_columns_of_a_schema_are_taken_over(tmp_path):
    copied = CsvSchema.builder().add_columns_from(PRIMITIVE).build()
    assert copied.get_type_info() == PRIMITIVE.get_type_info()
    assert len(copied) == copied.size() == 9


def test_array_columns_have_separators_of_their_own(tmp_path):
    schema = (
        CsvSchema.builder()
        .add_array_column("numbers", separator=";", element_type=DataTypes.INT())
        .add_array_column("truths", separator=":", element_type=DataTypes.BOOLEAN())
        .add_array_column("texts", separator=",", element_type=DataTypes.STRING())
        .set_column_separator("|")
        .disable_quote_char()
        .build()
    )
    line = "1;2;3|true:false|a,b,c\n"
    assert rows(tmp_path, schema, line) == [([1, 2, 3], [True, False], ["a", "b", "c"])]
    assert written(tmp_path, schema, *read(tmp_path, schema, line)[0]) == line


@pytest.mark.parametrize("quote", ['"', "`"])
def test_quotes_are_read_and_written(tmp_path, quote):
    builder = CsvSchema.builder().add_string_column("a").add_string_column("b").set_column_separator("|")
    schema = builder.set_quote_char(quote).build()
    line = f"{quote}string{quote}|{quote}string2{quote}\n"
    assert rows(tmp_path, schema, line) == [("string", "string2")]
    assert written(tmp_path, schema, *read(tmp_path, schema, line)[0]) == line


def test_escapes_are_read_and_quotes_are_written(tmp_path):
    schema = CsvSchema.builder().add_string_column("a").add_string_column("b").set_escape_char("\\").build()
    line = 'string\\,,\\"string2\\"\n'
    assert rows(tmp_path, schema, line) == [("string,", '"string2"')]
    assert written(tmp_path, schema, *read(tmp_path, schema, line)[0]) == '"string,","""string2"""\n'


def test_comments_are_left_out(tmp_path):
    schema = CsvSchema.builder().add_string_column("s").set_allow_comments().build()
    assert rows(tmp_path, schema, 'a\n# this is a "comment\nb\n') == [("a",), ("b",)]


def test_a_header_is_skipped_checked_and_written(tmp_path):
    builder = CsvSchema.builder().add_string_column("string").add_number_column("number").set_use_header()
    assert rows(tmp_path, builder.build(), "h1,h2\nstring,123\n") == [("string", 123)]
    strict = builder.set_strict_headers().build()
    assert rows(tmp_path, strict, "\ufeffstring,number\nstring,123\n") == [("string", 123)]
    with pytest.raises(ConfigurationError, match=r"header of '.*in.csv' is \['h1', 'h2'\]"):
        read(tmp_path, strict, "h1,h2\nstring,123\n")
    assert written(tmp_path, strict, Row(string="a", number=1)) == "string,number\na,1\n"


def test_the_first_row_is_skipped_on_demand(tmp_path):
    schema = CsvSchema.builder().add_number_column("n").set_skip_first_data_row().build()
    assert rows(tmp_path, schema, "units\n1\n2\n") == [(1,), (2,)]


def test_a_null_literal_means_none_in_every_column(tmp_path):
    builder = CsvSchema.builder().add_number_column("n").add_string_column("s").add_array_column("a")
    schema = builder.set_null_value("NULL").build()
    assert rows(tmp_path, schema, "NULL,NULL,x;NULL\n1,,NULL\n") == [(None, None, ["x", None]), (1, "", None)]
    assert written(tmp_path, schema, Row(n=None, s=None, a=["x", None])) == "NULL,NULL,x;NULL\n"


def test_values_span_lines_inside_quotes(tmp_path):
    text = '1,"a\nb"\n2,"\n\n"\n3,c\n'
    for batch in (1, 2, 100):
        found, malformed = read(tmp_path, NUMBERED, text, batch)
        assert (found, malformed) == ([Row(n=1, s="a\nb"), Row(n=2, s="\n\n"), Row(n=3, s="c")], [])


# ------------------------------------------------------------------------------------------------------------ malformed


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x,b", "column 'n': 'x' is not a whole number"),
        ("1_0,b", "column 'n': '1_0' is not a whole number"),
        ("9223372036854775808,b", "outside the range of BIGINT"),
        (",b", "column 'n': '' is not a whole number; to read an empty column as None"),
        ("1", "expected 2 columns, found 1"),
        ("1,b,c", "expected 2 columns, found 3"),
        ("", "expected 2 columns, found 1"),
        ('1,"b"x', "',' expected after"),
    ],
)
def test_a_malformed_line_is_named_with_file_line_and_reason(tmp_path, line, reason):
    found, malformed = read(tmp_path, NUMBERED, f"1,a\n{line}\n2,c\n")
    assert found == [Row(n=1, s="a"), Row(n=2, s="c")]
    ((content, error),) = malformed
    assert content == line
    assert str(error).startswith(f"cannot read line 2 of '{tmp_path}/in.csv': ")
    assert reason in str(error)


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_quote_that_is_never_closed_costs_its_line_and_not_the_rest_of_the_file(tmp_path, batch):
    found, malformed = read(tmp_path, NUMBERED, '1,a\n2,"open\n3,c\n4,d\n', batch)
    assert found == [Row(n=1, s="a"), Row(n=3, s="c"), Row(n=4, s="d")]
    assert [each.content for each in malformed] == ['2,"open']


def test_line_numbers_continue_after_a_restore(tmp_path):
    path = tmp_path / "in.csv"
    path.write_text('1,"a\nb"\n2,c\nbad\n')
    csv_format = CsvReaderFormat.for_schema(NUMBERED)
    first = csv_format.create_reader(str(path), 0, None, None)
    assert first.read(1).values == [Row(n=1, s="a\nb")]
    second = csv_format.create_reader(str(path), 0, None, first.position())
    (malformed,) = second.read(5).malformed
    assert "line 4 of" in str(malformed.error)


def test_more_columns_than_the_schema_has_may_be_allowed(tmp_path):
    schema = CsvSchema.builder().add_number_column("n").set_any_property_name("rest").build()
    assert rows(tmp_path, schema, "1,a,b\n") == [(1,)]


@pytest.mark.parametrize("text", ["yes", "1", "tru"])
def test_only_true_and_false_are_truth_values(tmp_path, text):
    schema = CsvSchema.builder().add_boolean_column("b").build()
    assert rows(tmp_path, schema, "true\nFALSE\n") == [(True,), (False,)]
    _, (malformed,) = read(tmp_path, schema, f"{text}\n")
    assert "neither true nor false" in str(malformed.error)


def test_a_row_that_does_not_fit_is_refused_with_its_column(tmp_path):
    with pytest.raises(RecordFormatError, match=r"column 'n'.*too many digits"):
        schema = CsvSchema.builder().add_number_column("n", DataTypes.DECIMAL(3, 1)).build()
        written(tmp_path, schema, Row(n=Decimal("1234.5")))
    with pytest.raises(RecordFormatError, match="expected 2 fields, found 1"):
        written(tmp_path, NUMBERED, Row(1))


@pytest.mark.parametrize("call", ["set_column_separator", "set_quote_char", "set_escape_char"])
def test_special_characters_are_single(call):
    with pytest.raises(ValueError, match="takes one character"):
        getattr(CsvSchema.builder(), call)("ab")


TEXTS = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]), max_size=30)


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS), min_size=1, max_size=8), st.integers(1, 9))
def test_what_is_written_is_read_again(tmp_path_factory, records, batch):
    folder = tmp_path_factory.mktemp("csv")
    sent = [Row(n=n, s=s) for n, s in records]
    path = write_file(folder / "x.csv", CsvBulkWriters.for_schema(NUMBERED), sent)
    assert read_file(CsvReaderFormat.for_schema(NUMBERED), path, batch) == (sent, [])


# ------------------------------------------------------------------------------------------------------------- messages


# The values of PyFlink's own test of its CSV schemas.
@pytest.mark.parametrize(
    ("field_type", "text", "value"),
    [
        (Types.STRING(), "'123''4**'", "123'4*"),
        (Types.STRING(), "'a;b''c'", "a;b'c"),
        (Types.INT(), "12", 12),
        (Types.ROW([Types.STRING(), Types.STRING()]), "'1:hello'", Row("1", "hello")),
        (Types.ROW([Types.STRING(), Types.STRING()]), "'1:hello world'", Row("1", "hello world")),
        (Types.STRING(), "null", "null"),
        (Types.BIG_DEC(), "1.50", Decimal("1.50")),
        (Types.SQL_DATE(), "'2020-01-31'", datetime.date(2020, 1, 31)),
        (Types.SQL_TIMESTAMP(), "'2020-01-31 23:59:00.5'", datetime.datetime(2020, 1, 31, 23, 59, 0, 500_000)),
        (Types.INSTANT(), "'1970-01-01 00:00:01.5Z'", Instant(1, 500_000_000)),
        (Types.PRIMITIVE_ARRAY(Types.BYTE()), "YWI=", b"ab"),
        (Types.OBJECT_ARRAY(Types.LONG()), "'1:2'", [1, 2]),
    ],
)
def test_messages_have_the_bytes_of_flink(field_type, text, value):
    type_info = Types.ROW([Types.STRING(), field_type, Types.STRING()])

    def built(schema):
        builder = schema.Builder(type_info).set_escape_character("*").set_quote_character("'")
        return builder.set_array_element_delimiter(":").set_field_delimiter(";").build()

    message = f"BEGIN;{text};END\n".encode()
    assert built(CsvRowSerializationSchema).serialize(Row("BEGIN", value, "END")) == message
    row = built(CsvRowDeserializationSchema).deserialize(message)
    assert list(row[1]) == list(value) if isinstance(value, Row) else row[1] == value


def deserializer(**settings):
    builder = CsvRowDeserializationSchema.Builder(Types.ROW([Types.INT(), Types.STRING()]))
    for name, value in settings.items():
        getattr(builder, name)(value)
    return builder.build()


def test_a_message_that_is_not_csv_is_an_error_that_shows_it():
    with pytest.raises(RecordFormatError, match=r"b'x,hi' is not a record in CSV: column 'f0': 'x' is not a whole"):
        deserializer().deserialize(b"x,hi")
    with pytest.raises(RecordFormatError, match="2 records in one message"):
        deserializer().deserialize(b"1,a\n2,b")
    with pytest.raises(RecordFormatError, match="codec can't decode"):
        deserializer().deserialize(b"1,\xff")


def test_parse_errors_that_are_ignored_give_none():
    lenient = deserializer(set_ignore_parse_errors=True)
    assert lenient.deserialize(b"x,hi") == Row(f0=None, f1="hi")
    assert lenient.deserialize(b"1") == Row(f0=1, f1=None)
    assert lenient.deserialize(b'1,"open') is None


def test_null_literals_and_comments_of_messages():
    assert deserializer(set_null_literal="n/a").deserialize(b"n/a,n/a") == Row(f0=None, f1=None)
    assert deserializer(set_allow_comments=True).deserialize(b"# nothing") is None


def test_types_without_a_form_in_csv_are_refused_where_they_are_given():
    with pytest.raises(ConfigurationError, match="CSV cannot represent MAP"):
        CsvRowSerializationSchema.Builder(Types.ROW([Types.MAP(Types.STRING(), Types.INT())])).build()
    with pytest.raises(TypeError, match="takes the type of rows"):
        CsvRowDeserializationSchema.Builder(Types.INT())


def test_a_value_with_a_line_end_is_malformed_where_every_line_is_a_record_however_many_lines_are_read(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text('"a\nb"\nc\n')
    schema = CsvSchema.builder().add_string_column("s").build()
    for most in (1, 100):
        reader = CsvReaderFormat.for_schema(schema).with_single_line_records().create_reader(str(path), 0, None, None)
        rows, malformed = [], []
        while not reader.finished:
            batch = reader.read(most)
            rows += batch.values
            malformed += [each.content for each in batch.malformed]
        assert (rows, malformed) == ([Row(s='b"'), Row(s="c")], ['"a'])
