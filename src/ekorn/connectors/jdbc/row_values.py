"""From records to the values of a statement."""

from __future__ import annotations

from typing import Any

from ekorn.connectors.jdbc.database import Database
from ekorn.connectors.jdbc.placeholders import Statement
from ekorn.types.composite_types import RowTypeInfo
from ekorn.types.row import Row
from ekorn.types.type_information import TypeInformation

Values = tuple[Any, ...]


class RowValues:
    """Checks records against a type, and returns the values that a statement takes."""

    def __init__(self, call: str, statement: Statement, type_info: TypeInformation, database: Database) -> None:
        """Check that the statement takes as many values as the type has fields, and that each type can be bound."""
        if not isinstance(type_info, RowTypeInfo):
            raise TypeError(f"{call} takes the type of its rows, such as Types.ROW([Types.INT()]), got {type_info!r}")
        names, types = type_info.get_field_names(), type_info.get_field_types()
        if statement.placeholder_count != len(types):
            raise ValueError(
                f"{call}: the statement has {statement.placeholder_count} placeholders '?', "
                f"but the type has {len(types)} fields: {', '.join(names)}"
            )
        self._type_info = type_info
        self._bindings = []
        for position, (name, each) in enumerate(zip(names, types, strict=True)):
            try:
                binding = database.binding(each)
            except ValueError as error:
                raise ValueError(f"{call}: field {name!r}: {error}") from None
            if binding is not None:
                self._bindings.append((position, binding))

    def of(self, record: Any) -> Values:
        """Return the values of a record, in the order of the type's fields.

        Raises:
            RecordTypeError: The record does not fit the type.
        """
        row = Row(*record) if type(record) is tuple else record
        values = list(self._type_info.conform([row])[0])
        for position, binding in self._bindings:
            if values[position] is not None:
                values[position] = binding(values[position])
        return tuple(values)
