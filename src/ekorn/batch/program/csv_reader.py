"""`CsvReader`: how a CSV file is read, before the types of its columns are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from ekorn.batch.inputs.lines import CsvColumn, CsvLines, LineFormat
from ekorn.batch.inputs.source_inputs import FileInput
from ekorn.batch.plan.data_set_specs import InputSpec
from ekorn.batch.program.data_set import DataSet
from ekorn.batch.program.unfinished import Unfinished
from ekorn.connectors.files.text_lines import checked_charset
from ekorn.connectors.formats.text_values import text_parser
from ekorn.errors import InvalidProgramError
from ekorn.types.composite_types import TupleTypeInfo
from ekorn.types.data_type import DataType
from ekorn.types.data_type_info import data_type_of, type_info_of
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

__all__ = ["CsvReader"]

_PLAIN: dict[Any, Callable[[], TypeInformation]] = {
    str: Types.STRING,
    int: Types.LONG,
    float: Types.DOUBLE,
    bool: Types.BOOLEAN,
}
_INCLUDED = {"1": True, "T": True, "t": True, "0": False, "F": False, "f": False}


class CsvReader(Unfinished):
    """Reads lines of columns. It ends with `types` or `pojo_type`, which give the data set.

    A line with fewer columns, or with a text that is not a value of its column's type, fails the job with file, line
    and reason, unless `ignore_invalid_lines` is set.
    """

    missing_call = "types(...) or pojo_type(...)"

    def __init__(self, environment: Any, address: str) -> None:
        """Begin; programs call `env.read_csv_file`."""
        self._environment = environment
        self._address = address
        self._line_delimiter = "\n"
        self._field_delimiter = ","
        self._quote: str | None = None
        self._comment: str | None = None
        self._skips_first = False
        self._skips_invalid = False
        self._included: tuple[bool, ...] | None = None
        self._charset = "UTF-8"

    def line_delimiter(self, delimiter: str) -> Self:
        """Set the text between lines; a newline by default."""
        self._line_delimiter = _text("line_delimiter", delimiter)
        return self

    def field_delimiter(self, delimiter: str) -> Self:
        """Set the text between columns, one character or more; a comma by default."""
        self._field_delimiter = _text("field_delimiter", delimiter)
        return self

    def parse_quoted_strings(self, quote_character: str = '"') -> Self:
        """Let values stand in quotes, so that they may hold the delimiter. Without this, quotes are part of a value."""
        if len(_text("parse_quoted_strings", quote_character)) != 1:
            raise ValueError(f"parse_quoted_strings() takes one character, got {quote_character!r}")
        self._quote = quote_character
        return self

    def ignore_comments(self, comment_prefix: str) -> Self:
        """Leave out lines that begin with a prefix."""
        self._comment = _text("ignore_comments", comment_prefix)
        return self

    def ignore_first_line(self) -> Self:
        """Leave out the first line of each file, which holds the names of the columns."""
        self._skips_first = True
        return self

    def ignore_invalid_lines(self) -> Self:
        """Leave out lines that are no records."""
        self._skips_invalid = True
        return self

    def set_charset(self, charset: str) -> Self:
        """Set the charset of the files; UTF-8 by default."""
        self._charset = checked_charset(charset)
        return self

    def include_fields(self, *fields: bool | str) -> Self:
        """Choose the columns to read, from the first on: truth values, or one text such as ``"1011"`` or ``"tftt"``."""
        if len(fields) == 1 and isinstance(fields[0], str):
            if unknown := set(fields[0]) - set(_INCLUDED):
                raise ValueError(
                    f"include_fields() takes a string of 1, t, 0 and f, got {sorted(unknown)} in {fields[0]!r}"
                )
            included = tuple([_INCLUDED[character] for character in fields[0]])
        elif all(isinstance(field, bool) for field in fields):
            included = tuple([bool(field) for field in fields])
        else:
            raise TypeError(f"include_fields() takes booleans or one string such as '1011', got {fields!r}")
        if not any(included):
            raise InvalidProgramError("include_fields() needs at least one column to read")
        self._included = included
        return self

    def types(self, *field_types: type | TypeInformation | DataType) -> DataSet:
        """Read tuples with fields of these types: `int`, `float`, `str`, `bool`, `Types...` or `DataTypes...`."""
        known = self._checked_types("types", field_types)
        return self._data_set(known, tuple, TupleTypeInfo(known))

    def pojo_type(self, pojo_class: type, *fields: str, field_types: Sequence[Any] | None = None) -> DataSet:
        """Read objects of a class, which is called with the fields by name.

        Args:
            pojo_class: The class, such as a dataclass.
            fields: The names of the columns that are read, in their order.
            field_types: Their types; by default those that the annotations of the class give.
        """
        if not isinstance(pojo_class, type):
            raise TypeError(f"pojo_type() takes a class, followed by the names of fields, got {pojo_class!r}")
        if not fields:
            raise InvalidProgramError("pojo_type() needs the names of the columns, in their order")
        if field_types is None:
            annotations = _annotations(pojo_class)
            if missing := [name for name in fields if name not in annotations]:
                raise InvalidProgramError(
                    f"pojo_type(): {pojo_class.__name__} has no annotation for {missing[0]!r}; give field_types"
                )
            field_types = [annotations[name] for name in fields]
        if len(field_types) != len(fields):
            raise InvalidProgramError(f"pojo_type() got {len(fields)} fields and {len(field_types)} types")
        known = self._checked_types("pojo_type", tuple(field_types))
        return self._data_set(known, partial(_made, pojo_class, fields), None)

    def _checked_types(self, call: str, field_types: tuple[Any, ...]) -> list[TypeInformation]:
        if not field_types:
            raise InvalidProgramError(f"{call}() needs the type of each column that is read")
        if self._included is not None and sum(self._included) != len(field_types):
            raise InvalidProgramError(
                f"{call}() got {len(field_types)} types, but include_fields() chose {sum(self._included)} columns"
            )
        return [_type_of(call, each) for each in field_types]

    def _data_set(
        self, types: list[TypeInformation], make: Callable[[list[Any]], Any], known: TypeInformation | None
    ) -> DataSet:
        included = self._included or (True,) * len(types)
        indexes = [index for index, read in enumerate(included) if read]
        converters = [text_parser(data_type_of(each, "read_csv_file()")) for each in types]
        columns = [CsvColumn(index, convert) for index, convert in zip(indexes, converters, strict=True)]
        lines = LineFormat(
            CsvLines(columns, make, self._field_delimiter, self._quote),
            known,
            self._charset,
            self._line_delimiter,
            self._skips_first,
            self._comment,
        )
        source = FileInput(lines, [self._address], skips_malformed=self._skips_invalid)
        return DataSet(self._environment, "CsvInput", InputSpec(source), known_type=known)


def _made(pojo_class: type, names: tuple[str, ...], values: list[Any]) -> Any:
    return pojo_class(**dict(zip(names, values, strict=True)))


def _annotations(pojo_class: type) -> dict[str, Any]:
    import typing

    return typing.get_type_hints(pojo_class)


def _type_of(call: str, given: Any) -> TypeInformation:
    if isinstance(given, TypeInformation):
        return given
    if isinstance(given, DataType):
        return type_info_of(given)
    if given in _PLAIN:
        return _PLAIN[given]()
    raise TypeError(f"{call}() takes int, float, str, bool, or a type from Types or DataTypes, got {given!r}")


def _text(call: str, given: str) -> str:
    if not isinstance(given, str) or not given:
        raise ValueError(f"{call}() takes a non-empty string, got {given!r}")
    return given
