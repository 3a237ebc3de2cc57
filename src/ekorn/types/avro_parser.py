"""The parser of Avro schemas: fastavro, with messages that name the place in the schema.

fastavro resolves names and namespaces and checks definitions, symbols and defaults. Two things are done before, because
fastavro raises a bare KeyError or TypeError for them: a type written as `{"type": "Name"}` is replaced by the type
itself, and parts that are absent or of a wrong kind are refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ekorn.errors import ConfigurationError, preview
from ekorn.extras import load

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})

TIMESTAMPS = {
    "timestamp-millis": ("ms", "UTC"),
    "timestamp-micros": ("us", "UTC"),
    "local-timestamp-millis": ("ms", None),
    "local-timestamp-micros": ("us", None),
}
"""The units of the logical types of timestamps, and the zone in which a file has them; None for a wall-clock time."""

Node = Any
"""A schema with full names: a word, a list of branches, or a dict with `type`. A named type appears as its name."""


class TimestampNode(str):
    """The word `long` in a schema that says that the numbers are timestamps. Everything else treats it as the word."""

    logical: str

    @classmethod
    def of(cls, logical: str) -> TimestampNode:
        """Return the node of a logical type."""
        node = cls("long")
        node.logical = logical
        return node


class ParsedSchema(NamedTuple):
    """A schema as a tree, and the definitions of its named types by full name."""

    root: Node
    names: dict[str, Node]


def parse(document: Any) -> ParsedSchema:
    """Parse the JSON document of a schema.

    Raises:
        ConfigurationError: The document is not an Avro schema, or fastavro is not installed.
    """
    load("avro", "Avro")
    from fastavro.schema import SchemaParseException, UnknownType, parse_schema

    draft = _Draft()
    plain = draft.read(document, "the schema")
    try:
        parsed = parse_schema(plain, {})
    except UnknownType as error:
        name = str(error.name)
        where = draft.mentions.get(name) or draft.mentions.get(name.rpartition(".")[2], "the schema")
        raise _refused(f"{where} is {name!r}, a type that is not defined before it is used") from None
    except SchemaParseException as error:
        raise _refused(f"{error} in {preview(document)}") from None
    nodes = _Nodes()
    return ParsedSchema(nodes.read(parsed), nodes.names)


class _Draft:
    """Reduces a document to the form that fastavro reads."""

    def __init__(self) -> None:
        self.mentions: dict[str, str] = {}  # where each name is first referred to

    def read(self, document: Any, where: str) -> Any:
        if isinstance(document, str):
            self.mentions.setdefault(document, where)
            return document
        if isinstance(document, list):
            return [self.read(branch, f"branch {i} of {where}") for i, branch in enumerate(document)]
        if not isinstance(document, dict) or "type" not in document:
            raise _refused(f"{where} is {preview(document)}")
        match document["type"]:
            case "array":
                return document | {"items": self.read(document.get("items"), f"the items of {where}")}
            case "map":
                return document | {"values": self.read(document.get("values"), f"the values of {where}")}
            case "record" | "error" | "enum" | "fixed" as kind:
                if not isinstance(document.get("name"), str):
                    raise _refused(f"{where} is a {kind} without a name")
                return document | self._parts(document, kind, document["name"])
            case "long" if document.get("logicalType") in TIMESTAMPS:
                return {"type": "long", "logicalType": document["logicalType"]}
            case inner:  # {"type": "int"}, {"type": "Name"} or {"type": {...}}
                return self.read(inner, where)

    def _parts(self, document: dict[str, Any], kind: str, name: str) -> dict[str, Any]:
        if kind == "enum":
            return {"symbols": _list(document, "symbols", kind, name)}
        if kind == "fixed":
            return {"size": _size(_part(document, "size", kind, name), name)}
        return {"fields": [self._field(field, kind, name) for field in _list(document, "fields", kind, name)]}

    def _field(self, field: Any, kind: str, record: str) -> dict[str, Any]:
        if not isinstance(field, dict):
            raise _refused(f"{kind} {record!r} is malformed: a field is {preview(field)}")
        name, inner = _part(field, "name", kind, record), _part(field, "type", kind, record)
        return field | {"type": self.read(inner, f"field {name!r} of {record!r}")}


class _Nodes:
    """Turns what fastavro returns into nodes: every named type is defined once, under its full name."""

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}

    def read(self, schema: Any) -> Node:
        if isinstance(schema, str):
            return schema
        if isinstance(schema, list):
            return [self.read(branch) for branch in schema]
        match schema["type"]:
            case "array":
                return {"type": "array", "items": self.read(schema["items"])}
            case "map":
                return {"type": "map", "values": self.read(schema["values"])}
            case "record" | "error" | "enum" | "fixed":
                return self._define(schema)
            case word:
                return TimestampNode.of(schema["logicalType"]) if "logicalType" in schema else word

    def _define(self, schema: dict[str, Any]) -> str:
        name: str = schema["name"]
        space = name.rpartition(".")[0]
        aliases = [alias if "." in alias or not space else f"{space}.{alias}" for alias in schema.get("aliases", ())]
        node: dict[str, Any] = {"type": schema["type"], "name": name, "aliases": aliases}
        self.names[name] = node  # before the fields, which may refer to it
        if node["type"] == "enum":
            node |= {"symbols": list(schema["symbols"])} | _default_of(schema)
        elif node["type"] == "fixed":
            node["size"] = schema["size"]
        else:
            node["type"] = "record"
            node["fields"] = [self._field(field) for field in schema["fields"]]
        return name

    def _field(self, field: dict[str, Any]) -> dict[str, Any]:
        aliases = list(field.get("aliases", ()))
        return {"name": field["name"], "type": self.read(field["type"]), "aliases": aliases} | _default_of(field)


def _part(document: dict[str, Any], part: str, kind: str, name: str) -> Any:
    if part not in document:
        raise _refused(f"{kind} {name!r} lacks {part!r}")
    return document[part]


def _list(document: dict[str, Any], part: str, kind: str, name: str) -> list[Any]:
    found = _part(document, part, kind, name)
    if not isinstance(found, list):
        raise _refused(f"{kind} {name!r} is malformed: its {part} are {preview(found)}")
    return found


def _size(size: Any, name: str) -> int:
    try:
        return int(size)  # some writers of schemas quote the size
    except (TypeError, ValueError):
        raise _refused(f"the size of fixed {name!r} is {preview(size)}") from None


def _default_of(part: dict[str, Any]) -> dict[str, Any]:
    return {"default": part["default"]} if "default" in part else {}


def _refused(reason: str) -> ConfigurationError:
    return ConfigurationError(f"cannot read an Avro schema: {reason}")
