"""The text of records: PyFlink 2.3 printed these lines and wrote them into files."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Instant, Row, RowKind, Types
from ekorn.types.java_text import double_text, float_text, instant_text
from ekorn.types.record_text import record_file_text, record_text

INT, LONG, STRING = Types.INT(), Types.LONG(), Types.STRING()
PAIR = Types.ROW([INT, INT])
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 678000)


def pair(a, b):
    return Row(f0=a, f1=b)


def test_a_record_without_a_type_has_pythons_text():
    for write in (record_text, record_file_text):
        assert write(None, ("China", 135)) == "('China', 135)"
        assert write(Types.PICKLED_BYTE_ARRAY(), ("China", None)) == "('China', None)"


BOTH = [
    (Types.TUPLE([INT, STRING]), (1, "a"), "(1,a)"),
    (Types.TUPLE([STRING]), ("",), "()"),
    (Types.TUPLE([INT, PAIR, Types.LIST(STRING)]), (1, pair(2, 3), ["p", "q"]), "(1,+I[2, 3],[p, q])"),
    (Types.LIST(Types.TUPLE([INT, PAIR])), [(1, pair(1, 2)), (2, pair(3, 4))], "[(1,+I[1, 2]), (2,+I[3, 4])]"),
    (Types.MAP(STRING, PAIR), {"a": pair(1, 2), "b": pair(3, 4)}, "{a=+I[1, 2], b=+I[3, 4]}"),
    (Types.MAP(INT, Types.LIST(STRING)), {1: ["a"]}, "{1=[a]}"),
    (Types.MAP(STRING, INT), {"a": None}, "{a=null}"),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"\x01\xff", "[1, -1]"),
    (Types.BASIC_ARRAY(STRING), ["a", None], "[a, null]"),
    (Types.BOOLEAN(), True, "true"),
    (Types.SQL_DATE(), MOMENT.date(), "2020-01-02"),
    (Types.SQL_TIME(), MOMENT.time(), "03:04:05"),
    (Types.SQL_TIMESTAMP(), MOMENT, "2020-01-02 03:04:05.678"),
    (Types.SQL_TIMESTAMP(), MOMENT.replace(microsecond=0), "2020-01-02 03:04:05.0"),
    (Types.BIG_DEC(), Decimal("1E+3"), "1E+3"),
    (Types.BIG_DEC(), Decimal("123.4500"), "123.4500"),
    (Types.INSTANT(), Instant(1, 120_000_000), "1970-01-01T00:00:01.120Z"),
    (Types.DOUBLE(), 1e10, "1.0E10"),
    (Types.FLOAT(), 1.100000023841858, "1.1"),
    (INT, 5, "5"),
]


@pytest.mark.parametrize(("type_info", "value", "text"), BOTH, ids=lambda each: str(each)[:40])
def test_a_typed_record_has_one_text_in_print_and_in_files(type_info, value, text):
    assert record_text(type_info, value) == text
    assert record_file_text(type_info, value) == text


def test_print_writes_the_fields_of_a_row_with_pythons_text():
    """PyFlink prints rows in its Python worker: it printed `+I[1,Row(f0=2, f1=3),True,None]`."""
    row_type = Types.ROW([INT, PAIR, Types.BOOLEAN(), INT])
    (row,) = row_type.conform([Row(1, Row(2, 3), True, None)])
    assert row_type.text(row) == "+I[1,Row(f0=2, f1=3),True,None]"
    assert row_type.file_text(row) == "+I[1, +I[2, 3], true, null]"


@pytest.mark.parametrize(("kind", "mark"), list(zip(RowKind, ["+I", "-U", "+U", "-D"], strict=True)))
def test_a_row_shows_its_kind(kind, mark):
    row = Row.of_kind(kind, f0=1, f1=2)
    assert PAIR.text(row) == f"{mark}[1,2]"
    assert PAIR.file_text(row) == f"{mark}[1, 2]"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.001, "0.001"),
        (0.0009, "9.0E-4"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (-0.0, "-0.0"),
        (0.0, "0.0"),
        (100.0, "100.0"),
        (-12.5, "-12.5"),
        (1.1e-10, "1.1E-10"),
        (5e-324, "4.9E-324"),
        (1 / 3, "0.3333333333333333"),
        (123456789.125, "1.23456789125E8"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(value, text):
    assert double_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (10000000000.0, "1.0E10"),
        (3.4e38, "3.4E38"),
        (1e-45, "1.4E-45"),
        (16777216.0, "1.6777216E7"),
        (1 / 3, "0.33333334"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (-2.0, "-2.0"),
    ],
)
def test_floats_have_the_shortest_digits_of_their_32_bits(value, text):
    (rounded,) = Types.FLOAT().conform([value])
    assert float_text(rounded) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_of_a_double_reads_back_as_the_same_number(value):
    assert float(double_text(value)) == value


@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_the_text_of_a_float_reads_back_as_the_same_32_bits(value):
    assert Types.FLOAT().conform([float(float_text(value))]) == [value]


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (Instant(1, 0), "1970-01-01T00:00:01Z"),
        (Instant(0, 1), "1970-01-01T00:00:00.000000001Z"),
        (Instant(-1, 5000), "1969-12-31T23:59:59.000005Z"),
        (Instant(-62167219201, 0), "-0001-12-31T23:59:59Z"),
        (Instant(253402300800, 0), "+10000-01-01T00:00:00Z"),
        (Instant(-62167219200, 0), "0000-01-01T00:00:00Z"),
    ],
)
def test_instants_are_written_beyond_the_years_of_pythons_calendar(instant, text):
    assert instant_text(instant) == text
