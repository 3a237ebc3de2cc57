"""Keys that are written as text or as JSON, in an address or a command."""

from datetime import date, datetime, time
from decimal import Decimal

import pytest

from ekorn.common import Types
from ekorn.errors import QueryRefused
from ekorn.rest.key_text import key_of_json, key_of_text
from ekorn.types.row import Row

PAIR = Types.TUPLE([Types.STRING(), Types.LONG()])
ROW = Types.ROW_NAMED(["name", "count"], [Types.STRING(), Types.LONG()])


@pytest.mark.parametrize(
    ("text", "key_type", "key"),
    [
        ("7", Types.STRING(), "7"),
        (" 7 ", Types.LONG(), 7),
        ("+7", Types.LONG(), 7),
        ("-07", Types.INT(), -7),
        ("TRUE", Types.BOOLEAN(), True),
        ("false", Types.BOOLEAN(), False),
        ("2.5", Types.DOUBLE(), 2.5),
        ("2.50", Types.BIG_DEC(), Decimal("2.50")),
        ("2026-01-02", Types.SQL_DATE(), date(2026, 1, 2)),
        ("03:04:05", Types.SQL_TIME(), time(3, 4, 5)),
        ("2026-01-02 03:04:05", Types.SQL_TIMESTAMP(), datetime(2026, 1, 2, 3, 4, 5)),
        ("('a', 1)", PAIR, ("a", 1)),
        ("['a', '1']", PAIR, ("a", 1)),
        ("('a', 1)", ROW, Row(name="a", count=1)),
        ("7", None, 7),
        ("('a', (1, 2))", None, ("a", (1, 2))),
        ("tea", None, "tea"),
        ("1 +", None, "1 +"),
        ("(" * 9_000, None, "(" * 9_000),
        ("7", Types.PICKLED_BYTE_ARRAY(), 7),
        ("x" * 10_000, Types.STRING(), "x" * 10_000),
    ],
)
def test_a_text_stands_for_a_key_of_its_type(text, key_type, key):
    found = key_of_text(text, key_type)
    assert found == key and type(found) is type(key)


@pytest.mark.parametrize(
    ("text", "key_type", "reason"),
    [
        ("x" * 10_001, Types.STRING(), "a key has 10001 characters; the maximum is 10000"),
        ("x", Types.LONG(), "'x' is not a key of type"),
        ("1.0", Types.LONG(), "is not a key of type"),
        ("1_000", Types.LONG(), "is not a key of type"),
        ("9" * 1_001, Types.LONG(), "is not a key of type"),
        ("9" * 30, Types.LONG(), "is not a key of type"),
        ("yes", Types.BOOLEAN(), "'yes' is not a key of type"),
        ("x", Types.DOUBLE(), "is not a key of type"),
        ("x", Types.BIG_DEC(), "is not a key of type"),
        ("2026", Types.SQL_DATE(), "is not a key of type"),
        ("('a',)", PAIR, r"write 2 fields, such as \('a', 1\)"),
        ("('a', 1, 2)", PAIR, "write 2 fields"),
        ("tea", PAIR, "write 2 fields"),
        ("('a', 'b')", PAIR, "'b' is not a key of type"),
        ("x", Types.LIST(Types.LONG()), "cannot be written as text: use QueryableStateClient"),
    ],
)
def test_a_text_that_is_no_key_is_refused(text, key_type, reason):
    with pytest.raises(QueryRefused, match=reason):
        key_of_text(text, key_type)


@pytest.mark.parametrize(
    ("value", "key_type", "key"),
    [
        (7, Types.LONG(), 7),
        ("7", Types.LONG(), 7),
        (7, Types.DOUBLE(), 7.0),
        (True, Types.BOOLEAN(), True),
        (["a", 1], PAIR, ("a", 1)),
        (["a", [1, ["b"]]], None, ("a", (1, ("b",)))),
        ("a", None, "a"),
        ([1], Types.PICKLED_BYTE_ARRAY(), (1,)),
    ],
)
def test_a_value_of_json_stands_for_a_key(value, key_type, key):
    found = key_of_json(value, key_type)
    assert found == key and type(found) is type(key)


@pytest.mark.parametrize(
    ("value", "key_type"),
    [
        (True, Types.LONG()),
        (1, Types.STRING()),
        (1, Types.BOOLEAN()),
        (1.5, Types.LONG()),
        (None, Types.LONG()),
        (1, PAIR),
    ],
)
def test_a_value_of_another_kind_is_no_key(value, key_type):
    with pytest.raises(QueryRefused, match="is not a key of type"):
        key_of_json(value, key_type)
