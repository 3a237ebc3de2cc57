"""Avro schemas: which documents are schemas, and that nothing of what fastavro reads is lost."""

import sys

import fastavro
import pytest

from ekorn.errors import ConfigurationError
from ekorn.types.avro_schema import AvroSchema


def record(*fields, name="R", **more):
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


TWO_BYTES = {"type": "fixed", "name": "Two", "size": 2}
COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}

SCHEMAS = {
    "a primitive": "long",
    "a union": ["null", "string"],
    "an array": {"type": "array", "items": "int"},
    "a map of arrays": {"type": "map", "values": {"type": "array", "items": ["null", "double"]}},
    "a record": record(field("n", "int"), field("s", "string", default="")),
    "a record in a namespace": record(field("n", "int"), namespace="shop.orders"),
    "a record with a dotted name": record(field("c", COLOUR), name="shop.Order"),
    "a record in a record": record(field("inner", record(field("x", TWO_BYTES), name="Inner")), namespace="shop"),
    "a record in itself": record(field("next", ["null", "R"])),
    "a type used twice": record(field("a", TWO_BYTES), field("b", "Two"), namespace="shop"),
    "a union of records": [record(field("n", "int"), name="A"), record(field("a", "A"), name="B")],
    "a logical type": record(field("day", {"type": "int", "logicalType": "date"})),
    "an error": {"type": "error", "name": "E", "fields": [field("text", "string")]},
}


def flat(node, names, seen=()):
    """Return a schema in one normal form: named types with full names and definitions, primitives as words."""
    if isinstance(node, str):
        return flat(names[node], names, seen) if node in names else node
    if isinstance(node, list):
        return [flat(branch, names, seen) for branch in node]
    kind = "record" if node["type"] == "error" else node["type"]
    match kind:
        case "array":
            return ("array", flat(node["items"], names, seen))
        case "map":
            return ("map", flat(node["values"], names, seen))
        case "enum":
            return ("enum", node["name"], list(node["symbols"]))
        case "fixed":
            return ("fixed", node["name"], node["size"])
        case "record":
            if node["name"] in seen:
                return ("record", node["name"])
            inside = (*seen, node["name"])
            fields = [(f["name"], flat(f["type"], names, inside), f.get("default")) for f in node["fields"]]
            return ("record", node["name"], fields)
    return kind


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_read_as_fastavro_reads_it(name):
    schema, names = AvroSchema(SCHEMAS[name]), {}
    parsed = fastavro.parse_schema(SCHEMAS[name], names)
    assert flat(schema.root, schema.names) == flat(parsed, names)
    assert schema.names.keys() == names.keys()


WRAPPED = {
    "a primitive": ({"type": {"type": "int"}}, "int"),
    "a union": ({"type": ["null", {"type": "int"}]}, ["null", "int"]),
    "a name": (
        record(field("c", COLOUR), field("d", {"type": "Colour"})),
        record(field("c", COLOUR), field("d", "Colour")),
    ),
    "a definition": (record(field("c", {"type": {"type": TWO_BYTES}})), record(field("c", TWO_BYTES))),
    "a quoted size": (TWO_BYTES | {"size": "2"}, TWO_BYTES),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_a_type_inside_an_object_is_that_type(name):
    wrapped, plain = WRAPPED[name]
    assert (AvroSchema(wrapped).root, AvroSchema(wrapped).names) == (AvroSchema(plain).root, AvroSchema(plain).names)


def test_aliases_belong_to_the_namespace_of_their_type():
    schema = AvroSchema(record(namespace="shop", aliases=["Old", "store.Old"]))
    assert schema.names["shop.R"]["aliases"] == ["shop.Old", "store.Old"]


REFUSED = {
    "a type that is not defined": (record(field("a", "Foo")), "field 'a' of 'R' is 'Foo', a type that is not defined"),
    "a name that is defined twice": (
        record(field("a", TWO_BYTES), field("b", TWO_BYTES)),
        "redefined named type: Two in {'type'",
    ),
    "a record without a name": ({"type": "record", "fields": []}, "the schema is a record without a name"),
    "a record without fields": ({"type": "record", "name": "R"}, "record 'R' lacks 'fields'"),
    "an array without items": ({"type": "array"}, "the items of the schema is None"),
    "an enum without symbols": ({"type": "enum", "name": "E"}, "enum 'E' lacks 'symbols'"),
    "a field without a type": (record({"name": "a"}), "record 'R' lacks 'type'"),
    "fields that are no list": (
        {"type": "record", "name": "R", "fields": 3},
        "record 'R' is malformed: its fields are 3",
    ),
    "a field that is no object": (record("a"), "record 'R' is malformed"),
    "a size that is no number": ({"type": "fixed", "name": "X", "size": "two"}, "the size of fixed 'X' is 'two'"),
    "a default of another type": (
        record(field("a", "int", default="x")),
        "Default value <x> must match schema type: int",
    ),
    "a symbol that is no name": ({"type": "enum", "name": "E", "symbols": ["a b"]}, "Every symbol must match"),
    "a number": (record(field("a", 3)), "field 'a' of 'R' is 3"),
    "an empty object": ({}, "the schema is {}"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_document_that_is_no_schema_is_refused_with_the_place(name):
    document, reason = REFUSED[name]
    with pytest.raises(ConfigurationError) as refused:
        AvroSchema(document)
    assert reason in str(refused.value)


def test_text_that_is_no_json_is_refused():
    with pytest.raises(ConfigurationError, match=r"cannot read an Avro schema.*\{oops"):
        AvroSchema.parse_string("{oops")


def test_without_fastavro_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigurationError, match=r'pip install "ekorn\[avro\]"'):
        AvroSchema("int")
