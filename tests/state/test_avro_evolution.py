"""Avro records as state, and the rules by which they are converted to a changed schema."""

import re
from typing import Any

import pytest

from ekorn.datastream.formats.avro import AvroSchema, GenericRecordAvroTypeInfo
from ekorn.errors import StateError, StateMigrationError
from ekorn.functions.state.state_descriptors import ValueStateDescriptor
from tests.state.backends import BACKENDS
from tests.state.evolving import INTO, evolve

# -------------------------------------------------------------------------------------------------------------- Avro


def avro(*fields, name="Visit", **more):
    import json

    return GenericRecordAvroTypeInfo(
        AvroSchema.parse_string(json.dumps({"type": "record", "name": name, "fields": list(fields), **more}))
    )


def f(name, kind, **more):
    return {"name": name, "type": kind, **more}


COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}

AVRO_CHANGES: dict[str, Any] = {
    "a field with a default": (
        avro(f("url", "string")),
        {"url": "/"},
        avro(f("n", "int", default=3), f("url", "string")),
        {"n": 3, "url": "/"},
    ),
    "a field less": (avro(f("url", "string"), f("n", "int")), {"url": "/", "n": 1}, avro(f("n", "int")), {"n": 1}),
    "a renamed field": (
        avro(f("url", "string")),
        {"url": "/"},
        avro(f("address", "string", aliases=["url"])),
        {"address": "/"},
    ),
    "a renamed record": (
        avro(f("n", "int"), name="Hit"),
        {"n": 1},
        avro(f("n", "long"), name="Visit", aliases=["Hit"]),
        {"n": 1},
    ),
    "numbers": (
        avro(f("a", "int"), f("b", "long"), f("c", "float")),
        {"a": 1, "b": 2, "c": 0.5},
        avro(f("a", "float"), f("b", "double"), f("c", "double")),
        {"a": 1.0, "b": 2.0, "c": 0.5},
    ),
    "text and bytes": (
        avro(f("a", "string"), f("b", "bytes")),
        {"a": "é", "b": "é".encode()},
        avro(f("a", "bytes"), f("b", "string")),
        {"a": "é".encode(), "b": "é"},
    ),
    "may be null now": (avro(f("n", "int")), {"n": 1}, avro(f("n", ["null", "long"])), {"n": 1}),
    "may not be null any more, and is not": (avro(f("n", ["null", "int"])), {"n": 1}, avro(f("n", "int")), {"n": 1}),
    "a union of more": (
        avro(f("n", ["null", "int"])),
        {"n": None},
        avro(f("n", ["string", "null", "int"])),
        {"n": None},
    ),
    "a symbol that is gone": (
        avro(f("c", COLOUR)),
        {"c": "BLUE"},
        avro(f("c", {**COLOUR, "symbols": ["RED", "NONE"], "default": "NONE"})),
        {"c": "NONE"},
    ),
    "lists and maps": (
        avro(f("l", {"type": "array", "items": "int"}), f("m", {"type": "map", "values": "int"})),
        {"l": [1], "m": {"k": 2}},
        avro(f("l", {"type": "array", "items": "double"}), f("m", {"type": "map", "values": "float"})),
        {"l": [1.0], "m": {"k": 2.0}},
    ),
    "defaults of every kind": (
        avro(),
        {},
        avro(
            f("b", "bytes", default="\u00ff"),
            f("d", "double", default=1),
            f("u", ["null", "int"], default=None),
            f("l", {"type": "array", "items": "int"}, default=[1]),
            f("m", {"type": "map", "values": "int"}, default={"k": 1}),
            f("c", COLOUR, default="RED"),
            f("x", {"type": "fixed", "name": "Two", "size": 2}, default="ab"),
            f("r", {"type": "record", "name": "In", "fields": [f("n", "int", default=7)]}, default={}),
        ),
        {"b": b"\xff", "d": 1.0, "u": None, "l": [1], "m": {"k": 1}, "c": "RED", "x": b"ab", "r": {"n": 7}},
    ),
    "a record in itself": (
        avro(f("n", "int"), f("next", ["null", "Visit"])),
        {"n": 1, "next": {"n": 2, "next": None}},
        avro(f("n", "long"), f("next", ["null", "Visit"]), f("new", "string", default="")),
        {"n": 1, "next": {"n": 2, "next": None, "new": ""}, "new": ""},
    ),
    "other documentation": (avro(f("n", "int", doc="old")), {"n": 1}, avro(f("n", "int", doc="new")), {"n": 1}),
}


@pytest.mark.parametrize("change", AVRO_CHANGES)
@pytest.mark.parametrize("backends", INTO, ids="-".join)
def test_avro_records_are_resolved_by_avros_rules(change, backends):
    old, value, new, expected = AVRO_CHANGES[change]
    found = evolve(old, value, new, *backends)
    assert found == expected
    assert repr(found) == repr(expected) or dict(sorted(found.items())) == dict(sorted(expected.items()))


AVRO_REFUSED = {
    "a field without a default": (
        avro(f("n", "int")),
        {"n": 1},
        avro(f("n", "int"), f("m", "int")),
        "m: field 'm' is new and has no default",
    ),
    "another type": (avro(f("n", "int")), {"n": 1}, avro(f("n", "string")), "n: was int and is string"),
    "a narrower type": (avro(f("n", "long")), {"n": 1}, avro(f("n", "int")), "n: was long and is int"),
    "another record": (avro(name="Hit"), {}, avro(name="Visit"), "was Hit and is Visit"),
    "a long value": (
        avro(f("n", ["int", "string"])),
        {"n": "x" * 200},
        avro(f("n", "long")),
        f"n: holds '{'x' * 76}..., and was string and is long",
    ),
    "null where there can be none": (
        avro(f("n", ["null", "int"])),
        {"n": None},
        avro(f("n", "int")),
        "n: holds None, and was null and is int",
    ),
    "a symbol that is gone": (
        avro(f("c", COLOUR)),
        {"c": "BLUE"},
        avro(f("c", {**COLOUR, "symbols": ["RED"]})),
        "c: holds 'BLUE', which Colour no longer has, nor a default",
    ),
    "another size": (
        avro(f("x", {"type": "fixed", "name": "Two", "size": 2})),
        {"x": b"ab"},
        avro(f("x", {"type": "fixed", "name": "Two", "size": 3})),
        "x: Two was 2 bytes and is 3",
    ),
    "an element": (
        avro(f("l", {"type": "array", "items": "int"})),
        {"l": []},
        avro(f("l", {"type": "array", "items": "string"})),
        "l.an element: was int and is string",
    ),
}


@pytest.mark.parametrize("change", AVRO_REFUSED)
def test_avro_records_that_cannot_be_resolved_are_refused(change):
    old, value, new, reason = AVRO_REFUSED[change]
    with pytest.raises(StateMigrationError, match=re.escape(reason)):
        evolve(old, value, new)


def test_avro_state_takes_only_what_follows_its_schema():
    backend = BACKENDS["heap"]()
    backend.cell[0] = "key"
    state = backend.state(ValueStateDescriptor("state", avro(f("n", "int"), f("u", ["null", "string"]))))
    state.update({"n": 1, "u": None})
    for bad, why in [({"n": "1", "u": None}, "n: expected int"), ({"n": 1}, "no field 'u'"), ([], "expected a record")]:
        with pytest.raises(StateError, match=why):
            state.update(bad)
