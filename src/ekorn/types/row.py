"""`Row`: a record whose fields may have names, with the kind of change that the row makes to a table."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

from ekorn.types.published import publish

__all__ = ["Row", "RowKind"]


class RowKind(Enum):
    """The change that a row makes to the table of its stream; prints as ``+I``, ``-U``, ``+U`` or ``-D``."""

    INSERT = 0
    UPDATE_BEFORE = 1
    UPDATE_AFTER = 2
    DELETE = 3

    def __str__(self) -> str:
        return _KIND_TEXT[self.value]


_KIND_TEXT = ("+I", "-U", "+U", "-D")
_INSERT = RowKind.INSERT


class Row:
    """A record of fields that are read by position, or by name if the row has names.

    >>> row = Row(name="Alice", age=11)
    >>> row.name, row["age"], row[0]
    ('Alice', 11, 'Alice')

    A row whose values are names creates rows with these names:

    >>> Person = Row("name", "age")
    >>> Person("Alice", 11)
    Row(name='Alice', age=11)

    Fields are assigned by ``row["age"] = 12`` or by position, not as attributes.
    """

    __slots__ = ("_names", "_row_kind", "_values")

    _values: list[Any]
    _names: list[str] | None
    _row_kind: RowKind

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs:
            if args:
                raise ValueError("give a Row either positional or named fields, not both")
            self._names = list(kwargs)
            self._values = list(kwargs.values())
        else:
            self._names = None
            self._values = list(args)
        self._row_kind = _INSERT

    @staticmethod
    def of_kind(row_kind: RowKind, *args: Any, **kwargs: Any) -> Row:
        """Create a row of the given kind; the fields are given as to :class:`Row`."""
        row = Row(*args, **kwargs)
        row.set_row_kind(row_kind)
        return row

    def as_dict(self, recursive: bool = False) -> dict[str, Any]:
        """Return the fields by name.

        Args:
            recursive: Whether rows in fields, lists and maps become dicts as well.

        Raises:
            TypeError: The row has no field names.
        """
        if self._names is None:
            raise TypeError(f"cannot make a dict of {self!r}: its fields have no names; call set_field_names first")
        values = map(_as_plain, self._values) if recursive else self._values
        return dict(zip(self._names, values, strict=False))

    def get_row_kind(self) -> RowKind:
        """Return the change that this row makes to the table of its stream."""
        return self._row_kind

    def set_row_kind(self, row_kind: RowKind) -> None:
        """Set the change that this row makes to the table of its stream."""
        self._row_kind = row_kind

    def set_field_names(self, field_names: list[str]) -> None:
        """Name the fields, in their order."""
        self._names = list(field_names)

    def get_fields_by_names(self, names: list[str]) -> list[Any]:
        """Return the fields with these names, in the order of the names; of a row without names, all fields.

        Raises:
            ValueError: The row has no field of one of the names.
        """
        own = self._names
        if own is None or own == names:
            return self._values
        unknown = [name for name in names if name not in own]
        if unknown:
            raise ValueError(f"the row has no field named {unknown}; its fields are {own}")
        return [self._values[own.index(name)] for name in names]

    def __call__(self, *args: Any) -> Row:
        """Create a row whose field names are the values of this row."""
        if len(args) > len(self._values):
            raise ValueError(f"{self!r} names {len(self._values)} fields, but {len(args)} values were given: {args!r}")
        return make_row(list(args), list(self._values))

    def __getitem__(self, item: Any) -> Any:
        if isinstance(item, int | slice):
            return self._values[item]
        return self._values[self._position(item)]

    def __setitem__(self, key: Any, value: Any) -> None:
        if isinstance(key, int | slice):
            self._values[key] = value
        else:
            self._values[self._position(key)] = value

    def _position(self, name: Any) -> int:
        if self._names is None:
            raise ValueError(f"cannot look up {name!r}: the fields of {self!r} have no names")
        if name not in self._names:
            raise ValueError(f"the row has no field {name!r}; its fields are {self._names}")
        return self._names.index(name)

    @property
    def _fields(self) -> list[str]:
        # Programs read this name of PyFlink's. A row without names does not have the attribute.
        if self._names is None:
            raise AttributeError("_fields")
        return self._names

    def __getattr__(self, item: str) -> Any:
        # Python calls this for names that are neither a method nor a slot with a value. A slot without a value comes
        # here too: pickle and copy read attributes of rows that have no values yet.
        if item.startswith("__") or item in Row.__slots__ or self._names is None or item not in self._names:
            raise AttributeError(item)
        position = self._names.index(item)
        if position >= len(self._values):  # a row of names may be called with fewer values than names
            raise AttributeError(item)
        return self._values[position]

    def __contains__(self, item: object) -> bool:
        return item in (self._values if self._names is None else self._names)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Row):
            return NotImplemented
        return self._values == other._values and self._row_kind is other._row_kind and self._names == other._names

    def __hash__(self) -> int:
        return hash(tuple(self._values))

    def __reduce__(self) -> tuple[Any, ...]:
        # One call with plain lists takes a quarter of the bytes and of the time of pickling slots one by one. The kind
        # is pickled as a number, because pickling an Enum member costs more than the rest of a short row.
        if self._row_kind is not _INSERT:
            return _row_of_kind, (self._row_kind.value, self._values, self._names)
        if self._names is not None:
            return make_row, (self._values, self._names)
        return make_row, (self._values,)

    def __repr__(self) -> str:
        if self._names is None:
            return f"<Row({', '.join(map(repr, self._values))})>"
        return f"Row({', '.join(f'{n}={v!r}' for n, v in zip(self._names, self._values, strict=False))})"


def make_row(values: list[Any], names: list[str] | None = None, kind: RowKind = _INSERT) -> Row:
    """Create a row that keeps these lists, without checks: the fast way for callers that know the shape is right."""
    row = _new(Row)
    row._values = values
    row._names = names
    row._row_kind = kind
    return row


_new = Row.__new__


def _row_of_kind(kind: int, values: list[Any], names: list[str] | None) -> Row:
    return make_row(values, names, RowKind(kind))


publish("ekorn.common.types", Row, RowKind, make_row, _row_of_kind)


def _as_plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.as_dict(recursive=True)
    if isinstance(value, list):
        return [_as_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _as_plain(each) for key, each in value.items()}
    return value
