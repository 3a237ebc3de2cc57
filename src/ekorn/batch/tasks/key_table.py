"""Records of a task by key, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ekorn.batch.plan.record_keys import Keys

__all__ = ["KeyTable", "add_to", "emptied", "new_table"]

KeyTable = defaultdict[Any, list[Any]]


def new_table() -> KeyTable:
    """Return an empty table."""
    return defaultdict(list)


def add_to(table: KeyTable, keys: Keys, chunk: list[Any]) -> None:
    """Add records to a table by key."""
    for key, record in zip(keys.of(chunk), chunk, strict=True):  # hot
        table[key].append(record)


def emptied(table: KeyTable) -> Iterator[Any]:
    """Yield the records of a table, and free them."""
    while table:
        yield from table.popitem()[1]
