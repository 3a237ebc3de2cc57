"""Convert values from the type that a state was stored with to the type that it is declared with now.

`converter` compares two descriptions (`type_descriptions.py`) before it sees any value. What may change:

| | |
|---|---|
| rows | fields by name: added fields are None, removed fields are dropped, their order does not matter |
| dataclasses and named tuples | likewise; an added field needs a default (`pickled_classes.py` reads the instances) |
| Avro records | by Avro's rules of schema resolution (`avro_resolution.py`) |
| tuples | the types of the fields, not their number |
| numbers | BYTE, SHORT, INT, LONG, BIG_INT in this direction; whole numbers to FLOAT and DOUBLE; FLOAT to DOUBLE |
| lists, arrays, maps | the elements and values; the keys of maps may not change |
| anything pickled | from and to any type: each value is checked when it is restored |
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from ekorn.state.evolution.avro_resolution import resolver
from ekorn.state.evolution.type_descriptions import PICKLED, Incompatible, Schema, changed, spell
from ekorn.types.global_names import find_global
from ekorn.types.record_classes import RecordClass
from ekorn.types.row import Row, make_row

__all__ = ["Converter", "converter", "field_converters"]

Converter = Callable[[Any], Any]
"""Convert a value of the old type to the new type. The converter may change its argument and keep it."""


def converter(old: Schema, new: Schema) -> Converter | None:
    """Return the converter between two types, or None if values need no conversion.

    Example:
        >>> widened = converter({"row": [["n", "INT"]]}, {"row": [["n", "DOUBLE"], ["note", "STRING"]]})
        >>> widened(Row(n=1))
        Row(n=1.0, note=None)

    Raises:
        Incompatible: Some values of the old type have no counterpart in the new type; the error says where and why.
    """
    if old == new or PICKLED in (old, new):
        return None  # values restored from pickles are checked when they are stored again: `codecs.py`
    if isinstance(old, str) and isinstance(new, str):
        return _single(old, new)
    match old, new:
        case {"row": before}, {"row": after}:
            return _rows(before, after)
        case {"tuple": before}, {"tuple": after}:
            return _tuples(old, new, before, after)
        case {"map": [key_before, before]}, {"map": [key_after, after]}:
            return _maps(old, new, (key_before, before), (key_after, after))
        case ({"list": before}, {"list": after}) | ({"array": before}, {"array": after}):
            return _lists(before, after)
        case {"primitive-array": before}, {"primitive-array": after} if "BYTE" not in (before, after):
            return _lists(before, after)
        case {"optional": before}, {"optional": after}:
            return _unless_none(converter(before, after))
        case _, {"optional": after}:
            return converter(old, after)
        case {"optional": before}, _:
            return _never_none(converter(before, new), new)
        case {"class": before}, {"class": after} if _is_same_class(before, after):
            return None
        case {"avro": before}, {"avro": after}:
            return resolver(before, after)
        case _:
            raise changed(old, new)


def _is_same_class(before: str, after: str) -> bool:
    """Return whether the old name leads to the class of the new name: a moved class may leave an alias behind."""
    try:
        return find_global(*before.split(":")) is find_global(*after.split(":"))
    except LookupError:
        return False


# ------------------------------------------------------------------------------------------------------ single values

_WHOLE = ("BYTE", "SHORT", "INT", "LONG", "BIG_INT")
_AS_IS = {("CHAR", "STRING"), ("FLOAT", "DOUBLE"), ("bool", "int")}
_WIDENED: dict[tuple[str, str], Converter] = {("int", "float"): float, ("bool", "float"): float}
for _name in _WHOLE:
    _WIDENED[(_name, "BIG_DEC")] = Decimal
    if _name != "BIG_INT":  # a BIG_INT may be larger than the largest double
        _WIDENED[(_name, "DOUBLE")] = float
        _WIDENED[(_name, "FLOAT")] = float


def _single(old: str, new: str) -> Converter | None:
    if (old, new) in _AS_IS or (old in _WHOLE and new in _WHOLE and _WHOLE.index(old) < _WHOLE.index(new)):
        return None
    widen = _WIDENED.get((old, new))
    if widen is None:
        raise changed(old, new)
    return _unless_none(widen)


def _unless_none(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    call = convert
    return lambda value: None if value is None else call(value)


def _never_none(convert: Converter | None, new: Schema) -> Converter:
    def check(value: Any) -> Any:
        if value is None:
            raise Incompatible(f"holds None, which {spell(new)} cannot hold")
        return value if convert is None else convert(value)

    return check


# ---------------------------------------------------------------------------------------------- types made of others


def _inside(place: str, old: Schema, new: Schema) -> Converter | None:
    try:
        found = converter(old, new)
    except Incompatible as error:
        raise error.inside(place) from None
    return None if found is None else _at(place, found)


def _at(place: str, convert: Converter) -> Converter:
    def at_place(value: Any) -> Any:
        try:
            return convert(value)
        except Incompatible as error:
            raise error.inside(place) from None

    return at_place


def _rows(before: list[Any], after: list[Any]) -> Converter:
    old = {name: (position, schema) for position, (name, schema) in enumerate(before)}
    old_names, names = list(old), [name for name, _ in after]
    sources: list[tuple[int, Converter | None] | None] = []
    for name, schema in after:
        position, saved = old.get(name, (None, None))
        sources.append(None if position is None else (position, _inside(name, saved, schema)))

    def convert(row: Row | None) -> Row | None:
        if row is None:
            return None
        values = row.get_fields_by_names(old_names)
        made = [
            None if source is None else values[source[0]] if source[1] is None else source[1](values[source[0]])
            for source in sources
        ]
        return make_row(made, names, row.get_row_kind())

    return convert


def _tuples(old: Schema, new: Schema, before: list[Any], after: list[Any]) -> Converter | None:
    if len(before) != len(after):
        raise Incompatible(
            f"was {spell(old)} and is {spell(new)}: fields of a tuple have no names, so none can be added or removed; "
            f"use ROW_NAMED or a dataclass"
        )
    fields = [_inside(f"[{i}]", *pair) for i, pair in enumerate(zip(before, after, strict=True))]
    if not any(fields):
        return None
    return lambda value: tuple(v if c is None else c(v) for c, v in zip(fields, value, strict=True))


def _maps(old: Schema, new: Schema, before: tuple[Any, Any], after: tuple[Any, Any]) -> Converter | None:
    if before[0] != after[0] and PICKLED not in (before[0], after[0]):
        raise Incompatible(f"was {spell(old)} and is {spell(new)}: the keys of a map cannot change their type")
    convert = _unless_none(_inside("a value", before[1], after[1]))
    if convert is None:
        return None
    call = convert
    return lambda value: {key: call(each) for key, each in value.items()}


def _lists(before: Schema, after: Schema) -> Converter | None:
    convert = _unless_none(_inside("an element", before, after))
    return None if convert is None else lambda value: [convert(each) for each in value]


# ----------------------------------------------------------------------------------- dataclasses and named tuples


def field_converters(now: RecordClass, before: list[list[Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function from the values of the fields that a class had to those of the fields that it has now.

    Raises:
        Incompatible: A new field has no default, or the type of a field cannot be converted.
    """
    old, name = dict(before), now.name.replace(":", ".")
    converters: dict[str, Converter | None] = {}
    for field in now.fields:
        if field.name in old:
            converters[field.name] = _inside(f"{name}.{field.name}", old[field.name], field.type)
        elif field.default is None:
            raise Incompatible(
                f"{name} has a new field {field.name!r} of type {spell(field.type)} without a default, so values "
                f"stored without it cannot be read; give it a default"
            )

    def fill(values: dict[str, Any]) -> dict[str, Any]:
        made = {}
        for field in now.fields:
            if field.name in values:
                convert = converters[field.name]
                made[field.name] = values[field.name] if convert is None else convert(values[field.name])
            elif field.default is not None:
                made[field.name] = field.default()
        return made

    return fill
