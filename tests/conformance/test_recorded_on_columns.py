"""Recorded programs with rows, where every stream of rows is one of columns: the outcome is what PyFlink gave."""

import functools

import pytest

from ekorn.datastream import DataStream, StreamExecutionEnvironment
from ekorn.types.composite_types import RowTypeInfo
from tests.conformance.recorded_runs import differences, like_pyflink, recording_of, run
from tests.recorded import program as programs

MAKERS = {
    StreamExecutionEnvironment: ("from_collection",),
    DataStream: ("map", "flat_map", "process", "filter", "union", "get_side_output"),
}
CHECKED = "to_columns() takes tuples and dicts, as Spark does; a row of too many fields is refused in both forms"
DELIBERATE = {
    "type_row_chained": "rows from columns have the names of the columns, as behind an exchange",
    "type_row_from_dict": CHECKED,
    "type_row_from_tuple": CHECKED,
    "type_row_too_long": CHECKED,
}


def with_rows():
    """Return the names of the programs that have streams of rows."""
    alike = [name for name in like_pyflink() if "Types.ROW" in programs.standalone(name)]
    return [name for name in alike if recording_of(name)["outcome"] == "values" or name in DELIBERATE]


@pytest.fixture
def made(monkeypatch):
    """Give every stream of rows as columns; return the list of those that were."""
    found = []
    for owner, names in MAKERS.items():
        for name in names:
            monkeypatch.setattr(owner, name, as_columns(getattr(owner, name), found))
    return found


def as_columns(method, found):
    @functools.wraps(method)
    def call(*args, **kwargs):
        stream = method(*args, **kwargs)
        if type(stream) is not DataStream or not isinstance(stream.get_type(), RowTypeInfo):
            return stream
        found.append(stream)
        return stream.to_columns()

    return call


@pytest.mark.parametrize("name", with_rows())
def test_a_program_gives_what_pyflink_gave_when_its_rows_travel_as_columns(name, capsys, made):
    program = programs.load(name, "ekorn")
    different = differences(recording_of(name), run(program, capsys), program.ordered)
    if name in DELIBERATE:
        assert different, f"{name} gives the same now: take it off the list"
    else:
        assert not different, "\n".join(different)


def test_streams_of_columns_were_made(capsys, made):
    run(programs.load("print_typed_row", "ekorn"), capsys)
    assert made
