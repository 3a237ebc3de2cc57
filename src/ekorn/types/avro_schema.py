"""Avro schemas, and the type of records that follow a schema. Records are dicts, as in PyFlink.

`avro_parser.py` parses the schema; this module checks values against it. `state/evolution/avro_resolution.py` converts
the values of an old schema to a new one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ekorn.errors import ConfigurationError, preview
from ekorn.types.avro_parser import PRIMITIVES, Node, parse
from ekorn.types.type_information import Column, Misfit, TypeInformation

__all__ = ["AvroSchema", "GenericRecordAvroTypeInfo"]


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
        self.root, self.names = parse(json_schema)

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
