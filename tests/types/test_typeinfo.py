"""The values that types convert and refuse.

The expected values come from PyFlink 2.3, by encoding and decoding with its coders: this happens to a value that leaves
a chain of Python functions.
"""

import collections
import datetime
import pickle
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Instant, Row, RowKind, Types
from ekorn.common.typeinfo import RowTypeInfo
from ekorn.errors import RecordTypeError, preview

INT, LONG, STRING, FLOAT, DOUBLE = Types.INT(), Types.LONG(), Types.STRING(), Types.FLOAT(), Types.DOUBLE()
F11 = 1.100000023841858

SIMPLE = [
    (Types.STRING(), "String"),
    (Types.BYTE(), "Byte"),
    (Types.BOOLEAN(), "Boolean"),
    (Types.SHORT(), "Short"),
    (Types.INT(), "Integer"),
    (Types.LONG(), "Long"),
    (Types.FLOAT(), "Float"),
    (Types.DOUBLE(), "Double"),
    (Types.CHAR(), "Char"),
    (Types.BIG_INT(), "BigInteger"),
    (Types.BIG_DEC(), "BigDecimal"),
    (Types.INSTANT(), "Instant"),
    (Types.SQL_DATE(), "DateTypeInfo"),
    (Types.SQL_TIME(), "TimeTypeInfo"),
    (Types.SQL_TIMESTAMP(), "TimestampTypeInfo"),
    (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
]
COMPOSITE = [
    (Types.TUPLE([INT, STRING]), "TupleTypeInfo(Integer, String)"),
    (Types.ROW([INT, STRING]), "RowTypeInfo(Integer, String)"),
    (Types.ROW_NAMED(["a", "b"], [INT, STRING]), "RowTypeInfo(a: Integer, b: String)"),
    (Types.LIST(INT), "ListTypeInfo<Integer>"),
    (Types.MAP(STRING, INT), "MapTypeInfo<String, Integer>"),
    (Types.OBJECT_ARRAY(STRING), "ObjectArrayTypeInfo<String>"),
    (Types.BASIC_ARRAY(STRING), "BasicArrayTypeInfo<String>"),
    (Types.PRIMITIVE_ARRAY(INT), "PrimitiveArrayTypeInfo<Integer>"),
]


@pytest.mark.parametrize(("type_info", "text"), SIMPLE + COMPOSITE)
def test_a_type_prints_as_in_pyflink_and_survives_pickling(type_info, text):
    assert str(type_info) == repr(type_info) == text
    again = pickle.loads(pickle.dumps(type_info))
    assert again == type_info
    assert hash(again) == hash(type_info)


def test_types_differ_from_each_other():
    everything = [type_info for type_info, _ in SIMPLE + COMPOSITE]
    # Names do not take part in equality: ROW([INT]) equals ROW_NAMED(["x"], [INT]), as in PyFlink.
    assert len(set(everything)) == len(everything) - 1
    assert Types.ROW([INT]) == Types.ROW_NAMED(["x"], [INT])
    assert Types.BASIC_ARRAY(INT) != Types.OBJECT_ARRAY(INT)
    assert Types.INT() != "Integer"


def test_a_row_type_knows_its_fields():
    row = Types.ROW_NAMED(["a", "b"], [INT, STRING])
    assert row.get_field_names() == ["a", "b"]
    assert row.get_field_types() == [INT, STRING]
    assert row.get_field_index("b") == 1
    assert Types.ROW([INT]).get_field_names() == ["f0"]
    with pytest.raises(ValueError, match="no field 'c'"):
        row.get_field_index("c")
    with pytest.raises(ValueError, match="1 field names for 2"):
        Types.ROW_NAMED(["a"], [INT, STRING])
    with pytest.raises(ValueError, match="twice"):
        Types.ROW_NAMED(["a", "a"], [INT, STRING])
    with pytest.raises(TypeError, match=r"Types\.INT\(\)"):
        Types.TUPLE([int])  # type: ignore[list-item]


DAY = datetime.date(2020, 1, 2)
MOMENT = datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)
CUT = MOMENT.replace(microsecond=678000)


@pytest.mark.parametrize(
    ("type_info", "value", "internal"),
    [
        (Types.SQL_DATE(), datetime.date(2020, 1, 1), 18262),
        (Types.SQL_TIME(), datetime.time(1, 2, 3, 4), 3723000004),
        (Types.SQL_TIMESTAMP(), datetime.datetime(2020, 1, 2, 1, 2, 3, 4), 1577926923000004),
        (Types.INSTANT(), Instant.of_epoch_milli(1500), 1500000),
        (Types.ROW_NAMED(["a", "b"], [INT, Types.SQL_DATE()]), Row(a=1, b=datetime.date(2020, 1, 1)), (0, 1, 18262)),
        (Types.TUPLE([Types.SQL_DATE()]), (datetime.date(2020, 1, 1),), (18262,)),
        (INT, 5, 5),
    ],
)
def test_stored_forms_go_there_and_back(type_info, value, internal):
    assert type_info.to_internal_type(value) == internal
    assert type_info.from_internal_type(internal) == value
    assert type_info.need_conversion() == (type_info != INT)
    assert type_info.to_internal_type(None) is None
    assert type_info.from_internal_type(None) is None


def test_a_row_type_stores_dicts_and_tuples_too():
    row = Types.ROW_NAMED(["a", "b"], [INT, STRING])
    for value in (Row(1, "x"), Row(b="x", a=1), {"a": 1, "b": "x"}, (1, "x"), [1, "x"]):
        assert row.to_internal_type(value) == (0, 1, "x")


KEPT = [
    (STRING, ["a", "é", ""]),
    (Types.CHAR(), ["a"]),
    (Types.BYTE(), [127, -128]),
    (Types.SHORT(), [32767, -32768]),
    (INT, [2**31 - 1, -(2**31)]),
    (LONG, [2**63 - 1, -(2**63)]),
    (Types.BIG_INT(), [2**100]),
    (Types.BOOLEAN(), [True, False]),
    (DOUBLE, [1.5, float("inf")]),
    (FLOAT, [1.5, 0.25]),
    (Types.BIG_DEC(), [Decimal("1.50")]),
    (Types.SQL_DATE(), [DAY]),
    (Types.SQL_TIME(), [datetime.time(1, 2, 3, 4000)]),
    (Types.SQL_TIMESTAMP(), [CUT]),
    (Types.INSTANT(), [Instant(1, 123456789), None]),
    (Types.TUPLE([STRING, LONG]), [("a", 1), ("b", 2)]),
    (Types.TUPLE([]), [()]),
    (Types.ROW_NAMED(["x", "y"], [STRING, LONG]), [Row(x="a", y=1), Row(x=None, y=None)]),
    (Types.LIST(INT), [[1], []]),
    (Types.OBJECT_ARRAY(INT), [[1, None]]),
    (Types.BASIC_ARRAY(STRING), [["a", None]]),
    (Types.PRIMITIVE_ARRAY(INT), [[1, 2]]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [b"a\xff"]),
    (Types.MAP(STRING, INT), [{"a": 1, "b": None}, {}]),
    (Types.PICKLED_BYTE_ARRAY(), [object, None, "a"]),
]


@pytest.mark.parametrize(("type_info", "values"), KEPT, ids=lambda each: str(each)[:40])
def test_a_run_that_fits_comes_back_as_the_same_list(type_info, values):
    assert type_info.conform(values) is values
    empty = []
    assert type_info.conform(empty) == []


class Colour(str):
    def __str__(self):
        return "not the text"


NamedTuple = collections.namedtuple("NamedTuple", "a b")

CONVERTED = [
    (INT, [1, True], [1, 1]),
    # PyFlink drops fractions if an integer is declared, also fractions of decimals.
    (INT, [2.7, Decimal("1.5")], [2, 1]),
    (Types.BOOLEAN(), [1, 0, 200], [True, False, True]),
    (DOUBLE, [3, 1.5, True, Decimal("1.5")], [3.0, 1.5, 1.0, 1.5]),
    (FLOAT, [1.1, 3], [F11, 3.0]),
    (FLOAT, [1e40], [float("inf")]),
    (STRING, [Colour("red"), "a"], ["red", "a"]),
    (Types.BIG_DEC(), [3, 0.1, "2.5"], [Decimal("3"), Decimal("0.1"), Decimal("2.5")]),
    (Types.SQL_DATE(), [MOMENT, DAY], [DAY, DAY]),
    (Types.SQL_TIME(), [MOMENT.time(), MOMENT], [CUT.time(), CUT.time()]),
    # Everything below a millisecond and time zones are dropped.
    (Types.SQL_TIMESTAMP(), [MOMENT, MOMENT.replace(tzinfo=datetime.UTC)], [CUT, CUT]),
    (Types.TUPLE([FLOAT, DOUBLE]), [(1.1, 3), (0.5, 1.0)], [(F11, 3.0), (0.5, 1.0)]),
    (Types.TUPLE([STRING, LONG]), [("a", True)], [("a", 1)]),
    (Types.TUPLE([STRING, LONG]), [NamedTuple("a", 1)], [("a", 1)]),
    # Fields beyond the declared ones are dropped, of tuples and of rows.
    (Types.TUPLE([STRING, LONG]), [("a", 1, 2), ("b", 2)], [("a", 1), ("b", 2)]),
    (Types.ROW([STRING]), [Row("a", 1), Row("b")], [Row(f0="a"), Row(f0="b")]),
    (Types.ROW_NAMED(["x"], [STRING]), [Row(x="a", y=1)], [Row(x="a")]),
    (Types.TUPLE([Types.TUPLE([INT]), Types.ROW([INT])]), [((1,), Row(2))], [((1,), Row(f0=2))]),
    (Types.ROW([STRING, LONG]), [Row("a", 1), Row("b", None)], [Row(f0="a", f1=1), Row(f0="b", f1=None)]),
    (Types.ROW_NAMED(["x", "y"], [STRING, LONG]), [Row(y=1, x="a")], [Row(x="a", y=1)]),
    (Types.ROW_NAMED(["x"], [FLOAT]), [Row(x=None), Row(x=1.1)], [Row(x=None), Row(x=F11)]),
    (Types.LIST(FLOAT), [[1.1, 2], []], [[F11, 2.0], []]),
    (Types.OBJECT_ARRAY(FLOAT), [[1.1, None]], [[F11, None]]),
    (Types.PRIMITIVE_ARRAY(INT), [[True]], [[1]]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [bytearray(b"ab")], [b"ab"]),
    (Types.MAP(STRING, FLOAT), [{"a": 1.1, "b": None}, {}], [{"a": F11, "b": None}, {}]),
    (Types.MAP(STRING, FLOAT), [collections.OrderedDict(a=1)], [{"a": 1.0}]),
    (
        Types.ROW([Types.ROW([INT]), Types.LIST(Types.TUPLE([FLOAT]))]),
        [Row(Row(1), [(1.1,)])],
        [Row(f0=Row(f0=1), f1=[(F11,)])],
    ),
]


@pytest.mark.parametrize(("type_info", "values", "expected"), CONVERTED, ids=lambda each: str(each)[:40])
def test_a_run_is_converted_where_pyflink_converts(type_info, values, expected):
    before = list(values)
    result = type_info.conform(values)
    assert result == expected
    assert [type(each) for each in result] == [type(each) for each in expected]
    assert values == before, "the caller's list is left alone"


def test_converted_rows_keep_their_kind():
    (row,) = Types.ROW([INT]).conform([Row.of_kind(RowKind.DELETE, 1)])
    assert row == Row.of_kind(RowKind.DELETE, f0=1)


REFUSED = [
    (INT, "a", "expected Integer"),
    (INT, None, "expected Integer"),
    (INT, 2**31, "outside the range of Integer"),
    (INT, float("nan"), "expected Integer"),
    (LONG, 2**63, "outside the range of Long"),
    (Types.SHORT(), 40000, "outside the range of Short"),
    (Types.BYTE(), -200, "outside the range of Byte"),
    (STRING, 5, "expected String"),
    (Types.TUPLE([STRING]), (None,), "field 0: expected String"),
    (STRING, b"x", "expected String"),
    (DOUBLE, "1.5", "expected Double"),
    (DOUBLE, 2**1100, "expected Double"),
    (FLOAT, None, "expected Float"),
    (Types.BOOLEAN(), -1, "expected Boolean"),
    (Types.BOOLEAN(), "a", "expected Boolean"),
    (Types.TUPLE([Types.BIG_DEC()]), (None,), "field 0: expected BigDecimal"),
    (Types.BIG_DEC(), True, "expected BigDecimal"),
    (Types.BIG_DEC(), Decimal("NaN"), "finite"),
    (Types.SQL_DATE(), "2020-01-01", "expected DateTypeInfo"),
    (Types.SQL_TIME(), DAY, "expected TimeTypeInfo"),
    (Types.SQL_TIMESTAMP(), DAY, "expected TimestampTypeInfo"),
    (Types.INSTANT(), MOMENT, "expected Instant"),
    # A tuple or row with too few fields ends PyFlink's worker with a segmentation fault.
    (Types.TUPLE([STRING, LONG]), ("a",), "expected 2 fields, found 1"),
    (Types.TUPLE([STRING, LONG]), ["a", 1], "expected a tuple"),
    (Types.TUPLE([STRING, LONG]), Row("a", 1), "expected a tuple"),
    (Types.TUPLE([STRING, LONG]), ("a", None), "field 1: expected Long"),
    (Types.TUPLE([STRING, Types.TUPLE([LONG])]), ("a", ("b",)), "field 0 of field 1: expected Long"),
    (Types.ROW([STRING, LONG]), ("a", 1), "expected a Row.*write Row"),
    (Types.ROW([STRING, LONG]), None, "expected a Row"),
    (Types.ROW([STRING, LONG]), {"f0": "a", "f1": 1}, "expected a Row"),
    (Types.ROW([STRING, LONG]), Row("a"), "expected 2 fields, found 1"),
    (Types.ROW([STRING, LONG]), Row(x="a", y=1), "no field named"),
    (Types.ROW([STRING, LONG]), Row(1, "a"), "field 0: expected String"),
    (Types.LIST(INT), (1, 2), "expected a list"),
    (Types.LIST(INT), [None], "an element: expected Integer"),
    (Types.LIST(INT), [2**31], "an element: 2147483648 is outside"),
    (Types.PRIMITIVE_ARRAY(FLOAT), [None], "an element: expected Float"),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), [1, 2], "expected bytes"),
    (Types.MAP(STRING, INT), [("a", 1)], "expected a dict"),
    (Types.MAP(STRING, INT), {1: 1}, "a key: expected String"),
    (Types.MAP(STRING, INT), {None: 1}, "a key: expected String"),
    (Types.MAP(STRING, INT), {"a": "b"}, "a value: expected Integer"),
]


@pytest.mark.parametrize(("type_info", "value", "reason"), REFUSED, ids=lambda each: str(each)[:40])
def test_a_value_that_does_not_fit_is_named_with_the_declared_type(type_info, value, reason):
    with pytest.raises(RecordTypeError, match=reason) as caught:
        type_info.conform([value])
    assert caught.value.declared == str(type_info)
    assert caught.value.value_preview == preview(value)


def test_a_whole_record_may_be_none_where_the_jvm_can_write_it():
    """In PyFlink, None sent through a rebalance arrives as None for these types, and fails the job for others."""
    for type_info, value in [
        (STRING, "a"),
        (Types.BIG_DEC(), Decimal(1)),
        (Types.SQL_DATE(), DAY),
        (Types.SQL_TIME(), CUT.time()),
        (Types.INSTANT(), Instant(1, 0)),
    ]:
        values = [None, value]
        assert type_info.conform(values) is values
        assert type_info.file_text(None) == type_info.text(None) == "null"
        with pytest.raises(RecordTypeError):
            type_info.conform([None, value, object()])
    assert Types.SQL_DATE().conform([None, MOMENT]) == [None, DAY]
    for type_info in (LONG, DOUBLE, Types.SQL_TIMESTAMP(), Types.TUPLE([INT]), Types.ROW([INT]), Types.LIST(INT)):
        with pytest.raises(RecordTypeError):
            type_info.conform([None])


def test_the_first_offending_record_of_a_run_is_named():
    with pytest.raises(RecordTypeError) as caught:
        Types.TUPLE([STRING, LONG]).conform([("a", 1), ("b", "x"), ("c", None)])
    assert caught.value.value_preview == "('b', 'x')"
    assert "TupleTypeInfo(String, Long)" in str(caught.value)


def test_only_types_whose_values_cannot_change_are_immutable():
    immutable = [type_info for type_info, _ in SIMPLE if type_info != Types.PICKLED_BYTE_ARRAY()]
    assert all(each.is_immutable() for each in immutable)
    assert Types.TUPLE(immutable).is_immutable()
    for each in (
        Types.ROW([INT]),
        Types.LIST(INT),
        Types.MAP(INT, INT),
        Types.PRIMITIVE_ARRAY(INT),
        Types.PICKLED_BYTE_ARRAY(),
    ):
        assert not each.is_immutable()
        assert not Types.TUPLE([INT, each]).is_immutable()


# The values that a typed from_collection produces come from jobs on PyFlink 2.3.
NARROWED = [
    (Types.SHORT(), 43878, -21658),
    (Types.SHORT(), -40000, 25536),
    (Types.BYTE(), 200, -56),
    (Types.BYTE(), -129, 127),
    (INT, 2**31 + 5, -2147483643),
    (FLOAT, 1.1, F11),
    (DOUBLE, 1.5, 1.5),
    (STRING, 5, "5"),
    (STRING, True, "true"),
    (Types.BIG_INT(), 2**70, 2**70),
    (Types.BIG_DEC(), Decimal("1.50"), Decimal("1.50")),
    (Types.SQL_TIMESTAMP(), MOMENT, CUT),
    (Types.INSTANT(), Instant(1, 123456789), Instant(1, 123000000)),
    (Types.TUPLE([Types.SHORT(), FLOAT]), (43878, 1.1), (-21658, F11)),
    (Types.TUPLE([INT, STRING]), [1, "a"], (1, "a")),
    (Types.TUPLE([INT, STRING]), Row(1, "a"), (1, "a")),
    (Types.ROW([Types.SHORT(), STRING]), (43878, "x"), Row(f0=-21658, f1="x")),
    (Types.ROW_NAMED(["a", "b"], [INT, STRING]), Row(None, None), Row(a=None, b=None)),
    (Types.LIST(FLOAT), [1.1], [F11]),
    (Types.OBJECT_ARRAY(STRING), ["a", None], ["a", None]),
    (Types.PRIMITIVE_ARRAY(Types.BYTE()), b"a\xff", b"a\xff"),
    (Types.MAP(STRING, FLOAT), {"a": 1.1}, {"a": F11}),
    (Types.PICKLED_BYTE_ARRAY(), None, None),
]


@pytest.mark.parametrize(("type_info", "value", "expected"), NARROWED, ids=lambda each: str(each)[:40])
def test_a_typed_collection_narrows_its_values(type_info, value, expected):
    assert type_info.narrow(value) == expected


@pytest.mark.parametrize(
    ("type_info", "value"),
    [
        (INT, 1.5),
        (INT, None),
        (INT, "a"),
        (LONG, True),
        (LONG, 2**63),
        (DOUBLE, "a"),
        (STRING, None),
        (DOUBLE, 3),
        (FLOAT, 3),
        (Types.BOOLEAN(), 1),
        (Types.ROW([DOUBLE]), (2,)),
        (Types.TUPLE([INT, STRING]), (None, None)),
        (Types.TUPLE([INT, STRING]), (1,)),
        (Types.ROW([INT, STRING]), (1,)),
        (Types.LIST(INT), (1, 2)),
        (Types.INSTANT(), None),
        (Types.ROW([INT]), 5),
    ],
)
def test_a_typed_collection_refuses_what_it_cannot_read(type_info, value):
    with pytest.raises(RecordTypeError):
        type_info.narrow(value)


@given(st.lists(st.floats(width=64)))
def test_float_rounds_to_32_bits(values):
    def rounded(value):
        try:
            return struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")

    assert repr(FLOAT.conform(list(values))) == repr([rounded(value) for value in values])


typed = st.deferred(
    lambda: st.one_of(
        st.just((INT, st.integers(-(2**31), 2**31 - 1))),
        st.just((STRING, st.text("ab", max_size=3))),
        st.just((DOUBLE, st.floats(allow_nan=False))),
        st.lists(typed, max_size=3).map(
            lambda parts: (Types.TUPLE([t for t, _ in parts]), st.tuples(*(v for _, v in parts)))
        ),
        st.lists(typed, max_size=3).map(
            lambda parts: (
                Types.ROW([t for t, _ in parts]),
                st.tuples(*(st.none() | v for _, v in parts)).map(
                    lambda fields: (
                        Row(**{f"f{i}": field for i, field in enumerate(fields)}) if fields else named_empty()
                    )
                ),
            )
        ),
        typed.map(lambda part: (Types.LIST(part[0]), st.lists(part[1], max_size=3))),
        typed.map(
            lambda part: (Types.MAP(STRING, part[0]), st.dictionaries(st.text("ab", max_size=2), st.none() | part[1]))
        ),
    )
)


def named_empty():
    row = Row()
    row.set_field_names([])
    return row


@given(st.data())
def test_values_drawn_from_a_type_fit_it_and_pass_unchanged(data):
    type_info, values = data.draw(typed)
    run = data.draw(st.lists(values, max_size=5))
    assert type_info.conform(run) == run
    for value in run:
        assert type_info.narrow(value) == value
        assert isinstance(type_info.text(value), str)
        assert isinstance(type_info.file_text(value), str)


class Unequal:
    """Behaves like an array of numpy: a comparison has no truth value."""

    def __eq__(self, other):
        raise ValueError("ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_values_are_never_compared():
    row = Row(f0=Unequal(), f1=None)
    rows = [row, Row(f0=None, f1=1.1)]
    fitted = Types.ROW([Types.PICKLED_BYTE_ARRAY(), FLOAT]).conform(rows)
    assert fitted[0][0] is row[0]
    assert [each[1] for each in fitted] == [None, F11]


def test_a_float_is_collected_with_the_digits_it_was_written_with():
    """PyFlink collects FLOATs through their text. Between functions 1.1 is 1.100000023841858."""
    types = Types.TUPLE([FLOAT, Types.LIST(FLOAT), Types.MAP(STRING, FLOAT), Types.ROW([FLOAT, INT])])
    (value,) = types.conform([(1.1, [0.1], {"a": 1e10}, Row.of_kind(RowKind.DELETE, 1.1, None))])
    assert types.collected(value) == (1.1, [0.1], {"a": 1e10}, Row.of_kind(RowKind.DELETE, f0=1.1, f1=None))
    assert repr(FLOAT.collected(float("nan"))) == "nan"
    assert Types.PRIMITIVE_ARRAY(Types.BYTE()).collected(b"a") == b"a"
    assert all(type_info.collected(None) is None for type_info, _ in SIMPLE + COMPOSITE)


def test_row_type_info_can_be_built_without_the_facade():
    assert RowTypeInfo([INT], ["a"]).conform([Row(1)]) == [Row(a=1)]
