"""Describe types as JSON, for the record of a state's values in a checkpoint (docs/formats/state-types.md).

`Incompatible` is the error for a type that cannot be converted to another.
"""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any, TypeAlias

from ekorn.types.avro_schema import AvroSchema, GenericRecordAvroTypeInfo, describe_node
from ekorn.types.basic_types import BasicTypeInfo, PickledBytesTypeInfo
from ekorn.types.composite_types import (
    ListTypeInfo,
    MapTypeInfo,
    ObjectArrayTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ekorn.types.pojo import PojoTypeInfo
from ekorn.types.serializer import SerializerTypeInfo, TypeSerializer
from ekorn.types.type_information import TypeInformation

Schema: TypeAlias = Any
"""JSON: a word for a type of single values, an object with one entry for a composite type."""

PICKLED: Schema = "any"

_WORDS = {
    "String": "STRING",
    "Char": "CHAR",
    "Boolean": "BOOLEAN",
    "Byte": "BYTE",
    "Short": "SHORT",
    "Integer": "INT",
    "Long": "LONG",
    "Float": "FLOAT",
    "Double": "DOUBLE",
    "BigInteger": "BIG_INT",
    "BigDecimal": "BIG_DEC",
    "Instant": "INSTANT",
    "DateTypeInfo": "SQL_DATE",
    "TimeTypeInfo": "SQL_TIME",
    "TimestampTypeInfo": "SQL_TIMESTAMP",
}


def describe(type_info: TypeInformation | None) -> Schema:
    """Describe a type as JSON; without a declared type, values may be anything.

    >>> from ekorn.common import Types
    >>> describe(Types.ROW_NAMED(["id", "tags"], [Types.LONG(), Types.LIST(Types.STRING())]))
    {'row': [['id', 'LONG'], ['tags', {'list': 'STRING'}]]}
    """
    match type_info:
        case None | PickledBytesTypeInfo():
            return PICKLED
        case BasicTypeInfo() if str(type_info) in _WORDS:
            return _WORDS[str(type_info)]
        case RowTypeInfo():
            names, types = type_info.get_field_names(), type_info.get_field_types()
            return {"row": [[name, describe(each)] for name, each in zip(names, types, strict=True)]}
        case TupleTypeInfo():
            return {"tuple": [describe(each) for each in type_info.get_field_types()]}
        case PrimitiveArrayTypeInfo():
            return {"primitive-array": describe(type_info.elem_type)}
        case ObjectArrayTypeInfo():
            return {"array": describe(type_info.elem_type)}
        case ListTypeInfo():
            return {"list": describe(type_info.elem_type)}
        case MapTypeInfo():
            return {"map": [describe(type_info.key_type), describe(type_info.value_type)]}
        case GenericRecordAvroTypeInfo():
            return {"avro": type_info.get_schema().json}
        case PojoTypeInfo():
            return {"class": type_info.name}
        case SerializerTypeInfo():
            return {"serializer": describe_serializer(type_info.serializer)}
        case _:
            return {"other": f"{type(type_info).__module__}:{type(type_info).__qualname__}", "says": str(type_info)}


def describe_serializer(serializer: TypeSerializer[Any]) -> Schema:
    """Describe a serializer: the class and version of its snapshot, and the bytes that the snapshot wrote."""
    snapshot, stream = serializer.snapshot_configuration(), BytesIO()
    snapshot.write_snapshot(stream)
    cls = type(snapshot)
    return {
        "snapshot": f"{cls.__module__}:{cls.__qualname__}",
        "version": snapshot.get_current_version(),
        "configuration": base64.b64encode(stream.getvalue()).decode("ascii"),
    }


def spell(schema: Schema) -> str:
    """Return a description in words, for messages.

    >>> spell({"row": [["id", "LONG"], ["tags", {"list": "STRING"}]]})
    'ROW(id LONG, tags LIST(STRING))'
    """
    match schema:
        case str():
            return schema.replace(":", ".")
        case {"row": fields}:
            return f"ROW({', '.join(f'{name} {spell(each)}' for name, each in fields)})"
        case {"map": [key, value]}:
            return f"MAP({spell(key)}, {spell(value)})"
        case {"tuple": fields}:
            return f"TUPLE({', '.join(map(spell, fields))})"
        case {"other": _, "says": text}:
            return str(text)
        case {"serializer": {"snapshot": name}}:
            return f"values of a serializer with the snapshot {name.replace(':', '.')}"
        case {"avro": document}:
            return f"Avro {describe_node(AvroSchema(document).root)}"
        case {"class": name}:
            return str(name).replace(":", ".")
        case dict() if len(schema) == 1:
            ((word, inner),) = schema.items()
            return f"{word.upper().replace('-', '_')}({spell(inner)})"
        case _:
            return repr(schema)


class Incompatible(Exception):
    """Old values cannot be converted to the new type. The path names the fields, elements and values on the way.

    This error is internal. It becomes a `StateMigrationError` where the name of the state is known.
    """

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(reason, path)

    def inside(self, place: str) -> Incompatible:
        """Return the same error with a path that starts one value further out."""
        reason, path = self.args
        return Incompatible(reason, (place, *path))

    def __str__(self) -> str:
        reason, path = self.args
        return f"{'.'.join(path)}: {reason}" if path else str(reason)


def changed(old: Any, new: Any) -> Incompatible:
    """Return the error for a type that cannot be converted to another."""
    return Incompatible(f"was {spell(old)} and is {spell(new)}")


# -------------------------------------------------------------------- the names of classes and functions in checkpoints


def name_of(global_object: Any) -> str:
    """Return the name of a class or function in checkpoints: `module:qualified.name`."""
    return f"{global_object.__module__}:{global_object.__qualname__}"
