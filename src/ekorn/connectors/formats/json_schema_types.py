"""Types of rows from JSON schemas (json-schema.org), as Flink's converter makes them."""

from __future__ import annotations

import json
from typing import Any

from ekorn.errors import ConfigurationError, preview
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["type_of_json_schema"]


def type_of_json_schema(json_schema: str) -> TypeInformation:
    """Return the type that a JSON schema describes.

    >>> type_of_json_schema('{"type": "object", "properties": {"name": {"type": "string"}, "at": {"type": "integer"}}}')
    RowTypeInfo(name: String, at: BigDecimal)

    Raises:
        ConfigurationError: The text is not a schema, or uses a part of the standard that has no type here.
    """
    if not isinstance(json_schema, str):
        raise TypeError(f"a JSON schema is given as text, got {json_schema!r}")
    try:
        document = json.loads(json_schema)
    except ValueError as error:
        raise ConfigurationError(f"cannot read a JSON schema: {error} in {preview(json_schema)}") from None
    return _Converter(document).convert(document, "the schema", ())


class _Converter:
    def __init__(self, root: Any) -> None:
        self._root = root

    def convert(self, node: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        """Return the type of one part of the schema; `inside` are the references that led here."""
        if not isinstance(node, dict):
            raise _refused(f"{where} is {preview(node)}")
        if "$ref" in node:
            return self._referred(node["$ref"], where, inside)
        if "oneOf" in node:
            return self._one_of(node["oneOf"], where, inside)
        for part in ("allOf", "anyOf", "not"):
            if part in node:
                raise _refused(f"{where} uses {part!r}, for which there is no type")
        kinds = node.get("type")
        if isinstance(kinds, list):
            return self._one_of([node | {"type": kind} for kind in kinds], where, inside)
        match kinds:
            case "object":
                return self._object(node, where, inside)
            case "array":
                return self._array(node, where, inside)
            case "string":
                return _string(node)
            case "number" | "integer":
                return Types.BIG_DEC()  # Flink: JSON's numbers have any precision
            case "boolean":
                return Types.BOOLEAN()
            case "null":
                return Types.PICKLED_BYTE_ARRAY()
        raise _refused(f"{where} has the type {kinds!r}")

    def _object(self, node: dict[str, Any], where: str, inside: tuple[str, ...]) -> TypeInformation:
        properties = node.get("properties")
        if not isinstance(properties, dict) or not properties:
            raise _refused(f"{where} is an object without properties")
        types = [self.convert(each, f"property {name!r}", inside) for name, each in properties.items()]
        return Types.ROW_NAMED(list(properties), types)

    def _array(self, node: dict[str, Any], where: str, inside: tuple[str, ...]) -> TypeInformation:
        items = node.get("items")
        if isinstance(items, list):
            raise _refused(f"{where} has items of different types; give them one type")
        return Types.OBJECT_ARRAY(self.convert(items, f"an item of {where}", inside))

    def _one_of(self, branches: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        """Return the type of the branch that is not null."""
        known = [each for each in branches if not (isinstance(each, dict) and each.get("type") == "null")]
        if len(known) != 1:
            raise _refused(f"{where} has {len(known)} types; beside null there may be one")
        return self.convert(known[0], where, inside)

    def _referred(self, reference: Any, where: str, inside: tuple[str, ...]) -> TypeInformation:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _refused(f"{where} refers to {reference!r}; only parts of the same schema can be referred to")
        if reference in inside:
            raise _refused(f"{where} refers to itself by {reference!r}; types have an end")
        node = self._root
        for part in [each for each in reference[1:].split("/") if each]:
            if not isinstance(node, dict) or part not in node:
                raise _refused(f"{where} refers to {reference!r}, which is not in the schema")
            node = node[part]
        return self.convert(node, where, (*inside, reference))


def _string(node: dict[str, Any]) -> TypeInformation:
    by_format = {"date": Types.SQL_DATE, "time": Types.SQL_TIME, "date-time": Types.SQL_TIMESTAMP}
    if node.get("format") in by_format:
        return by_format[node["format"]]()
    if node.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    return Types.STRING()


def _refused(reason: str) -> ConfigurationError:
    return ConfigurationError(f"cannot take a type from a JSON schema: {reason}")
