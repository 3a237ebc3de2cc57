"""Every program has a recording of its present text, and every recording can be read back."""

import datetime
import enum
import json
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from tests.recorded.encoding import decode, encode
from tests.recorded.program import OUTPUTS, load, names, sha256


class RowKind(enum.Enum):
    INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = "+I", "-U", "+U", "-D"

    def __str__(self):
        return self.value


class Row(list):
    """The part of a package's Row that the encoding uses."""

    get_row_kind: Any

    @classmethod
    def of_kind(cls, kind, *values):
        row = cls(values)
        row.get_row_kind = lambda: kind
        return row

    def set_field_names(self, fields):
        self._fields = fields


class Instant:
    def __init__(self, seconds, nanos):
        self.seconds, self.nanos = seconds, nanos


COMMON = SimpleNamespace(Row=Row, RowKind=RowKind, Instant=Instant)


@pytest.mark.parametrize("name", names())
def test_a_program_is_recorded_as_it_stands(name):
    path = OUTPUTS / f"{name}.json"
    assert path.exists(), f"{name} was never recorded; see README.md"
    recording = json.loads(path.read_text(encoding="utf-8"))
    assert recording["sha256"] == sha256(name), f"{name} was changed after its recording; see README.md"


def test_no_recording_outlives_its_program():
    assert sorted(path.stem for path in OUTPUTS.glob("*.json")) == names()


@pytest.mark.parametrize("path", sorted(OUTPUTS.glob("*.json")), ids=lambda path: path.stem)
def test_recorded_values_read_back_as_they_were_written(path):
    recording = json.loads(path.read_text(encoding="utf-8"))
    for text in recording.get("values", []) + recording.get("facts", []):
        if "Other(" not in text:
            assert encode(decode(text, COMMON)) == text


@pytest.mark.parametrize(
    "value",
    [
        (1, 1.0, True, None),
        [b"\x00", bytearray(b"a")],
        {"a": {1: -0.0}},
        float("inf"),
        float("nan"),
        (1,),
        (),
        Decimal("1.10"),
        datetime.datetime(2020, 1, 2, 3, 4, 5, 6),
        frozenset([2, 1]),
        "é\U0001f600\n'\"",
        Row.of_kind(RowKind.DELETE, 1, "a"),
        Instant(1, 2),
    ],
)
def test_encoding_reads_back(value):
    assert encode(decode(encode(value), COMMON)) == encode(value)


def test_loading_for_another_package_changes_the_imports_and_nothing_else():
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        load(names()[0], "no_such_package")
