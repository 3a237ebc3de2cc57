"""`ekorn state show`, `get`, `diff`, `export` and `edit`: commands for the state in savepoints, which need no job."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from typing import Any

from ekorn.cli.savepoint_commands import absolute, configured_key
from ekorn.errors import ConfigurationError, QueryRefused, StateError
from ekorn.errors.base import printable
from ekorn.rest.key_text import key_of_text
from ekorn.state.declared import Described
from ekorn.state.evolution.type_descriptions import describe
from ekorn.state.snapshots import StateInfo
from ekorn.state_processor.operator_identifier import OperatorIdentifier, is_operator_id
from ekorn.state_processor.reading.operator_state_rows import rows_of_operator_state
from ekorn.state_processor.reading.state_rows import StateTable, rows_by_key, rows_of_state, rows_of_timers
from ekorn.state_processor.reading.stored_savepoint import StoredOperator, StoredSavepoint, open_savepoint
from ekorn.state_processor.tools.editing import edit_savepoint
from ekorn.state_processor.tools.export import export_parquet
from ekorn.state_processor.tools.savepoint_inspection import (
    differences,
    find_key,
    operator_state_differences,
    operators_in_both,
    some_key,
    summaries,
)
from ekorn.storage.locations import shown
from ekorn.types.factory import Types

__all__ = ["diff", "edit", "export", "get", "show"]

_SIMPLE_TYPES = (
    *(Types.STRING(), Types.BOOLEAN(), Types.BYTE(), Types.SHORT(), Types.INT(), Types.LONG(), Types.BIG_INT()),
    *(Types.FLOAT(), Types.DOUBLE(), Types.BIG_DEC(), Types.SQL_DATE(), Types.SQL_TIME(), Types.SQL_TIMESTAMP()),
)
_KEY_TYPES = {str(describe(each)): each for each in _SIMPLE_TYPES}


def show(path: str, uid: str | None, sample: int) -> int:
    """Print the number of entries of each state, and some of them."""
    savepoint = _opened(path)
    operators = savepoint.operators() if uid is None else [_operator(savepoint, uid)]
    for stored in operators:
        if not stored.metadata.has_state:
            continue
        print(f"operator {stored.label}")
        for summary in summaries(stored, sample):
            print(f"  {_text(summary.info)}: {summary.entries} {'entry' if summary.entries == 1 else 'entries'}")
            for line in summary.sample:
                print(f"    {line}")
    return 0


def get(path: str, uid: str, key_text: str) -> int:
    """Print all state of a key. The exit code is 1 if it has none."""
    stored = _operator(_opened(path), uid)
    if not stored.keyed_states:
        raise StateError(f"operator {stored.label} has no keyed state: `ekorn state show` prints its elements")
    key = key_of(key_text, stored)
    found = find_key(stored, key)
    for info, namespace, value, stamps in found:
        at = "" if namespace is None else f" at {namespace!r}"
        last = "" if stamps is None else f"  (last access in ms: {stamps!r})"
        print(f"{_text(info)}{at}" + ("" if info.kind == "timers" else f": {value!r}{last}"))
    if not found:
        other = some_key(stored)
        like = "" if other is None else f"; one of its keys is {other!r}, which is a {type(other).__name__}"
        print(f"operator {stored.label} has no state of key {key!r}, which is a {type(key).__name__}{like}")
    return 0 if found else 1


def diff(old: str, new: str, uid: str | None) -> int:
    """Print what changed between two savepoints. The exit code is 1 if anything did."""
    one, other = _opened(old), _opened(new)
    pairs = [(_operator(one, uid), _operator(other, uid))] if uid is not None else operators_in_both(one, other)
    count = 0
    for before, after in pairs:
        for info, (key, namespace), change, was, now in differences(before, after):
            at = "" if namespace is None else f" at {namespace!r}"
            values = {"added": repr(now), "removed": repr(was), "changed": f"{was!r} -> {now!r}"}[change]
            print(f"{change:8} {_place(before, info)} {key!r}{at}: {values}")
            count += 1
        for info, change, text in operator_state_differences(before, after):
            print(f"{change:8} {_place(before, info)}: {text}")
            count += 1
    for missing, where in ((one, other), (other, one)):
        for stored in missing.operators() if uid is None else ():
            if stored.metadata.has_state and where.metadata.operator(stored.metadata.operator_id) is None:
                print(f"operator {stored.label} is in {shown(missing.url)} only")
                count += 1
    return 1 if count else 0


def export(path: str, uid: str, directory: str, *, state: str | None, timers: bool) -> int:
    """Write the state of an operator as Parquet."""
    stored = _operator(_opened(path), uid)
    count = export_parquet(_table(stored, state, timers=timers), directory)
    print(f"wrote {count} rows of operator {stored.label} to {directory}")
    return 0


def _table(stored: StoredOperator, state: str | None, *, timers: bool) -> StateTable:
    if timers:
        return rows_of_timers(stored)
    if state is None:
        return rows_by_key(stored)
    named = [info for info in stored.metadata.states if info.name == state]
    if named and all(info.of_subtask for info in named):
        return rows_of_operator_state(stored, state)
    return rows_of_state(stored, state)


def edit(path: str, uid: str, function: str, new: str) -> int:
    """Write a new savepoint with edited state."""
    edited = edit_savepoint(absolute(path), _identifier(uid), _function(function), absolute(new), configured_key())
    did = f"{edited.changed} entries changed and {edited.removed} removed"
    print(f"wrote {shown(edited.path)}: {did}, of {edited.keys} keys")
    return 0


def _opened(path: str) -> StoredSavepoint:
    return open_savepoint(absolute(path), configured_key())


def _operator(savepoint: StoredSavepoint, uid: str) -> StoredOperator:
    return savepoint.operator(_identifier(uid))


def _identifier(uid: str) -> OperatorIdentifier:
    if not uid:
        raise ConfigurationError("the uid is empty: name the operator by its uid, or by its id of 32 hex digits")
    return OperatorIdentifier.for_uid_hash(uid) if is_operator_id(uid) else OperatorIdentifier.for_uid(uid)


def _text(info: StateInfo) -> str:
    return printable(f"{info.name} ({info.summary})")


def _place(stored: StoredOperator, info: StateInfo) -> str:
    return printable(f"{stored.metadata.uid or stored.metadata.operator_id} {info.name}")


def key_of(text: str, stored: StoredOperator) -> Any:
    """Return the key that a text on the command line stands for, by the type that the program declares for the keys.

    Text in quotes is text, whatever the type. Without a declared type, a literal of Python is that value, and any other
    text is itself.

    Raises:
        StateError: The text is no key of the declared type.
    """
    literal = key_of_text(text, None)
    schemas = [Described.decode(info.schema, info.name).key for info in stored.keyed_states]
    declared = next((_KEY_TYPES[each] for each in schemas if isinstance(each, str) and each in _KEY_TYPES), None)
    if declared is None or (declared == Types.STRING() and isinstance(literal, str)):
        return literal
    try:
        return key_of_text(text, declared)
    except QueryRefused as error:
        raise StateError(f"operator {stored.label} has keys of type {declared}: {error}") from None


def _function(text: str) -> Callable[[Any, dict[str, Any]], dict[str, Any] | None]:
    path, colon, name = text.rpartition(":")
    if not colon or not path:
        raise ConfigurationError(f"{text!r} does not name a function: write FILE:FUNCTION, such as repair.py:edit")
    found: Callable[[Any, dict[str, Any]], dict[str, Any] | None] | None = runpy.run_path(path).get(name)
    if not callable(found):
        raise ConfigurationError(f"{path!r} has no function {name!r}")
    return found
