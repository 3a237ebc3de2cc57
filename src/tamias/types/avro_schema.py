"""Avro schemas, and the type of records that follow a schema. Records are dicts, as in PyFlink.

This module reads a schema and checks values against it. `state/evolution/avro_resolution.py` converts the values of an
old schema to a new one.

fastavro does not replace the reader. It refuses schemas that checkpoints may hold (a reference written as
`{"type": "Name"}`), accepts a record without fields, and raises a bare KeyError or TypeError where this reader names
the place in the schema. `tests/types/test_avro_schema.py` checks that both read the same schemas alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tamias.errors import ConfigurationError, preview
from tamias.types.type_information import Column, Misfit, TypeInformation

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]

PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = ("record", "error", "enum", "fixed")

Node = Any
"""A schema with full names: a word, a list of branches, or a dict with `type`. A named type appears as its name."""


class AvroSchema:
    """An Avro schema.

    >>> schema = AvroSchema.parse_string('{"type": "record", "name": "Hit", "fields": [{"name": "n", "type": "int"}]}')
    >>> schema.misfit({"n": "one"})
    "n: expected int, found 'one' (str)"
    """

    def __init__(self, json_schema: Any) -> None:
        """Read a schema from its JSON document; :meth:`parse_string` reads the text of one.

        Raises:
            ConfigurationError: The document is not an Avro schema; the message names the place.
        """
        self.json = json_schema
        self.names: dict[str, Node] = {}
        self.root = self._read(json_schema, "", "the schema")

    @staticmethod
    def parse_string(json_schema: str) -> AvroSchema:
        """Read a schema from its JSON text."""
        try:
            document = json.loads(json_schema)
        except ValueError as error:
            if json_schema in PRIMITIVES:
                return AvroSchema(json_schema)
            raise ConfigurationError(f"cannot read an Avro schema: {error} in {preview(json_schema)}") from None
        return AvroSchema(document)

    @staticmethod
    def parse_file(file_path: str) -> AvroSchema:
        """Read a schema from a file."""
        with open(file_path, encoding="utf-8") as file:
            return AvroSchema.parse_string(file.read())

    def resolved(self, node: Node) -> Node:
        """Return the definition of a named type; return any other schema unchanged."""
        return self.names[node] if isinstance(node, str) and node not in PRIMITIVES else node

    def misfit(self, value: Any, node: Node = None) -> str | None:
        """Return the reason why a value does not follow the schema, or None if it does."""
        try:
            self._check(value, self.root if node is None else node)
        except Misfit as misfit:
            return str(misfit)
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AvroSchema) and other.json == self.json

    def __hash__(self) -> int:
        return hash(json.dumps(self.json, sort_keys=True))

    def __str__(self) -> str:
        return json.dumps(self.json)

    # ------------------------------------------------------------------------------------------------ reading

    def _read(self, document: Any, namespace: str, where: str) -> Node:
        if isinstance(document, str):
            return self._name(document, namespace, where)
        if isinstance(document, list):
            return [self._read(branch, namespace, f"branch {i} of {where}") for i, branch in enumerate(document)]
        if not isinstance(document, dict) or "type" not in document:
            raise ConfigurationError(f"cannot read an Avro schema: {where} is {preview(document)}")
        kind = document["type"]
        if kind == "array":
            return {"type": "array", "items": self._read(document.get("items"), namespace, f"the items of {where}")}
        if kind == "map":
            return {"type": "map", "values": self._read(document.get("values"), namespace, f"the values of {where}")}
        if kind in _NAMED:
            return self._read_named(document, kind, namespace, where)
        return self._read(kind, namespace, where)  # {"type": "int"}, {"type": "Name"} or {"type": {...}}

    def _name(self, name: str, namespace: str, where: str) -> str:
        if name in PRIMITIVES:
            return name
        for full in (_full(name, namespace), name):
            if full in self.names:
                return full
        raise ConfigurationError(f"cannot read an Avro schema: {where} is {name!r}, a type that is not defined before")

    def _read_named(self, document: dict[str, Any], kind: str, namespace: str, where: str) -> Node:
        if not isinstance(document.get("name"), str):
            raise ConfigurationError(f"cannot read an Avro schema: {where} is a {kind} without a name")
        name = _full(document["name"], document.get("namespace", namespace))
        space = name.rpartition(".")[0]
        if name in self.names:
            raise ConfigurationError(f"cannot read an Avro schema: {name!r} is defined twice")
        aliases = [_full(alias, space) for alias in document.get("aliases", ())]
        node: dict[str, Any] = {"type": kind, "name": name, "aliases": aliases}
        self.names[name] = node
        try:
            if kind == "enum":
                node["symbols"] = list(document["symbols"])
                if "default" in document:
                    node["default"] = document["default"]
            elif kind == "fixed":
                node["size"] = _checked_size(document["size"], name)
            else:
                node["type"] = "record"
                node["fields"] = [self._read_field(field, name, space) for field in document["fields"]]
        except KeyError as error:
            raise ConfigurationError(f"cannot read an Avro schema: {kind} {name!r} lacks {error}") from error
        except (TypeError, AttributeError) as error:
            raise ConfigurationError(f"cannot read an Avro schema: {kind} {name!r} is malformed: {error}") from error
        return name

    def _read_field(self, document: dict[str, Any], record: str, space: str) -> dict[str, Any]:
        name = document["name"]
        field = {"name": name, "type": self._read(document["type"], space, f"field {name!r} of {record!r}")}
        field["aliases"] = list(document.get("aliases", ()))
        return field | {"default": document["default"]} if "default" in document else field

    # ------------------------------------------------------------------------------------------------- values

    def _check(self, value: Any, node: Node) -> None:
        node = self.resolved(node)
        if isinstance(node, str):
            if not _FITS[node](value):
                raise _unlike(node, value)
        elif isinstance(node, list):
            if self.branch_of(value, node) is None:
                raise Misfit(f"expected one of {', '.join(map(describe_node, node))}, found {preview(value, 80)}")
        elif node["type"] == "record":
            self._check_record(value, node)
        elif node["type"] == "enum":
            if value not in node["symbols"]:
                raise Misfit(f"expected one of {node['symbols']}, found {preview(value, 80)}")
        elif node["type"] == "fixed":
            if not isinstance(value, bytes | bytearray) or len(value) != node["size"]:
                raise Misfit(f"expected {node['size']} bytes, found {preview(value, 80)}")
        else:
            self._check_all(value, node)

    def _check_record(self, value: Any, node: Node) -> None:
        if not isinstance(value, dict):
            raise _unlike(f"a record {node['name']} as a dict", value)
        for field in node["fields"]:
            name = field["name"]
            if name not in value:
                raise Misfit(f"there is no field {name!r}")
            try:
                self._check(value[name], field["type"])
            except Misfit as misfit:
                raise misfit.inside(name) from None

    def _check_all(self, value: Any, node: Node) -> None:
        if node["type"] == "array":
            if not isinstance(value, list | tuple):
                raise _unlike("a list", value)
            inside, values = node["items"], value
        else:
            if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
                raise _unlike("a dict with text for keys", value)
            inside, values = node["values"], tuple(value.values())
        for each in values:
            self._check(each, inside)

    def branch_of(self, value: Any, branches: list[Node]) -> Node | None:
        """Return the first branch of a union that a value follows, or None."""
        return next((branch for branch in branches if self.misfit(value, branch) is None), None)


def describe_node(node: Node) -> str:
    """Return a short description of a schema for messages."""
    if isinstance(node, list):
        return f"[{', '.join(map(describe_node, node))}]"
    if isinstance(node, dict):
        inside = node.get("items", node.get("values"))
        return f"{node['type']} of {describe_node(inside)}" if inside is not None else str(node.get("name"))
    return str(node)


def _checked_size(size: Any, name: str) -> int:
    try:
        return int(size)  # some writers of schemas quote the size
    except (TypeError, ValueError):
        raise ConfigurationError(f"cannot read an Avro schema: the size of fixed {name!r} is {preview(size)}") from None


def _full(name: str, namespace: str | None) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"


def _unlike(expected: str, value: Any) -> Misfit:
    return Misfit(f"expected {expected}, found {preview(value, 80)} ({type(value).__name__})")


def _is_whole(value: Any, bits: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << bits - 1) <= value < 1 << bits - 1


_FITS: dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "int": lambda value: _is_whole(value, 32),
    "long": lambda value: _is_whole(value, 64),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "double": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bytes": lambda value: isinstance(value, bytes | bytearray),
    "string": lambda value: isinstance(value, str),
}


class GenericRecordAvroTypeInfo(TypeInformation):
    """The type of records that follow an Avro schema, as dicts."""

    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema

    def get_schema(self) -> AvroSchema:
        """Return the schema."""
        return self._schema

    def _fit(self, column: Column) -> Column:
        for value in column:
            why = self._schema.misfit(value)
            if why is not None:
                raise Misfit(why)
        return column

    def _identity(self) -> tuple[Any, ...]:
        return (self._schema,)

    def __repr__(self) -> str:
        return f"GenericRecordAvroTypeInfo({describe_node(self._schema.root)})"
