"""Columns of Arrow for Avro schemas, as parquet-avro lays them out. Records are dicts of Avro's values."""

from __future__ import annotations

import operator
from typing import Any

from ekorn.columns.arrow_columns import ArrowColumn, load_arrow, nullable
from ekorn.errors import ConfigurationError
from ekorn.types.avro_parser import TIMESTAMPS, Node, TimestampNode
from ekorn.types.avro_schema import AvroSchema

__all__ = ["avro_columns", "with_counts"]


def avro_columns(schema: AvroSchema) -> dict[str, ArrowColumn]:
    """Return the columns of a schema of records, by name.

    Raises:
        ConfigurationError: The schema is not of records, or refers to itself, for which there are no columns.
    """
    root = schema.resolved(schema.root)
    if not isinstance(root, dict) or root["type"] != "record":
        raise ConfigurationError("a Parquet file needs an Avro schema of records")
    columns = _Columns(schema)
    return {field["name"]: columns.of(field["type"], (root["name"],)) for field in root["fields"]}


def with_counts(arrow_type: Any) -> Any:
    """Return an Arrow type with whole numbers in place of timestamps, as generic records hold them.

    They count the units of the timestamps since 1970, so they name the same instant in every zone.
    """
    pa = load_arrow("Parquet")
    if pa.types.is_timestamp(arrow_type):
        return pa.int64()
    if pa.types.is_list(arrow_type):
        return pa.list_(with_counts(arrow_type.value_type))
    if pa.types.is_map(arrow_type):
        return pa.map_(arrow_type.key_type, with_counts(arrow_type.item_type))
    if pa.types.is_struct(arrow_type):
        return pa.struct([pa.field(field.name, with_counts(field.type)) for field in arrow_type])
    return arrow_type


class _Columns:
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema
        pa = load_arrow("Parquet")
        self._pa = pa
        self._primitive = {
            "null": pa.null(),
            "boolean": pa.bool_(),
            "int": pa.int32(),
            "long": pa.int64(),
            "float": pa.float32(),
            "double": pa.float64(),
            "bytes": pa.binary(),
            "string": pa.string(),
        }

    def of(self, node: Node, inside: tuple[str, ...]) -> ArrowColumn:
        """Return the column of a part of the schema; `inside` are the records around it."""
        if isinstance(node, str) and node in inside:
            raise ConfigurationError(f"Parquet has no columns for the Avro record {node!r}, which contains itself")
        node = self._schema.resolved(node)
        if isinstance(node, TimestampNode):
            unit, zone = TIMESTAMPS[node.logical]
            return ArrowColumn(self._pa.timestamp(unit, tz=zone), operator.index)
        if isinstance(node, str):
            return ArrowColumn(self._primitive[node])
        if isinstance(node, list):
            return self._union(node, inside)
        match node["type"]:
            case "record":
                return self._record(node, (*inside, node["name"]))
            case "array":
                return self._array(node, inside)
            case "map":
                return self._map(node, inside)
            case "fixed":
                return ArrowColumn(self._pa.binary(node["size"]))
        return ArrowColumn(self._pa.string())  # stands for an enum

    def _record(self, node: Node, inside: tuple[str, ...]) -> ArrowColumn:
        columns = {field["name"]: self.of(field["type"], inside) for field in node["fields"]}
        writers = {name: nullable(column.to_arrow) for name, column in columns.items()}
        readers = {name: nullable(column.from_arrow) for name, column in columns.items()}
        return ArrowColumn(
            self._pa.struct([self._pa.field(name, column.type) for name, column in columns.items()]),
            lambda value: {name: write(value[name]) for name, write in writers.items()},
            lambda value: {name: read(value[name]) for name, read in readers.items()},
        )

    def _array(self, node: Node, inside: tuple[str, ...]) -> ArrowColumn:
        column = self.of(node["items"], inside)
        write, read = nullable(column.to_arrow), nullable(column.from_arrow)
        return ArrowColumn(
            self._pa.list_(column.type),
            lambda value: [write(each) for each in value],
            lambda value: [read(each) for each in value],
        )

    def _map(self, node: Node, inside: tuple[str, ...]) -> ArrowColumn:
        column = self.of(node["values"], inside)
        write, read = nullable(column.to_arrow), nullable(column.from_arrow)
        return ArrowColumn(
            self._pa.map_(self._pa.string(), column.type),
            lambda value: [(key, write(each)) for key, each in value.items()],
            lambda value: {key: read(each) for key, each in value},
        )

    def _union(self, branches: list[Node], inside: tuple[str, ...]) -> ArrowColumn:
        known = [branch for branch in branches if branch != "null"]
        if not known:
            return ArrowColumn(self._pa.null())
        if len(known) == 1:
            return self.of(known[0], inside)
        # parquet-avro: a union of several types is a group with one member for each, of which one is set.
        columns = [self.of(branch, inside) for branch in known]
        readers = [nullable(column.from_arrow) for column in columns]

        def write(value: Any) -> dict[str, Any]:
            branch = self._schema.branch_of(value, known)
            if branch is None:
                raise ValueError(f"{value!r} does not match any type of the union")
            number = known.index(branch)
            return {f"member{number}": nullable(columns[number].to_arrow)(value)}

        def read(value: Any) -> Any:
            for number, each in enumerate(readers):
                if value.get(f"member{number}") is not None:
                    return each(value[f"member{number}"])
            return None

        fields = [self._pa.field(f"member{number}", column.type) for number, column in enumerate(columns)]
        return ArrowColumn(self._pa.struct(fields), write, read)
