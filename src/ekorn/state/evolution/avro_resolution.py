"""Avro's schema resolution for records that are dicts: convert records of one schema to records of another.

The rules are those of the Avro specification: fields match by name or alias, new fields get their defaults, numbers are
promoted, text and bytes are exchanged, an unknown symbol of an enum becomes its default, unions match branch by branch.
docs/decisions/0017-avro-parsing.md says why this is not left to a library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ekorn.errors import preview
from ekorn.state.evolution.type_descriptions import Incompatible
from ekorn.types.avro_parser import PRIMITIVES, Node
from ekorn.types.avro_schema import AvroSchema, describe_node

Convert = Callable[[Any], Any]

_PROMOTED: dict[tuple[str, str], Convert] = {
    ("int", "long"): int,
    ("int", "float"): float,
    ("int", "double"): float,
    ("long", "float"): float,
    ("long", "double"): float,
    ("float", "double"): float,
    ("string", "bytes"): lambda text: text.encode(),
    ("bytes", "string"): lambda data: bytes(data).decode(),
}


def resolver(written: Any, read: Any) -> Convert | None:
    """Return the conversion of records between two schemas, given as JSON; None if the schemas are equal.

    Raises:
        Incompatible: The schemas cannot be resolved; the error says where and why.
    """
    if written == read:
        return None
    old, new = AvroSchema(written), AvroSchema(read)
    return _Resolution(old, new).between(old.root, new.root)


class _Later:
    """A placeholder for the resolution of a recursive type, which its parts refer to before it is complete."""

    convert: Convert

    def __call__(self, value: Any) -> Any:
        return self.convert(value)


class _Resolution:
    """The resolution of two schemas, part by part."""

    def __init__(self, old: AvroSchema, new: AvroSchema) -> None:
        self._old = old
        self._new = new
        self._known: dict[tuple[str, str], _Later] = {}  # by the names of a pair of named types, which may be recursive

    def between(self, before: Node, after: Node) -> Convert:
        """Return the conversion between two parts."""
        old, new = self._old.resolved(before), self._new.resolved(after)
        if isinstance(old, list):
            return self._from_union(old, after)
        if isinstance(new, list):
            return self._to_union(before, new)
        if isinstance(old, str) or isinstance(new, str):
            return _primitive(old, new)
        if old["type"] != new["type"]:
            raise _unresolved(old, new)
        if "name" in old:
            return self._named(old, new)
        part = "items" if old["type"] == "array" else "values"
        try:
            convert = self.between(old[part], new[part])
        except Incompatible as error:
            raise error.inside("an element" if part == "items" else "a value") from None
        if part == "items":
            return lambda value: [convert(each) for each in value]
        return lambda value: {key: convert(each) for key, each in value.items()}

    def _named(self, old: Node, new: Node) -> Convert:
        if not _is_same_name(old, new):
            raise _unresolved(old, new)
        pair = (old["name"], new["name"])
        if pair not in self._known:
            self._known[pair] = _Later()
            made = self._record(old, new) if old["type"] == "record" else _enum_or_fixed(old, new)
            self._known[pair].convert = made
        return self._known[pair]

    def _record(self, old: Node, new: Node) -> Convert:
        names = {field["name"] for field in old["fields"]}
        types = {field["name"]: field["type"] for field in old["fields"]}
        sources: list[tuple[str, str, Convert]] = []
        defaults: list[tuple[str, Node, Any]] = []
        for field in new["fields"]:
            name = field["name"]
            source = next((each for each in (name, *field["aliases"]) if each in names), None)
            if source is not None:
                sources.append((name, source, self._field(name, types[source], field["type"])))
            elif "default" in field:
                defaults.append((name, field["type"], field["default"]))
            else:
                raise Incompatible(f"field {name!r} is new and has no default", (name,))

        def convert(record: dict[str, Any]) -> dict[str, Any]:
            made = {name: call(record[source]) for name, source, call in sources}
            return made | {name: self._default(kind, default) for name, kind, default in defaults}

        return convert

    def _field(self, name: str, old: Node, new: Node) -> Convert:
        try:
            convert = self.between(old, new)
        except Incompatible as error:
            raise error.inside(name) from None

        def at_field(value: Any) -> Any:
            try:
                return convert(value)
            except Incompatible as error:
                raise error.inside(name) from None

        return at_field

    def _default(self, node: Node, default: Any) -> Any:
        """Return the value of a default, which the schema contains as JSON."""
        node = self._new.resolved(node)
        if isinstance(node, list):
            return self._default(node[0], default)
        if node == "bytes" or (isinstance(node, dict) and node["type"] == "fixed"):
            return default.encode("iso-8859-1")
        if isinstance(node, str):
            return float(default) if node in ("float", "double") else default
        if node["type"] == "record":
            fields = {field["name"]: field for field in node["fields"]}
            given = {name: default.get(name, field.get("default")) for name, field in fields.items()}
            return {name: self._default(fields[name]["type"], value) for name, value in given.items()}
        if node["type"] == "array":
            return [self._default(node["items"], each) for each in default]
        if node["type"] == "map":
            return {key: self._default(node["values"], each) for key, each in default.items()}
        return default

    # -------------------------------------------------------------------------------------------------- unions

    def _from_union(self, branches: list[Node], after: Node) -> Convert:
        """Convert each value by its branch. A branch that cannot be resolved fails only for a value of that branch."""
        converts: list[tuple[Node, Convert | Incompatible]] = []
        for branch in branches:
            try:
                converts.append((branch, self.between(branch, after)))
            except Incompatible as error:
                converts.append((branch, error))
        if all(isinstance(convert, Incompatible) for _, convert in converts):
            raise _unresolved(branches, self._new.resolved(after))

        def convert(value: Any) -> Any:
            for branch, call in converts:
                if self._old.misfit(value, branch) is None:
                    if isinstance(call, Incompatible):
                        raise Incompatible(f"holds {preview(value, 80)}, and {call}")
                    return call(value)
            raise Incompatible(f"holds {preview(value, 80)}, which matches no branch of {describe_node(branches)}")

        return convert

    def _to_union(self, before: Node, branches: list[Node]) -> Convert:
        if before in PRIMITIVES and before in branches:
            return _itself
        for branch in branches:
            try:
                return self.between(before, branch)
            except Incompatible:
                continue  # the next branch may match
        raise _unresolved(self._old.resolved(before), branches)


def _primitive(old: Node, new: Node) -> Convert:
    if old == new:
        return _itself
    promote = _PROMOTED.get((old, new)) if isinstance(old, str) and isinstance(new, str) else None
    if promote is None:
        raise _unresolved(old, new)
    return promote


def _enum_or_fixed(old: Node, new: Node) -> Convert:
    if old["type"] == "fixed":
        if old["size"] != new["size"]:
            raise Incompatible(f"{old['name']} was {old['size']} bytes and is {new['size']}")
        return _itself
    symbols, default = frozenset(new["symbols"]), new.get("default")

    def convert(symbol: str) -> str:
        if symbol in symbols:
            return symbol
        if default is None:
            raise Incompatible(f"holds {symbol!r}, which {new['name']} no longer has, nor a default")
        return str(default)

    return convert


def _is_same_name(old: Node, new: Node) -> bool:
    # The specification matches names without their namespace, or by an alias of the reader.
    return _short(old["name"]) == _short(new["name"]) or old["name"] in new["aliases"]


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _unresolved(old: Node, new: Node) -> Incompatible:
    return Incompatible(f"was {describe_node(old)} and is {describe_node(new)}")


def _itself(value: Any) -> Any:
    return value
