"""Sum, min, max, min_by and max_by as functions of two records."""

import copy
import pickle
from collections import namedtuple
from dataclasses import dataclass
from functools import reduce

import pytest

from ekorn.common import Row, RowKind
from ekorn.functions.rolling_aggregates import MaxByFunction, MaxFunction, MinByFunction, MinFunction, SumFunction

RECORDS = [("a", 3, 1), ("a", 1, 3), ("a", 2, 4), ("a", 1, 5)]

Point = namedtuple("Point", "key value")


@dataclass
class Reading:
    sensor: str
    value: int


def rolling(function, records):
    """Return one result per record, as a keyed stream does."""
    results = [records[0]]
    for record in records[1:]:
        results.append(function.reduce(results[-1], record))
    return results


def test_sum_keeps_the_other_fields_of_the_first_record():
    assert rolling(SumFunction(1), RECORDS) == [("a", 3, 1), ("a", 4, 1), ("a", 6, 1), ("a", 7, 1)]


def test_min_and_max_keep_the_other_fields_of_the_first_record():
    assert rolling(MinFunction(1), RECORDS) == [("a", 3, 1), ("a", 1, 1), ("a", 1, 1), ("a", 1, 1)]
    assert rolling(MaxFunction(1), RECORDS) == [("a", 3, 1)] * 4
    assert rolling(MaxFunction(2), RECORDS) == [("a", 3, 1), ("a", 3, 3), ("a", 3, 4), ("a", 3, 5)]


def test_min_by_and_max_by_give_whole_records_and_the_first_of_equals():
    assert rolling(MinByFunction(1), RECORDS) == [("a", 3, 1), ("a", 1, 3), ("a", 1, 3), ("a", 1, 3)]
    assert rolling(MaxByFunction(2), RECORDS) == RECORDS


def test_the_last_of_equals_when_asked():
    assert rolling(MinByFunction(1, first=False), RECORDS) == [("a", 3, 1), ("a", 1, 3), ("a", 1, 3), ("a", 1, 5)]


@pytest.mark.parametrize(
    ("function", "records", "result"),
    [
        (SumFunction(), [1, 2, 3], 6),
        (SumFunction(-1), [("a", 1), ("a", 2)], ("a", 3)),
        (MinFunction(-2), [(5, "x"), (3, "y")], (3, "x")),
        (SumFunction(1), [["a", 1], ["a", 2]], ["a", 3]),
        (SumFunction(1), [("a", True), ("a", True)], ("a", 2)),
        (SumFunction(1), [("a", "x"), ("a", "y")], ("a", "xy")),
        (SumFunction(0), [0.5, 1], 1.5),
        (MinFunction(), ["m", "b", "z"], "b"),
        (SumFunction("value"), [Row(key="a", value=1), Row(key="a", value=2)], Row(key="a", value=3)),
        (SumFunction(1), [Row("a", 1), Row("a", 2)], Row("a", 3)),
        (SumFunction("value"), [Reading("s", 1), Reading("s", 2)], Reading("s", 3)),
        (SumFunction("value"), [Point("a", 1), Point("a", 2)], Point("a", 3)),
        (MaxByFunction("value"), [Reading("s", 1), Reading("t", 2)], Reading("t", 2)),
    ],
)
def test_on_every_kind_of_record(function, records, result):
    before = copy.deepcopy(records)
    found = reduce(function.reduce, records)
    assert found == result
    assert type(found) is type(result)
    assert records == before, "records must not be changed"


def test_the_kind_of_a_row_is_kept():
    row = Row.of_kind(RowKind.UPDATE_AFTER, "a", 1)
    assert SumFunction(1).reduce(row, Row("a", 2)).get_row_kind() is RowKind.UPDATE_AFTER


def test_changing_a_result_does_not_change_the_input():
    first, second = Row(key="a", value=1), Row(key="a", value=2)
    result = SumFunction("value").reduce(first, second)
    result["value"] = 100
    assert (first["value"], second["value"]) == (1, 2)


@pytest.mark.parametrize(
    ("function", "records", "error", "words"),
    [
        (SumFunction(1), [("a", 1), ("a", "y")], TypeError, r"sum\(1\) cannot add 1 and 'y' of records \('a', 1\)"),
        (MinFunction(1), [("a", 1), ("a", None)], TypeError, r"min\(1\) cannot compare None with 1"),
        (SumFunction(5), [("a", 1), ("a", 2)], IndexError, "has no field 5: it has 2 fields"),
        (SumFunction(1), [3, 1], TypeError, "only position 0"),
        (SumFunction("f1"), [("a", 1), ("a", 2)], TypeError, "no named fields"),
        (SumFunction("v"), [{"v": 1}, {"v": 2}], TypeError, "no named fields"),
        (SumFunction("w"), [Row(v=1), Row(v=2)], TypeError, "has no field 'w'"),
    ],
)
def test_a_field_that_cannot_be_aggregated_is_named_with_its_records(function, records, error, words):
    with pytest.raises(error, match=words):
        reduce(function.reduce, records)


@pytest.mark.parametrize("field", [1.0, True, None, [0]])
def test_a_field_is_a_position_or_a_name(field):
    with pytest.raises(TypeError, match=r"sum\(\)"):
        SumFunction(field)


def test_rolling_functions_survive_pickling():
    sent = pickle.loads(pickle.dumps(MaxByFunction("value", first=False)))
    assert sent.reduce(Row(value=1), Row(value=1)) == Row(value=1)
    assert repr(sent) == "max_by('value')"
