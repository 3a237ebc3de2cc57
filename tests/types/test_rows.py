import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ekorn.common import Row, RowKind
from ekorn.types.row import make_row

Person = Row("name", "age")


def test_a_row_is_read_by_position_by_name_and_by_attribute():
    row = Row(name="x", age=1)
    assert (row[0], row["age"], row.name, row[0:2]) == ("x", 1, "x", ["x", 1])
    assert list(row) == ["x", 1]
    assert list(reversed(row)) == [1, "x"]
    assert len(row) == 2


def test_a_row_of_names_makes_rows():
    assert repr(Person) == "<Row('name', 'age')>"
    assert repr(Person("x", 1)) == "Row(name='x', age=1)"
    assert repr(Person("x")) == "Row(name='x')"
    with pytest.raises(ValueError, match="names 2 fields, but 3"):
        Person("x", 1, 2)


def test_positional_and_named_fields_do_not_mix():
    with pytest.raises(ValueError, match="either positional or named"):
        Row(1, b=2)


def test_unnamed_and_named_rows_print_differently():
    assert str(Row("a", 2)) == "<Row('a', 2)>"
    assert str(Row(b=1, a=2)) == "Row(b=1, a=2)"
    assert str(Row()) == "<Row()>"


def test_missing_names_and_positions_raise_what_pyflink_raises():
    row = Person("x", 1)
    with pytest.raises(AttributeError):
        _ = row.nope
    with pytest.raises(AttributeError):
        _ = Row(1).f0
    with pytest.raises(ValueError, match="nope"):
        _ = row["nope"]
    with pytest.raises(ValueError, match="no names"):
        _ = Row(1)["a"]
    with pytest.raises(IndexError):
        _ = row[7]
    assert not hasattr(Row(1), "_fields")
    assert row._fields == ["name", "age"]


def test_a_field_name_may_begin_with_an_underscore():
    assert Row(_id=5)._id == 5
    with pytest.raises(AttributeError):
        _ = Row(_id=5)._other


def test_fields_are_assigned_by_name_or_position_but_not_as_attributes():
    row = Person("x", 1)
    row["name"] = "y"
    row[1] = 2
    assert row == Person("y", 2)
    with pytest.raises(AttributeError):
        row.name = "z"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="nope"):
        row["nope"] = 1


def test_containment_asks_names_where_there_are_names_and_values_otherwise():
    assert "name" in Person("x", 1)
    assert "x" not in Person("x", 1)
    assert "x" in Row("x")


def test_rows_are_equal_when_values_names_and_kind_are():
    assert Row("x", 1) == Row("x", 1)
    assert Person("x", 1) == Row(name="x", age=1)
    assert Person("x", 1) != Row("x", 1)
    assert Row("x", 1) != ("x", 1)
    assert Row.of_kind(RowKind.DELETE, 1) != Row(1)
    assert hash(Row.of_kind(RowKind.DELETE, 1)) == hash(Row(1)) == hash(Row(a=1))


def test_as_dict_needs_names_and_can_go_into_nested_rows():
    assert Person("x", 1).as_dict() == {"name": "x", "age": 1}
    nested = Row(a=Row(b=1), c=[Row(d=1)], e={"z": Row(q=1)})
    assert nested.as_dict()["a"] == Row(b=1)
    assert nested.as_dict(recursive=True) == {"a": {"b": 1}, "c": [{"d": 1}], "e": {"z": {"q": 1}}}
    with pytest.raises(TypeError, match="no names"):
        Row(1).as_dict()


def test_fields_can_be_asked_for_in_another_order():
    assert Row(a=1, b=2).get_fields_by_names(["b", "a"]) == [2, 1]
    assert Row(1, 2).get_fields_by_names(["f1"]) == [1, 2]
    with pytest.raises(ValueError, match="qq"):
        Row(a=1).get_fields_by_names(["qq"])


def test_names_and_kind_can_be_set_later():
    row = Row(1, 2)
    row.set_field_names(["p", "q"])
    row.set_row_kind(RowKind.UPDATE_AFTER)
    assert row.q == 2
    assert row.get_row_kind() is RowKind.UPDATE_AFTER


def test_row_kinds_print_as_in_a_changelog():
    assert [str(kind) for kind in RowKind] == ["+I", "-U", "+U", "-D"]
    assert [kind.value for kind in RowKind] == [0, 1, 2, 3]


values = st.lists(st.one_of(st.none(), st.integers(), st.text("ab")), max_size=4)


@given(values, st.booleans(), st.sampled_from(list(RowKind)), st.integers(2, pickle.HIGHEST_PROTOCOL))
def test_a_row_survives_pickling_and_copying(fields, named, kind, protocol):
    row = make_row(fields, [f"n{i}" for i in range(len(fields))] if named else None, kind)
    for again in (pickle.loads(pickle.dumps(row, protocol)), copy.copy(row), copy.deepcopy(row)):
        assert again == row
        assert again.get_row_kind() is kind
        assert repr(again) == repr(row)


def test_a_deep_copy_shares_nothing():
    row = Row(a=[1])
    again = copy.deepcopy(row)
    again.a.append(2)
    again["a"] = 5
    assert row == Row(a=[1])
