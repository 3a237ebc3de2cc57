"""Types made of other types: tuples, rows, lists, arrays and maps.

Records are checked column by column: a run of tuples becomes one sequence per field, and each field's type checks all
values of its column in one call. The tuples are built again only if a column changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter, itemgetter
from typing import Any

from ekorn.errors import preview
from ekorn.types.basic_types import BasicTypeInfo
from ekorn.types.row import Row, RowKind, make_row
from ekorn.types.type_information import Column, Misfit, TypeInformation, all_are, fit_nullable

__all__ = [
    "BasicArrayTypeInfo",
    "ListTypeInfo",
    "MapTypeInfo",
    "ObjectArrayTypeInfo",
    "PrimitiveArrayTypeInfo",
    "RowTypeInfo",
    "TupleTypeInfo",
]

Fit = Callable[[TypeInformation, Column], Column]

_names_of: Callable[[Row], list[str] | None] = attrgetter("_names")
_row_values: Callable[[Row], list[Any]] = attrgetter("_values")
_kind_of: Callable[[Row], RowKind] = attrgetter("_row_kind")


class TupleTypeInfo(TypeInformation):
    """Tuples with one type per field. No field is None: use a row for fields that may be None."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self._types = _checked_types("TUPLE", field_types)
        self._getters = [itemgetter(i) for i in range(len(self._types))]

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields, in order."""
        return list(self._types)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if obj is None:
            return None
        return tuple(each.to_internal_type(value) for each, value in zip(self._types, obj, strict=False))

    def from_internal_type(self, obj: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if obj is None:
            return None
        return tuple(each.from_internal_type(value) for each, value in zip(self._types, obj, strict=False))

    def is_immutable(self) -> bool:
        return all(each.is_immutable() for each in self._types)

    def _fit(self, column: Column) -> Column:  # hot
        if not all_are(tuple, column):
            column = [self._as_tuple(value) for value in column]
        arity = len(self._types)
        lengths = set(map(len, column))
        if lengths and lengths != {arity}:
            if min(lengths) < arity:
                raise self._wrong_length(column)
            column = [value[:arity] for value in column]  # Flink: fields beyond the declared ones are dropped
        # One pass per field with a getter in C takes a third of the time of zip(*column).
        fields: list[Column] = [list(map(getter, column)) for getter in self._getters]
        fitted = _fit_fields(self._types, fields, _fit_plainly)
        return column if fitted is fields else list(zip(*fitted, strict=True))

    def _as_tuple(self, value: Any) -> tuple[Any, ...]:
        if isinstance(value, tuple):
            return tuple(value)
        raise Misfit(f"expected a tuple, found {preview(value, 80)} ({type(value).__name__})")

    def _wrong_length(self, column: Iterable[Sequence[Any] | Row]) -> Misfit:
        return Misfit(f"expected {len(self._types)} fields, found {min(map(len, column))}")

    def _narrow(self, value: Any) -> tuple[Any, ...]:
        if not isinstance(value, tuple | list | Row):
            raise Misfit(f"expected a tuple, found {preview(value, 80)} ({type(value).__name__})")
        if len(value) != len(self._types):
            raise self._wrong_length([value])
        return tuple(_narrow_field(i, *pair) for i, pair in enumerate(zip(self._types, value, strict=True)))

    def collected(self, value: Any) -> Any:
        if value is None:
            return None
        return tuple(each.collected(field) for each, field in zip(self._types, value, strict=True))

    def file_text(self, value: Any) -> str:
        if value is None:
            return "null"
        return f"({','.join(each.file_text(field) for each, field in zip(self._types, value, strict=False))})"

    def _identity(self) -> tuple[Any, ...]:
        return self._types

    def __repr__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self._types))})"


class RowTypeInfo(TypeInformation):
    """Rows with one type and one name per field. Any field may be None."""

    def __init__(self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None) -> None:
        self._types = _checked_types("ROW", field_types)
        self._getters = [itemgetter(i) for i in range(len(self._types))]
        self._named = field_names is not None
        self._names = list(field_names) if field_names is not None else [f"f{i}" for i in range(len(self._types))]
        if len(self._names) != len(self._types):
            raise ValueError(f"ROW_NAMED got {len(self._names)} field names for {len(self._types)} field types")
        if len(set(self._names)) != len(self._names):
            raise ValueError(f"ROW_NAMED got a field name twice: {self._names}")

    def get_field_names(self) -> list[str]:
        """Return the names of the fields: those given, or ``f0``, ``f1``, and so on."""
        return list(self._names)

    def get_field_types(self) -> list[TypeInformation]:
        """Return the types of the fields, in order."""
        return list(self._types)

    def get_field_index(self, field_name: str) -> int:
        """Return the position of a field.

        Raises:
            ValueError: There is no field of that name.
        """
        if field_name not in self._names:
            raise ValueError(f"{self} has no field {field_name!r}; its fields are {self._names}")
        return self._names.index(field_name)

    def need_conversion(self) -> bool:
        return True

    def to_internal_type(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the number of the row's kind and the stored form of each field, of a row, dict, tuple or list."""
        if obj is None:
            return None
        kind = obj.get_row_kind() if isinstance(obj, Row) else RowKind.INSERT
        values = [obj.get(name) for name in self._names] if isinstance(obj, dict) else self._values_of(obj)
        stored = (each.to_internal_type(value) for each, value in zip(self._types, values, strict=False))
        return (kind.value, *stored)

    def from_internal_type(self, obj: tuple[Any, ...] | None) -> Row | None:
        """Return the row that a result of :meth:`to_internal_type` stands for."""
        if obj is None:
            return None
        kind, *stored = obj
        values = [each.from_internal_type(value) for each, value in zip(self._types, stored, strict=False)]
        return make_row(values, self._names, RowKind(kind))

    def _values_of(self, value: Any) -> Sequence[Any]:
        if not isinstance(value, Row):
            return value  # type: ignore[no-any-return]
        try:
            return value.get_fields_by_names(self._names)
        except ValueError as error:
            raise Misfit(str(error)) from None

    def _fit(self, column: Column) -> Column:
        if not all_are(Row, column):
            for value in column:
                if not isinstance(value, Row):
                    raise self._refuse(value)
        names = self._names
        names_seen = list(map(_names_of, column))
        are_named = names_seen.count(names) == len(column)
        in_order = are_named or names_seen.count(None) == len(column)
        rows: list[Sequence[Any]] = list(map(_row_values if in_order else self._values_of, column))
        arity = len(self._types)
        lengths = set(map(len, rows))
        if lengths and min(lengths) < arity:
            raise self._wrong_length(next(values for values in rows if len(values) < arity))
        # Flink: fields beyond the declared ones are dropped; the getters below never read them.
        are_named = are_named and lengths <= {arity}
        fields: list[Column] = [list(map(getter, rows)) for getter in self._getters]
        fitted = _fit_fields(self._types, fields, fit_nullable)
        if are_named and fitted is fields:
            return column
        values = zip(*fitted, strict=True) if fitted else repeat((), len(column))
        return list(map(make_row, map(list, values), repeat(names), map(_kind_of, column)))

    def _refuse(self, value: Any) -> Misfit:
        hint = f"; write Row(*{preview(value, 40)})" if isinstance(value, tuple | list) else ""
        return Misfit(f"expected a Row, found {preview(value, 80)} ({type(value).__name__}){hint}")

    def _wrong_length(self, values: Sequence[Any]) -> Misfit:
        return Misfit(f"expected {len(self._types)} fields, found {len(values)}")

    def _narrow(self, value: Any) -> Row:
        if isinstance(value, Mapping):
            value = [value.get(name) for name in self._names]
        if not isinstance(value, tuple | list | Row):
            raise self._refuse(value)
        kind = value.get_row_kind() if isinstance(value, Row) else RowKind.INSERT
        values = self._values_of(value)
        if len(values) != len(self._types):
            raise self._wrong_length(values)
        narrowed = [
            None if field is None else _narrow_field(i, each, field)
            for i, (each, field) in enumerate(zip(self._types, values, strict=True))
        ]
        return make_row(narrowed, self._names, kind)

    def collected(self, value: Any) -> Any:
        if value is None:
            return None
        fields = [each.collected(field) for each, field in zip(self._types, value, strict=True)]
        return make_row(fields, value._names, value._row_kind)

    def text(self, value: Any) -> str:
        # Flink: `print` writes a row in the Python worker, with Python's text for the fields (no blanks, `None`,
        # `True`). Files are written by the JVM, with `null` and `true`.
        if value is None:
            return "null"
        return f"{value.get_row_kind()}[{','.join(map(str, value))}]"

    def file_text(self, value: Any) -> str:
        if value is None:
            return "null"
        fields = (each.file_text(field) for each, field in zip(self._types, value, strict=False))
        return f"{value.get_row_kind()}[{', '.join(fields)}]"

    def _identity(self) -> tuple[Any, ...]:
        return self._types  # Flink: names do not take part in equality

    def __repr__(self) -> str:
        if not self._named:
            return f"RowTypeInfo({', '.join(map(str, self._types))})"
        fields = (f"{name}: {each}" for name, each in zip(self._names, self._types, strict=True))
        return f"RowTypeInfo({', '.join(fields)})"


class ListTypeInfo(TypeInformation):
    """Lists whose elements have one type and are never None."""

    def __init__(self, element_type: TypeInformation) -> None:
        self.elem_type = _checked_type(type(self).__name__, element_type)

    def _fit(self, column: Column) -> Column:
        if not all_are(list, column):
            column = [self._as_list(value) for value in column]
        flat = list(chain.from_iterable(column))
        try:
            fitted = self._fit_elements(flat)
        except Misfit as misfit:
            raise misfit.inside("an element") from None
        return column if fitted is flat else _cut(fitted, map(len, column))

    def _fit_elements(self, flat: Column) -> Column:
        return self.elem_type._fit(flat)

    def _as_list(self, value: Any) -> list[Any]:
        if isinstance(value, list):
            return list(value)
        raise Misfit(f"expected a list, found {preview(value, 80)} ({type(value).__name__})")

    def _narrow(self, value: Any) -> Any:
        return [self._narrow_element(element) for element in self._as_list(value)]

    def _narrow_element(self, element: Any) -> Any:
        return self.elem_type._narrow(element)

    def collected(self, value: Any) -> Any:
        return None if value is None else list(map(self.elem_type.collected, value))

    def file_text(self, value: Any) -> str:
        return "null" if value is None else f"[{', '.join(map(self.elem_type.file_text, value))}]"

    def _identity(self) -> tuple[Any, ...]:
        return (self.elem_type,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}<{self.elem_type}>"


class ObjectArrayTypeInfo(ListTypeInfo):
    """Arrays of any element type, as lists; elements may be None."""

    def _fit_elements(self, flat: Column) -> Column:
        return fit_nullable(self.elem_type, flat)

    def _narrow_element(self, element: Any) -> Any:
        return None if element is None else self.elem_type._narrow(element)


class BasicArrayTypeInfo(ObjectArrayTypeInfo):
    """Arrays of a basic type, as lists; elements may be None."""


class PrimitiveArrayTypeInfo(ListTypeInfo):
    """Arrays of a number type, as lists; an array of BYTE is ``bytes``. Elements are never None."""

    def _holds_bytes(self) -> bool:
        return isinstance(self.elem_type, BasicTypeInfo) and str(self.elem_type) == "Byte"

    def is_immutable(self) -> bool:
        return self._holds_bytes()

    def _fit(self, column: Column) -> Column:
        if not self._holds_bytes():
            return super()._fit(column)
        if all_are(bytes, column):
            return column
        return [self._as_bytes(value) for value in column]

    def _as_bytes(self, value: Any) -> bytes:
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        raise Misfit(f"expected bytes, found {preview(value, 80)} ({type(value).__name__})")

    def _narrow(self, value: Any) -> Any:
        return self._as_bytes(value) if self._holds_bytes() else super()._narrow(value)

    def collected(self, value: Any) -> Any:
        return value if self._holds_bytes() else super().collected(value)

    def file_text(self, value: Any) -> str:
        if value is None or not self._holds_bytes():
            return super().file_text(value)
        return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"


class MapTypeInfo(TypeInformation):
    """Dicts with one type for the keys and one for the values. Values may be None, keys may not."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self._key_type_info = _checked_type("MAP", key_type_info)
        self._value_type_info = _checked_type("MAP", value_type_info)

    @property
    def key_type(self) -> TypeInformation:
        """Return the type of the keys."""
        return self._key_type_info

    @property
    def value_type(self) -> TypeInformation:
        """Return the type of the values."""
        return self._value_type_info

    def _fit(self, column: Column) -> Column:
        if not all_are(dict, column):
            column = [self._as_dict(value) for value in column]
        keys = list(chain.from_iterable(column))
        values = list(chain.from_iterable(each.values() for each in column))
        try:
            fitted_keys = self._key_type_info._fit(keys)
        except Misfit as misfit:
            raise misfit.inside("a key") from None
        try:
            fitted_values = fit_nullable(self._value_type_info, values)
        except Misfit as misfit:
            raise misfit.inside("a value") from None
        if fitted_keys is keys and fitted_values is values:
            return column
        pairs = iter(zip(fitted_keys, fitted_values, strict=True))
        return [dict(islice(pairs, len(each))) for each in column]

    def _as_dict(self, value: Any) -> dict[Any, Any]:
        if isinstance(value, Mapping):
            return dict(value)
        raise Misfit(f"expected a dict, found {preview(value, 80)} ({type(value).__name__})")

    def _narrow(self, value: Any) -> dict[Any, Any]:
        return {
            self._key_type_info._narrow(key): None if each is None else self._value_type_info._narrow(each)
            for key, each in self._as_dict(value).items()
        }

    def collected(self, value: Any) -> Any:
        if value is None:
            return None
        collect_key, collect_value = self._key_type_info.collected, self._value_type_info.collected
        return {collect_key(key): collect_value(each) for key, each in value.items()}

    def file_text(self, value: Any) -> str:
        if value is None:
            return "null"
        key_text, value_text = self._key_type_info.file_text, self._value_type_info.file_text
        return f"{{{', '.join(f'{key_text(key)}={value_text(each)}' for key, each in value.items())}}}"

    def _identity(self) -> tuple[Any, ...]:
        return self._key_type_info, self._value_type_info

    def __repr__(self) -> str:
        return f"MapTypeInfo<{self._key_type_info}, {self._value_type_info}>"


def _fit_fields(types: Sequence[TypeInformation], fields: list[Column], fit: Fit) -> list[Column]:
    """Fit each column by its type; return ``fields`` itself if no column changed."""
    changed: list[Column] | None = None
    for i, each in enumerate(types):
        try:
            fitted = fit(each, fields[i])
        except Misfit as misfit:
            raise misfit.inside(f"field {i}") from None
        if fitted is not fields[i]:
            changed = changed or list(fields)
            changed[i] = fitted
    return fields if changed is None else changed


def _fit_plainly(type_info: TypeInformation, column: Column) -> Column:
    return type_info._fit(column)


def _narrow_field(index: int, type_info: TypeInformation, value: Any) -> Any:
    try:
        return type_info._narrow(value)
    except Misfit as misfit:
        raise misfit.inside(f"field {index}") from None


def _cut(flat: Column, lengths: Iterable[int]) -> list[list[Any]]:
    following = iter(flat)
    return [list(islice(following, length)) for length in lengths]


def _checked_type(where: str, type_info: TypeInformation) -> TypeInformation:
    if not isinstance(type_info, TypeInformation):
        raise TypeError(f"{where} takes types such as Types.INT(), not {type_info!r}")
    return type_info


def _checked_types(where: str, field_types: Iterable[TypeInformation]) -> tuple[TypeInformation, ...]:
    return tuple(_checked_type(where, each) for each in field_types)
