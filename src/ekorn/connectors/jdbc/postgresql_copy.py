"""`COPY` in place of an `INSERT` for each row, where PostgreSQL then stores the same.

A value of `INSERT` has a type of its own, and is converted to that of its column. `COPY` reads its text as a value of
the column. The two are the same for the pairs of types below. They also differ in what else happens at an insertion:
triggers, rules, policies of rows and columns that are always generated. A table with one of them gets the statement.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ekorn.connectors.jdbc.database import Statement, Values
from ekorn.types.composite_types import ObjectArrayTypeInfo
from ekorn.types.factory import Types
from ekorn.types.type_information import TypeInformation

_TEXTS = frozenset({25, 1042, 1043, 114, 2950, 3802})  # text, char, varchar, json, uuid, jsonb
_WHOLE = frozenset({20, 21, 23, 1700})  # bigint, smallint, int, numeric
# The types of columns (their object ids in pg_type) that take the text of a value as they take the value.
_COLUMNS: dict[TypeInformation, frozenset[int]] = {
    Types.STRING(): _TEXTS,
    Types.BOOLEAN(): frozenset({16}),
    Types.BYTE(): _WHOLE,
    Types.SHORT(): _WHOLE,
    Types.INT(): _WHOLE,
    Types.LONG(): _WHOLE,
    Types.FLOAT(): frozenset({700, 701}),
    Types.DOUBLE(): frozenset({701}),
    Types.BIG_DEC(): frozenset({1700}),
    Types.SQL_DATE(): frozenset({1082}),
    Types.SQL_TIME(): frozenset({1083}),
    Types.SQL_TIMESTAMP(): frozenset({1114}),
    Types.INSTANT(): frozenset({1184}),  # with a zone; a timestamp without one would drop it
    Types.PRIMITIVE_ARRAY(Types.BYTE()): frozenset({17}),
}
_ARRAYS: dict[TypeInformation, frozenset[int]] = {
    Types.STRING(): frozenset({1009}),
    Types.BOOLEAN(): frozenset({1000}),
    Types.SHORT(): frozenset({1005}),
    Types.INT(): frozenset({1007}),
    Types.LONG(): frozenset({1016}),
    Types.DOUBLE(): frozenset({1022}),
}

_NAME = r'(?:"(?:[^"]|"")+"|[A-Za-z_][A-Za-z0-9_$]*)'
_OPENING = re.compile(
    rf"\s*INSERT\s+INTO\s+(?P<table>{_NAME}(?:\s*\.\s*{_NAME})?)\s*"
    rf"(?:\(\s*(?P<columns>{_NAME}(?:\s*,\s*{_NAME})*)\s*\)\s*)?VALUES\s*\(\s*",
    re.IGNORECASE | re.ASCII,
)
_BETWEEN = re.compile(r"\s*,\s*")
_CLOSING = re.compile(r"\s*\)\s*;?\s*")
_FIRST_VERSION = 120_000  # of PostgreSQL, whose catalog has all that is asked for

_CATALOG = """
SELECT a.attname, a.atttypid, a.attgenerated = '' AND a.attidentity <> 'a'
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
WHERE c.oid = pg_catalog.to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
  AND c.relkind = 'r' AND NOT c.relhasrules AND NOT pg_catalog.row_security_active(c.oid)
  AND NOT EXISTS (  -- a trigger, or a key into the table itself, which a row may not satisfy before the next one
    SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = c.oid AND (NOT g.tgisinternal OR g.tgconstrrelid = c.oid))
ORDER BY a.attnum
"""


def copy_statement(cursor: Any, statement: Statement, types: Sequence[TypeInformation]) -> str | None:
    """Return the `COPY` that stores what an `INSERT` would; None if there is none."""
    table, listed = table_and_columns(statement)
    if table is None or cursor.connection.info.server_version < _FIRST_VERSION:
        return None
    cursor.execute(_CATALOG, (table,))
    found = cursor.fetchall()
    by_name = {name: (type_id, is_plain) for name, type_id, is_plain in found}
    columns = [_quoted(name) for name, *_ in found[: len(types)]] if listed is None else listed
    if len(columns) != len(types):
        return None
    for column, type_info in zip(columns, types, strict=True):
        type_id, is_plain = by_name.get(_name_of(column), (0, False))
        if not is_plain or type_id not in _columns_for(type_info):
            return None
    return f"COPY {table} ({', '.join(columns)}) FROM STDIN"


def copy_rows(cursor: Any, copy: str, chunks: Iterable[Sequence[Values]]) -> None:
    """Send rows to a `COPY`."""
    with cursor.copy(copy) as sending:
        write_row = sending.write_row
        for rows in chunks:
            for row in rows:  # hot
                write_row(row)


def table_and_columns(statement: Statement) -> tuple[str | None, list[str] | None]:
    """Return the table of a plain `INSERT INTO t (a, b) VALUES (?, ?)` and its columns, as they are written.

    >>> from ekorn.connectors.jdbc.database import parse
    >>> table_and_columns(parse('INSERT INTO s.Orders (Id, "Item") VALUES (?, ?)'))
    ('s.Orders', ['Id', '"Item"'])
    >>> table_and_columns(parse("INSERT INTO orders VALUES (?, ?)"))
    ('orders', None)
    >>> table_and_columns(parse("INSERT INTO orders VALUES (?, ?) ON CONFLICT DO NOTHING"))
    (None, None)
    """
    first, *between, last = statement.parts
    opening = _OPENING.fullmatch(first)
    if opening is None or not _CLOSING.fullmatch(last) or not all(map(_BETWEEN.fullmatch, between)):
        return None, None
    listed = opening["columns"]
    return opening["table"], None if listed is None else re.findall(_NAME, listed)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _name_of(column: str) -> str:
    """Return the name of a column as the catalog has it."""
    return column[1:-1].replace('""', '"') if column.startswith('"') else column.lower()


def _columns_for(type_info: TypeInformation) -> frozenset[int]:
    if isinstance(type_info, ObjectArrayTypeInfo):
        return _ARRAYS.get(type_info.elem_type, frozenset())
    return _COLUMNS.get(type_info, frozenset())
