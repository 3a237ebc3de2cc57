"""The rule for the order of keys in BATCH mode produces the recorded orders."""

import json
from types import SimpleNamespace

import pytest

from tests.recorded.encoding import decode, encode
from tests.recorded.key_order import sort_key
from tests.recorded.program import OUTPUTS

DECLARED = {
    "batch_order_str": None,
    "batch_order_int": None,
    "batch_order_float": None,
    "batch_order_tuple": None,
    "batch_order_mixed": None,
    "batch_order_many": None,
    "batch_order_str_typed": "STRING",
    "batch_order_many_typed": "STRING",
    "batch_order_int_typed": "INT",
    "batch_order_short_typed": "SHORT",
    "batch_order_long_typed": "LONG",
    "batch_order_double_typed": "DOUBLE",
    "batch_order_bool_typed": "BOOLEAN",
    "batch_order_date_typed": "SQL_DATE",
    "batch_order_tuple_typed": ("STRING", "INT"),
}


def test_every_recorded_order_is_held_against_the_rule():
    assert {path.stem for path in OUTPUTS.glob("batch_order_*.json")} == set(DECLARED)


@pytest.mark.parametrize("name", DECLARED)
def test_keys_come_in_the_order_of_their_serialized_form(name):
    recording = json.loads((OUTPUTS / f"{name}.json").read_text(encoding="utf-8"))
    no_package = SimpleNamespace(Row=None, RowKind=None, Instant=None)
    keys = [decode(text, no_package) for text in recording["values"]]
    ordered = sorted(keys, key=lambda key: sort_key(key, DECLARED[name]))
    assert list(map(encode, ordered)) == recording["values"]
