"""Function classes: the methods that must be implemented, and fields as keys."""

import pickle

import pytest

from ekorn.common import Row
from ekorn.datastream import functions
from ekorn.datastream.functions import (
    AggregateFunction,
    FieldKeySelector,
    Function,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
)


def test_a_function_without_its_method_cannot_be_made():
    class Incomplete(MapFunction):
        pass

    with pytest.raises(TypeError, match="map"):
        Incomplete()  # type: ignore[abstract]


def test_open_close_and_on_timer_may_be_left_out():
    class Keep(KeyedProcessFunction):
        def process_element(self, value, ctx):
            yield value

    keep = Keep()
    keep.open(None)  # type: ignore[arg-type]
    keep.close()
    assert keep.on_timer(0, None) is None  # type: ignore[arg-type]


def test_every_exported_function_class_has_open_and_close():
    for name in functions.__all__:
        cls = getattr(functions, name)
        if name.endswith("Function") and issubclass(cls, Function):
            assert callable(cls.open), name
            assert callable(cls.close), name


def test_contexts_are_where_pyflink_has_them():
    assert issubclass(KeyedProcessFunction.OnTimerContext, KeyedProcessFunction.Context)
    assert ProcessFunction.Context is not KeyedProcessFunction.Context  # type: ignore[comparison-overlap]


def test_aggregate_functions_need_all_four_methods():
    assert AggregateFunction.__abstractmethods__ == {"create_accumulator", "add", "get_result", "merge"}


@pytest.mark.parametrize(
    ("fields", "record", "key"),
    [
        ((0,), ("a", 1), ("a",)),
        ((1, 0), ("a", 1), (1, "a")),
        ((-1,), ("a", 1), (1,)),
        (("f1",), ("a", 1), (1,)),
        (("name",), Row(name="a", n=1), ("a",)),
        (("name", 1), Row(name="a", n=1), ("a", 1)),
        (("name",), {"name": "a"}, ("a",)),
        (("real",), 5, (5,)),
        ((0,), 5, (5,)),
    ],
)
def test_fields_as_a_key_make_a_tuple(fields, record, key):
    assert FieldKeySelector(*fields).get_key(record) == key


@pytest.mark.parametrize(
    ("field", "record", "error"), [(2, ("a", 1), IndexError), ("x", Row(a=1), TypeError), (1, 5, TypeError)]
)
def test_a_missing_key_field_is_named(field, record, error):
    with pytest.raises(error, match=repr(field)):
        FieldKeySelector(field).get_key(record)


@pytest.mark.parametrize("fields", [(), (1.5,), (True,), ("",)])
def test_key_fields_are_checked_when_given(fields):
    with pytest.raises((TypeError, ValueError)):
        FieldKeySelector(*fields)


def test_key_selectors_of_equal_fields_are_equal_and_survive_pickling():
    assert pickle.loads(pickle.dumps(FieldKeySelector(0, "b"))) == FieldKeySelector(0, "b") != FieldKeySelector(0)
    assert len({FieldKeySelector(0), FieldKeySelector(0)}) == 1
